//! A vhost-user-blk device: one disk of the guest's.
//!
//! The front-end connects, agrees on features, shares its memory and names its
//! ring ([`setup`]). From then on it kicks: the device takes the requests out of
//! the ring and hands them to the drive ([`requests`]). At a drive's answer the
//! data moves, between the guest's memory and the disk's pages, and the request
//! goes back into the ring. When to interrupt the guest is the calendar's business.

mod requests;
mod setup;

pub(crate) use requests::AnswerError;

use crate::block::{Abilities, Request, SECTOR};
use crate::channel::{Channel, ChannelError, Received};
use crate::config::{DeviceConfig, Options};
use crate::drive::{Answer, DiskCounters, Drive};
use crate::error::{CalendarError, DeviceError, system};
use crate::memory::{GuestMemory, Process};
use crate::sparse::{Arena, Pages};
use crate::trace::TraceRecord;
use crate::vhost_user::{self, RingAddresses};
use raidlab_units::{Nanos, Sectors};
use rustix::net::sockopt::socket_peercred;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use virtio_queue::{Queue, QueueT};

/// The number of entries of the ring: all that virtio_uml has.
const MOST_ENTRIES: u16 = 256;

/// The reaction to a message of the front-end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// The message is dealt with, and nothing is sent back.
    Done,
    /// These bytes are to be sent back.
    Reply(Vec<u8>),
    /// The ring is to be looked at, then the reply sent, if there is one.
    Kick(Option<Vec<u8>>),
}

/// A device with its disk.
#[derive(Debug)]
pub(crate) struct Device {
    number: usize,
    config: DeviceConfig,
    path: PathBuf,
    listener: UnixListener,
    frontend: Option<Channel>,
    /// The channel over which the guest is interrupted.
    interrupts: Option<Channel>,
    process: Option<Process>,
    process_error: Option<io::Error>,
    features: u64,
    protocol_features: u64,
    memory: Option<GuestMemory>,
    ring: Option<RingAddresses>,
    entries: u16,
    base: u16,
    queue: Queue,
    /// Whether writes may end in the disk's cache.
    write_back: bool,
    abilities: Abilities,
    drive: Drive,
    pages: Pages,
    /// The requests under way, by the drive's slots.
    requests: Vec<Option<Request>>,
    suppress_kicks: bool,
    physical_memory_at: u64,
    patience: std::time::Duration,
}

impl Device {
    /// Makes device `number`, which listens at `path`.
    pub(crate) fn bind(
        number: usize,
        path: PathBuf,
        config: DeviceConfig,
        options: &Options,
    ) -> Result<Self, CalendarError> {
        let listener = listen(&path)?;
        let abilities = Abilities {
            sectors: config.capacity().0,
            block_sectors: config.logical_block.0 / SECTOR,
            flush: config.write_cache,
            discard: config.discard,
            write_zeroes: config.write_zeroes,
        };
        let queue = Queue::new(MOST_ENTRIES)
            .map_err(|error| system("make a queue", io::Error::other(error)))?;
        Ok(Self {
            drive: Drive::new(config.model.clone(), config.tags, &config.faults),
            write_back: config.write_cache,
            number,
            config,
            path,
            listener,
            frontend: None,
            interrupts: None,
            process: None,
            process_error: None,
            features: 0,
            protocol_features: 0,
            memory: None,
            ring: None,
            entries: MOST_ENTRIES,
            base: 0,
            queue,
            abilities,
            pages: Pages::default(),
            requests: Vec::new(),
            suppress_kicks: options.suppress_kicks,
            physical_memory_at: options.physical_memory_at,
            patience: options.patience,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor to poll: the front-end's, or the listener's until there is one.
    pub(crate) fn awaited(&self) -> BorrowedFd<'_> {
        match &self.frontend {
            Some(frontend) => frontend.as_fd(),
            None => self.listener.as_fd(),
        }
    }

    /// Whether a front-end is connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.frontend.is_some()
    }

    /// The channel on which the guest answers interrupts.
    pub(crate) fn interrupts(&self) -> Option<&Channel> {
        self.interrupts.as_ref()
    }

    /// Reads what the front-end has sent.
    pub(crate) fn receive(&mut self) -> Result<Received, ChannelError> {
        match &mut self.frontend {
            Some(frontend) => frontend.receive(),
            None => Ok(Received::Closed),
        }
    }

    /// Sends a reply to the front-end, in the bytes of the protocol.
    pub(crate) fn reply(&self, reply: &[u8]) -> Result<(), ChannelError> {
        let frontend = self.frontend.as_ref().ok_or(ChannelError::Gone)?;
        frontend.send(reply, &[])
    }

    /// Sends the guest an interrupt, which it has to answer.
    pub(crate) fn send_interrupt(&self) -> Result<(), ChannelError> {
        let interrupts = self.interrupts.as_ref().ok_or(ChannelError::Gone)?;
        interrupts.send(&vhost_user::interrupt(0), &[])
    }

    /// The guest's answer to an interrupt, once it is whole; `None` in it for bytes
    /// that are no such answer.
    pub(crate) fn interrupt_answer(&mut self) -> Result<Option<Option<u64>>, ChannelError> {
        let interrupts = self.interrupts.as_mut().ok_or(ChannelError::Gone)?;
        match interrupts.receive()? {
            Received::Nothing => Ok(None),
            Received::Closed => Err(ChannelError::Gone),
            Received::Message(message) => Ok(Some(vhost_user::interrupt_answer(&message.bytes))),
        }
    }

    /// Takes the front-end that has come.
    pub(crate) fn accept(&mut self) -> Result<(), CalendarError> {
        let (stream, _) = self
            .listener
            .accept()
            .map_err(|error| system("accept a guest's driver", error))?;
        let peer = socket_peercred(&stream)
            .map_err(|error| system("ask for a guest's process", error.into()))?;
        match Process::open(peer.pid.as_raw_pid(), self.physical_memory_at) {
            Ok(process) => self.process = Some(process),
            Err(error) => self.process_error = Some(error),
        }
        let channel = Channel::new(OwnedFd::from(stream), vhost_user::framing, self.patience);
        self.frontend = Some(channel.map_err(|source| self.broken(DeviceError::Channel(source)))?);
        Ok(())
    }

    /// Drops a front-end that has gone, its ring and its memory with it.
    pub(crate) fn disconnect(&mut self) {
        self.frontend = None;
        self.interrupts = None;
        self.memory = None;
        self.forget_ring();
    }

    /// Forgets the ring, and gives back none of the requests that came from it: a later ring may
    /// have other requests in the same places.
    fn forget_ring(&mut self) {
        self.queue.set_ready(false);
        self.requests.fill(None);
    }

    pub(crate) fn broken(&self, source: DeviceError) -> CalendarError {
        CalendarError::Device {
            disk: self.number,
            source,
        }
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.drive.next_event()
    }

    pub(crate) fn counters_at(&self, now: Nanos) -> DiskCounters {
        self.drive.counters_at(now)
    }

    /// The time since when the disk owes an answer that will never come.
    pub(crate) fn owes_for_ever_since(&self) -> Option<Nanos> {
        self.drive.owes_for_ever_since()
    }

    /// The number of commands that have not been answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.drive.in_flight()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // A path that is already removed is gone as wanted.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens at `path`, which must be short enough and free.
pub(crate) fn listen(path: &Path) -> Result<UnixListener, CalendarError> {
    if path.as_os_str().len() > 107 {
        return Err(CalendarError::PathTooLong {
            path: path.display().to_string(),
        });
    }
    UnixListener::bind(path).map_err(|error| system("listen for a guest", error))
}
