//! The plugs of the threads that send a sync's commands: the sync's own sends the reads, the
//! array's the writes. And the plug of a process's request: of each request where the imitated
//! Linux does so ([`MdRules::plugs_requests`](crate::MdRules)), and of each that is too long for
//! one bio (Linux 6.12 and 6.1 block/fops.c, `__blkdev_direct_IO`). The latter contains all reads.
//! Of the writes it contains those that the process itself sends, as in arrays without a bitmap
//! (6.12 drivers/md/raid1-10.c, `raid1_add_bio_to_plug`).
//!
//! A command that lies beside another one for its member is merged into it, up to the disk's
//! limit, and all parts end together. Which one is tried, and when a plug is emptied, is
//! determined by [`plug_rule`](crate::recovery::plug_rule). A thread that falls asleep because a
//! disk has no request left empties its plug (kernel/sched/core.c, `io_schedule_prepare`). When
//! it wakes it continues with an empty one, and its commands until it sleeps again are merged
//! there. Commands that leave together go into the disks' schedulers before any of them goes to a
//! disk, in the order in which they came. There a command that continues another one is merged
//! with it, but not one that precedes it (block/elevator.c, `elv_attempt_insert_merge`), and all
//! are sorted (block/mq-deadline.c, `dd_insert_requests`).

use super::{Array, Command, Role};
use crate::recovery::{MdRules, is_plug_full, tried_in_plug};
use crate::request::{CommandId, MemberCommand, Operation, Outputs, Purpose, Sender, Slot};
use raidlab_geometry::{Layout, Level, Shape};
use raidlab_units::{Sectors, Span};
use std::collections::BTreeMap;

/// The plug that a command is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plugged {
    /// Reads of a sync.
    Read,
    /// Writes of a sync.
    Write,
    /// Commands that a process sends for a request.
    Request,
}

impl Plugged {
    pub(super) const fn of(command: &MemberCommand) -> Self {
        match (command.sender, command.operation) {
            (Sender::Process(_), _) => Self::Request,
            (_, Operation::Read) => Self::Read,
            _ => Self::Write,
        }
    }
}

/// The plugged commands, those merged into them, and the candidates for the next merge.
#[derive(Debug)]
pub(super) struct Plug {
    /// Whether its list begins with the oldest command, not the newest.
    begins_with_oldest: bool,
    /// The commands of each plug that have not left, oldest first.
    open: [Vec<CommandId>; 3],
    /// The merged commands, by the command that they are part of.
    parts: BTreeMap<CommandId, Vec<Command>>,
    /// The sectors of the array, from boundary to boundary, of which a discard's parts on a
    /// member are one command; `None` where they are cut by chunk.
    stripe: Option<Sectors>,
}

/// The longest discard of Linux, in sectors: a bio counts its bytes in 32 bits.
pub(super) const LONGEST_DISCARD: Sectors = Sectors((1 << 23) - 1);

/// md puts together what a discard has on each member: all of it on RAID 0
/// (drivers/md/raid0.c, `raid0_handle_discard`), its whole stripes on RAID 10 if it has the
/// length of two (raid10.c, `raid10_handle_discard`).
pub(super) fn stripe_of_discards(shape: &Shape) -> Option<Sectors> {
    match (shape.level, shape.layout) {
        (Level::Raid0, _) => Some(Sectors(1)),
        (Level::Raid10, Layout::Copies(copies)) => {
            let (members, near) = (
                shape.member_sizes.len() as u64,
                u64::from(copies.near.max(1)),
            );
            Some(shape.chunk * (members / near + members % near))
        }
        _ => None,
    }
}

impl Plug {
    pub(super) const fn new(begins_with_oldest: bool, stripe: Option<Sectors>) -> Self {
        Self {
            stripe,
            begins_with_oldest,
            open: [const { Vec::new() }; 3],
            parts: BTreeMap::new(),
        }
    }

