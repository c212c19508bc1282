//! The writes of a job that are to be read back (fio `verify`).
//!
//! fio keeps writes in the order of writing where it has a random map, else by offset, and drops
//! those that a later write overlaps (`log_io_piece` of iolog.c). Between writes it reads back
//! `verify_backlog_batch` of them, or a whole backlog, whenever there are as many as a multiple of
//! the backlog (`check_get_verify` of io_u.c), and the rest when a pass has ended.

use crate::shape::Verify;
use std::collections::BTreeMap;

/// Writes that are to be read back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadBack {
    rule: Verify,
    by_offset: bool,
    /// Offsets and lengths, by the key that orders the reading back.
    written: BTreeMap<u64, (u64, u64)>,
    /// The number of writes so far.
    count: u64,
    /// The number of reads left of a batch.
    batch_left: u64,
    /// Whether the last request was a read.
    read_last: bool,
    /// Whether the pass has ended, so that everything is read back.
    all: bool,
    /// Whether the last request was one of those that read back the rest of a pass.
    ends_pass: bool,
}

impl ReadBack {
    /// Creates an empty list; `by_offset`: there is no random map.
    pub(super) const fn new(rule: Verify, by_offset: bool) -> Self {
        Self {
            rule,
            by_offset,
            written: BTreeMap::new(),
            count: 0,
            batch_left: 0,
            read_last: false,
            all: false,
            ends_pass: false,
        }
    }

    /// Notes that the job has read something else.
    pub(super) const fn read(&mut self) {
        self.ends_pass = false;
        self.read_last = true;
    }

    /// Notes that the job has written so many bytes at `offset`.
    pub(super) fn wrote(&mut self, offset: u64, length: u64) {
        self.ends_pass = false;
        self.read_last = false;
        self.count += 1;
        if !self.by_offset {
            self.written.insert(self.count, (offset, length));
            return;
        }
        let before = |written: &BTreeMap<u64, (u64, u64)>| {
            let mut below = written.range(..offset + length);
            let last = below.next_back().map(|(_, &last)| last);
            last.filter(|&(start, length)| start + length > offset)
        };
        while let Some((start, _)) = before(&self.written) {
            self.written.remove(&start);
        }
        self.written.insert(offset, (offset, length));
    }

    /// Ends a pass, so that everything is read back; returns false where there is nothing.
    pub(super) fn finish(&mut self) -> bool {
        self.all = !self.written.is_empty();
        self.all
    }

    /// Whether the last request read back the rest of a pass.
    pub(super) const fn ends_pass(&self) -> bool {
        self.ends_pass
    }

    /// The write to be read back now, if any is.
    pub(super) fn next(&mut self) -> Option<(u64, u64)> {
        let count = self.written.len() as u64;
        let is_full = self.rule.backlog > 0 && count.is_multiple_of(self.rule.backlog);
        if self.batch_left == 0 && count > 0 && is_full && !self.read_last && !self.all {
            self.batch_left = match self.rule.batch {
                0 => self.rule.backlog,
                batch => batch,
            };
        }
        if !self.all && self.batch_left == 0 {
            return None;
        }
        let next = self.written.pop_first();
        if next.is_some() {
            self.ends_pass = self.all;
            self.read_last = true;
            self.batch_left = self.batch_left.saturating_sub(u64::from(!self.all));
        }
        self.all &= !self.written.is_empty();
        next.map(|(_, piece)| piece)
    }
}
