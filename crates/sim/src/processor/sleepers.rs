//! Processes that sleep in the array: for a free request of a disk, for a stripe, for the bitmap.
//! Whoever slept sends its commands itself once it wakes, on a core of its own (Linux
//! block/blk-mq-tag.c, `blk_mq_get_tag`).

use super::task::{Action, Part, Place};
use super::taskqs::TaskqName;
use super::{BitmapWrites, Processor};
use raidlab_array::{Operation, Outputs, Purpose, Sender};
use raidlab_units::Nanos;

impl Processor {
    /// Takes the commands that an answer has set free, and whose process sleeps, out of the outputs,
    /// and has that process send them. Writes that the array's thread sends for all stay.
    pub(super) fn sleepers_send(
        &mut self,
        now: Nanos,
        outputs: &mut Outputs,
        parts: &mut Vec<Part>,
    ) {
        if self.held.is_empty() {
            return;
        }
        let by_thread = self.array.sender() == BitmapWrites::Thread;
        let mut of_sleepers: Vec<(usize, Vec<Part>)> = Vec::new();
        for command in std::mem::take(&mut outputs.commands) {
            let stays = command.purpose != Purpose::Foreground
                || by_thread && command.operation == Operation::Write;
            let thread = match command.sender {
                Sender::Process(process) if !stays => Some(self.thread_of(process)),
                _ => None,
            };
            let Some(thread) = thread.filter(|&thread| self.threads[thread].held) else {
                outputs.commands.push(command);
                continue;
            };
            if of_sleepers.last().is_none_or(|(last, _)| *last != thread) {
                of_sleepers.push((thread, Vec::new()));
            }
            if let Some((_, commands)) = of_sleepers.last_mut() {
                self.command(command, commands);
            }
        }
        for (thread, commands) in of_sleepers {
            if self.goes_on_with(now, thread, commands) {
                parts.push(Part::Charge(Place::Switch, self.charges.wake_call));
            }
        }
    }

    /// Has a process that slept in the array send these commands before anything else, and sleep
    /// again if the array still has it do so; returns whether it was woken.
    fn goes_on_with(&mut self, now: Nanos, thread: usize, mut commands: Vec<Part>) -> bool {
        self.held.retain(|&held| held != thread);
        let process = u32::try_from(thread - self.first_job).unwrap_or(u32::MAX);
        commands.push(Part::Do(Box::new(Action::Sleep(process))));
        let own = &mut self.threads[thread];
        own.held = false;
        for part in commands.into_iter().rev() {
            own.work.push_front(part);
        }
        self.wake(thread, now)
    }

    /// Has a process sleep with the request that it has just submitted, once it has
    /// sent its commands.
    pub(crate) fn sleeps_next(&mut self, core: usize, process: u32) {
        let sleep = Part::Do(Box::new(Action::Sleep(process)));
        self.put_first(core, &mut vec![sleep]);
    }

    /// Puts this process to sleep in the array with a request, until it is let go.
    pub(crate) fn hold(&mut self, process: u32) {
        let thread = self.thread_of(process);
        if !std::mem::replace(&mut self.threads[thread].held, true) {
            self.held.push(thread);
        }
    }

    /// Has a process ask a worker to write the bitmap's pages, and sleep until that is done.
    pub(crate) fn unplug(&mut self, now: Nanos, core: usize, process: usize) {
        let done = Part::Do(Box::new(Action::Unplugged(process)));
        self.dispatch_task(now, core, TaskqName::Bitmap, vec![done, Self::task_end()]);
        self.threads[process].unplugs = true;
    }

    /// Wakes the process that has asked the worker.
    pub(crate) fn unplugged(&mut self, now: Nanos, core: usize, process: usize) {
        self.threads[process].unplugs = false;
        if self.wake(process, now) {
            let call = Part::Charge(Place::Switch, self.charges.wake_call);
            self.put_first(core, &mut vec![call]);
        }
    }

    /// Lets the processes go on that the array no longer has sleep.
    pub(crate) fn let_go(&mut self, now: Nanos, core: usize, is_held: impl Fn(u32) -> bool) {
        let first = self.first_job;
        let mut woken = 0;
        for place in (0..self.held.len()).rev() {
            let thread = self.held[place];
            if is_held(u32::try_from(thread - first).unwrap_or(u32::MAX)) {
                continue;
            }
            self.held.remove(place);
            self.threads[thread].held = false;
            if !self.threads[thread].work.is_empty() {
                woken += u64::from(self.wake(thread, now));
            }
        }
        if woken > 0 {
            let call = Part::Charge(Place::Switch, self.charges.wake_call * woken);
            self.put_first(core, &mut vec![call]);
        }
    }
}
