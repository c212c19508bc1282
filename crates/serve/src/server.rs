//! The NBD server: listens, and serves each connection with two threads.
//!
//! A thread per connection reads requests and submits them; answers that the export gives at once
//! it sends itself, a second thread sends the rest (see `outgoing`). Blocking sockets cost two
//! system calls for a request and its reply, where readiness would cost three. Memory is bounded:
//! the number of handshakes and of clients, and for each client the requests and bytes in flight,
//! replies that it has not taken included. All resources of a connection (its place, its threads,
//! its socket, its requests with their buffers) belong to values that free them when they are
//! dropped, whichever way it ends.

mod channel;
mod connection;
mod exports;
mod outgoing;
mod polling;
mod socket;
mod table;
mod tls;

pub use connection::ConnectionError;
pub use exports::{Exports, ExportsError, check_export_name};
pub use tls::{TlsClients, TlsFiles};

use crate::export::BufferPool;
use connection::Shared;
use raidlab_nbd::server::TlsPolicy;
use raidlab_units::visible_path;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;
use socket::{Listener, Socket};
use std::{
    fmt, io, net::SocketAddr, os::fd::OwnedFd, path::PathBuf, sync::Arc, thread, time::Duration,
};
use table::Table;

/// An address at which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket; its file is made for the owner only, and removed at the
    /// end.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// Address and port; port 0 takes a free one.
        address: SocketAddr,
        /// Whether addresses beyond the loopback's are allowed: every host that can connect can
        /// read and write.
        anywhere: bool,
    },
}

impl Listen {
    /// Returns the address, if hosts other than this machine may reach it.
    fn beyond_loopback(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp { address, .. } if !address.ip().is_loopback() => Some(*address),
            _ => None,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "{}", visible_path(path)),
            Self::Tcp { address, .. } => write!(formatter, "{address}"),
        }
    }
}

/// Bounds on the resources of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most clients at a time after their handshake; further ones are disconnected when
    /// theirs is done.
    pub connections: usize,
    /// The most handshakes at a time, at least 1; for a further one the oldest is cut off.
    pub handshakes: usize,
    /// The time from the connection to the end of the handshake.
    pub handshake_timeout: Duration,
    /// The longest pause of a client within a request, or while it has replies to take. Between two
    /// requests it may pause without limit.
    pub stall_timeout: Duration,
    /// The most requests in flight of one connection, at least 1.
    pub requests_in_flight: usize,
    /// The most payload bytes in flight of one connection; a single request may exceed it.
    pub bytes_in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            handshakes: 512,
            handshake_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(60),
            requests_in_flight: 1024,
            bytes_in_flight: 32 << 20,
        }
    }
}

/// The options of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// The bounds on clients, requests, bytes and times.
    pub limits: Limits,
    /// TLS, and the clients that it admits; without it all clients are admitted, in plain text.
    pub tls: Option<TlsFiles>,
    /// The pool of payload buffers.
    pub pool: BufferPool,
}