    /// Merges a command into one that has not left; returns false if it has to go by itself.
    pub(super) fn takes(
        &mut self,
        command: &MemberCommand,
        part: Command,
        longest: Sectors,
        out: &mut Outputs,
    ) -> bool {
        let open = &self.open[Plugged::of(command) as usize];
        let plugged = out.commands.iter_mut();
        let mut plugged: Vec<_> = plugged.filter(|it| open.contains(&it.id)).collect();
        let slots = plugged.iter().map(|it| it.slot);
        let tried = match (command.operation, self.stripe) {
            (Operation::Discard, Some(_)) => plugged
                .iter()
                .rposition(|it| it.slot == command.slot && it.start + it.count == command.start),
            _ => tried_in_plug(slots, command.slot, self.begins_with_oldest),
        };
        if let Some(at) = tried {
            let other = &mut plugged[at];
            let after = other.start + other.count == command.start;
            let before = command.start + command.count == other.start;
            let is_beside = other.operation == command.operation && (after || before);
            if is_beside && other.count + command.count <= longest {
                other.start = other.start.min(command.start);
                other.count += command.count;
                self.parts.entry(other.id).or_default().push(part);
                return true;
            }
        }
        false
    }

    /// Whether this plug is to be emptied before another command.
    pub(super) fn is_full(&self, plug: Plugged, out: &Outputs) -> bool {
        let open = &self.open[plug as usize];
        let plugged = out.commands.iter().filter(|it| open.contains(&it.id));
        is_plug_full(plugged.map(|it| it.count), self.begins_with_oldest)
    }

    /// Adds a command that was not merged.
    pub(super) fn holds(&mut self, command: &MemberCommand) {
        self.open[Plugged::of(command) as usize].push(command.id);
    }

    /// Empties a plug, and returns the commands that have not left.
    fn empty(&mut self, plug: Plugged, out: &mut Outputs) -> Vec<MemberCommand> {
        let open = std::mem::take(&mut self.open[plug as usize]);
        out.commands
            .extract_if(.., |command| open.contains(&command.id))
            .collect()
    }

    /// Makes a command of the plug part of another one, with all its own parts.
    fn joins(&mut self, id: CommandId, other: CommandId, part: Command) {
        let further = self.parts.remove(&id).unwrap_or_default();
        let parts = self.parts.entry(other).or_default();
        parts.push(part);
        parts.extend(further);
    }

    /// Takes the parts of a command that has ended.
    pub(super) fn parts(&mut self, id: CommandId) -> Vec<Command> {
        self.parts.remove(&id).unwrap_or_default()
    }
}

impl Array {
    /// Returns the longest command that this one may become, if it goes into a plug. Writes with
    /// FUA go into no request's plug (Linux 6.1 block/blk-mq.c, `blk_insert_flush`).
    pub(super) fn longest_plugged(&self, command: &MemberCommand, role: Role) -> Option<Sectors> {
        if command.purpose == Purpose::Sync {
            return self.recovery.plugged_command();
        }
        if let Some(longest) = self.longest_discard(command, role) {
            return Some(longest);
        }
        // Commands of the array's thread are not in the process's plug.
        let is_sent = matches!(command.sender, Sender::Process(_));
        let request = match role {
            Role::Read { request, .. } => Some(request),
            Role::Write { piece } if is_sent => Some(self.pieces.get(piece).request),
            _ => None,
        };
        let length = request.map(|request| self.requests.get(request).request.count);
        let is_long = length.is_some_and(|length| length > MdRules::OF_ONE_BIO);
        let config = self.recovery.config();
        let is_flush = command.operation == Operation::Flush;
        let goes_alone = command.force_unit_access || is_flush;
        let plugs = match is_long {
            true => config.threads.is_some(),
            false => config.rules().plugs_requests,
        };
        (plugs && !goes_alone).then_some(self.maximum_request)
    }

