//! The command `raidlab assemble`: it puts an array together and serves it in the background.

use super::control::status;
use super::serve::Assembling;
use crate::failure::{Failure, Kind, kind_of};
use crate::output;
use clap::Args;
use raidlab_serve::control::{ControlClient, StatusReport, control_path, log_path};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
    let last_log = log_path(&arguments.array).map_err(Failure::usage)?;
    // Another server of that name may be starting too: each has a log of its own until it serves.
    let mut log_path = last_log.clone().into_os_string();
    log_path.push(format!(".{}", std::process::id()));
    let log_path = PathBuf::from(log_path);
    let log = File::create(&log_path).map_err(|source| Failure::write_file(&log_path, source))?;
    let start_failed = |error| Failure::new(Kind::Run, StartError(error));
    let program = std::env::current_exe().map_err(start_failed)?;
    let server = Command::new(program)
        // The name may begin with a dash.
        .args(["serve".to_owned(), format!("--name={}", arguments.array)])
        .args(arguments.assembling.words())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Ctrl-C in this terminal must not reach the server.
        .process_group(0)
        .spawn()
        .map_err(start_failed);
    let answered = server.and_then(|server| answer(server, &control, &log_path));
    let said = std::fs::read_to_string(&log_path).unwrap_or_default();
    // Only the log of the one that serves is kept; an error has been said.
    let status = match answered {
        Ok(status) => {
            let kept = std::fs::rename(&log_path, &last_log);
            kept.map_err(|source| Failure::write_file(&last_log, source))?;
            status
        }
        Err(failure) => {
            let _ = std::fs::remove_file(&log_path);
            return Err(failure);
        }
    };
    output::print(&format!("{said}state {} {}\n", status.state, status.health))
}

/// Waits until a server answers at its control socket, and returns its first status.
fn answer(mut server: Child, control: &Path, log_path: &Path) -> Result<StatusReport, Failure> {
    let own = server.id();
    let mut unanswered = 0;
    loop {
        // The server answers when it has said everything and serves. Another one of that name may
        // answer in its place, until this one has found out and ends.
        let client = ControlClient::connect(control).ok();
        let client = client.filter(|client| client.server() == Some(own));
        let asked = client.map(|mut client| status(&mut client));
        if let Some(Ok(status)) = asked {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
        let ended = server.try_wait();
        if let Some(ended) = ended.map_err(|error| Failure::new(Kind::Run, StartError(error)))? {
            let said = std::fs::read_to_string(log_path).unwrap_or_default();
            let (before, error) = parted(said.trim_end());
            if !before.is_empty() {
                output::say(before);
            }
            return Err(Failure::words(kind_of(ended.code()), error));
        }
        if let Some(Err(failure)) = asked {
            unanswered += 1;
            if unanswered == MAXIMUM_UNANSWERED {
                return Err(failure);
            }
        }
    }
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