/// The reason why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address beyond the loopback's that was not explicitly allowed.
    #[error("{0} is not a loopback address: anybody who can reach it could write")]
    NotLoopback(SocketAddr),
    /// A socket cannot be made.
    #[error("cannot listen on {place}")]
    Listen {
        /// The address or socket to listen at.
        place: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// An address beyond the loopback's with optional TLS, which clients there could do without.
    #[error("{0} is not a loopback address: TLS must be required there, not only offered")]
    OnlyOffered(SocketAddr),
    /// A file of certificates or keys cannot be used.
    #[error("{}: {reason}", visible_path(.path))]
    TlsFile {
        /// The file of the certificate or key.
        path: PathBuf,
        /// The reason why it cannot be used, in words.
        reason: String,
    },
    /// TLS cannot be set up: certificate and key do not fit each other, for example.
    #[error("cannot use the TLS certificate")]
    Tls(#[source] rustls::Error),
    /// The system refuses a basic resource.
    #[error("cannot start the server")]
    System(#[from] io::Error),
}

/// A callback for connections that ended with an error.
type Report = dyn Fn(u32, &ConnectionError) + Send + Sync;

struct Inner {
    shared: Shared,
    table: Arc<Table>,
    wake: OwnedFd,
    report: Box<Report>,
}

/// A running server. Dropping it closes every connection.
pub struct Server {
    inner: Arc<Inner>,
    addresses: Vec<SocketAddr>,
    accepting: Option<thread::JoinHandle<()>>,
}

/// A server that listens and serves nothing yet. Clients that connect wait; the sockets are removed
/// if it is dropped before it serves.
pub struct Listening {
    listeners: Vec<Listener>,
    tls: Option<Arc<rustls::ServerConfig>>,
    tls_policy: TlsPolicy,
    options: ServerOptions,
}

impl Listening {
    /// Opens the sockets. Every mistake of an administrator is reported here.
    ///
    /// # Errors
    ///
    /// An address to listen on or a certificate cannot be used.
    pub fn open(places: &[Listen], options: ServerOptions) -> Result<Self, ServeError> {
        let tls = options.tls.as_ref().map(TlsFiles::load).transpose()?;
        let tls_policy = match options.tls.as_ref().map(|tls| &tls.clients) {
            None => TlsPolicy::Off,
            Some(TlsClients::AnyoneAlsoPlain) => TlsPolicy::Offered,
            Some(TlsClients::Anyone | TlsClients::Certified(_)) => TlsPolicy::Required,
        };
        if tls_policy == TlsPolicy::Offered
            && let Some(address) = places.iter().find_map(Listen::beyond_loopback)
        {
            return Err(ServeError::OnlyOffered(address));
        }
        let listeners = places
            .iter()
            .map(Listener::open)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            listeners,
            tls,
            tls_policy,
            options,
        })
    }

    /// Serves clients. `report` is called for each connection that ended with an error,
    /// with its number.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub fn serve(
        self,
        exports: Exports,
        report: impl Fn(u32, &ConnectionError) + Send + Sync + 'static,
    ) -> Result<Server, ServeError> {
        let Self {
            listeners,
            tls,
            tls_policy,
            options,
        } = self;
        let addresses = listeners.iter().filter_map(Listener::tcp_address).collect();
        let inner = Arc::new(Inner {
            shared: Shared {
                exports,
                limits: options.limits,
                tls,
                tls_policy,
                pool: options.pool,
            },
            table: Arc::new(Table::new(options.limits)),
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
        Ok(Server {
            inner,
            addresses,
            accepting: Some(accepting),
        })
    }
}

impl Server {
    /// Listens and serves clients.
    ///
    /// # Errors
    ///
    /// Those of [`Listening::open`] and [`Listening::serve`].
    pub fn start(
        exports: Exports,
        places: &[Listen],
        options: ServerOptions,
        report: impl Fn(u32, &ConnectionError) + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        Listening::open(places, options)?.serve(exports, report)
    }

    /// Returns the TCP addresses listened on, with their actual ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the number of connections, those in their handshake included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.table.len()
    }

    /// Stops the server: it takes no more connections and no more requests, answers those in
    /// flight, and closes. Returns whether all of that was done within `drain`; connections that
    /// were not done are cut, and answers to requests that their exports still have are dropped.
    pub fn shut_down(mut self, drain: Duration) -> bool {
        self.close(drain)
    }

    fn close(&mut self, drain: Duration) -> bool {
        self.inner.shared.exports.shut_down();
        // The counter is far from full.
        let _ = rustix::io::write(&self.inner.wake, &1_u64.to_ne_bytes());
        if let Some(accepting) = self.accepting.take() {
            // Its panic has been printed already.
            let _ = accepting.join();
        }
        self.inner.table.close(drain)
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
        let deadline = inner.table.cut_overdue();
        let deadline = deadline.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut waits, deadline.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if waits.last().is_some_and(|wake| !wake.revents().is_empty()) {
            return;
        }
        for listener in listeners {
            match listener.accept() {
                Ok(socket) => connect(inner, socket),
                // The lack may last, so the thread pauses instead of spinning.
                Err(error) if is_exhausted(&error) => thread::sleep(Duration::from_millis(10)),
                // No client was waiting, or it has disconnected again.
                Err(_) => {}
            }
        }
    }
}

/// Whether the system has no descriptor or no memory left.
fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| exhausted.contains(&error))
}

fn connect(inner: &Arc<Inner>, socket: Socket) {
    let socket = Arc::new(socket);
    let Some(place) = inner.table.enter(&socket) else {
        return;
    };
    let client = place.client;
    let of_thread = Arc::clone(inner);
    let body = move || {
        let result = connection::serve(&of_thread.shared, socket, &place);
        let result = place.result(result);
        // The report may take its time, so the place is freed first.
        drop(place);
        if let Err(error) = result {
            (of_thread.report)(client, &error);
        }
    };
    // If no thread can be started, the place is dropped here, and the socket with it.
    let _ = thread::Builder::new()
        .name(format!("nbd-{client}"))
        .spawn(body);
}
