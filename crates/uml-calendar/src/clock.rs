//! The guest's clock, as the calendar sees it: whose turn it is, until when, and when the guest
//! wants to run next.

use crate::channel::{Channel, ChannelError, Received};
use crate::config::Protocol;
use crate::error::{CalendarError, ClockError, Outcome, system};
use crate::halt::Halt;
use crate::shared_time::{CALENDAR, GUEST, Kick, SharedTime};
use crate::starvation::Processes;
use crate::time_travel::{Operation, TimeMessage, framing};
use raidlab_units::Nanos;
use rustix::net::sockopt::socket_peercred;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A time that asks for nothing, as any later one does (`time_travel_sleep` waits until `S64_MAX`).
pub(crate) const NEVER: u64 = i64::MAX as u64;

/// The time for which the clock alone is waited for.
const GLANCE: Duration = Duration::from_millis(100);

/// The turn, which is the guest's or the calendar's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The guest boots, and has not sent its first message, START.
    Starting,
    /// The guest runs, as far as the calendar allows.
    Guest,
    /// The guest waits until the calendar lets it run.
    Calendar,
}

/// The connection to the guest's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    channel: Channel,
    processes: Option<Processes>,
    shared: Option<SharedTime>,
    turn: Turn,
    /// The time at which the guest wants to run, if it has said so.
    request: Option<u64>,
    /// The time that the guest's clock has shown last.
    shown: u64,
    /// The virtual time, in nanoseconds, that the last RUN message told the guest.
    run_at: u64,
    /// The time before which the guest's clock may run.
    free_until: u64,
    /// Whether the guest has shared a kick.
    kicked: bool,
    sequence: u32,
    /// The numbers of messages that the guest has still to answer.
    unanswered: VecDeque<u32>,
    /// The number of messages of the guest's clock that have been read.
    pub(crate) messages: u64,
}

impl Clock {
    pub(crate) fn new(
        socket: OwnedFd,
        protocol: Protocol,
        patience: Duration,
    ) -> Result<Self, CalendarError> {
        let kernel = socket_peercred(&socket).map(|peer| peer.pid.as_raw_pid());
        let channel = Channel::new(socket, framing, patience);
        let channel = channel
            .and_then(|channel| channel.set_longest_wait(GLANCE).map(|()| channel))
            .map_err(|error| CalendarError::Clock(ClockError::Channel(error)))?;
        Ok(Self {
            channel,
            processes: kernel.map(|kernel| Processes { kernel }).ok(),
            shared: match protocol {
                Protocol::Messages => None,
                Protocol::SharedMemory => Some(SharedTime::new()?),
            },
            turn: Turn::Starting,
            request: None,
            shown: 0,
            run_at: 0,
            free_until: 0,
            kicked: false,
            sequence: 0,
            unanswered: VecDeque::new(),
            messages: 0,
        })
    }

    /// The guest's processes, where the system tells them.
    pub(crate) fn processes(&self) -> Option<Processes> {
        self.processes
    }

    pub(crate) fn turn(&self) -> Turn {
        self.turn
    }

    /// The time at which the guest wants to run.
    pub(crate) fn request(&self) -> u64 {
        self.request.unwrap_or(u64::MAX)
    }

