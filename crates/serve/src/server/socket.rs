//! Unix and TCP sockets behind one interface.

use super::{Listen, ServeError};
use crate::unix_socket::UnixSocket;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg, sockopt};
use std::{
    io,
    io::{IoSlice, IoSliceMut, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
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

    /// Reads the bytes that have arrived; `None` if there are none. Errors are left to
    /// the next read.
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

    /// Sets the longest wait of a read or a write, after which it
    /// fails with [`io::ErrorKind::WouldBlock`].
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        either!(self, socket => {
            socket.set_read_timeout(Some(timeout))?;
            socket.set_write_timeout(Some(timeout))
        })
    }

    pub fn shutdown(&self, how: Shutdown) {
        // It fails only if the other side has closed, which has the same effect.
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

/// A listening socket, which never blocks.
pub(super) enum Listener {
    Unix(UnixSocket),
    Tcp(TcpListener),
}

/// The keepalive rule, as a client whose machine has died must not keep its place for ever: the
/// time without a byte after which the machine is probed, the number of probes, and their interval.
const KEEPALIVE: (Duration, u32, Duration) = (Duration::from_secs(60), 6, Duration::from_secs(10));

impl Listener {
    pub fn open(listen: &Listen) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen {
            place: listen.to_string(),
            source,
        };
        if let Listen::Tcp {
            anywhere: false, ..
        } = listen
            && let Some(address) = listen.beyond_loopback()
        {
            return Err(ServeError::NotLoopback(address));
        }
        match listen {
            Listen::Unix(path) => UnixSocket::listen(path).and_then(|socket| {
                socket.listener().set_nonblocking(true)?;
                Ok(Self::Unix(socket))
            }),
            Listen::Tcp { address, .. } => TcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(Self::Tcp(listener))
            }),
        }
        .map_err(failed)
    }

    pub fn accept(&self) -> io::Result<Socket> {
        Ok(match self {
            Self::Unix(socket) => {
                let (socket, _) = socket.listener().accept()?;
                socket.set_nonblocking(false)?;
                Socket::Unix(socket)
            }
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(false)?;
                socket.set_nodelay(true)?;
                let (idle, count, interval) = KEEPALIVE;
                sockopt::set_socket_keepalive(&socket, true)?;
                sockopt::set_tcp_keepidle(&socket, idle)?;
                sockopt::set_tcp_keepcnt(&socket, count)?;
                sockopt::set_tcp_keepintvl(&socket, interval)?;
                Socket::Tcp(socket)
            }
        })
    }

    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(listener) => listener.local_addr().ok(),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.listener().as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}
