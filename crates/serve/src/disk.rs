//! A modelled disk in real time: its service times are the model's.
//!
//! The model lives in virtual time, which runs with CLOCK_MONOTONIC from the moment the disk is
//! started. A request's arrival is stamped where it is submitted. The disk's thread brings the
//! model's events and the arrivals into the order of their times, however late it is itself: the
//! decisions of the modelled arm depend on the stamps, never on the thread's own delays. A request
//! is answered at its modelled time: the thread sleeps until shortly before, then spins if the
//! machine has a core for it. Bytes move at once, in the time that the model leaves.
//!
//! Its accuracy is counted by Memulator's measure (Griffin et al., FAST 2002): requests that
//! completed within 2 % of their modelled service time, or within 100 us where that is more. On a
//! machine with other work the scheduler makes the thread late by milliseconds; under `chrt -f 10`
//! it does not.

mod data;
mod pace;

pub use pace::Punctuality;

use crate::array::monotonic_now;
use crate::export::{ErrorCode, Export, Features, Operation, Request};
use crate::member::{MemberFile, Waker};
use crossbeam_channel::{Receiver, Sender, unbounded};
use data::Data;
use pace::Pace;
use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, ParameterError, QueueRules};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time before a modelled time at which the thread wakes up to spin: more than a timer's delay
/// on a quiet machine.
const SPIN: Nanos = Nanos(60_000);

/// The storage of a modelled disk's bytes.
#[derive(Debug)]
pub enum DiskStorage {
    /// Memory, lost with the process; only written ranges take room.
    Memory,
    /// A (sparse) file, whose size is the disk's if it is smaller than the model's.
    File(MemberFile),
}

/// A modelled disk to be served.
#[derive(Debug)]
pub struct DiskConfig {
    /// The model that determines how long commands take.
    pub parameters: DiskParameters,
    /// The platter's angle at the start.
    pub phase: Nanos,
    /// The seed of the model's random numbers.
    pub seed: u64,
    /// The host's queue before the disk.
    pub queue: QueueRules,
    /// The storage of the disk's bytes.
    pub storage: DiskStorage,
}

