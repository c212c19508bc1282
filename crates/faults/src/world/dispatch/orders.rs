//! Checks of the core's orders: commands lie on the disk, data in its area, and no id stands for two
//! commands at a time.

use super::super::{Violation, World, violation};
use raidlab_array::{FIRST_OUTER_ID, MemberCommand, Operation, Purpose};

impl World<'_> {
    /// Checks a command that the core has ordered and that the driver sends next, or refuses.
    pub(super) fn note_order(&mut self, command: &MemberCommand) -> Result<(), Violation> {
        let disk = self.disk_of(command.slot);
        self.check_bounds(command, disk)?;
        let words = [
            5,
            command.id.0,
            u64::from(command.slot.0),
            command.start.0,
            command.count.0,
        ];
        let text = format_args!(
            "  -> {} {:?}{} {}+{} {:?} {:?}",
            command.slot.0,
            command.operation,
            if command.force_unit_access {
                " FUA"
            } else {
                ""
            },
            command.start.0,
            command.count.0,
            command.purpose,
            command.buffer
        );
        self.trace.note(self.now, &words, text);
        Ok(())
    }

    /// Checks that no command in flight has the id of one that is sent now. A command that the
    /// driver no longer waits for, as it has given up the member, has ended for the core, which
    /// may ask another member under the same id; the disk may still carry it out.
    pub(super) fn check_name(&self, command: &MemberCommand) -> Result<(), Violation> {
        let is_given_up = |place| {
            let driver = self.driver.as_ref();
            driver.is_some_and(|driver| driver.owner.members().is_lost(place))
        };
        let mut same = self.flights.values();
        match same.any(|it| it.command.id == command.id && !is_given_up(it.job.place)) {
            false => Ok(()),
            true => Err(violation(
                "contract",
                format!("{:?} is in flight twice", command.id),
            )),
        }
    }

    /// Checks that a command lies on the disk, and data in the data area.
    fn check_bounds(&self, command: &MemberCommand, disk: Option<usize>) -> Result<(), Violation> {
        if command.operation == Operation::Flush {
            return Ok(());
        }
        let end = command.start.0 + command.count.0;
        let size = disk.map_or(u64::MAX, |disk| self.disks[disk].sectors());
        let slot = self
            .slots
            .iter()
            .position(|its| its.is_some() && *its == disk);
        let area = slot.and_then(|slot| self.reader.areas.get(slot)).copied();
        // A replacement gets the records of the member's log, too.
        let is_outer = command.id.0 >= FIRST_OUTER_ID;
        let (first, last) = match (command.purpose, area) {
            (Purpose::Metadata, _) | (_, None) => (0, size),
            (_, Some(_)) if is_outer => (0, size),
            (_, Some((start, length))) => (start, start + length),
        };
        if command.count.0 == 0 || command.start.0 < first || end > last.min(size) {
            let detail = format!("{command:?} is outside {first}..{}", last.min(size));
            return Err(violation("bounds", detail));
        }
        Ok(())
    }
}
