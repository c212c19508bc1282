//! Single stories: errors, recovery, checks, and what must not happen.

use super::bench::{Bench, Flight, LOG_START, OFFSET, SECTOR, config, member, with_log};
use super::random::content;
use crate::admission::Admission;
use crate::config::{AdminError, Initial};
use crate::engine::{Engine, SyncAction, SyncRequest};
use crate::member::MemberState;
use crate::request::{Event, Operation, RequestError, Slot};
use raidlab_geometry::{Level, ParityLayout};
use raidlab_units::{Sectors, Span};

fn filled(level: Level, members: usize) -> Bench {
    filled_with(config(level, ParityLayout::LeftSymmetric, members, 16, 4))
}

fn filled_with(config: crate::stripes::StripeConfig) -> Bench {
    let mut bench = Bench::new(config);
    let size = bench.map().size().0;
    bench.write(0, all(size)).expect("healthy");
    bench
}

fn all(size: u64) -> Vec<u8> {
    (0..size).flat_map(|sector| content(sector, 1)).collect()
}

fn sync(bench: &mut Bench, action: SyncAction) {
    let request = SyncRequest {
        action,
        ranges: None,
    };
    let (now, out) = (bench.now, &mut bench.out);
    bench
        .array
        .start_sync(now, request, out)
        .expect("nothing runs");
    bench.run();
}

#[test]
fn every_loss_that_the_level_bears_is_read_through() {
    for (level, members) in [(Level::Raid4, 4), (Level::Raid5, 4), (Level::Raid6, 5)] {
        for first in 0..members as u16 {
            for second in 0..members as u16 {
                let mut bench = filled(level, members);
                bench.fail(first);
                if level == Level::Raid6 && second != first {
                    bench.fail(second);
                }
                let size = bench.map().size().0;
                assert_eq!(
                    bench.read(0, size),
                    Ok(all(size)),
                    "{level} {first} {second}"
                );
            }
        }
    }
}

#[test]
fn a_medium_error_is_corrected_block_by_block() {
    let mut bench = filled(Level::Raid5, 4);
    // Member 0, row 0: data of sectors 0..16.
    bench.disks[0].bad.insert(OFFSET + 11);
    assert_eq!(bench.read(0, 16), Ok(all(16)));
    assert!(bench.disks[0].bad.is_empty());
    assert!(bench.events.contains(&Event::ReadErrorCorrected {
        slot: Slot(0),
        start: Sectors(8),
        count: Sectors(8),
    }));
    bench.check_parity();
    assert_eq!(bench.array.member_states(), [MemberState::InSync; 4]);
}

#[test]
fn what_cannot_be_computed_fails_the_request_and_nothing_else() {
    let mut bench = filled(Level::Raid5, 4);
    bench.disks[0].bad.insert(OFFSET + 3);
    bench.disks[1].bad.insert(OFFSET + 3);
    assert_eq!(bench.read(0, 8), Err(RequestError::NoMember));
    assert_eq!(bench.read(8, 8), Ok(all(16)[8 * SECTOR..].to_vec()));
    // A full row needs nothing of what is lost, and makes it good.
    let row: Vec<u8> = (0..48).flat_map(|sector| content(sector, 2)).collect();
    assert_eq!(bench.write(0, row.clone()), Ok(()));
    assert_eq!(bench.read(0, 48), Ok(row));
    // Beyond the budget.
    bench.fail(2);
    let (now, out) = (bench.now, &mut bench.out);
    let refused = bench.array.fail(now, Slot(1), out);
    assert_eq!(refused, Err(AdminError::LastInSync(Slot(1))));
    bench.disks[1].gone = true;
    assert_eq!(bench.read(16, 8), Err(RequestError::NoMember));
    assert_eq!(bench.write(0, content(0, 3)), Err(RequestError::Failed));
    assert!(bench.array.is_idle());
}

#[test]
fn nothing_is_written_or_acknowledged_before_a_failure_is_recorded() {
    let mut bench = filled(Level::Raid6, 5);
    bench.records_failures = false;
    let before = bench.sent.len();
    bench.fail(1);
    let write = bench.submit(Operation::Write, 0, content(0, 2), false);
    let flush = bench.submit(Operation::Flush, 0, Vec::new(), false);
    bench.run();
    let writes = |bench: &Bench| {
        let sent = bench.sent[before..].iter();
        sent.filter(|it| it.operation == Operation::Write).count()
    };
    assert_eq!(writes(&bench), 0);
    assert_eq!((bench.result(write), bench.result(flush)), (None, None));
    assert_eq!(
        bench.read(16, 4).map(|bytes| bytes.len()),
        Ok(4 * SECTOR),
        "reads go on"
    );
    let (now, out) = (bench.now, &mut bench.out);
    bench.array.failure_recorded(now, Slot(1), out);
    bench.run();
    assert_eq!(
        (bench.result(write), bench.result(flush)),
        (Some(Ok(())), Some(Ok(())))
    );
    assert!(writes(&bench) > 0);
}

