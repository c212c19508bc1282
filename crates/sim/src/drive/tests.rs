use super::Drive;
use raidlab_array::{BufferId, CommandId, MemberCommand, Operation, Purpose, Sender, Slot};
use raidlab_disk::{Disk, Order, Preset, QueueRules};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

/// A disk that takes one command at a time.
fn drive() -> Drive {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    let preset = Preset::parse("a shipped preset", text).expect("it is valid");
    let parameters = preset
        .parameters("strict")
        .expect("it has this set")
        .clone();
    let rules = QueueRules {
        tags: 1,
        order: Order::MqDeadline,
        ..QueueRules::SATA
    };
    let disk = Disk::new(parameters, Nanos::ZERO, Stream::new(0));
    Drive::new(disk.into(), rules)
}

fn command(id: u64, operation: Operation, start: u64, purpose: Purpose) -> MemberCommand {
    let is_flush = operation == Operation::Flush;
    MemberCommand {
        id: CommandId(id),
        slot: Slot(0),
        operation,
        start: Sectors(start),
        count: Sectors(if is_flush { 0 } else { 8 }),
        force_unit_access: purpose == Purpose::Metadata,
        purpose,
        sender: Sender::Thread,
        buffer: BufferId::None,
    }
}

/// Lets the disk do all that it has, and the write that follows flush 0; the commands in the
/// order in which they end, each with its first sector.
fn ends(mut drive: Drive) -> Vec<(Operation, u64)> {
    let write = command(99, Operation::Write, 9_000, Purpose::Metadata);
    let (mut completions, mut done, mut log) = (Vec::new(), Vec::new(), Vec::new());
    while drive.next < u64::MAX {
        let now = Nanos(drive.next);
        drive.advance(now, &mut completions, &mut done, Some(&mut log));
        if done.drain(..).any(|id| id == CommandId(0)) {
            drive.submit(now, &write);
        }
    }
    log.iter().map(|one| (one.operation, one.start.0)).collect()
}

/// Linux block/blk-flush.c, `blk_flush_complete_seq`: a request that is to be written behind a
/// flush is in flight as soon as that has ended. The next flush waits for it, and is the one
/// that makes it durable too.
#[test]
fn the_next_flush_waits_for_the_write_that_the_last_one_was_for() {
    let mut drive = drive();
    let now = Nanos::ZERO;
    drive.submit(now, &command(0, Operation::Flush, 0, Purpose::Metadata));
    drive.submit(now, &command(1, Operation::Flush, 0, Purpose::Foreground));
    let expected = [
        (Operation::Flush, 0),
        (Operation::Write, 9_000),
        (Operation::Flush, 0),
    ];
    assert_eq!(ends(drive), expected);
}

/// The same and block/mq-deadline.c, `dd_insert_request`: such a write goes to the head of what
/// is to be dispatched (`BLK_MQ_INSERT_AT_HEAD`).
#[test]
fn a_write_behind_its_flush_goes_before_what_waits() {
    let mut drive = drive();
    for (id, start) in (1..).zip([100, 200, 300]) {
        let write = command(id, Operation::Write, start, Purpose::Foreground);
        drive.submit(Nanos::ZERO, &write);
    }
    let flush = command(0, Operation::Flush, 0, Purpose::Metadata);
    drive.submit(Nanos::ZERO, &flush);
    let expected = [
        (Operation::Write, 100),
        (Operation::Flush, 0),
        (Operation::Write, 200),
        (Operation::Write, 9_000),
        (Operation::Write, 300),
        (Operation::Flush, 0),
    ];
    assert_eq!(ends(drive), expected);
}
