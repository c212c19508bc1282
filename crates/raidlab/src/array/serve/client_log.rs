//! Messages on clients that ended badly: a few lines, whatever they do.
//!
//! A flood of such clients must neither fill a log nor wait for its reader: in each [`WINDOW`] the
//! first [`LINES`] are told one by one, the others as a number, and a thread that finds another one
//! writing does not wait.

use crate::output;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(10);
const LINES: u32 = 10;

/// A log that says on standard error how clients' connections ended.
pub struct ClientLog {
    window: Mutex<Window>,
    untold: AtomicU64,
}

struct Window {
    began: Instant,
    told: u32,
}

impl ClientLog {
    /// Makes a log with an empty window.
    pub fn new() -> Self {
        Self {
            window: Mutex::new(Window {
                began: Instant::now(),
                told: 0,
            }),
            untold: AtomicU64::new(0),
        }
    }

    /// Prints, or counts, how the client `number` ended.
    pub fn tell(&self, number: u32, error: &dyn Error) {
        if !self.try_tell(number, error) {
            self.untold.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn try_tell(&self, number: u32, error: &dyn Error) -> bool {
        let Ok(mut window) = self.window.try_lock() else {
            return false;
        };
        if window.began.elapsed() >= WINDOW {
            (window.began, window.told) = (Instant::now(), 0);
        }
        window.told += 1;
        if window.told > LINES {
            return false;
        }
        let cause = error.source().map(|cause| format!(": {cause}"));
        output::say(&format!(
            "client {number}: {error}{}{}",
            cause.unwrap_or_default(),
            others(self.untold.swap(0, Ordering::Relaxed))
        ));
        true
    }
}

impl Drop for ClientLog {
    fn drop(&mut self) {
        let untold = self.untold.load(Ordering::Relaxed);
        if untold > 0 {
            output::say(&format!("clients{}", others(untold)));
        }
    }
}

/// The line on clients that ended without a line of their own.
fn others(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => " (1 other ended badly before)".to_owned(),
        count => format!(" ({count} others ended badly before)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_lines_and_a_number() {
        let log = ClientLog::new();
        let error = std::io::Error::other("gone");
        (0..1000).for_each(|number| log.tell(number, &error));
        assert_eq!(log.untold.load(Ordering::Relaxed), 1000 - u64::from(LINES));
        let _writing = log.window.lock().unwrap();
        log.tell(1000, &error);
        assert_eq!(log.untold.load(Ordering::Relaxed), 991);
    }
}
