//! An array, or a single file, as an export.

use super::owner::{Broken, Message, Owner, place_of};
use super::passthrough::Passthrough;
use crate::export::{BlockSizes, Export, Features, MAXIMUM_BUFFER_BYTES, Request};
use crate::member::{
    BackendKind, MemberCounters, MemberFile, Members, MembersConfig, Waker, start_backend,
};
use crossbeam_channel::{Sender, bounded, unbounded};
use raidlab_array::{Engine, Event, MemberState, Slot, SyncStatus};
use raidlab_units::Nanos;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// How members are driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriverConfig {
    /// How commands reach the members.
    pub backend: BackendKind,
    /// Time limits.
    pub members: MembersConfig,
}

/// Why something cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The backend or its thread could not be started.
    #[error("cannot start to serve members")]
    Start(#[source] io::Error),
    /// The array's thread is gone.
    #[error("the array has stopped")]
    Stopped,
}

/// What an array's owner is started with: the core, its members by slot, and
/// who is told of events.
pub(crate) struct Setup {
    pub(crate) core: Box<dyn Engine>,
    pub(crate) members: Vec<(Slot, Arc<MemberFile>)>,
    pub(crate) on_event: Box<dyn FnMut(Nanos, Event) + Send>,
    pub(crate) config: DriverConfig,
}

/// What an array is doing.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Of each slot.
    pub members: Vec<MemberState>,
    /// Of each slot since its member was attached.
    pub counters: Vec<MemberCounters>,
    /// A sync, if one runs.
    pub sync: Option<SyncStatus>,
    /// Why it takes no requests any more.
    pub broken: Option<Broken>,
    /// `io_uring` or `threads`.
    pub backend: &'static str,
}

/// CLOCK_MONOTONIC.
#[must_use]
pub fn monotonic_now() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// An array whose thread runs; dropped, it finishes what is under way.
#[derive(Debug)]
pub struct ArrayExport {
    inbox: Sender<Message>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    size_bytes: u64,
    rotational: bool,
    description: String,
}

impl ArrayExport {
    /// Starts the owner of an array.
    pub(crate) fn start(setup: Setup, description: String) -> Result<Self, ServeError> {
        let waker = Arc::new(Waker::new().map_err(ServeError::Start)?);
        let size_bytes = setup.core.size().to_bytes().0;
        let rotational = setup.members.iter().any(|(_, file)| file.rotational());
        let (inbox, messages) = unbounded();
        let (started, result) = bounded(1);
        let owner_waker = Arc::clone(&waker);
        let body = move || {
            // A ring belongs to the thread that made it.
            let members = start_backend(setup.config.backend, &owner_waker)
                .map(|backend| Members::new(backend, setup.config.members))
                .and_then(|mut members| {
                    for (slot, file) in &setup.members {
                        members.attach(place_of(*slot), file)?;
                    }
                    Ok(members)
                });
            match members {
                Ok(members) => {
                    let owner = Owner::new(
                        setup.core,
                        members,
                        messages,
                        owner_waker,
                        Box::new(monotonic_now),
                        setup.on_event,
                    );
                    let _ = started.send(Ok(()));
                    owner.run();
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("array".to_owned())
            .spawn(body)
            .map_err(ServeError::Start)?;
        result
            .recv()
            .map_err(|_| ServeError::Stopped)?
            .map_err(ServeError::Start)?;
        Ok(Self {
            inbox,
            waker,
            thread: Some(thread),
            size_bytes,
            rotational,
            description,
        })
    }

    /// Has the owner do something between two requests, and waits for it.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Owner) -> R + Send + 'static,
    ) -> Result<R, ServeError> {
        let (answer, result) = bounded(1);
        let call = Box::new(move |owner: &mut Owner| {
            let _ = answer.send(work(owner));
        });
        self.send(Message::Call(call))?;
        self.waker.wake();
        result.recv().map_err(|_| ServeError::Stopped)
    }

    fn send(&self, message: Message) -> Result<(), ServeError> {
        self.inbox.send(message).map_err(|_| ServeError::Stopped)
    }

    /// What it is doing.
    ///
    /// # Errors
    /// When it has stopped.
    pub fn snapshot(&self) -> Result<Snapshot, ServeError> {
        self.call(|owner| {
            let members = owner.core.member_states();
            let slots = 0..u16::try_from(members.len()).unwrap_or(u16::MAX);
            Snapshot {
                counters: slots
                    .map(|slot| owner.members.counters(place_of(Slot(slot))))
                    .collect(),
                members,
                sync: owner.core.sync_status(),
                broken: owner.broken.clone(),
                backend: owner.members.backend_name(),
            }
        })
    }
}

impl Export for ArrayExport {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn features(&self) -> Features {
        Features {
            flush: true,
            trim: true,
            write_zeroes: true,
            multiple_connections: true,
            rotational: self.rotational,
            ..Features::default()
        }
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes {
            minimum: 512,
            preferred: 4096,
            maximum: MAXIMUM_BUFFER_BYTES as u32,
        }
    }

    fn submit(&self, request: Request) {
        // A request that cannot be sent is dropped, which answers it.
        let _ = self.send(Message::Request(request));
    }

    fn submitted(&self) {
        self.waker.wake();
    }
}

impl Drop for ArrayExport {
    fn drop(&mut self) {
        // If it cannot be sent, the thread has ended already.
        let _ = self.send(Message::Stop);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic in the owner has been printed; there is nobody to tell.
            let _ = thread.join();
        }
    }
}

/// A single file or block device, served as it is.
#[derive(Debug)]
pub struct FileExport(ArrayExport);

impl FileExport {
    /// Serves an open file.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub fn start(file: Arc<MemberFile>, config: DriverConfig) -> Result<Self, ServeError> {
        let description = format!("the file {}", file.path().display());
        let setup = Setup {
            core: Box::new(Passthrough::new(file.size())),
            members: vec![(Slot(0), file)],
            on_event: Box::new(|_, _| ()),
            config,
        };
        ArrayExport::start(setup, description).map(Self)
    }

    /// What it is doing.
    ///
    /// # Errors
    /// When it has stopped.
    pub fn snapshot(&self) -> Result<Snapshot, ServeError> {
        self.0.snapshot()
    }
}

impl Export for FileExport {
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes()
    }

    fn description(&self) -> String {
        self.0.description()
    }

    fn features(&self) -> Features {
        self.0.features()
    }

    fn block_sizes(&self) -> BlockSizes {
        self.0.block_sizes()
    }

    fn submit(&self, request: Request) {
        self.0.submit(request);
    }

    fn submitted(&self) {
        self.0.submitted();
    }
}
