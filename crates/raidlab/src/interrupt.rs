//! Ctrl-C and SIGTERM: the first asks the run to stop, within a job too,
//! the second ends the program at once. The store is consistent either way,
//! because each row is one transaction.

use crate::failure::Failure;
use crate::output;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Listens from here on; the flag says whether to stop.
///
/// # Errors
/// When the system does not let us listen.
pub fn listen() -> Result<&'static AtomicBool, Failure> {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if LISTENING.swap(true, Ordering::Relaxed) {
        return Ok(&STOP);
    }
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        output::say("stopping; once more to stop at once");
    })
    .map_err(Failure::run)?;
    Ok(&STOP)
}
