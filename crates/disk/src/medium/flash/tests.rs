//! A small drive by hand: four dies of pages of 4 KiB, 100 us to read one, 1000 us to program
//! one, 10 us to suspend, the link quick enough to
//! be left out of whole microseconds.

use super::translation::State;
use super::victims::Victims;
use super::*;
use crate::{Command, CommandKind, Disk, MediumParameters};
use raidlab_units::{Bytes, BytesPerSecond, Sectors};

mod reads;

const US: u64 = 1000;

fn flash() -> Parameters {
    Parameters {
        dies: 4,
        channels: 4,
        channel_rate: BytesPerSecond(4096e9),
        page: Bytes(4096),
        planes: 1,
        bits: 1,
        read: Nanos(100 * US),
        program: Nanos(1000 * US),
        block: Bytes(1 << 40),
        suspend: Nanos(10 * US),
        suspend_reads: 2,
        generation: 5,
        lanes: 16,
        reads_pass: true,
        over_provisioning: 1.25,
        victims: Some(Victims::Greedy),
        ..Parameters::default()
    }
}

fn disk(flash: Parameters, window: usize) -> Disk {
    let medium = MediumParameters::Flash(flash);
    let rate = BytesPerSecond(4096e9);
    let numbers = DiskParameters {
        write_window: window,
        ..DiskParameters::uniform(Sectors(8 * 4096), rate, medium)
    };
    Disk::new(numbers, Nanos::ZERO, Stream::new(1))
}

/// When each of these commands, as (microsecond, kind, first sector, sectors), is complete, in
/// whole microseconds.
fn run(disk: &mut Disk, commands: &[(u64, CommandKind, u64, u64)]) -> Vec<u64> {
    let mut ends = vec![0; commands.len()];
    let mut left = commands.iter().enumerate().peekable();
    let mut completions = Vec::new();
    loop {
        let arrival = left.peek().map_or(Nanos::MAX, |(_, one)| Nanos(one.0 * US));
        let event = disk.next_event().unwrap_or(Nanos::MAX);
        if arrival == Nanos::MAX && event == Nanos::MAX {
            return ends;
        }
        if event < arrival {
            disk.advance(event, &mut completions);
            for completion in completions.drain(..) {
                ends[completion.tag as usize] = event.0 / US;
            }
        } else if let Some((tag, &(_, kind, start, count))) = left.next() {
            let (start, count) = (Sectors(start), Sectors(count));
            let tag = tag as u64;
            disk.submit(arrival, Command { tag, kind, start, count });
        }
    }
}

use CommandKind::{Discard, Flush, Read, Write, WriteThrough};

#[test]
fn reads_of_different_dies_go_side_by_side() {
    // Filled in order: page 4 lies on the die of page 0.
    let mut filled = disk(flash(), 8);
    let ends = run(
        &mut filled,
        &[(0, Read, 0, 8), (0, Read, 8, 8), (0, Read, 32, 8), (1000, Read, 0, 32)],
    );
    assert_eq!(ends, [100, 100, 200, 1100]);
    let fresh = Parameters {
        state: State::Fresh,
        ..flash()
    };
    let ends = run(&mut disk(fresh, 8), &[(0, Read, 0, 8)]);
    assert_eq!(ends, [0], "nothing was ever written there");
}

#[test]
fn a_channel_carries_one_page_at_a_time() {
    let one = Parameters {
        channels: 1,
        channel_rate: BytesPerSecond(4096e4),
        ..flash()
    };
    let ends = run(&mut disk(one, 8), &[(0, Read, 0, 8), (0, Read, 8, 8)]);
    assert_eq!(ends, [200, 300], "100 us to sense, then 100 us each");
}

