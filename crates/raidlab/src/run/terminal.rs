//! The terminal at which a run was started, as the run sees it.

use crate::failure::{Failure, Kind};
use crate::{interrupt, kernel, output};
use console::Term;
use raidlab_runs::Front;
use raidlab_uml::{Cache, Kernel};
use std::sync::atomic::AtomicBool;

/// The terminal that this program was started at.
pub struct Terminal;

impl Front for Terminal {
    fn say(&self, line: &str) {
        output::say(line);
    }

    fn consent(&self, question: &str) -> Result<(), Failure> {
        let terminal = Term::stderr();
        if !terminal.is_term() {
            return Err(Failure::words(Kind::Usage, question)
                .help("`--dry-run` shows every command; `--yes` consents"));
        }
        output::say(question);
        output::say("type `yes` to go on:");
        match terminal.read_line() {
            Ok(answer) if answer.trim() == "yes" => Ok(()),
            _ => {
                let words = "no consent; nothing was done";
                Err(Failure::words(Kind::Interrupted, words))
            }
        }
    }

    fn listen(&self) -> Result<&'static AtomicBool, Failure> {
        interrupt::listen()
    }

    fn offer_kernel(&self, cache: &Cache, with_zfs: bool) -> Result<Option<Kernel>, Failure> {
        kernel::offer(cache, with_zfs)
    }
}
