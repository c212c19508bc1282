//! The trace of a run: its events in order, always as a hash, on demand as lines.

use crate::value::mix;
use std::fmt;

/// The record of a run.
#[derive(Debug, Clone)]
pub struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// An empty trace; with `lines` it keeps text, too.
    #[must_use]
    pub fn new(lines: bool) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            lines: lines.then(Vec::new),
        }
    }

    /// Adds an event at a virtual time: `words` contain everything that matters.
    pub fn note(&mut self, now: u64, words: &[u64], text: fmt::Arguments<'_>) {
        for word in [&now].into_iter().chain(words) {
            self.hash = mix(self.hash ^ word);
        }
        if let Some(lines) = &mut self.lines {
            let (micros, nanos) = (now / 1000, now % 1000);
            lines.push(format!("{micros:>12}.{nanos:03} us  {text}"));
        }
    }

    /// Returns a digest of all events; equal runs have equal ones.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether lines are kept.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        self.lines.is_some()
    }

    /// Returns the lines, if they are kept.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
