//! Where an array's control socket is.

use raidlab_units::visible_path;
use rustix::fs::{Mode, lstat, mkdir};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// How the names of control sockets end.
const CONTROL: &str = ".sock";
/// What stands before that in the names of clients' sockets.
const CLIENTS: &str = ".nbd";
/// How the names of logs end; no socket's may end so.
const LOG: &str = ".log";

/// Why there is no place for a socket.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A name that would lead elsewhere.
    #[error(
        "`{0}` cannot be an array's name: letters, digits, `-`, `_`, `.` and `:`, no dot at \
         the start, no `.nbd` at the end, at most 64 bytes"
    )]
    Name(String),
    /// The folder cannot be made.
    #[error("cannot make {}", visible_path(.path))]
    Make {
        /// The folder or socket.
        path: PathBuf,
        /// Why it cannot be made.
        #[source]
        source: std::io::Error,
    },
    /// Somebody else could put a socket there.
    #[error("{} belongs to another user, or others may write to it", visible_path(.0))]
    NotOurs(PathBuf),
}

/// The socket of the array `name`: in `$XDG_RUNTIME_DIR/raidlab`, else for root
/// in `/run/raidlab`, else in `raidlab-UID` in the system's
/// folder for temporary files (`TMPDIR`). The folder is made, for its
/// owner alone.
///
/// # Errors
/// When the name has other characters than letters, digits, `-`, `_`, `.` and
/// `:`, ends with `.nbd` or is longer than 64 bytes, or the folder cannot be trusted.
pub fn control_path(name: &str) -> Result<PathBuf, PlaceError> {
    file_in(&folder(), name, CONTROL)
}

/// The socket for the clients of the array `name`, beside its control socket.
///
/// # Errors
/// As [`control_path`].
pub fn clients_path(name: &str) -> Result<PathBuf, PlaceError> {
    file_in(&folder(), name, &format!("{CLIENTS}{CONTROL}"))
}

/// The file for what the server of the array `name` says, beside its control socket.
///
/// # Errors
/// As [`control_path`].
pub fn log_path(name: &str) -> Result<PathBuf, PlaceError> {
    file_in(&folder(), name, LOG)
}

fn folder() -> PathBuf {
    let user = rustix::process::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if Path::new(&runtime).is_absolute() => Path::new(&runtime).join("raidlab"),
        _ if user.is_root() => PathBuf::from("/run/raidlab"),
        _ => std::env::temp_dir().join(format!("raidlab-{}", user.as_raw())),
    }
}

/// Whether an array of this name can be served: the name is its socket's too.
///
/// # Errors
/// As [`control_path`] for the name.
pub fn check_name(name: &str) -> Result<(), PlaceError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    // Such a name's control socket would be another's socket for clients.
    let collides = name.starts_with('.') || name.ends_with(CLIENTS);
    if name.is_empty() || name.len() > 64 || collides || !name.bytes().all(plain) {
        return Err(PlaceError::Name(name.to_owned()));
    }
    Ok(())
}

pub(super) fn file_in(folder: &Path, name: &str, ending: &str) -> Result<PathBuf, PlaceError> {
    check_name(name)?;
    match mkdir(folder, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(source) => {
            return Err(PlaceError::Make {
                path: folder.to_owned(),
                source: source.into(),
            });
        }
    }
    // A link that somebody else has put there is not ours either.
    let found = lstat(folder).map_err(|source| PlaceError::Make {
        path: folder.to_owned(),
        source: source.into(),
    })?;
    let ours = found.st_uid == rustix::process::geteuid().as_raw() && found.st_mode & 0o022 == 0;
    if !ours {
        return Err(PlaceError::NotOurs(folder.to_owned()));
    }
    Ok(folder.join(format!("{name}{ending}")))
}
