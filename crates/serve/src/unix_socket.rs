//! A listening Unix socket that only its owner may use.
//!
//! The socket has its mode before it has a name: between a `bind` and a later `chmod` others
//! could connect. An existing file at the path is replaced only if it is a socket at which no
//! process answers, as a killed server leaves one; at the end the name is removed only if it is
//! still this socket's.

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 128;

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