#[test]
fn kinds_of_pages_take_unlike_times() {
    let three = Parameters {
        bits: 3,
        read_step: Nanos(10 * US),
        ..flash()
    };
    // No stream, of which pages would be fetched before they are read.
    let reads: Vec<_> = (0..4096).map(|turn| (turn * 1000, Read, turn * 5 % 4096 * 8, 8)).collect();
    let ends = run(&mut disk(three, 8), &reads);
    let mut counts = [0; 3];
    for (page, end) in (0..).zip(ends) {
        let kind = [100, 110, 130].iter().position(|&time| time == end - page * 1000);
        counts[kind.expect("one of three times")] += 1;
    }
    assert!(counts.iter().all(|&count| (1250..1480).contains(&count)), "{counts:?}");
}

#[test]
fn writes_end_in_the_buffer_until_it_is_full() {
    let mut small = disk(flash(), 4);
    let writes: Vec<_> = (0..6).map(|page| (0, Write, page * 8, 8)).collect();
    // Four dies take four units; the fifth has room when the first is programmed.
    assert_eq!(run(&mut small, &writes), [0, 0, 0, 0, 1000, 1000]);
    assert!(small.is_quiet());
}

/// The buffer holds four pages, and each of four dies takes one: all go on while a write of eight
/// pages comes in.
#[test]
fn a_large_write_comes_into_the_buffer_page_by_page() {
    let ends = run(&mut disk(flash(), 4), &[(0, Write, 0, 24), (10, Write, 24, 64)]);
    // Three pages are programmed by 1000. One of the eight goes beside them, three follow at 1000,
    // one at 1010, and the last three at 2000.
    assert_eq!(ends, [0, 2000]);
}

#[test]
fn reads_interrupt_programs_but_not_for_ever() {
    let one_die = Parameters {
        dies: 1,
        channels: 1,
        ..flash()
    };
    let commands = [
        (0, Write, 0, 8),
        (100, Read, 8, 8),
        (300, Read, 16, 8),
        (500, Read, 24, 8),
        (500, Flush, 0, 0),
    ];
    let ends = run(&mut disk(one_die, 8), &commands);
    // Each of two reads waits 10 us and senses for 100, so the program ends 220 us later;
    // the third comes after it.
    assert_eq!(ends, [0, 210, 410, 1320, 1220]);
    let never = Parameters {
        suspend_reads: 0,
        ..one_die
    };
    assert_eq!(run(&mut disk(never, 8), &commands)[1], 1100);
}

/// What ends before it could be interrupted is not, and a read that waits for it goes before
/// the erasure that would follow.
#[test]
fn a_read_does_not_interrupt_what_ends_sooner() {
    let one_die = Parameters {
        dies: 1,
        channels: 1,
        block: Bytes(4096),
        erase: Nanos(5000 * US),
        ..flash()
    };
    let commands = [(0, WriteThrough, 0, 8), (995, Read, 8, 8), (4000, Read, 16, 8)];
    // The erasure of 5000 us begins at 1100 and is interrupted once.
    assert_eq!(run(&mut disk(one_die, 8), &commands), [1000, 1100, 4110]);
}

/// A read waits for a program that will soon end, even if suspending it were quicker.
#[test]
fn a_read_does_not_interrupt_what_will_soon_end() {
    let one_die = Parameters {
        dies: 1,
        channels: 1,
        suspend_left: Nanos(300 * US),
        ..flash()
    };
    let commands = [(0, Write, 0, 8), (700, Read, 8, 8), (811, Read, 16, 8)];
    // The first read leaves 300 us of the program, which goes on at 810.
    assert_eq!(run(&mut disk(one_die, 8), &commands), [0, 810, 1210]);
}

/// Copies are gathered by reads, and a read is not interrupted: another waits for its end alone.
#[test]
fn a_read_waits_for_the_page_that_is_being_gathered() {
    let one_die = Parameters {
        dies: 1,
        channels: 1,
        ..flash()
    };
    let mut dies = dies::Dies::new(one_die);
    let kind = dies::UnitKind::Copies { gather: 300 * US, page: 100 * US };
    let unit = dies::Unit { kind, pages: 0, epoch: 0 };
    assert_eq!(dies.write(0, unit), Some((0, 300 * US)));
    // The second of three pages is read until 200 us. The read's page takes 100 us more.
    let page = dies::Page { die: 0, number: 1, sense: 100 * US };
    assert_eq!(dies.read(170 * US, page, 7, 4096), Some(300 * US));
    dies.advance(300 * US, 0);
    let sent = 300 * US + 1;
    let (ended, due) = dies.advance(sent, 0);
    assert!(matches!(ended, Some(dies::Ended::Read { command: 7, .. })), "{ended:?}");
    assert_eq!(due, Some(sent + 100 * US), "the third page");
}

