//! The server's side of the control socket: a thread that accepts, and one for each connection.

use super::lines::{Line, read_line};
use super::{ControlRequest, ControlResponse, EventReport};
use crate::unix_socket::UnixSocket;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use raidlab_units::visible_path;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The most connections at a time; further ones are closed at once.
pub(super) const MAXIMUM_CONNECTIONS: usize = 32;
/// The most events that may wait for a subscriber; one that falls further behind is dropped.
const WAITING_EVENTS: usize = 4096;
/// The interval at which a connection that carries events checks whether its client has gone.
const LOOK: Duration = Duration::from_millis(200);

/// The time that the end waits for answers that are under way.
const PATIENCE: Duration = Duration::from_secs(2);

/// An array, or its like, that a control socket controls.
pub trait Controlled: Send + Sync {
    /// Carries a request out. [`ControlRequest::Events {}`] is never passed.
    fn control(&self, request: ControlRequest) -> ControlResponse;

    /// Returns the publisher whose events clients may ask for.
    fn publisher(&self) -> &Publisher;
}

/// A publisher that passes each event to all subscribers, without ever waiting for one.
#[derive(Debug, Clone, Default)]
pub struct Publisher {
    subscribers: Arc<Mutex<Vec<Sender<EventReport>>>>,
}

/// A subscription to events, from its beginning on.
#[derive(Debug)]
pub struct Subscription(Receiver<EventReport>);

impl Publisher {
    /// Subscribes to all events from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let (sender, receiver) = bounded(WAITING_EVENTS);
        self.lock().push(sender);
        Subscription(receiver)
    }

    /// Publishes an event.
    pub fn publish(&self, event: &EventReport) {
        // A full queue means that its subscriber does not read: it is dropped and sees the end of
        // its events, rather than a gap in them.
        self.lock().retain(|subscriber| {
            !matches!(
                subscriber.try_send(event.clone()),
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_))
            )
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Sender<EventReport>>> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// Returns the next event within `patience`; `Ok(None)` if none came.
    ///
    /// # Errors
    /// When there will be no more.
    pub fn next(&self, patience: Duration) -> Result<Option<EventReport>, Ended> {
        match self.0.recv_timeout(patience) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Ended),
        }
    }
}

/// The error that the server has ended, so that no more events come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no more events")]
pub struct Ended;

/// The reason why a control socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another server listens on that socket already.
    #[error("{} is in use by another server", visible_path(.0))]
    InUse(PathBuf),
    /// The system refuses to make a socket there.
    #[error("cannot listen at {}", visible_path(.path))]
    Listen {
        /// The socket's path.
        path: PathBuf,
        /// The reason why it cannot be made.
        #[source]
        source: io::Error,
    },
}

/// A control socket at work; it is removed when this is dropped.
#[derive(Debug)]
pub struct ControlServer {
    socket: Arc<UnixSocket>,
    connections: Arc<Connections>,
    acceptor: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens at `path`, which only its owner may use. A socket that a killed server left there is
    /// replaced. Clients that connect wait for [`Self::serve`].
    ///
    /// # Errors
    /// When another server listens there, the path is not a socket, or the system refuses.
    pub fn listen(path: &Path) -> Result<Self, ControlError> {
        let socket = UnixSocket::listen(path).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ControlError::InUse(path.to_owned()),
            _ => ControlError::Listen {
                path: path.to_owned(),
                source,
            },
        })?;
        Ok(Self {
            socket: Arc::new(socket),
            connections: Arc::default(),
            acceptor: None,
        })
    }

    /// Answers all clients, also those that have connected already.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn serve(&mut self, controlled: Arc<dyn Controlled>) -> Result<(), ControlError> {
        let acceptor = Acceptor {
            socket: Arc::clone(&self.socket),
            controlled,
            connections: Arc::clone(&self.connections),
        };
        let acceptor = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || acceptor.run())
            .map_err(|source| ControlError::Listen {
                path: self.path().to_owned(),
                source,
            })?;
        self.acceptor = Some(acceptor);
        Ok(())
    }

    /// Listens at a path and answers clients.
    ///
    /// # Errors
    /// Those of [`Self::listen`] and [`Self::serve`].
    pub fn start(path: &Path, controlled: Arc<dyn Controlled>) -> Result<Self, ControlError> {
        let mut server = Self::listen(path)?;
        server.serve(controlled)?;
        Ok(server)
    }

    /// Returns the path of the socket on which it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.socket.path()
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.connections.lock().closing = true;
        // Ends the wait for the next connection.
        let _ = rustix::net::shutdown(self.socket.listener(), rustix::net::Shutdown::Both);
        if let Some(acceptor) = self.acceptor.take() {
            // A panic there has been printed already.
            let _ = acceptor.join();
        }
        // No more requests are read; but a client that asked to stop is still answered when
        // it is done.
        let open = self.connections.lock();
        open.shut_down(Shutdown::Read);
        let some = |open: &mut Open| !open.streams.is_empty();
        let waited = self
            .connections
            .gone
            .wait_timeout_while(open, PATIENCE, some);
        let (open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        open.shut_down(Shutdown::Both);
    }
}

