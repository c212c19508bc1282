//! The completion times of member commands: drawn from a range, or from the model of
//! the disk ([`Medium`](crate::Medium)).

use raidlab_array::{MemberCommand, Operation};
use raidlab_disk::{Command, CommandKind, Completion, Disk, DiskParameters};
use raidlab_random::Stream;
use raidlab_units::Nanos;

/// The models of the disks; none in a world with drawn latencies.
#[derive(Debug, Default)]
pub(super) struct Models {
    models: Vec<Disk>,
    parameters: Option<&'static DiskParameters>,
    random: Option<Stream>,
    completions: Vec<Completion>,
}

impl Models {
    /// Models with these parameters for every disk that is added; without parameters, none.
    pub(super) fn new(parameters: Option<&'static DiskParameters>, random: Stream) -> Self {
        Self {
            parameters,
            random: Some(random),
            ..Self::default()
        }
    }

    /// Gives a command to the disk's model. Returns false if there is none: then its time is
    /// to be drawn.
    pub(super) fn submit(
        &mut self,
        now: u64,
        disk: usize,
        tag: u64,
        command: &MemberCommand,
    ) -> bool {
        let (Some(random), Some(parameters)) = (&self.random, self.parameters) else {
            return false;
        };
        let kind = match command.operation {
            Operation::Read => CommandKind::Read,
            Operation::Write if command.force_unit_access => CommandKind::WriteThrough,
            Operation::Write => CommandKind::Write,
            Operation::Flush => CommandKind::Flush,
            Operation::Discard => return false,
        };
        while self.models.len() <= disk {
            let mut random = random.fork("model", self.models.len() as u64);
            let phase = parameters.some_angle(&mut random);
            self.models
                .push(Disk::new(parameters.clone(), phase, random));
        }
        let command = Command {
            tag,
            kind,
            start: command.start,
            count: command.count,
        };
        self.models[disk].submit(Nanos(now), command);
        true
    }

    /// Returns the time of the next event of any model.
    pub(super) fn next_event(&self) -> Option<u64> {
        let events = self.models.iter().filter_map(Disk::next_event);
        events.map(|time| time.0).min()
    }

    /// Returns the tags of the commands that complete now.
    pub(super) fn advance(&mut self, now: u64) -> Vec<u64> {
        for model in &mut self.models {
            if model.next_event().is_some_and(|next| next.0 <= now) {
                model.advance(Nanos(now), &mut self.completions);
            }
        }
        self.completions
            .drain(..)
            .map(|completion| completion.tag)
            .collect()
    }

    /// Puts all disks at rest again, as the power was cut.
    pub(super) fn reset(&mut self) {
        self.models.clear();
    }
}
