//! Handling of Ctrl-C, SIGTERM, SIGUSR1 and a closed terminal: the first signal asks the run to
//! stop, within a job too, the second ends the program at once. The store is consistent either
//! way, because each row is one transaction. Things set up on real disks are taken down after
//! the first only, so signals that come together count as one: where a terminal is closed, its
//! shell sends SIGHUP after the kernel has, and timeout(1) sends its signal to the program and
//! to the program's group.

use crate::failure::{Failure, Kind, exit_code};
use crate::output;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The time after the first signal within which others count as that one.
const TOGETHER: Duration = Duration::from_secs(1);

static STOP: AtomicBool = AtomicBool::new(false);
/// Whether the stopped work goes on when the same command is given again.
static GOES_ON: AtomicBool = AtomicBool::new(false);
/// The words to print where the program ends at once.
static LEFT: OnceLock<&'static str> = OnceLock::new();

/// Listens for signals from here on; the flag says whether to stop.
///
/// # Errors
/// When the system does not allow it.
pub fn listen() -> Result<&'static AtomicBool, Failure> {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if LISTENING.swap(true, Ordering::Relaxed) {
        return Ok(&STOP);
    }
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1]).map_err(Failure::run)?;
    thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            match first {
                Some(first) if first.elapsed() < TOGETHER => {}
                Some(_) => end(),
                None => {
                    first = Some(Instant::now());
                    STOP.store(true, Ordering::Relaxed);
                    output::say("stopping; once more to stop at once");
                }
            }
        }
    });
    Ok(&STOP)
}

/// Lets a write beyond the limit of file sizes (`ulimit -f`) fail: by itself the signal that the
/// kernel sends then ends the program, and here only one file has no room.
///
/// # Errors
/// When the system does not allow it.
pub fn outlive_the_limit_of_file_sizes() -> Result<(), Failure> {
    let seen = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGXFSZ, seen);
    registered.map(drop).map_err(Failure::run)
}

/// Ends the program at once.
fn end() -> ! {
    if let Some(left) = LEFT.get() {
        output::say(left);
    }
    let kind = match GOES_ON.load(Ordering::Relaxed) {
        true => Kind::StartAgain,
        false => Kind::Interrupted,
    };
    process::exit(exit_code(kind).into())
}

/// Registers that a program which ends at once leaves something, with the `words` to say of that.
pub fn leaves(words: &'static str) {
    LEFT.get_or_init(|| words);
}

/// Listens as [`listen()`] does, for work that goes on when the same command is given again, and
/// that stops by itself after this time.
///
/// # Errors
/// As [`listen()`].
pub fn listen_until(stop_after: Option<Duration>) -> Result<&'static AtomicBool, Failure> {
    GOES_ON.store(true, Ordering::Relaxed);
    let stop = listen()?;
    if let Some(time) = stop_after {
        thread::spawn(move || {
            thread::sleep(time);
            if !stop.swap(true, Ordering::Relaxed) {
                output::say("stopping: the time of --stop-after is over");
            }
        });
    }
    Ok(stop)
}
