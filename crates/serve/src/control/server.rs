//! The server's side: a thread that accepts, and one for each connection.

use super::lines::{Line, read_line};
use super::{ControlRequest, ControlResponse, EventReport};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use rustix::fs::{Mode, chmod};
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections at once; more are closed at once.
const MAXIMUM_CONNECTIONS: usize = 32;
/// Events that may wait for a subscriber; one that is slower is let go.
const WAITING_EVENTS: usize = 4096;
/// How often a connection that carries events looks whether its client has gone.
const LOOK: Duration = Duration::from_millis(200);

/// How long answers that are under way are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often is looked whether they have gone out.
const LOOK_AT_END: Duration = Duration::from_millis(5);

/// What a control socket controls.
pub trait Controlled: Send + Sync {
    /// Carries a request out. [`ControlRequest::Events`] never comes here.
    fn control(&self, request: ControlRequest) -> ControlResponse;

    /// Where events come from.
    fn publisher(&self) -> &Publisher;
}

/// Hands each event to all who have subscribed, without ever waiting for one.
#[derive(Debug, Clone, Default)]
pub struct Publisher {
    subscribers: Arc<Mutex<Vec<Sender<EventReport>>>>,
}

/// Events from the moment of the subscription on.
#[derive(Debug)]
pub struct Subscription(Receiver<EventReport>);

impl Publisher {
    /// Subscribes.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let (sender, receiver) = bounded(WAITING_EVENTS);
        self.lock().push(sender);
        Subscription(receiver)
    }

    /// Publishes an event.
    pub fn publish(&self, event: &EventReport) {
        // A full queue means that nobody reads: that subscriber is let go and
        // sees the end of its events, rather than a gap in them.
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
    /// The next event within `patience`; `Ok(None)`: none came.
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

/// No more events will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no more events")]
pub struct Ended;

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another server answers there.
    #[error("{} is in use by another server", .0.display())]
    InUse(PathBuf),
    /// The system refuses.
    #[error("cannot listen at {}", .path.display())]
    Listen {
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A control socket at work; dropped, it is gone.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    stopping: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<UnixStream>>>,
    acceptor: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

impl ControlServer {
    /// Listens at `path`, which only its owner may use. What a server that was
    /// killed has left there is replaced.
    ///
    /// # Errors
    /// When another server listens there, or the system refuses.
    pub fn start(path: &Path, controlled: Arc<dyn Controlled>) -> Result<Self, ControlError> {
        let failed = |source| ControlError::Listen {
            path: path.to_owned(),
            source,
        };
        if UnixStream::connect(path).is_ok() {
            return Err(ControlError::InUse(path.to_owned()));
        }
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        chmod(path, Mode::RUSR | Mode::WUSR).map_err(|source| failed(source.into()))?;
        let stopping = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(Mutex::new(Vec::new()));
        let acceptor = Acceptor {
            listener,
            controlled,
            stopping: Arc::clone(&stopping),
            connections: Arc::clone(&connections),
        };
        let acceptor = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || acceptor.run())
            .map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            stopping,
            connections,
            acceptor: Some(acceptor),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Ends the wait for the next connection.
        let _ = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
        // A panic there has been printed; there is nobody to tell.
        let acceptor = self.acceptor.take();
        let threads = acceptor.and_then(|acceptor| acceptor.join().ok());
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // No more requests; but who asked to stop is still to be told that it
        // is done.
        shut_down(&connections, Shutdown::Read);
        let until = Instant::now() + PATIENCE;
        let is_over = |thread: &JoinHandle<()>| thread.is_finished();
        while !threads.iter().flatten().all(is_over) && Instant::now() < until {
            std::thread::sleep(LOOK_AT_END);
        }
        shut_down(&connections, Shutdown::Both);
        connections.clear();
    }
}

fn shut_down(connections: &[UnixStream], how: Shutdown) {
    for connection in connections {
        // It may have gone by itself.
        let _ = connection.shutdown(how);
    }
}

struct Acceptor {
    listener: UnixListener,
    controlled: Arc<dyn Controlled>,
    stopping: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<UnixStream>>>,
}

impl Acceptor {
    /// Accepts until it shall stop; gives the connections' threads.
    fn run(&self) -> Vec<JoinHandle<()>> {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        for stream in self.listener.incoming() {
            if self.stopping.load(Ordering::SeqCst) {
                break;
            }
            threads.retain(|thread| !thread.is_finished());
            match stream {
                Ok(stream) if threads.len() < MAXIMUM_CONNECTIONS => {
                    threads.extend(self.serve(stream));
                }
                Ok(_) => {}
                // No descriptors left, most likely: some may come back.
                Err(_) => std::thread::sleep(LOOK),
            }
        }
        threads
    }

    fn serve(&self, stream: UnixStream) -> Option<JoinHandle<()>> {
        let for_stop = stream.try_clone().ok()?;
        let controlled = Arc::clone(&self.controlled);
        let thread = std::thread::Builder::new()
            .name("control-client".to_owned())
            .spawn(move || {
                // A client that goes away in mid-line is no failure of ours.
                let _ = serve_stream(&stream, &*controlled);
                let _ = stream.shutdown(Shutdown::Both);
            });
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Those whose peer is gone need no shutdown any more.
        connections.retain(|connection| connection.peer_addr().is_ok());
        connections.push(for_stop);
        thread.ok()
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

/// Whether the other side has ended its half of the conversation.
fn is_closed(stream: &UnixStream) -> bool {
    let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
    let mut byte = [0; 1];
    matches!(rustix::net::recv(stream, &mut byte, flags), Ok((0, _)))
}

/// Answers requests until the client ends, or asks for events (`true`).
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
            Ok(ControlRequest::Events) => return Ok(true),
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