    /// Whether the guest has still to answer a message.
    pub(crate) fn owes_answers(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// Reads a message if one is there and does what it asks; `now` is the calendar's time.
    pub(crate) fn serve(&mut self, now: u64, epoch: Nanos) -> Result<(), Halt> {
        let received = self.channel.receive();
        self.obey(received, now, epoch).map(drop)
    }

    /// Waits a glance for a message and does what it asks, where hardly any comes from elsewhere: a
    /// guest that shares its disks' kicks speaks to the clock alone. Returns false if nothing came,
    /// or another guest has to be waited for.
    pub(crate) fn wait_and_serve(&mut self, now: u64, epoch: Nanos) -> Result<bool, Halt> {
        if !self.kicked {
            return Ok(false);
        }
        let received = self.channel.wait();
        self.obey(received, now, epoch)
    }

    fn obey(
        &mut self,
        received: Result<Received, ChannelError>,
        now: u64,
        epoch: Nanos,
    ) -> Result<bool, Halt> {
        match received {
            Ok(Received::Nothing) => Ok(false),
            Ok(Received::Closed) => Err(Outcome::GuestEnded.into()),
            Ok(Received::Message(message)) => {
                self.messages += 1;
                let message = TimeMessage::decode(&message.bytes).map_err(ClockError::Message)?;
                self.handle(&message, now, epoch).map(|()| true)
            }
            Err(error) => Err(ClockError::Channel(error).into()),
        }
    }

    fn handle(&mut self, message: &TimeMessage, now: u64, epoch: Nanos) -> Result<(), Halt> {
        let unexpected = ClockError::Unexpected {
            operation: message.operation,
        };
        if (self.turn == Turn::Starting) != (message.operation == Operation::Start) {
            return Err(unexpected.into());
        }
        match message.operation {
            Operation::Start => return self.start(message),
            Operation::Ack => return Ok(self.answered(message.sequence)?),
            Operation::Request if self.shared.is_none() => {
                check_request(message.time, now)?;
                self.request = Some(message.time);
            }
            Operation::Wait if self.turn == Turn::Guest => return self.wait(message.sequence, now),
            Operation::Update if self.turn == Turn::Guest => self.show(message.time)?,
            Operation::Get => return self.acknowledge(message.sequence, now),
            Operation::GetTimeOfDay => {
                return self.acknowledge(message.sequence, epoch.0.saturating_add(now));
            }
            // There is no other guest to hear it.
            Operation::Broadcast => {}
            _ => return Err(unexpected.into()),
        }
        self.acknowledge(message.sequence, 0)
    }

    fn start(&mut self, message: &TimeMessage) -> Result<(), Halt> {
        self.turn = Turn::Guest;
        let Some(shared) = &self.shared else {
            return self.acknowledge(message.sequence, 0);
        };
        shared.name_guest(message.time)?;
        // The guest wants a descriptor for a log too, and closes it.
        let log = File::open("/dev/null").map_err(|error| system("open /dev/null", error))?;
        let answer = TimeMessage {
            operation: Operation::Ack,
            sequence: message.sequence,
            time: u64::from(GUEST),
        };
        let descriptors = [shared.descriptor(), log.as_fd()];
        self.send(&answer.encode(), &descriptors)
    }

    fn answered(&mut self, sequence: u32) -> Result<(), ClockError> {
        let unexpected = ClockError::Unexpected {
            operation: Operation::Ack,
        };
        let expected = self.unanswered.pop_front().ok_or(unexpected)?;
        if expected == sequence {
            Ok(())
        } else {
            Err(ClockError::WrongAnswer { expected, sequence })
        }
    }

    /// Notes that the guest has stopped. It drops its permission to run.
    fn wait(&mut self, sequence: u32, now: u64) -> Result<(), Halt> {
        self.shown()?;
        self.turn = Turn::Calendar;
        self.free_until = 0;
        if self.shared.is_some() {
            self.see_request(now)
        } else {
            self.acknowledge(sequence, 0)
        }
    }

    /// Looks up the time at which the guest wants to run, where it says so in shared memory.
    pub(crate) fn see_request(&mut self, now: u64) -> Result<(), Halt> {
        if let Some(shared) = &self.shared {
            self.request = shared.request()?;
            if let Some(time) = self.request {
                check_request(time, now)?;
            }
        }
        Ok(())
    }

    fn show(&mut self, time: u64) -> Result<(), ClockError> {
        // The guest may have been restricted to the very time it shows, by a command that ends as
        // soon as it comes.
        let granted = self.free_until.saturating_sub(1);
        let allowed = self.run_at.max(self.shown).max(granted);
        if time > allowed {
            return Err(ClockError::RanAhead {
                shown: Nanos(time),
                allowed: Nanos(allowed),
            });
        }
        self.shown = self.shown.max(time);
        Ok(())
    }

    /// Moves the kicks that the guest has left in shared memory into `kicks`; they are of the time
    /// that its clock shows.
    pub(crate) fn take_kicks(&mut self, kicks: &mut Vec<Kick>) -> Result<(), Halt> {
        if let Some(shared) = &self.shared {
            shared.take_kicks(kicks)?;
            self.kicked |= !kicks.is_empty();
        }
        Ok(())
    }

    /// Interrupts the guest, which waits, without a message: it finds that `device` does so when it
    /// is run, and wants to run now. Returns false where a message has to tell it.
    pub(crate) fn interrupt(&mut self, device: usize, now: u64) -> Result<bool, Halt> {
        let Some(shared) = &self.shared else {
            return Ok(false);
        };
        let found = shared.interrupt(device)?;
        if found {
            self.request = Some(now);
        }
        Ok(found)
    }

    /// The time that the guest's clock shows while it runs.
    pub(crate) fn shown(&mut self) -> Result<u64, Halt> {
        if let Some(shared) = &self.shared {
            let time = shared.current_time()?;
            self.show(time)?;
        }
        Ok(self.shown)
    }

    /// Lets the guest run at `now`, and before `free_until` as it likes.
    pub(crate) fn run(&mut self, now: u64, free_until: u64) -> Result<(), Halt> {
        self.turn = Turn::Guest;
        self.request = None;
        self.run_at = now;
        self.free_until = free_until;
        let run = self.next_message(Operation::Run, now);
        if let Some(shared) = &self.shared {
            shared.set(now, GUEST, free_until)?;
            return self.send(&run.encode(), &[]);
        }
        let free = self.next_message(Operation::FreeUntil, free_until);
        self.unanswered.extend([free.sequence, run.sequence]);
        self.send(&[free.encode(), run.encode()].concat(), &[])
    }

    /// Restricts the guest, which runs, to run before `time` only. By messages, it has to answer
    /// before anything else is said.
    pub(crate) fn restrict(&mut self, time: u64) -> Result<(), Halt> {
        if time >= self.free_until {
            return Ok(());
        }
        self.free_until = time;
        if let Some(shared) = &self.shared {
            if time < shared.free_until()? {
                shared.set_free_until(time)?;
            }
            return Ok(());
        }
        let free = self.next_message(Operation::FreeUntil, time);
        self.unanswered.push_back(free.sequence);
        self.send(&free.encode(), &[])
    }

    /// Sets the time to the calendar's before the guest, which waits, is interrupted.
    pub(crate) fn before_interrupt(&self, now: u64) -> Result<(), Halt> {
        match &self.shared {
            Some(shared) => Ok(shared.set(now, CALENDAR, now)?),
            None => Ok(()),
        }
    }

    fn next_message(&mut self, operation: Operation, time: u64) -> TimeMessage {
        self.sequence = self.sequence.wrapping_add(1);
        TimeMessage {
            operation,
            sequence: self.sequence,
            time,
        }
    }

    fn acknowledge(&self, sequence: u32, time: u64) -> Result<(), Halt> {
        let answer = TimeMessage {
            operation: Operation::Ack,
            sequence,
            time,
        };
        self.send(&answer.encode(), &[])
    }

    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Halt> {
        match self.channel.send(bytes, descriptors) {
            Ok(()) => Ok(()),
            Err(ChannelError::Gone) => Err(Outcome::GuestEnded.into()),
            Err(error) => Err(ClockError::Channel(error).into()),
        }
    }
}

impl AsFd for Clock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

fn check_request(time: u64, now: u64) -> Result<(), ClockError> {
    if time >= now {
        return Ok(());
    }
    Err(ClockError::InThePast {
        requested: Nanos(time),
        now: Nanos(now),
    })
}