/// All open connections.
#[derive(Debug, Default)]
struct Connections {
    open: Mutex<Open>,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    streams: BTreeMap<u64, Arc<UnixStream>>,
    next: u64,
    closing: bool,
}

impl Open {
    fn shut_down(&self, how: Shutdown) {
        for stream in self.streams.values() {
            // The connection may have closed already.
            let _ = stream.shutdown(how);
        }
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place for one more connection; `None` when there are too many.
    fn enter(self: &Arc<Self>, stream: &Arc<UnixStream>) -> Option<Place> {
        let mut open = self.lock();
        if open.streams.len() >= MAXIMUM_CONNECTIONS {
            return None;
        }
        let number = open.next;
        open.next += 1;
        open.streams.insert(number, Arc::clone(stream));
        Some(Place {
            connections: Arc::clone(self),
            number,
        })
    }
}

/// A connection's place, freed when it is dropped.
struct Place {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().streams.remove(&self.number);
        self.connections.gone.notify_all();
    }
}

struct Acceptor {
    socket: Arc<UnixSocket>,
    controlled: Arc<dyn Controlled>,
    connections: Arc<Connections>,
}

impl Acceptor {
    /// Accepts connections until it is told to stop.
    fn run(&self) {
        for stream in self.socket.listener().incoming() {
            if self.connections.lock().closing {
                return;
            }
            match stream {
                Ok(stream) => self.serve(Arc::new(stream)),
                // Most likely there are no descriptors left; some may become free.
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }

    fn serve(&self, stream: Arc<UnixStream>) {
        let Some(place) = self.connections.enter(&stream) else {
            return;
        };
        let controlled = Arc::clone(&self.controlled);
        let body = move || {
            let _place = place;
            // A client that disconnects in the middle of a line is not an error of the server.
            let _ = serve_stream(&stream, &*controlled);
            let _ = stream.shutdown(Shutdown::Both);
        };
        // If no thread can be started, the place is dropped here, and the stream with it.
        let _ = std::thread::Builder::new()
            .name("control-client".to_owned())
            .spawn(body);
    }
}

fn serve_stream(stream: &UnixStream, controlled: &dyn Controlled) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    if !converse(&mut reader, &mut writer, controlled)? {
        return Ok(());
    }
    let events = controlled.publisher().subscribe();
    respond(&mut writer, &ControlResponse::Done)?;
    loop {
        match events.next(LOOK) {
            Ok(Some(event)) => respond(&mut writer, &ControlResponse::Event { event })?,
            Ok(None) if is_closed(stream) => return Ok(()),
            Ok(None) => {}
            Err(Ended) => return Ok(()),
        }
    }
}

/// Whether the other side has closed its half of the connection.
fn is_closed(stream: &UnixStream) -> bool {
    let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
    let mut byte = [0; 1];
    matches!(rustix::net::recv(stream, &mut byte, flags), Ok((0, _)))
}

/// Answers requests until the client ends the connection, or asks for events (`true`).
///
/// # Errors
/// When the connection breaks.
pub fn converse(
    reader: &mut impl BufRead,
    writer: &mut impl Write,
    controlled: &dyn Controlled,
) -> io::Result<bool> {
    loop {
        let line = match read_line(reader)? {
            Line::Whole(line) => line,
            Line::End => return Ok(false),
            Line::TooLong => {
                let error = "the line is too long".to_owned();
                respond(writer, &ControlResponse::Refused { error })?;
                return Ok(false);
            }
        };
        let response = match serde_json::from_slice(&line) {
            Ok(ControlRequest::Events {}) => return Ok(true),
            Ok(request) => controlled.control(request),
            Err(error) => ControlResponse::Refused {
                error: format!("not a request: {error}"),
            },
        };
        respond(writer, &response)?;
    }
}

fn respond(writer: &mut impl Write, response: &ControlResponse) -> io::Result<()> {
    let mut line = serde_json::to_vec(response)?;
    line.push(b'\n');
    writer.write_all(&line)
}
