//! The NBD server: listens, and serves each connection with two threads.
//!
//! A thread per connection reads requests and submits them; what the export
//! answers at once it sends itself, a second thread sends the rest (see
//! `outgoing`). Blocking sockets cost two system calls for a request and its
//! reply, where readiness would cost three. Memory is bounded: the number of
//! connections, and for each one the requests and bytes in flight, replies
//! that a slow client has not taken included.

mod channel;
mod connection;
mod exports;
mod outgoing;
mod polling;
mod socket;
mod tls;

pub use connection::ConnectionError;
pub use exports::{Exports, ExportsError};
pub use tls::TlsFiles;

use crate::export::BufferPool;
use connection::Shared;
use raidlab_nbd::server::TlsPolicy;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use socket::{Listener, Socket};
use std::{
    collections::BTreeMap,
    fmt, io,
    net::{Shutdown, SocketAddr},
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket; its file is made for the owner only, and removed at the
    /// end.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// Address and port; port 0 takes a free one.
        address: SocketAddr,
        /// An address that is not the loopback's is refused without this:
        /// whoever can connect can read and write.
        anywhere: bool,
    },
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "{}", path.display()),
            Self::Tcp { address, .. } => write!(formatter, "{address}"),
        }
    }
}

/// Bounds on what clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; further ones are closed.
    pub connections: usize,
    /// From the connection to the first request.
    pub handshake_timeout: Duration,
    /// Requests of one connection, at least 1.
    pub requests_in_flight: usize,
    /// Payload bytes of one connection; a single request may go beyond.
    pub bytes_in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            handshake_timeout: Duration::from_secs(10),
            requests_in_flight: 1024,
            bytes_in_flight: 32 << 20,
        }
    }
}