#[test]
fn a_flush_waits_for_programs_unless_power_can_be_lost() {
    let slow_map = Parameters {
        flush: Nanos(500 * US),
        ..flash()
    };
    let commands = [
        (0, Flush, 0, 0),
        (10, Write, 0, 8),
        (20, Flush, 0, 0),
        (5000, Flush, 0, 0),
        (6000, WriteThrough, 0, 8),
    ];
    let ends = run(&mut disk(slow_map, 8), &commands);
    assert_eq!(ends, [0, 10, 1510, 5000, 7000], "nothing dirty is nothing to wait for");
    let protected = Parameters {
        protected: true,
        flush: Nanos(0),
        ..flash()
    };
    assert_eq!(run(&mut disk(protected, 8), &commands), [0, 10, 20, 5000, 6000]);
    // Without a buffer every write is programmed before it is complete.
    assert_eq!(run(&mut disk(protected, 0), &[(0, Write, 0, 8)]), [1000]);
}

/// Two hosts' flushes: the second finds nothing new, but what the first has not yet made
/// durable was acknowledged before it.
#[test]
fn a_flush_waits_for_what_another_one_is_still_at_work_on() {
    let slow_map = Parameters {
        flush: Nanos(500 * US),
        ..flash()
    };
    let commands = [
        (10, Write, 0, 8),
        (20, Flush, 0, 0),
        (30, Flush, 0, 0),
        (1300, Flush, 0, 0),
        (1600, Flush, 0, 0),
    ];
    // Programmed at 1010, and the map written at 1510.
    let ends = run(&mut disk(slow_map, 8), &commands);
    assert_eq!(ends, [10, 1510, 1510, 1510, 1600]);
}

#[test]
fn a_flush_of_sata_stands_alone() {
    let sata = Parameters {
        generation: 0,
        ..flash()
    };
    let commands = [
        (0, Write, 0, 8),
        (10, Flush, 0, 0),
        (20, Read, 8, 8),
        (30, Read, 16, 8),
    ];
    // A page takes 6.8 us on SATA.
    assert_eq!(run(&mut disk(sata, 8), &commands), [6, 1006, 1113, 1120]);
    // So does a discard: `DATA SET MANAGEMENT` is no queued command either.
    let discard = [(0, Read, 0, 8), (10, Discard, 8, 8), (20, Read, 16, 8)];
    assert_eq!(run(&mut disk(sata, 8), &discard), [106, 106, 213]);
    assert_eq!(run(&mut disk(flash(), 8), &discard), [100, 10, 120]);
    // What stands before the flush waits for the controller, not for flash.
    let mut drive = disk(sata, 8);
    for (tag, (_, kind, start, count)) in (0..).zip(commands) {
        let (start, count) = (Sectors(start), Sectors(count));
        drive.submit(Nanos::ZERO, Command { tag, kind, start, count });
    }
    assert_eq!(drive.inside().controller, 4);
}

/// A SATA drive has no word for what its cache survives, so Linux flushes it in any case, and the
/// flush is a command like others. To an NVMe drive Linux sends none.
#[test]
fn a_sata_drive_is_flushed_though_it_is_protected() {
    let protected = |generation| {
        let flash = Parameters {
            generation,
            protected: true,
            flush: Nanos(5 * US),
            ..flash()
        };
        let rate = BytesPerSecond(4096e9);
        let numbers = DiskParameters {
            write_window: 8,
            overhead_cached: Nanos(20 * US),
            ..DiskParameters::uniform(Sectors(8 * 4096), rate, MediumParameters::Flash(flash))
        };
        let declares = numbers.declares_write_cache();
        let mut disk = Disk::new(numbers, Nanos::ZERO, Stream::new(1));
        (declares, run(&mut disk, &[(0, Write, 0, 8), (100, Flush, 0, 0)])[1])
    };
    assert_eq!(protected(0), (true, 125));
    assert_eq!(protected(5), (false, 105));
}

