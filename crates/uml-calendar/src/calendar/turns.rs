//! The guest's turn and the calendar's: their order, and the events in them.
//!
//! While the guest runs, messages are served one at a time: from its clock, from the drivers of
//! its disks, and from interrupts. A kick moves virtual time to what the guest's clock shows,
//! hands the ring's requests to the disk, and tells the clock when the disk will answer, so
//! that the guest runs no further than that. When the guest waits, the calendar takes the
//! earliest of all disks' next events and of the time that the guest asked for, moves to it,
//! and answers requests or lets the guest run. If there is neither, the guest waits for ever,
//! which ends the run.

use super::{Awaited, Calendar, Observer, Source};
use crate::channel::{ChannelError, Received};
use crate::clock::{Clock, NEVER};
use crate::device::{AnswerError, Device, Reaction};
use crate::error::{CalendarError, ClockError, DeviceError, Outcome};
use crate::halt::Halt;
use crate::shared_time::Kick;
use crate::sparse::ArenaError;
use raidlab_units::Nanos;

impl Calendar {
    /// Serves one message in the guest's turn.
    pub(super) fn serve(
        &mut self,
        clock: &mut Clock,
        observer: &mut dyn Observer,
    ) -> Result<(), Halt> {
        if clock.wait_and_serve(self.now, self.options.epoch)? {
            return Ok(());
        }
        match self.wait_for(clock, Awaited::All)? {
            Source::Clock => clock.serve(self.now, self.options.epoch),
            Source::Device(disk) if self.devices[disk].is_connected() => {
                self.serve_driver(clock, disk, observer)
            }
            Source::Device(disk) => Ok(self.devices[disk].accept()?),
            Source::Interrupts(_) => Ok(()),
        }
    }

    fn serve_driver(
        &mut self,
        clock: &mut Clock,
        disk: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), Halt> {
        let device = &mut self.devices[disk];
        let message = match device.receive() {
            Ok(Received::Nothing) => return Ok(()),
            Ok(Received::Message(message)) => message,
            // A guest that ends closes its sockets in any order.
            Ok(Received::Closed) | Err(ChannelError::Truncated) => {
                device.disconnect();
                return Ok(());
            }
            Err(error) => return Err(device.broken(DeviceError::Channel(error)).into()),
        };
        self.messages += 1;
        let reaction = device.handle(message);
        match reaction.map_err(|error| device.broken(error))? {
            Reaction::Done => Ok(()),
            Reaction::Reply(reply) => self.reply(disk, &reply),
            Reaction::Kick(reply) => {
                self.kick(clock, disk, observer)?;
                reply.map_or(Ok(()), |reply| self.reply(disk, &reply))
            }
        }
    }

    fn reply(&mut self, disk: usize, reply: &[u8]) -> Result<(), Halt> {
        let device = &mut self.devices[disk];
        match device.reply(reply) {
            Ok(()) => Ok(()),
            Err(ChannelError::Gone) => {
                device.disconnect();
                Ok(())
            }
            Err(error) => Err(device.broken(DeviceError::Channel(error)).into()),
        }
    }

    /// Handles a kick, by which the guest says that a ring has something new.
    fn kick(
        &mut self,
        clock: &mut Clock,
        disk: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), Halt> {
        self.shared_kicks(clock, observer)?;
        let shown = clock.shown()?;
        self.pass(shown, observer)?;
        let now = self.now();
        let device = &mut self.devices[disk];
        let taken = device.take_requests(now, None);
        taken.map_err(|error| device.broken(error))?;
        clock.restrict(self.next_disk_event().0)?;
        while clock.owes_answers() {
            self.wait_for(clock, Awaited::Clock)?;
            clock.serve(self.now, self.options.epoch)?;
        }
        Ok(())
    }

    /// Handles the kicks for which the guest sends no message.
    fn shared_kicks(&mut self, clock: &mut Clock, observer: &mut dyn Observer) -> Result<(), Halt> {
        let mut kicks = std::mem::take(&mut self.kicks);
        clock.take_kicks(&mut kicks)?;
        if !kicks.is_empty() {
            self.pass(clock.shown()?, observer)?;
        }
        let now = self.now();
        for Kick { device, available } in kicks.drain(..) {
            let kicked = self.devices.get_mut(device);
            let kicked = kicked.ok_or(ClockError::NoDevice { device })?;
            let taken = kicked.take_requests(now, Some(available));
            taken.map_err(|error| kicked.broken(error))?;
        }
        self.kicks = kicks;
        Ok(())
    }

    /// The next event of any disk, and the disk's number; `u64::MAX` if there is none.
    fn next_disk_event(&self) -> (u64, usize) {
        let devices = self.devices.iter().enumerate();
        devices
            .filter_map(|(disk, device)| device.next_event().map(|time| (time.0, disk)))
            .min()
            .unwrap_or((u64::MAX, 0))
    }