/// How a server is to be run.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Bounds.
    pub limits: Limits,
    /// Offers TLS.
    pub tls: Option<TlsFiles>,
    /// With TLS: clients that do not use it are refused.
    pub require_tls: bool,
    /// Where payloads live.
    pub pool: BufferPool,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not the loopback's.
    #[error("{0} is not a loopback address: anybody who can reach it could write")]
    NotLoopback(SocketAddr),
    /// A socket cannot be made.
    #[error("cannot listen on {place}")]
    Listen {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// TLS is required and there is no certificate.
    #[error("TLS is required, but there is no certificate")]
    NoCertificate,
    /// A file of certificates or keys cannot be used.
    #[error("{}: {reason}", .path.display())]
    TlsFile {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Certificate and key do not fit, or the like.
    #[error("cannot use the TLS certificate")]
    Tls(#[source] rustls::Error),
    /// The system refuses something basic.
    #[error("cannot start the server")]
    System(#[from] io::Error),
}

/// The connections that there are.
#[derive(Default)]
struct Connections {
    next: u32,
    /// A second handle on each socket, to wake up who waits on it.
    sockets: BTreeMap<u32, Socket>,
    closing: bool,
}

/// Is told of connections that ended badly.
type Report = dyn Fn(u32, &ConnectionError) + Send + Sync;

struct Inner {
    shared: Shared,
    connections: Mutex<Connections>,
    gone: Condvar,
    wake: OwnedFd,
    report: Box<Report>,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running server. Dropping it closes every connection.
pub struct Server {
    inner: Arc<Inner>,
    addresses: Vec<SocketAddr>,
    accepting: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Starts to listen and serve. `report` is told of each connection that
    /// ended badly, with its number.
    ///
    /// # Errors
    ///
    /// A place to listen on or a certificate cannot be used.
    pub fn start(
        exports: Exports,
        places: &[Listen],
        options: ServerOptions,
        report: impl Fn(u32, &ConnectionError) + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let tls = options.tls.as_ref().map(TlsFiles::load).transpose()?;
        let tls_policy = match (&tls, options.require_tls) {
            (None, true) => return Err(ServeError::NoCertificate),
            (None, false) => TlsPolicy::Off,
            (Some(_), false) => TlsPolicy::Offered,
            (Some(_), true) => TlsPolicy::Required,
        };
        let listeners = places
            .iter()
            .map(Listener::open)
            .collect::<Result<Vec<_>, _>>()?;
        let addresses = listeners.iter().filter_map(Listener::tcp_address).collect();
        let inner = Arc::new(Inner {
            shared: Shared {
                exports,
                limits: options.limits,
                tls,
                tls_policy,
                pool: options.pool,
            },
            connections: Mutex::default(),
            gone: Condvar::new(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(io::Error::from)?,
            report: Box::new(report),
        });
        let accepting = {
            let inner = Arc::clone(&inner);
            thread::Builder::new()
                .name("nbd-accept".to_owned())
                .spawn(move || accept(&inner, &listeners))?
        };
        Ok(Self {
            inner,
            addresses,
            accepting: Some(accepting),
        })
    }

    /// The TCP addresses listened on, with their true ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many clients there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.lock().sockets.len()
    }

    /// Takes no more connections and no more requests, answers what is in
    /// flight, and closes. Gives whether all of that was done within `drain`;
    /// connections that were not are cut, and requests that their exports
    /// still hold are answered to nobody.
    pub fn shut_down(mut self, drain: Duration) -> bool {
        self.close(drain)
    }

    fn close(&mut self, drain: Duration) -> bool {
        self.inner.shared.exports.shut_down();
        // The counter is far from full.
        let _ = rustix::io::write(&self.inner.wake, &1_u64.to_ne_bytes());
        if let Some(accepting) = self.accepting.take() {
            // Its panic has been told already.
            let _ = accepting.join();
        }
        let mut connections = self.inner.lock();
        connections.closing = true;
        connections
            .sockets
            .values()
            .for_each(|socket| socket.shutdown(Shutdown::Read));
        connections = self.wait_gone(connections, drain);
        let drained = connections.sockets.is_empty();
        connections
            .sockets
            .values()
            .for_each(|socket| socket.shutdown(Shutdown::Both));
        // A reader that waits for nothing but the network ends now.
        drop(self.wait_gone(connections, Duration::from_millis(500)));
        drained
    }

    fn wait_gone<'a>(
        &self,
        mut connections: MutexGuard<'a, Connections>,
        most: Duration,
    ) -> MutexGuard<'a, Connections> {
        let deadline = Instant::now() + most;
        while !connections.sockets.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            connections = self
                .inner
                .gone
                .wait_timeout(connections, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        connections
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.accepting.is_some() {
            self.close(Duration::ZERO);
        }
    }
}

fn accept(inner: &Arc<Inner>, listeners: &[Listener]) {
    loop {
        let mut waits: Vec<_> = listeners
            .iter()
            .map(|listener| PollFd::new(listener, PollFlags::IN))
            .collect();
        waits.push(PollFd::new(&inner.wake, PollFlags::IN));
        match poll(&mut waits, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if waits.last().is_some_and(|wake| !wake.revents().is_empty()) {
            return;
        }
        for listener in listeners {
            match listener.accept() {
                Ok(socket) => connect(inner, socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Out of file descriptors, or the client has gone again: the
                // former lasts, so do not spin.
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

fn connect(inner: &Arc<Inner>, socket: Socket) {
    let client = {
        let mut connections = inner.lock();
        if connections.closing || connections.sockets.len() >= inner.shared.limits.connections {
            return;
        }
        let Ok(second) = socket.second_handle() else {
            return;
        };
        let client = connections.next;
        connections.next = connections.next.wrapping_add(1);
        connections.sockets.insert(client, second);
        client
    };
    let of_thread = Arc::clone(inner);
    let spawned = thread::Builder::new()
        .name(format!("nbd-{client}"))
        .spawn(move || {
            // Also after a panic, the connection is gone.
            let _gone = Gone(&of_thread, client);
            if let Err(error) = connection::serve(&of_thread.shared, socket, client) {
                (of_thread.report)(client, &error);
            }
        });
    if spawned.is_err() {
        inner.lock().sockets.remove(&client);
    }
}

struct Gone<'a>(&'a Inner, u32);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.lock().sockets.remove(&self.1);
        self.0.gone.notify_all();
    }
}