/// The reason why a modelled disk cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// A parameter that no disk has.
    #[error("the disk's parameters cannot be used")]
    Parameters(#[source] ParameterError),
    /// A queue without tags, so that no command could be sent.
    #[error("a disk needs at least one tag")]
    NoTags,
    /// The system gives no thread or no descriptor.
    #[error("cannot start the disk's thread")]
    Start(#[source] io::Error),
}

/// A modelled disk at work; when dropped, it finishes what is under way.
#[derive(Debug)]
pub struct DiskExport {
    inbox: Sender<Message>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    started: Nanos,
    rotational: bool,
    size_bytes: u64,
    punctuality: Arc<Mutex<Punctuality>>,
}

enum Message {
    Arrival { at: Nanos, request: Request },
    Stop,
}

impl DiskExport {
    /// Starts a disk.
    ///
    /// # Errors
    /// When the parameters are not a disk's or its thread cannot be started.
    pub fn start(config: DiskConfig) -> Result<Self, DiskError> {
        config
            .parameters
            .validate()
            .map_err(DiskError::Parameters)?;
        if config.queue.tags == 0 {
            return Err(DiskError::NoTags);
        }
        let mut size = config.parameters.capacity;
        let data = match config.storage {
            DiskStorage::Memory => Data::in_memory(),
            DiskStorage::File(file) => {
                size = size.min(file.size());
                Data::in_file(file)
            }
        };
        let rotational = config.parameters.medium().facts().rotational;
        let disk = Disk::new(config.parameters, config.phase, Stream::new(config.seed));
        let waker = Arc::new(Waker::new().map_err(DiskError::Start)?);
        let punctuality = Arc::new(Mutex::new(Punctuality::default()));
        let started = monotonic_now();
        let (inbox, arrivals) = unbounded();
        let spindle = Spindle {
            pace: Pace::new(disk, config.queue),
            data,
            arrivals,
            waker: Arc::clone(&waker),
            started,
            spin: if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
                SPIN
            } else {
                Nanos::ZERO
            },
            punctuality: Arc::clone(&punctuality),
            stopping: false,
        };
        let thread = std::thread::Builder::new()
            .name("spindle".to_owned())
            .spawn(move || spindle.run())
            .map_err(DiskError::Start)?;
        Ok(Self {
            inbox,
            waker,
            thread: Some(thread),
            started,
            rotational,
            size_bytes: size.to_bytes().0,
            punctuality,
        })
    }

    /// Returns how well the modelled times were kept so far.
    #[must_use]
    pub fn punctuality(&self) -> Punctuality {
        *self
            .punctuality
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Export for DiskExport {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn description(&self) -> String {
        "a modelled disk in real time".to_owned()
    }

    fn features(&self) -> Features {
        Features {
            flush: true,
            trim: true,
            multiple_connections: true,
            rotational: self.rotational,
            ..Features::default()
        }
    }

    fn block_sizes(&self) -> crate::export::BlockSizes {
        crate::export::BlockSizes {
            minimum: 512,
            ..crate::export::BlockSizes::default()
        }
    }

    fn submit(&self, request: Request) {
        let at = Nanos(monotonic_now().0.saturating_sub(self.started.0));
        // A request that cannot be sent is dropped, which answers it.
        let _ = self.inbox.send(Message::Arrival { at, request });
    }

    fn submitted(&self) {
        self.waker.wake();
    }
}

impl Drop for DiskExport {
    fn drop(&mut self) {
        // If it cannot be sent, the thread has ended already.
        let _ = self.inbox.send(Message::Stop);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

/// The thread that runs the disk.
struct Spindle {
    pace: Pace<(Request, Result<(), ErrorCode>)>,
    data: Data,
    arrivals: Receiver<Message>,
    waker: Arc<Waker>,
    started: Nanos,
    spin: Nanos,
    punctuality: Arc<Mutex<Punctuality>>,
    stopping: bool,
}

impl Spindle {
    fn run(mut self) {
        // A thread's timers may be 50 us late by default (prctl(2), PR_SET_TIMERSLACK). If the
        // kernel refuses, they remain so.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            self.take_arrivals();
            self.release();
            if self.stopping && self.pace.is_empty() {
                return;
            }
            self.sleep();
        }
    }

    fn now(&self) -> Nanos {
        Nanos(monotonic_now().0.saturating_sub(self.started.0))
    }

    fn take_arrivals(&mut self) {
        while let Ok(message) = self.arrivals.try_recv() {
            match message {
                Message::Arrival { at, request } => self.take(at, request),
                Message::Stop => self.stopping = true,
            }
        }
    }

    fn take(&mut self, at: Nanos, mut request: Request) {
        let force = request.flags.force_unit_access;
        let kind = match request.operation {
            Operation::Read => CommandKind::Read,
            Operation::Write if force => CommandKind::WriteThrough,
            Operation::Write => CommandKind::Write,
            Operation::Flush => CommandKind::Flush,
            Operation::Trim => CommandKind::Discard,
            Operation::Cache | Operation::WriteZeroes => {
                request.complete(Err(ErrorCode::NotSupported));
                return;
            }
        };
        let command = Command {
            tag: 0,
            kind,
            start: Bytes(request.offset).to_sectors(),
            count: Sectors(Bytes(u64::from(request.length)).to_sectors().0.max(1)),
        };
        let result = self.data.carry_out(&mut request);
        self.pace.arrive(at, command, (request, result));
    }

    /// Answers the requests whose modelled time has come.
    fn release(&mut self) {
        let now = self.now();
        while let Some(done) = self.pace.advance(now) {
            let (request, result) = done.payload;
            // Locked during the answers, so that a client that has its answer and then asks
            // sees it counted.
            let punctuality = self.punctuality.lock();
            let mut punctuality = punctuality.unwrap_or_else(PoisonError::into_inner);
            request.complete(result);
            punctuality.count(done.arrived, done.due, self.now());
        }
    }

    /// Sleeps until the next event is close, or a request arrives; then spins.
    fn sleep(&mut self) {
        let next = self.pace.next_event();
        let wake_at = next.map(|next| Nanos(next.0.saturating_sub(self.spin.0)));
        self.waker.announce();
        let now = self.now();
        let early = wake_at.is_none_or(|wake_at| wake_at > now);
        if early && self.arrivals.is_empty() {
            let timeout = wake_at.map(|wake_at| Duration::from_nanos(wake_at.0 - now.0));
            // An interrupted sleep is merely shorter.
            let _ = self.waker.sleep(timeout);
        }
        self.waker.awake();
        while self.arrivals.is_empty()
            && next.is_some_and(|next| {
                let now = self.now();
                now < next && now.0 + self.spin.0 >= next.0
            })
        {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests;