    /// Carries out the earliest event in the calendar's turn.
    pub(super) fn next_event(
        &mut self,
        clock: &mut Clock,
        observer: &mut dyn Observer,
    ) -> Result<(), Halt> {
        self.check_stop()?;
        self.shared_kicks(clock, observer)?;
        let (event, disk) = self.next_disk_event();
        let request = clock.request();
        let next = event.min(request);
        if next >= NEVER {
            let unanswered = self.unanswered(|_| true);
            return Err(Outcome::IdleForEver { unanswered }.into());
        }
        if let Some(limit) = self.hung_until().filter(|limit| next > *limit) {
            self.pass(limit, observer)?;
            let unanswered = self.unanswered(|disk| disk.owes_for_ever_since().is_some());
            return Err(Outcome::Hung { unanswered }.into());
        }
        if let Some(limit) = self.options.time_limit
            && next > limit.0
        {
            self.pass(limit.0, observer)?;
            return Err(Outcome::TimeLimit.into());
        }
        self.pass(next, observer)?;
        if event <= request {
            return self.complete(clock, disk, observer);
        }
        let longest = self.options.longest_free_run.0.max(1);
        let free_until = event.min(self.now.saturating_add(longest));
        clock.run(self.now, free_until)
    }

    /// The time at which the patience with a disk that hangs for good ends, if there is one and the
    /// guest has asked it for something.
    fn hung_until(&self) -> Option<u64> {
        let since = self.devices.iter().filter_map(Device::owes_for_ever_since);
        let first = since.min()?;
        Some(first.0.saturating_add(self.options.hung_limit.0))
    }

    /// The disks of this kind that have not answered, and the number of commands of each.
    fn unanswered(&self, such: impl Fn(&Device) -> bool) -> Vec<(usize, usize)> {
        let disks = self.devices.iter().enumerate();
        let such = disks.filter(|(_, disk)| such(disk));
        let counts = such.map(|(number, disk)| (number, disk.unanswered()));
        counts.filter(|&(_, count)| count > 0).collect()
    }

    /// Moves the time up to `time`; the observer gets its samples on the way.
    fn pass(&mut self, time: u64, observer: &mut dyn Observer) -> Result<(), Halt> {
        while self.next_sample <= time {
            self.check_stop()?;
            let at = Nanos(self.next_sample);
            self.counters.clear();
            let devices = self.devices.iter();
            self.counters
                .extend(devices.map(|device| device.counters_at(at)));
            observer.sample(at, &self.counters);
            self.next_sample = self
                .next_sample
                .saturating_add(self.options.sample_every.0.max(1));
        }
        self.now = self.now.max(time);
        Ok(())
    }

    /// Handles a disk's event: its answers are carried out, and the guest interrupted.
    fn complete(
        &mut self,
        clock: &mut Clock,
        disk: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), Halt> {
        let now = self.now();
        let device = &mut self.devices[disk];
        let mut answers = std::mem::take(&mut self.answers);
        answers.clear();
        device.advance(now, &mut answers);
        for answer in &answers {
            let record = Device::record(disk, answer, now);
            self.digest.add(&record);
            observer.completed(&record);
            match device.answer(answer, &mut self.arena) {
                Ok(()) => {}
                Err(AnswerError::Arena(ArenaError::Storage(error))) => {
                    return Err(CalendarError::Storage(error).into());
                }
                Err(AnswerError::Arena(ArenaError::Full)) => {
                    return Err(CalendarError::StorageFull {
                        limit_bytes: self.options.storage_limit.0,
                    }
                    .into());
                }
                Err(AnswerError::Device(error)) => return Err(device.broken(error).into()),
            }
        }
        let answered = !answers.is_empty();
        self.answers = answers;
        if !answered {
            return Ok(());
        }
        if self.options.suppress_kicks {
            let taken = device.take_requests(now, None);
            taken.map_err(|error| device.broken(error))?;
        }
        let wanted = device.wants_interrupt();
        if wanted.map_err(|error| device.broken(error))? {
            self.interrupt(clock, disk)?;
        }
        Ok(())
    }

    /// Interrupts the guest, which waits: it asks for the time, asks to run now,
    /// and then says that it has seen the interrupt.
    fn interrupt(&mut self, clock: &mut Clock, disk: usize) -> Result<(), Halt> {
        if clock.interrupt(disk, self.now)? {
            return Ok(());
        }
        clock.before_interrupt(self.now)?;
        let device = &mut self.devices[disk];
        match device.send_interrupt() {
            Ok(()) => {}
            Err(ChannelError::Gone) => {
                device.disconnect();
                return Ok(());
            }
            Err(error) => return Err(device.broken(DeviceError::Channel(error)).into()),
        }
        loop {
            if self.wait_for(clock, Awaited::Interrupted(disk))? == Source::Clock {
                clock.serve(self.now, self.options.epoch)?;
                continue;
            }
            self.messages += 1;
            let device = &mut self.devices[disk];
            match device.interrupt_answer() {
                Ok(None) => {}
                Ok(Some(Some(0))) => return clock.see_request(self.now),
                Ok(Some(answer)) => {
                    return Err(device.broken(DeviceError::Interrupt { answer }).into());
                }
                Err(ChannelError::Gone | ChannelError::Truncated) => {
                    device.disconnect();
                    return Ok(());
                }
                Err(error) => return Err(device.broken(DeviceError::Channel(error)).into()),
            }
        }
    }
}