#[test]
fn a_part_of_a_page_is_read_before_it_is_written() {
    let ends = run(&mut disk(flash(), 8), &[(0, Write, 1, 7), (5000, Write, 0, 16), (9000, Write, 4, 8)]);
    assert_eq!(ends, [100, 5000, 9100], "two parts are read side by side");
}

#[test]
fn reads_may_have_to_wait_for_writes_that_wait() {
    let commands: Vec<_> = (0..6)
        .map(|page| (0, Write, page * 8, 8))
        .chain([(1, Read, 800, 8)])
        .collect();
    let quick = run(&mut disk(flash(), 4), &commands)[6];
    let behind = Parameters {
        reads_pass: false,
        ..flash()
    };
    let slow = run(&mut disk(behind, 4), &commands)[6];
    assert!(quick < 150 && slow >= 1100, "{quick} and {slow}");
}

/// A cache of 64 pages of one bit, which are programmed ten times as fast.
fn cached() -> Parameters {
    Parameters {
        bits: 2,
        slc: Bytes(64 * 4096),
        slc_program: Nanos(100 * US),
        slc_idle: Nanos(10_000 * US),
        ..flash()
    }
}

/// So many writes of a page side by side.
fn writes(count: u64, from: u64, at: u64) -> Vec<(u64, CommandKind, u64, u64)> {
    (from..from + count).map(|page| (at, Write, page * 8, 8)).collect()
}

fn last(ends: Vec<u64>, begin: u64) -> u64 {
    ends.into_iter().max().unwrap_or(0) - begin
}

/// Who writes for hours finds the cache full: 48 pages cost what they cost beyond it. An idle
/// drive has emptied it.
#[test]
fn a_drive_in_steady_state_begins_with_its_cache_full() {
    let time = |slc, slc_dynamic| {
        let numbers = Parameters {
            slc,
            slc_dynamic,
            state: State::Steady,
            ..cached()
        };
        let mut drive = disk(numbers, 4);
        let first = last(run(&mut drive, &writes(48, 0, 0)), 0);
        let rested = last(run(&mut drive, &writes(48, 100, 1_000_000)), 1_000_000);
        (first, rested)
    };
    let without = time(Bytes(0), Bytes(0));
    // What the cache holds leaves room elsewhere, by which a part of it is larger.
    for dynamic in [0, 2048] {
        let with = time(Bytes(64 * 4096), Bytes(dynamic * 4096));
        assert_eq!(with.0, without.0, "{dynamic}");
        assert!(with.1 < without.1, "{with:?}, {without:?}");
    }
}

#[test]
fn what_is_trimmed_leaves_the_cache_of_one_bit() {
    let fresh = Parameters {
        state: State::Fresh,
        slc_idle: Nanos(900_000_000 * US),
        ..cached()
    };
    let time = |commands: &[(u64, CommandKind, u64, u64)]| {
        let mut drive = disk(fresh, 4);
        let mut commands = [&writes(64, 0, 0), commands].concat();
        commands.extend(writes(48, 0, 200_000));
        last(run(&mut drive, &commands), 200_000)
    };
    let whole = time(&[(100_000, Discard, 0, 8 * 4096)]);
    assert!((900..1300).contains(&whole), "{whole}");
    let (nothing, elsewhere) = (time(&[]), time(&[(100_000, Discard, 800, 8)]));
    assert!(nothing == elsewhere && nothing > 5000, "{nothing}, {elsewhere}");
}

