//! Where an array's control socket is.

use raidlab_units::visible_path;
use rustix::fs::{Mode, lstat, mkdir};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Why there is no place for a socket.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A name that would lead elsewhere.
    #[error(
        "`{0}` cannot be an array's name: letters, digits, `-`, `_`, `.` and `:`, no dot at \
         the start, at most 64 bytes"
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
/// `:` or is longer than 64 bytes, or the folder cannot be trusted.
pub fn control_path(name: &str) -> Result<PathBuf, PlaceError> {
    let user = rustix::process::geteuid();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if Path::new(&runtime).is_absolute() => Path::new(&runtime).join("raidlab"),
        _ if user.is_root() => PathBuf::from("/run/raidlab"),
        _ => std::env::temp_dir().join(format!("raidlab-{}", user.as_raw())),
    };
    socket_in(&folder, name)
}

/// Whether an array of this name can be served: the name is its socket's too.
///
/// # Errors
/// As [`control_path`] for the name.
pub fn check_name(name: &str) -> Result<(), PlaceError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.bytes().all(plain) {
        return Err(PlaceError::Name(name.to_owned()));
    }
    Ok(())
}

pub(super) fn socket_in(folder: &Path, name: &str) -> Result<PathBuf, PlaceError> {
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
    Ok(folder.join(format!("{name}.sock")))
}
