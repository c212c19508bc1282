//! The part of a machine whose processor takes its time: it does what its cores come to.
//!
//! Where there is a processor, the machine hands it requests and answers of disks instead
//! of passing them on at once, and does what its cores come to at the time that they do.

use super::{Machine, MachineConfig};
use crate::drive::Drive;
use crate::explain::{
    ARRAY_THREAD, BUFFER, CONTROLLER, Counts, HOST_QUEUE, LINK, MEDIUM, PLACES, THREAD,
};
use crate::processor::{Action, Processor, Role};
use crate::steps::answer;
use raidlab_array::{CommandId, Request};

/// The number of requests at each place at this moment.
pub(super) fn counts(processor: Option<&Processor>, drives: &[Drive]) -> Counts {
    let mut counts = [0; PLACES];
    if let Some(cores) = processor {
        let now = cores.goes_on();
        counts[..THREAD].copy_from_slice(&now.at);
        counts[THREAD] = now.for_thread;
        counts[ARRAY_THREAD] = now.for_array_thread;
    }
    for drive in drives {
        let (in_drive, in_host) = drive.queued();
        let inside = drive.inside();
        counts[HOST_QUEUE] += in_host;
        counts[CONTROLLER] += inside.controller;
        counts[LINK] += inside.link;
        counts[BUFFER] += inside.buffer;
        let elsewhere = inside.controller + inside.link + inside.buffer;
        counts[MEDIUM] += in_drive.saturating_sub(elsewhere);
    }
    counts
}

impl Machine {
    pub(super) fn processor_of(config: &mut MachineConfig) -> Option<Box<Processor>> {
        let processor = config.processor.as_ref()?;
        config.subject.take_time(!processor.array.unplugged);
        Some(Box::new(Processor::new(processor)))
    }

    /// Whether the subject's tick can be done when its time comes.
    pub(super) fn can_tick(&self) -> bool {
        self.processor.as_ref().is_none_or(|cores| cores.may_turn())
    }

    /// Carries out an event of a core.
    pub(super) fn compute(&mut self) {
        let Some(mut cores) = self.processor.take() else {
            return;
        };
        if let Some(core) = cores.pop(self.now) {
            while let Some((role, action)) = cores.run(core, self.now) {
                self.act(&mut cores, core, role, action);
            }
        }
        self.processor = Some(cores);
    }

    /// Does the action that a core has come to.
    fn act(&mut self, cores: &mut Processor, core: usize, role: Role, action: Action) {
        let now = self.now;
        match action {
            Action::Request(request) => {
                let process = request.process;
                self.subject.submit(now, request, &mut self.outputs);
                if self.subject.holds_submitter(process) {
                    cores.sleeps_next(core, process);
                }
                self.follow(cores, core);
            }
            Action::GoOn(process) => {
                self.subject.go_on(now, process, &mut self.outputs);
                if self.subject.holds_submitter(process) {
                    cores.sleeps_next(core, process);
                }
                self.follow(cores, core);
            }
            Action::Sleep(process) => {
                if self.subject.holds_submitter(process) {
                    cores.hold(process);
                }
            }
            Action::Send(command) => {
                let disk = self.subject.disk_of(command.slot);
                if !self.takes(disk, command.operation) {
                    cores.ended_at_once(core, command.id);
                } else {
                    cores.dispatch(core, command, disk, self.drives[disk].order());
                }
            }
            Action::Dispatch(command) => {
                let disk = self.subject.disk_of(command.slot);
                cores.sent(command, core);
                self.drives[disk].submit(now, &command);
            }
            Action::Complete(command) => self.complete(cores, core, command),
            Action::Answer(finished) => cores.answer(now, core, finished),
            Action::Notice(finished) => {
                self.finished.push(finished);
                // The job's next submission is there before its thread looks for more.
                cores.pause(core, now);
            }
            Action::Enter(request) => cores.enter_taskq(now, core, request),
            Action::Ended(command) => cores.hand_on(now, core, command),
            Action::Gather(finished) => cores.gather(now, core, finished),
            Action::Issue(command) => cores.issue(now, core, command),
            Action::Unplugged(process) => cores.unplugged(now, core, process),
            Action::TaskOver
            | Action::Unplug
            | Action::TakeOver { .. }
            | Action::Turn
            | Action::TurnOver => {
                if let Role::Thread(thread) = role {
                    self.act_of_thread(cores, core, thread, action);
                }
            }
        }
    }

    /// Does an action that only a thread of the array comes to.
    fn act_of_thread(&mut self, cores: &mut Processor, core: usize, thread: usize, action: Action) {
        let now = self.now;
        match action {
            Action::TaskOver => cores.task_over(thread),
            Action::Unplug => cores.unplug(now, core, thread),
            Action::TakeOver { first } => cores.take_over(core, thread, first),
            Action::Turn => {
                cores.turn_begins(now, core, thread);
                self.subject.turn(now, thread, &mut self.outputs);
                self.follow(cores, core);
            }
            Action::TurnOver => {
                self.subject.turn_over(now, thread, &mut self.outputs);
                self.follow(cores, core);
                let due = self.subject.next_tick().is_some_and(|tick| tick <= now);
                cores.turn_over(thread, due);
            }
            _ => {}
        }
    }

    fn complete(&mut self, cores: &mut Processor, core: usize, command: CommandId) {
        let outputs = &mut self.outputs;
        self.subject.complete(self.now, command, Ok(()), outputs);
        self.follow(cores, core);
    }

    /// Charges the commands that the subject has ordered, to be done in their turn.
    fn follow(&mut self, cores: &mut Processor, core: usize) {
        loop {
            self.note_events();
            let steps = self.outputs.steps.drain(..);
            self.answers.extend(steps.filter_map(|step| answer(&step)));
            cores.follow(self.now, core, &mut self.outputs);
            self.outputs.clear();
            if self.answers.is_empty() {
                break;
            }
            let mut answers = std::mem::take(&mut self.answers);
            for (step, result) in answers.drain(..) {
                let outputs = &mut self.outputs;
                self.subject.computed(self.now, step, result, outputs);
            }
            self.answers = answers;
        }
        let subject = &self.subject;
        cores.let_go(self.now, core, |process| subject.holds_submitter(process));
    }

    /// Hands a request to the processor, if there is one.
    pub(super) fn computes_request(&mut self, request: Request) -> bool {
        match &mut self.processor {
            None => false,
            Some(cores) => {
                cores.submit(self.now, request);
                true
            }
        }
    }
}