#[test]
fn recovery_fills_a_new_member_and_serves_reads_from_it() {
    for level in [Level::Raid5, Level::Raid6] {
        let mut bench = filled(level, 5);
        bench.fail(2);
        let (now, out) = (bench.now, &mut bench.out);
        bench.array.remove(now, Slot(2), out).expect("it failed");
        bench.disks[2].bytes.fill(0xdd);
        let admission = Admission::From(Sectors::ZERO);
        bench
            .array
            .add(now, Slot(2), member(64), admission, out)
            .expect("an empty slot");
        bench.run();
        assert!(bench.events.contains(&Event::SyncFinished));
        assert_eq!(bench.array.member_states(), [MemberState::InSync; 5]);
        let size = bench.map().size().0;
        assert_eq!(bench.check_parity(), all(size));
    }
}

/// Nothing else may happen to the array that would set it going again.
#[test]
fn a_recovery_that_sleeps_goes_on_when_it_may_be_faster() {
    let mut bench = filled_with(config(Level::Raid5, ParityLayout::LeftSymmetric, 4, 16, 64));
    bench.fail(1);
    let (now, out) = (bench.now, &mut bench.out);
    bench.array.remove(now, Slot(1), out).expect("it failed");
    bench.array.set_sync_speed(1, 1);
    let admission = Admission::From(Sectors::ZERO);
    bench
        .array
        .add(now, Slot(1), member(1024), admission, out)
        .expect("an empty slot");
    bench.take_outputs();
    while !bench.flights.is_empty() {
        bench.land(0);
    }
    let wakes = bench.array.next_tick().expect("it is not done");
    assert!(wakes > bench.now, "it sleeps");
    bench.array.set_sync_speed(100_000, 1_000_000);
    assert!(
        bench
            .array
            .next_tick()
            .is_some_and(|time| time <= bench.now)
    );
    bench.run();
    assert!(bench.events.contains(&Event::SyncFinished));
    assert_eq!(bench.check_parity(), all(bench.map().size().0));
}

#[test]
fn a_member_that_comes_back_is_filled_only_where_it_lags() {
    let mut bench = filled(Level::Raid5, 4);
    bench.fail(0);
    let mut expected = all(bench.map().size().0);
    let new: Vec<u8> = (0..8).flat_map(|sector| content(sector, 2)).collect();
    expected[..8 * SECTOR].copy_from_slice(&new);
    bench.write(0, new).expect("degraded");
    let (now, out) = (bench.now, &mut bench.out);
    bench.array.remove(now, Slot(0), out).expect("it failed");
    let span = Span::new(0, 8);
    let before = bench.sent.len();
    let admission = Admission::Ranges(vec![span]);
    bench
        .array
        .add(now, Slot(0), member(64), admission, out)
        .expect("an empty slot");
    bench.run();
    assert_eq!(bench.sent.len() - before, 4, "three reads and a write");
    assert_eq!(bench.check_parity(), expected);
}

#[test]
fn a_source_that_cannot_be_read_leaves_a_bad_block_and_recovery_goes_on() {
    let mut bench = filled(Level::Raid5, 4);
    bench.fail(0);
    let (now, out) = (bench.now, &mut bench.out);
    bench.array.remove(now, Slot(0), out).expect("it failed");
    bench.disks[1].bad.insert(OFFSET + 9);
    let admission = Admission::From(Sectors::ZERO);
    bench
        .array
        .add(now, Slot(0), member(64), admission, out)
        .expect("an empty slot");
    bench.run();
    let bad = Event::BadBlocksFound {
        slot: Slot(0),
        start: Sectors(8),
        count: Sectors(8),
    };
    assert!(bench.events.contains(&bad), "{:?}", bench.events);
    assert_eq!(bench.array.member_states(), [MemberState::InSync; 4]);
    assert_eq!(bench.read(8, 8), Err(RequestError::NoMember));
    assert_eq!(bench.read(0, 8), Ok(all(8)));
}

