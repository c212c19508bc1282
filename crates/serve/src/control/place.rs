//! The paths of an array's control socket and of the files beside it.

use raidlab_units::visible_path;
use rustix::fs::{Mode, lstat, mkdir};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The suffix of control sockets.
const CONTROL: &str = ".sock";
/// The part before the suffix in the names of clients' sockets.
const CLIENTS: &str = ".nbd";
/// The suffix of logs; no socket's name may end so.
const LOG: &str = ".log";

/// The reason why a socket has no path.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A name that is not allowed, such as one that leads to another folder.
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
        /// The reason why it cannot be made.
        #[source]
        source: std::io::Error,
    },
    /// The folder belongs to another user, or others may write to it.
    #[error("{} belongs to another user, or others may write to it", visible_path(.0))]
    NotOurs(PathBuf),
}

/// Returns the path of the socket of the array `name`: in `$XDG_RUNTIME_DIR/raidlab`, else for root
/// in `/run/raidlab`, else in `raidlab-UID` in the system's folder for temporary files (`TMPDIR`).
/// The folder is made, for its owner alone.
///
/// # Errors
/// When the name has other characters than letters, digits, `-`, `_`, `.` and `:`, ends with `.nbd`
/// or is longer than 64 bytes, or the folder cannot be trusted.
pub fn control_path(name: &str) -> Result<PathBuf, PlaceError> {
    file_in(&folder(), name, CONTROL)
}

/// Returns the path of the socket for the clients of the array `name`, beside its control socket.
///
/// # Errors
/// As [`control_path`].
pub fn clients_path(name: &str) -> Result<PathBuf, PlaceError> {
    file_in(&folder(), name, &format!("{CLIENTS}{CONTROL}"))
}

/// Returns the path of the log of the server of the array `name`, beside its control socket.
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

/// Checks that an array of this name can be served: its control socket has the same name.
///
/// # Errors
/// As [`control_path`] for the name.
pub fn check_name(name: &str) -> Result<(), PlaceError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    // The control socket of such a name would be another array's socket for clients.
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
    // A symbolic link that another user has put there is refused too.
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
