//! A listening Unix socket that only its owner may use.
//!
//! The socket has its mode before it has a name: between a `bind` and a later `chmod` others
//! could connect. An existing file at the path is replaced only if it is a socket at which no
//! process answers, as a killed server leaves one. This is one step for all servers in a folder, by a
//! lock of the folder. At the end the name is removed only if it is still this socket's.

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// The time between two looks whether the folder is free, and the greatest number of them.
const TURN_LOOK: Duration = Duration::from_millis(10);
const TURN_LOOKS: u32 = 200;

/// A listening socket with a name; both are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the name's file.
    identity: (u64, u64),
}

impl UnixSocket {
    /// Listens at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when a process answers there, [`io::ErrorKind::AlreadyExists`]
    /// when the path is not a socket, and the system's errors.
    pub(crate) fn listen(path: &Path) -> io::Result<Self> {
        let _turn = turn(path);
        remove_stale(path)?;
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        let identity = identity(path)?;
        let socket = Self {
            listener: UnixListener::from(socket),
            path: path.to_owned(),
            identity,
        };
        listen(&socket.listener, BACKLOG)?;
        Ok(socket)
    }

    /// Returns the listener from which connections are accepted.
    pub(crate) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // It may be gone by now.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Waits until no other server takes a place in the folder of `path`: of two that find the socket
/// of a killed one, the second would remove that of the first. The turn ends when the returned file
/// is closed. Whoever may read the folder may hold its lock, so the wait is short. There is no turn
/// when it has passed.
fn turn(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).ok()?;
    let is_ours = (0..TURN_LOOKS).any(|_| {
        let locked = flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !locked {
            std::thread::sleep(TURN_LOOK);
        }
        locked
    });
    is_ours.then_some(folder)
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let words = "there is something that is not a socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, words));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_for_its_owner_and_takes_only_dead_sockets_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let first = UnixSocket::listen(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = UnixSocket::listen(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(!path.exists());

        // A killed server's socket is replaced; a file is not.
        drop(UnixListener::bind(&path).unwrap());
        drop(UnixSocket::listen(&path).unwrap());
        fs::write(&path, "measurements").unwrap();
        let error = UnixSocket::listen(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "measurements");
    }

    #[test]
    fn of_two_that_find_a_killed_server_s_socket_one_gets_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        for _ in 0..500 {
            drop(UnixListener::bind(&path).unwrap());
            let start = std::sync::Barrier::new(2);
            let listen = || {
                start.wait();
                UnixSocket::listen(&path)
            };
            let both = std::thread::scope(|scope| {
                let other = scope.spawn(listen);
                [listen(), other.join().unwrap()]
            });
            assert_eq!(both.iter().filter(|one| one.is_ok()).count(), 1);
        }
    }

    #[test]
    fn a_name_that_has_become_anothers_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let first = UnixSocket::listen(&path).unwrap();
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(first);
        assert!(path.exists());
    }
}