#[test]
fn a_check_names_places_and_a_repair_makes_parity_fit() {
    let mut bench = filled(Level::Raid6, 5);
    // Row 0 of left-symmetric RAID 6 on five: Q on 0, P on 4.
    let at = (OFFSET + 9) as usize * SECTOR;
    bench.disks[4].bytes = bench.disks[4].read(0, OFFSET + 64);
    bench.disks[4].volatile.clear();
    bench.disks[4].bytes[at] ^= 1;
    sync(&mut bench, SyncAction::Check);
    assert_eq!(bench.mismatches(), [(8, 1)]);
    sync(&mut bench, SyncAction::Repair);
    assert_eq!(bench.mismatches(), [(8, 1)]);
    bench.check_parity();
    sync(&mut bench, SyncAction::Check);
    assert_eq!(bench.mismatches(), []);
}

#[test]
fn parity_that_a_resync_has_not_reached_is_not_used() {
    let config = config(Level::Raid5, ParityLayout::LeftSymmetric, 3, 16, 4);
    let mut bench = Bench::new(config);
    let request = SyncRequest {
        action: SyncAction::Resync,
        ranges: None,
    };
    let (now, out) = (bench.now, &mut bench.out);
    bench
        .array
        .start_sync(now, request, out)
        .expect("nothing runs");
    bench.disks[0].bad.insert(OFFSET + 60);
    // Row 3: P on member 2 again, data on 0 and 1. The resync does not get
    // on, as nothing of it lands.
    let id = bench.submit(Operation::Read, 96 + 12, vec![0xee; SECTOR], false);
    while bench.result(id).is_none() {
        bench.land(bench.flights.len() - 1);
    }
    assert_eq!(bench.result(id), Some(Err(RequestError::NoMember)));
    bench.run();
    assert!(bench.events.contains(&Event::SyncFinished));
    // The resync leaves the block alone: its only other source is the parity that
    // nobody has verified.
    assert!(bench.read(96 + 12, 1).is_err());
    assert!(!bench.disks[0].bad.is_empty());
    // A whole row needs neither.
    let row: Vec<u8> = (96..128).flat_map(|sector| content(sector, 2)).collect();
    assert_eq!(bench.write(96, row.clone()), Ok(()));
    assert_eq!(bench.read(96, 32), Ok(row));
    bench.check_parity();
}

/// Once the resync is over its parity is as good as any.
#[test]
fn parity_that_a_resync_could_not_read_and_made_anew_is_used() {
    for (level, members) in [(Level::Raid5, 3), (Level::Raid6, 5)] {
        let mut bench = filled(level, members);
        let row = bench.map().row(0);
        for slot in [Some(row.p()), row.q()].into_iter().flatten() {
            bench.disks[slot.index()].bad.insert(OFFSET + 3);
        }
        sync(&mut bench, SyncAction::Resync);
        assert!(bench.events.contains(&Event::SyncFinished));
        assert!(bench.disks.iter().all(|disk| disk.bad.is_empty()));
        let size = bench.map().size().0;
        bench.fail(row.data_slot(0).0);
        assert_eq!(bench.read(0, size), Ok(all(size)), "{level}");
    }
}

#[test]
fn what_a_failed_member_was_given_is_not_on_the_one_that_takes_its_place() {
    let mut bench = filled(Level::Raid6, 5);
    bench.array.freeze_sync();
    for slot in [1, 2] {
        bench.fail(slot);
        add_anew(&mut bench, slot);
    }
    let (now, out) = (bench.now, &mut bench.out);
    bench.array.thaw_sync(now, out);
    bench.take_outputs();
    let written = |bench: &Bench| {
        let to_1 =
            |it: &Flight| (it.command.operation, it.command.slot) == (Operation::Write, Slot(1));
        bench.flights.iter().position(to_1)
    };
    let first = loop {
        match written(&bench) {
            Some(first) => break first,
            None => bench.land(0),
        }
    };
    // Member 2 takes its time. Member 1 fails, and another one comes.
    bench.land(first);
    bench.fail(1);
    add_anew(&mut bench, 1);
    bench.run();
    assert_eq!(bench.array.member_states(), [MemberState::InSync; 5]);
    assert_eq!(bench.check_parity(), all(bench.map().size().0));
}

