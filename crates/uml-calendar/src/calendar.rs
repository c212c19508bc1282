//! The loop that owns the time.
//!
//! Guest and calendar run in turn, never both. While the guest runs, its messages are served one at
//! a time, because each may change what the next one means. When it waits, the earliest event
//! happens: a disk's event, which may interrupt the guest, or the guest's own next event, for which
//! it is run. At the same time a disk is first, and of two disks the one with the lower number. The
//! guest may let its clock run by itself up to the next event of any disk; a kick that makes a
//! disk's next event earlier is answered only when the guest knows that.

mod turns;

use crate::clock::{Clock, Turn};
use crate::config::{DeviceConfig, Options};
use crate::device::{Device, listen};
use crate::drive::{Answer, DiskCounters};
use crate::error::{CalendarError, Outcome, system};
use crate::halt::Halt;
use crate::shared_time::Kick;
use crate::sparse::Arena;
use crate::starvation::Processes;
use crate::trace::{TraceDigest, TraceRecord};
use raidlab_units::{Bytes, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time between two looks at the stop flag while no message comes.
const GLANCE: Duration = Duration::from_millis(100);
/// The least time between two looks at the stop flag.
const SHORTEST_GLANCE: Duration = Duration::from_millis(1);

/// An observer of the events of a run.
pub trait Observer {
    /// Takes the counters of all disks, as they stand at `at`: each [`Options::sample_every`] of
    /// virtual time, in order, none left out.
    fn sample(&mut self, at: Nanos, disks: &[DiskCounters]) {
        let _ = (at, disks);
    }

    /// Takes the record of each command that has ended.
    fn completed(&mut self, record: &TraceRecord) {
        let _ = record;
    }
}

/// The observer of a run that is not observed.
impl Observer for () {}

/// The calendar of one guest, with its disks.
#[derive(Debug)]
pub struct Calendar {
    options: Options,
    path: PathBuf,
    listener: Option<UnixListener>,
    devices: Vec<Device>,
    arena: Arena,
    now: u64,
    next_sample: u64,
    counters: Vec<DiskCounters>,
    answers: Vec<Answer>,
    kicks: Vec<Kick>,
    digest: TraceDigest,
    messages: u64,
}

/// The socket on which a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Clock,
    Device(usize),
    Interrupts(usize),
}

/// The sockets whose messages are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// The messages of the clock and of all drivers.
    All,
    /// The messages of the guest's clock alone.
    Clock,
    /// The messages of the clock, and the answer to an interrupt.
    Interrupted(usize),
}

impl Calendar {
    /// Makes the sockets in directory `dir`, which must exist: the clock's, and one
    /// for each device. They listen when this returns, so that the guest can be
    /// started then. They are removed when the calendar is dropped.
    ///
    /// # Errors
    /// When a device's numbers are not a disk's, or a socket cannot be made.
    pub fn bind(
        dir: &Path,
        devices: Vec<DeviceConfig>,
        options: Options,
    ) -> Result<Self, CalendarError> {
        for (disk, config) in devices.iter().enumerate() {
            config.validate(disk)?;
        }
        let path = dir.join("calendar");
        let listener = listen(&path)?;
        let mut calendar = Self {
            path,
            listener: Some(listener),
            devices: Vec::with_capacity(devices.len()),
            arena: Arena::new(options.storage_limit.0, options.storage.clone()),
            now: 0,
            next_sample: options.sample_every.0.max(1),
            counters: Vec::new(),
            answers: Vec::new(),
            kicks: Vec::new(),
            digest: TraceDigest::default(),
            messages: 0,
            options,
        };
        for (number, config) in devices.into_iter().enumerate() {
            let path = dir.join(format!("disk{number}"));
            let device = Device::bind(number, path, config, &calendar.options)?;
            calendar.devices.push(device);
        }
        Ok(calendar)
    }

    /// The path of the clock's socket: `time-travel=ext:1:PATH`.
    #[must_use]
    pub fn socket_path(&self) -> &Path {
        &self.path
    }

    /// The path of a device's socket: `virtio_uml.device=PATH:2:NUMBER`. `None` if there is
    /// no such device.
    #[must_use]
    pub fn device_path(&self, number: usize) -> Option<&Path> {
        self.devices.get(number).map(Device::path)
    }

    /// The present virtual time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    /// The disks' counters as they stand now.
    #[must_use]
    pub fn counters(&self) -> Vec<DiskCounters> {
        let now = self.now();
        let devices = self.devices.iter();
        devices.map(|device| device.counters_at(now)).collect()
    }

    /// The digest of all the disks' work.
    #[must_use]
    pub fn trace_digest(&self) -> TraceDigest {
        self.digest
    }

    /// The size of the kept contents of the disks, in whole pages of 4 KiB: no zeros, and
    /// no page twice.
    #[must_use]
    pub fn stored(&self) -> Bytes {
        Bytes(self.arena.stored_bytes())
    }

