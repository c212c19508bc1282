//! The terminal at which a run was started, as the run sees it.

use crate::failure::Failure;
use crate::{interrupt, kernel, output};
use raidlab_runs::Front;
use raidlab_uml::{Cache, Kernel};
use std::sync::atomic::AtomicBool;

/// The terminal that this program was started at.
pub struct Terminal;

impl Front for Terminal {
    fn say(&self, line: &str) {
        output::say(line);
    }

    fn consent(&self, question: &str, help: &str) -> Result<(), Failure> {
        output::consent(question, help)
    }

    fn listen(&self) -> Result<&'static AtomicBool, Failure> {
        interrupt::listen()
    }

    fn offer_kernel(&self, cache: &Cache, with_zfs: bool) -> Result<Option<Kernel>, Failure> {
        kernel::offer(cache, with_zfs)
    }
}