/// A disk with other bytes comes into the slot of a failed member.
fn add_anew(bench: &mut Bench, slot: u16) {
    let (now, out) = (bench.now, &mut bench.out);
    bench.array.remove(now, Slot(slot), out).expect("it failed");
    let mut disk = bench.disks[usize::from(slot)].clone();
    disk.bytes.fill(0xdd);
    disk.volatile.clear();
    bench.slots[usize::from(slot)] = bench.disks.len();
    bench.disks.push(disk);
    let admission = Admission::From(Sectors::ZERO);
    bench
        .array
        .add(now, Slot(slot), member(64), admission, out)
        .expect("an empty slot");
    bench.take_outputs();
}

#[test]
fn a_resync_makes_garbage_fit_and_writes_only_what_differs() {
    let mut bench = filled(Level::Raid6, 6);
    for disk in &mut bench.disks {
        disk.bytes = disk.read(0, OFFSET + 64);
        disk.volatile.clear();
    }
    let at = (OFFSET + 16) as usize * SECTOR;
    bench.disks[2].bytes[at..at + 3 * SECTOR].fill(0x3c);
    let before = bench.sent.len();
    sync(&mut bench, SyncAction::Resync);
    bench.check_parity();
    let writes = bench.sent[before..].iter();
    let writes = writes.filter(|it| it.operation == Operation::Write);
    assert!(writes.count() <= 2, "P and Q of one window");
}

#[test]
fn a_raid_6_that_lacks_a_member_checks_q_wherever_it_lies() {
    let config = config(Level::Raid6, ParityLayout::LeftSymmetric, 5, 16, 5);
    let mut bench = filled_with(config);
    bench.fail(0);
    let map = bench.map();
    let mut rows = Vec::new();
    for number in 0..map.rows() {
        let row = map.row(number);
        let (true, Some(q)) = (row.p() != Slot(0), row.q().filter(|q| *q != Slot(0))) else {
            continue;
        };
        let disk = &mut bench.disks[q.index()];
        disk.settle(|_| true);
        disk.bytes[(OFFSET + number * 16) as usize * SECTOR] ^= 1;
        rows.push(number);
    }
    assert_eq!(rows.len(), 3, "in two rows slot 0 holds P or Q");
    sync(&mut bench, SyncAction::Check);
    let places = bench.mismatches().into_iter();
    let found: Vec<u64> = places.map(|(start, _)| start / 16).collect();
    assert_eq!(found, rows);
}

#[test]
fn the_log_needs_its_room_on_a_new_member_and_is_emptied_there() {
    let config = with_log(
        config(Level::Raid5, ParityLayout::LeftSymmetric, 3, 16, 4),
        128,
    );
    let mut bench = filled_with(config);
    bench.fail(0);
    let (now, out) = (bench.now, &mut bench.out);
    bench.array.remove(now, Slot(0), out).expect("it failed");
    let admission = Admission::From(Sectors::ZERO);
    let mut over_log = member(64);
    over_log.data_offset = Sectors(LOG_START + 64);
    let refused = bench
        .array
        .add(now, Slot(0), over_log, admission.clone(), out);
    assert_eq!(refused, Err(AdminError::NoLogArea(Slot(0))));
    bench
        .array
        .add(now, Slot(0), member(64), admission, out)
        .expect("there is room");
    bench.run();
    let ring = bench.disks[0].read(LOG_START, 128);
    assert!(ring.iter().all(|byte| *byte == 0));
    assert_eq!(bench.array.member_states(), [MemberState::InSync; 3]);
}

#[test]
fn a_recovery_that_began_before_goes_on_where_it_was() {
    let mut config = config(Level::Raid5, ParityLayout::LeftSymmetric, 3, 16, 4);
    let admission = Admission::From(Sectors(32));
    config.members[1] = Initial::Recovering(member(64), admission);
    let mut bench = Bench::new(config);
    bench.disks[1].bytes[(OFFSET + 32) as usize * SECTOR..].fill(0xdd);
    assert_eq!(
        bench.array.member_states()[1],
        MemberState::Recovering {
            readable_below: Sectors(32)
        }
    );
    bench.run();
    assert_eq!(bench.array.member_states(), [MemberState::InSync; 3]);
    bench.check_parity();
    let writes = bench
        .sent
        .iter()
        .filter(|it| it.operation == Operation::Write);
    assert!(writes.clone().all(|it| it.start >= Sectors(OFFSET + 32)));
    assert_eq!(writes.map(|it| it.count.0).sum::<u64>(), 32);
}