    /// Returns the longest command that a discard's parts on a member may become, where md joins
    /// them, in sectors.
    fn longest_discard(&self, command: &MemberCommand, role: Role) -> Option<Sectors> {
        let (Operation::Discard, Role::Write { piece }) = (command.operation, role) else {
            return None;
        };
        let (stripe, piece) = (self.plug.stripe?.0, self.pieces.get(piece));
        let request = self.requests.get(piece.request).request;
        let end = (request.start + request.count).0 / stripe * stripe;
        let start = Sectors(request.start.0.next_multiple_of(stripe));
        let whole = Span {
            start,
            end: Sectors(end),
        };
        let is_whole = request.count.0 >= 2 * stripe
            && whole.start <= piece.range.start
            && piece.range.end <= whole.end;
        is_whole.then_some(LONGEST_DISCARD)
    }

    /// Returns [`Self::longest_plugged`] for a command that is sent now, by a sender that is awake.
    pub(super) fn longest_plugged_now(
        &self,
        command: &MemberCommand,
        role: Role,
    ) -> Option<Sectors> {
        let longest = self.longest_plugged(command, role);
        longest.filter(|_| !self.senders.is_asleep(command.sender))
    }

    /// Sends a command that was not merged, through a plug if it may grow up to this length.
    pub(super) fn send(
        &mut self,
        sent: MemberCommand,
        longest: Option<Sectors>,
        out: &mut Outputs,
    ) {
        let (plug, sender) = (Plugged::of(&sent), sent.sender);
        if let Some(longest) = longest {
            if longest != LONGEST_DISCARD && self.plug.is_full(plug, out) {
                self.unplug(plug, longest, out);
            }
            self.plug.holds(&sent);
        }
        self.senders.send(sent, out);
        if let Some(longest) = longest.filter(|_| self.senders.is_asleep(sender)) {
            self.unplug(plug, longest, out);
        }
    }

    /// Frees the request of a command that has ended or was merged: the thread that slept for
    /// it goes on.
    pub(super) fn frees(&mut self, id: CommandId, slot: Slot, out: &mut Outputs) {
        let Some(woken) = self.senders.frees(id, slot) else {
            return;
        };
        for sent in woken.commands {
            let part = *self.commands.get_key(sent.id.0);
            let longest = self.longest_plugged_now(&sent, part.role);
            if longest.is_some_and(|longest| self.plug.takes(&sent, part, longest, out)) {
                self.commands.take_key(sent.id.0);
                self.members.became_part(sent.slot);
            } else {
                self.send(sent, longest, out);
            }
        }
        self.senders.has_sent(woken.sender);
    }

    /// Empties a plug.
    pub(super) fn unplug(&mut self, plug: Plugged, longest: Sectors, out: &mut Outputs) {
        let (held, joined) = inserted(self.plug.empty(plug, out), longest);
        out.commands.extend(held);
        for (command, other) in &joined {
            if let Some(part) = self.commands.take_key(command.id.0) {
                self.plug.joins(command.id, *other, part);
                self.members.became_part(command.slot);
            }
        }
        for (command, _) in joined {
            self.frees(command.id, command.slot, out);
        }
    }
}

/// Returns the commands of an emptied plug, oldest first, as the disks get them from their
/// schedulers, and which commands were merged into which other.
fn inserted(
    leaving: Vec<MemberCommand>,
    longest: Sectors,
) -> (Vec<MemberCommand>, Vec<(MemberCommand, CommandId)>) {
    let continues = |next: &MemberCommand, last: &MemberCommand| {
        (last.slot, last.operation) == (next.slot, next.operation)
            && last.start + last.count == next.start
            && last.count + next.count <= longest
    };
    let (mut held, mut joined) = (Vec::<MemberCommand>::new(), Vec::new());
    for next in leaving {
        let mut at = held.len();
        held.push(next);
        // A command that has grown may continue another one.
        while let Some(before) = held.iter().position(|last| continues(&held[at], last)) {
            let next = held.remove(at);
            at = before - usize::from(at < before);
            held[at].count += next.count;
            joined.push((next, held[at].id));
        }
    }
    held.sort_by_key(|command| (command.slot, command.start));
    (held, joined)
}

#[cfg(test)]
mod tests {
    use super::{Plug, Plugged, inserted};
    use crate::array::{Command, Role};
    use crate::request::{
        BufferId, CommandId, MemberCommand, Operation, Outputs, Purpose, Sender, Slot,
    };
    use raidlab_units::Sectors;

