//! Unix and TCP sockets behind one face.

use super::{Listen, ServeError};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg, sockopt};
use std::{
    fs, io,
    io::{IoSlice, IoSliceMut, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            fs::{FileTypeExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

/// A connected socket. Reads and writes go through a shared reference, so
/// that one thread can read while another writes.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

macro_rules! either {
    ($self:expr, $socket:ident => $action:expr) => {
        match $self {
            Self::Unix($socket) => $action,
            Self::Tcp($socket) => $action,
        }
    };
}

impl Socket {
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        either!(self, socket => retried(|| { let mut socket = socket; socket.read(bytes) }))
    }

    /// What is there already; `None` if that is nothing. Errors are left to the
    /// next read.
    pub fn read_now(&self, parts: &mut [IoSliceMut<'_>]) -> Option<usize> {
        let (mut control, flags) = (RecvAncillaryBuffer::default(), RecvFlags::DONTWAIT);
        let received = either!(self, socket => recvmsg(socket, parts, &mut control, flags));
        received.ok().map(|received| received.bytes)
    }

    pub fn read_vectored(&self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        either!(self, socket => retried(|| { let mut socket = socket; socket.read_vectored(parts) }))
    }

    pub fn write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, socket => retried(|| { let mut socket = socket; socket.write_vectored(parts) }))
    }

    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        either!(self, socket => { let mut socket = socket; socket.write_all(bytes) })
    }

    /// How long a read or a write may wait; `None` for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        either!(self, socket => {
            socket.set_read_timeout(timeout)?;
            socket.set_write_timeout(timeout)
        })
    }

    pub fn second_handle(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(socket) => Self::Unix(socket.try_clone()?),
            Self::Tcp(socket) => Self::Tcp(socket.try_clone()?),
        })
    }

    pub fn shutdown(&self, how: Shutdown) {
        // It fails only if the other side has gone, which is as good.
        let _ = either!(self, socket => socket.shutdown(how));
    }
}

fn retried(mut action: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match action() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// A listening socket; a Unix one removes its file when it goes.
pub(super) enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    pub fn open(listen: &Listen) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen {
            place: listen.to_string(),
            source,
        };
        let listener = match listen {
            Listen::Unix(path) => {
                remove_stale(path).map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                // Whoever can open the socket can write the disk.
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                Self::Unix(listener, path.clone())
            }
            Listen::Tcp { address, anywhere } => {
                if !anywhere && !address.ip().is_loopback() {
                    return Err(ServeError::NotLoopback(*address));
                }
                let listener = TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                Self::Tcp(listener)
            }
        };
        Ok(listener)
    }

    pub fn accept(&self) -> io::Result<Socket> {
        Ok(match self {
            Self::Unix(listener, _) => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(false)?;
                Socket::Unix(socket)
            }
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(false)?;
                socket.set_nodelay(true)?;
                // A client whose machine has died must not stay for ever.
                sockopt::set_socket_keepalive(&socket, true)?;
                Socket::Tcp(socket)
            }
        })
    }

    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(..) => None,
            Self::Tcp(listener) => listener.local_addr().ok(),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // It may be gone already.
            let _ = fs::remove_file(path);
        }
    }
}

/// A socket that a killed server has left: nobody answers there.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