#[test]
fn the_cache_of_one_bit_is_quick_until_it_is_full_and_again_after_idle_time() {
    let mut drive = disk(cached(), 4);
    let writes = |from, at| writes(48, from, at);
    let first = last(run(&mut drive, &writes(0, 0)), 0);
    // 48 pages on four dies, less what the buffer holds.
    assert!((900..1300).contains(&first), "{first}");
    // `run` lets the drive end all that it does by itself, which empties the cache.
    let again = last(run(&mut drive, &writes(100, 100_000)), 100_000);
    assert!((900..1300).contains(&again), "{again}");
    let more: Vec<_> = writes(200, 200_000).into_iter().chain(writes(300, 200_000)).collect();
    let full = last(run(&mut drive, &more), 200_000);
    assert!(full > 5000, "16 pages of 96 find the cache full, and half a bit each: {full}");
}

/// An erased drive with a cache of a quarter of its pages, which take half of its cells. It is
/// filled at three rates: with one bit a cell, with two in the cells that are left, and with two
/// where each unit needs the cells that another leaves when it is folded.
#[test]
fn an_erased_drive_is_filled_at_three_rates() {
    let numbers = Parameters {
        bits: 2,
        slc_dynamic: Bytes(1024 * 4096),
        slc_program: Nanos(100 * US),
        read: Nanos(US),
        over_provisioning: 1.0,
        state: State::Fresh,
        ..flash()
    };
    let ends = run(&mut disk(numbers, 8), &writes(4096, 0, 0));
    // Microseconds for each page of one of four dies.
    let time = |from: usize, to: usize| (ends[to] - ends[from]) * 4 / (to - from) as u64;
    let times = [time(0, 1000), time(1100, 3000), time(3200, 4000)];
    let wanted = [(90..110), (490..510), (950..1050)];
    let right = times.iter().zip(&wanted).all(|(time, wanted)| wanted.contains(time));
    assert!(right, "{times:?} are not {wanted:?}");
}

/// A block of two units, whichever way they are programmed.
#[test]
fn cells_of_one_bit_are_erased_as_soon_as_others() {
    let small = Parameters {
        dies: 1,
        channels: 1,
        bits: 2,
        block: Bytes(4 * 4096),
        erase: Nanos(5000 * US),
        slc: Bytes(64 * 4096),
        slc_program: Nanos(100 * US),
        ..flash()
    };
    let writes: Vec<_> = (0..3).map(|page| (0, WriteThrough, page * 8, 8)).collect();
    assert_eq!(run(&mut disk(small, 8), &writes), [100, 200, 5300]);
}

fn random_writes(count: u64, at: u64) -> Vec<(u64, CommandKind, u64, u64)> {
    let page = |turn| Stream::new(turn).below(4096);
    (0..count).map(|turn| (at, Write, page(turn) * 8, 8)).collect()
}

/// Nothing has to be copied on a drive that is trimmed, whatever was written to it before.
#[test]
fn a_drive_that_is_trimmed_is_as_quick_as_a_new_one() {
    let time = |state| {
        let mut drive = disk(Parameters { state, ..flash() }, 64);
        let trim = [(0, Discard, 0, 8 * 4096)];
        let commands = [&trim[..], &random_writes(4000, 1000)].concat();
        last(run(&mut drive, &commands), 1000)
    };
    let [fresh, steady] = [State::Fresh, State::Steady].map(time);
    assert!(steady.abs_diff(fresh) * 20 < fresh, "{steady}, {fresh}");
}

#[test]
fn garbage_makes_a_full_drive_slower() {
    let writes = random_writes(20_000, 0);
    let time = |state| {
        let drive = Parameters { state, ..flash() };
        run(&mut disk(drive, 64), &writes).into_iter().max().unwrap_or(0)
    };
    let (fresh, steady) = (time(State::Fresh), time(State::Steady));
    // With a quarter more flash each write brings about 1.7 copies, which are read first.
    let ratio = steady as f64 / fresh as f64;
    assert!((1.3..3.2).contains(&ratio), "{ratio}");
    assert!(time(State::Filled) > fresh);
}