    fn command(id: u64, slot: u16, start: u64, count: u64) -> (MemberCommand, Command) {
        let (slot, start, count) = (Slot(slot), Sectors(start), Sectors(count));
        let sent = MemberCommand {
            id: CommandId(id),
            slot,
            operation: Operation::Write,
            start,
            count,
            force_unit_access: false,
            purpose: Purpose::Sync,
            sender: Sender::Thread,
            buffer: BufferId::None,
        };
        let part = Command {
            slot,
            epoch: 0,
            role: Role::SyncWrite { block: 0 },
            start,
            count,
            address: start,
        };
        (sent, part)
    }

    /// Two commands for member 0 and then one for member 1 are in the plug.
    fn filled(begins_with_oldest: bool, first: u64) -> (Plug, Outputs) {
        let (mut plug, mut out) = (Plug::new(begins_with_oldest, None), Outputs::default());
        for (sent, _) in [
            command(1, 0, 0, first),
            command(2, 0, 1000, 8),
            command(3, 1, 0, 8),
        ] {
            plug.holds(&sent);
            out.commands.push(sent);
        }
        (plug, out)
    }

    #[test]
    fn a_command_is_tried_with_the_oldest_or_with_the_newest_of_its_member() {
        for begins_with_oldest in [true, false] {
            for (start, continues_oldest) in [(8, true), (1008, false)] {
                let (mut plug, mut out) = filled(begins_with_oldest, 8);
                let (sent, part) = command(4, 0, start, 8);
                let takes = plug.takes(&sent, part, Sectors(100), &mut out);
                assert_eq!(takes, continues_oldest == begins_with_oldest);
            }
        }
    }

    #[test]
    fn a_command_is_part_of_what_it_continues_or_precedes() {
        for start in [992, 1008] {
            let (mut plug, mut out) = filled(false, 8);
            let (sent, part) = command(4, 0, start, 8);
            assert!(plug.takes(&sent, part, Sectors(100), &mut out), "{start}");
            let (first, count) = (out.commands[1].start.0, out.commands[1].count.0);
            assert_eq!((first, count), (start.min(1000), 16));
        }
    }

    /// Linux block/elevator.c, `elv_attempt_insert_merge`.
    #[test]
    fn what_leaves_becomes_part_of_what_it_continues_and_not_of_what_it_precedes() {
        for (starts, left, parts) in [
            (&[0, 8, 16][..], &[(0, 24)][..], &[(2, 1), (3, 1)][..]),
            (&[8, 0], &[(0, 8), (8, 8)], &[]),
            (&[0, 16, 8], &[(0, 16), (16, 8)], &[(3, 1)]),
            (&[0, 16, 8, 24], &[(0, 32)], &[(3, 1), (4, 2), (2, 1)]),
        ] {
            let commands = (1..)
                .zip(starts)
                .map(|(id, &start)| command(id, 0, start, 8).0);
            let (held, joined) = inserted(commands.collect(), Sectors(100));
            let held: Vec<_> = held.iter().map(|it| (it.start.0, it.count.0)).collect();
            let joined: Vec<_> = joined
                .iter()
                .map(|(it, other)| (it.id.0, other.0))
                .collect();
            assert_eq!((&held[..], &joined[..]), (left, parts), "{starts:?}");
        }
    }

    #[test]
    fn the_length_of_the_oldest_or_of_the_newest_empties_it() {
        for begins_with_oldest in [true, false] {
            let (plug, out) = filled(begins_with_oldest, 256);
            assert_eq!(plug.is_full(Plugged::Write, &out), begins_with_oldest);
            let (mut plug, mut out) = filled(begins_with_oldest, 8);
            let (sent, _) = command(4, 0, 5000, 256);
            plug.holds(&sent);
            out.commands.push(sent);
            assert_eq!(plug.is_full(Plugged::Write, &out), !begins_with_oldest);
        }
    }
}
