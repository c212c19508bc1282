//! The NBD server: listens, and serves each connection with two threads.
//!
//! A thread per connection reads requests and submits them; what the export
//! answers at once it sends itself, a second thread sends the rest (see
//! `outgoing`). Blocking sockets cost two system calls for a request and its
//! reply, where readiness would cost three. Memory is bounded: the number of
//! handshakes and of clients, and for each client the requests and bytes in
//! flight, replies that it has not taken included. What a connection holds
//! (its place, its threads, its socket, its requests with their buffers) belongs
//! to values that give it back when they are dropped, whichever way it ends.

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

impl Listen {
    /// Its address, if others than this machine may reach it.
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

/// Bounds on what clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Clients at once whose handshake is done; further ones are let go when
    /// theirs is.
    pub connections: usize,
    /// Handshakes at once, at least 1; for a further one the oldest is cut off.
    pub handshakes: usize,
    /// From the connection to the end of the handshake.
    pub handshake_timeout: Duration,
    /// How long a client may pause within a request, or while it has replies to
    /// take. Between two requests it may pause for ever.
    pub stall_timeout: Duration,
    /// Requests of one connection, at least 1.
    pub requests_in_flight: usize,
    /// Payload bytes of one connection; a single request may go beyond.
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

/// How a server is to be run.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// How many clients, requests and bytes there may be at a time, and for how long.
    pub limits: Limits,
    /// TLS, and whom it lets in; without it everybody is, in plain text.
    pub tls: Option<TlsFiles>,
    /// The buffers that payloads are kept in.
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
        /// The address or socket that was to be listened at.
        place: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Whoever reaches the address could do without the TLS that is offered.
    #[error("{0} is not a loopback address: TLS must be required there, not only offered")]
    OnlyOffered(SocketAddr),
    /// A file of certificates or keys cannot be used.
    #[error("{}: {reason}", visible_path(.path))]
    TlsFile {
        /// The file of the certificate or key.
        path: PathBuf,
        /// Why it cannot be used, in words.
        reason: String,
    },
    /// Certificate and key do not fit, or the like.
    #[error("cannot use the TLS certificate")]
    Tls(#[source] rustls::Error),
    /// The system refuses something basic.
    #[error("cannot start the server")]
    System(#[from] io::Error),
}

/// Is told of connections that ended badly.
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

/// A server that listens and serves nothing yet. Who connects waits; the sockets go if it is
/// dropped before it serves.
pub struct Listening {
    listeners: Vec<Listener>,
    tls: Option<Arc<rustls::ServerConfig>>,
    tls_policy: TlsPolicy,
    options: ServerOptions,
}

impl Listening {
    /// Listens. All that an administrator can have got wrong is found out here.
    ///
    /// # Errors
    ///
    /// A place to listen on or a certificate cannot be used.
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

    /// Serves. `report` is told of each connection that ended badly, with its number.
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
    /// Listens and serves.
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

    /// The TCP addresses listened on, with their true ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many connections there are, those in their handshake included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.table.len()
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
                // That lasts, so do not spin.
                Err(error) if is_exhausted(&error) => thread::sleep(Duration::from_millis(10)),
                // Nobody there, or gone again.
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
        // Whoever listens may take its time.
        drop(place);
        if let Err(error) = result {
            (of_thread.report)(client, &error);
        }
    };
    // Without a thread the place is dropped here, and the socket with it.
    let _ = thread::Builder::new()
        .name(format!("nbd-{client}"))
        .spawn(body);
}