    /// The number of messages that the guest has sent.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Serves a guest until it ends, or cannot go on, or shall not. It takes this thread;
    /// the caller starts the guest's process and ends it. If it is still there when this
    /// returns, it has lost its clock and its disks: it panics when it next looks at them,
    /// and should be killed.
    ///
    /// # Errors
    /// When the guest breaks a protocol, when the disks hold more than they may, or when the
    /// system refuses something.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<Outcome, CalendarError> {
        let Some(listener) = self.listener.take() else {
            return Err(CalendarError::UsedUp);
        };
        let ending = self.welcome(&listener).and_then(|mut clock| {
            let ending = self.turns(&mut clock, observer);
            self.messages += clock.messages;
            ending
        });
        for device in &mut self.devices {
            device.disconnect();
        }
        match ending {
            Ok(never) => match never {},
            Err(Halt::Outcome(outcome)) => Ok(outcome),
            Err(Halt::Error(error)) => Err(error),
        }
    }

    fn welcome(&self, listener: &UnixListener) -> Result<Clock, Halt> {
        let mut descriptors = [PollFd::new(listener, PollFlags::IN)];
        if !self.wait_for_one(&mut descriptors, None)? {
            return Err(Outcome::NoGuest.into());
        }
        let (stream, _) = listener
            .accept()
            .map_err(|error| system("accept a guest's clock", error))?;
        let options = &self.options;
        let socket = OwnedFd::from(stream);
        Ok(Clock::new(socket, options.protocol, options.patience)?)
    }

    fn turns(
        &mut self,
        clock: &mut Clock,
        observer: &mut dyn Observer,
    ) -> Result<Infallible, Halt> {
        loop {
            match clock.turn() {
                Turn::Starting | Turn::Guest => self.serve(clock, observer)?,
                Turn::Calendar => self.next_event(clock, observer)?,
            }
        }
    }

    /// Waits until one of the descriptors has something; returns false if the patience with `guest`
    /// is at its end.
    fn wait_for_one(
        &self,
        descriptors: &mut [PollFd<'_>],
        guest: Option<Processes>,
    ) -> Result<bool, Halt> {
        let kept_waiting = || guest.map_or(Duration::ZERO, Processes::kept_waiting);
        let mut silent = Duration::ZERO;
        let mut looked = Instant::now();
        let mut waited = None;
        loop {
            self.check_stop()?;
            let left = self.options.patience.saturating_sub(silent);
            let glance = left.clamp(SHORTEST_GLANCE, GLANCE);
            match poll(descriptors, Timespec::try_from(glance).ok().as_ref()) {
                Ok(0) => {
                    // Most messages come before there is need to look for the guest.
                    let now = (Instant::now(), kept_waiting());
                    let starved = now.1.saturating_sub(*waited.get_or_insert(now.1));
                    let could_run = now.0.duration_since(looked).saturating_sub(starved);
                    // Where a glance takes much longer than it should, the whole
                    // machine stood still.
                    silent += could_run.min(glance);
                    (looked, waited) = (now.0, Some(now.1));
                    if silent >= self.options.patience {
                        return Ok(false);
                    }
                }
                Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(system("wait for the guest", error.into()).into()),
            }
        }
    }

    fn check_stop(&self) -> Result<(), Halt> {
        let stop = self.options.stop.as_ref();
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Outcome::Stopped.into());
        }
        Ok(())
    }

    /// Waits for a message. The clock's come first, as what a driver means depends
    /// on the time.
    fn wait_for(&self, clock: &Clock, awaited: Awaited) -> Result<Source, Halt> {
        let mut sources = vec![Source::Clock];
        let mut descriptors = vec![PollFd::new(clock, PollFlags::IN)];
        match awaited {
            Awaited::Clock => {}
            Awaited::Interrupted(disk) => {
                if let Some(interrupts) = self.devices[disk].interrupts() {
                    sources.push(Source::Interrupts(disk));
                    descriptors.push(PollFd::new(interrupts, PollFlags::IN));
                }
            }
            Awaited::All => {
                for (disk, device) in self.devices.iter().enumerate() {
                    sources.push(Source::Device(disk));
                    let awaited = device.awaited();
                    descriptors.push(PollFd::from_borrowed_fd(awaited, PollFlags::IN));
                }
            }
        }
        if !self.wait_for_one(&mut descriptors, clock.processes())? {
            return Err(Outcome::GuestStuck.into());
        }
        let ready = descriptors
            .iter()
            .position(|descriptor| !descriptor.revents().is_empty());
        Ok(ready.map_or(Source::Clock, |index| sources[index]))
    }
}

impl Drop for Calendar {
    fn drop(&mut self) {
        // A path that is already removed is gone as wanted.
        let _ = std::fs::remove_file(&self.path);
    }
}

const _: fn() = || {
    fn sendable<T: Send>() {}
    sendable::<Calendar>();
};
