//! The command `raidlab assemble`: it puts an array together and serves it in the background.

use super::control::status;
use super::serve::Assembling;
use crate::failure::{Failure, Kind, kind_of};
use crate::output;
use clap::Args;
use raidlab_serve::control::{ControlClient, control_path, log_path};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The time between two looks whether the server listens.
const LOOK: Duration = Duration::from_millis(50);

/// The number of connections that may end without an answer: a server that fails to start takes
/// some time to end.
const MAXIMUM_UNANSWERED: u32 = 100;

/// Arguments of `raidlab assemble`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The name by which `detail`, `manage`, `watch` and `stop` find it.
    array: String,

    #[command(flatten)]
    assembling: Assembling,

    /// Say which array the devices make; start nothing and change nothing.
    #[arg(long, help_heading = None::<&str>)]
    dry_run: bool,
}

/// Puts an array together and serves it in the background.
///
/// # Errors
/// When a device cannot be used, or the devices do not make an array that may
/// be started.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.assembling.has_devices() {
        return Err(Failure::words(Kind::Usage, "no device is named")
            .help("name the array, then its members"));
    }
    if arguments.dry_run {
        return output::print(&arguments.assembling.verdict()?);
    }
    let control = control_path(&arguments.array).map_err(Failure::usage)?;
    if ControlClient::connect(&control).is_ok() {
        let words = format!("an array `{}` is served already", arguments.array);
        return Err(Failure::words(Kind::Run, words).help("choose another name, or stop it"));
    }
    let log_path = log_path(&arguments.array).map_err(Failure::usage)?;
    let log = File::create(&log_path).map_err(|source| Failure::write_file(&log_path, source))?;
    let start_failed = |error| Failure::new(Kind::Run, StartError(error));
    let program = std::env::current_exe().map_err(start_failed)?;
    let mut server = Command::new(program)
        .args(["serve", "--name", &arguments.array])
        .args(arguments.assembling.words())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Ctrl-C in this terminal must not reach the server.
        .process_group(0)
        .spawn()
        .map_err(start_failed)?;
    let said = || std::fs::read_to_string(&log_path).unwrap_or_default();
    let mut unanswered = 0;
    let status = loop {
        // The server answers when it has said everything and serves.
        let asked = ControlClient::connect(&control).map(|mut client| status(&mut client));
        if let Ok(Ok(status)) = asked {
            break status;
        }
        std::thread::sleep(LOOK);
        if let Some(ended) = server.try_wait().map_err(start_failed)? {
            let said = said();
            let (before, error) = parted(said.trim_end());
            if !before.is_empty() {
                output::say(before);
            }
            return Err(Failure::words(kind_of(ended.code()), error));
        }
        if let Ok(Err(failure)) = asked {
            unanswered += 1;
            if unanswered == MAXIMUM_UNANSWERED {
                return Err(failure);
            }
        }
    };
    let said = said();
    output::print(&format!("{said}state {} {}\n", status.state, status.health))
}

/// Parts the messages of a server that ended into those before its error, and the error.
fn parted(said: &str) -> (&str, &str) {
    const WORD: &str = "error: ";
    match said.rfind(&format!("\n{WORD}")) {
        Some(at) => (&said[..at], &said[at + 1 + WORD.len()..]),
        None => ("", said.strip_prefix(WORD).unwrap_or(said)),
    }
}

/// The error that the server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the server")]
struct StartError(#[source] std::io::Error);

#[cfg(test)]
mod tests {
    use super::parted;

    #[test]
    fn the_error_of_a_server_is_what_it_said_last() {
        assert_eq!(parted("error: no\nhelp: so"), ("", "no\nhelp: so"));
        let said = "raid1 `a`\n  m0: slot 0\nerror: no\nhelp: so";
        assert_eq!(parted(said), ("raid1 `a`\n  m0: slot 0", "no\nhelp: so"));
        assert_eq!(parted("killed"), ("", "killed"));
    }
}
