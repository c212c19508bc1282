//! What the cache and the interface of a mechanical disk may not do.

use CommandKind::{Read, Write, WriteThrough};
use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, Preset};
use raidlab_random::Stream;
use raidlab_units::{BytesPerSecond, Nanos, Sectors};

const MS: u64 = 1_000_000;

fn disk(edit: impl Fn(&mut DiskParameters)) -> Disk {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    let preset = Preset::parse("wd4000fyyz.toml", text).expect("the shipped preset is valid");
    let mut numbers = preset.parameters("strict").expect("a shipped set").clone();
    edit(&mut numbers);
    numbers.validate().expect("a disk");
    Disk::new(numbers, Nanos::ZERO, Stream::new(7))
}

/// How long each of these commands takes, one after the other: milliseconds of a pause before
/// it, the kind, the first sector, the sectors.
fn each(disk: &mut Disk, commands: &[(u64, CommandKind, u64, u64)]) -> Vec<Nanos> {
    let (mut now, mut completions) = (Nanos::ZERO, Vec::new());
    let mut took = Vec::new();
    for (&(pause, kind, start, count), tag) in commands.iter().zip(0..) {
        let begin = now + Nanos(pause * MS);
        let mut advance = |disk: &mut Disk, until: Nanos, one: bool| {
            while let Some(next) = disk.next_event().filter(|&next| next <= until) {
                now = next;
                disk.advance(next, &mut completions);
                if one && !completions.is_empty() {
                    break;
                }
            }
            completions.clear();
            now
        };
        advance(disk, begin, false);
        let (start, count) = (Sectors(start), Sectors(count));
        disk.submit(
            begin,
            Command {
                tag,
                kind,
                start,
                count,
            },
        );
        now = advance(disk, Nanos::MAX, true);
        took.push(now - begin);
    }
    took
}

#[test]
fn what_was_read_ahead_before_a_write_is_not_served_after_it() {
    // A stream, whose read-ahead goes far, then a write into what it has read, and long after
    // that was put on the platters, a read of it.
    let stream = (0..8).map(|turn| (0, Read, turn * 256, 256));
    let ahead = 8 * 256 + 1024;
    let read_back = [(100, Read, ahead, 8)];
    let cached: Vec<_> = stream.clone().chain(read_back).collect();
    let found = each(&mut disk(|_| {}), &cached);
    assert!(found[8] < Nanos(MS), "it was read ahead: {}", found[8]);
    let written: Vec<_> = stream
        .chain([(100, Write, ahead, 8), (500, Read, ahead, 8)])
        .collect();
    let found = each(&mut disk(|_| {}), &written);
    assert!(found[9] > Nanos(MS), "{}", found[9]);
}

/// The head reads on past what a stream leaves out, as RAID 5 does with its parity: what has
/// passed it by the time that the drive takes a read up is in the cache.
#[test]
fn a_stream_with_gaps_loses_no_revolution() {
    for gap in [0, 16, 32, 64, 96, 128, 256] {
        let stream: Vec<_> = (0..40)
            .map(|turn| (0, Read, turn * (256 + gap), 256))
            .collect();
        let found = each(&mut disk(|_| {}), &stream);
        let passed = Nanos((256 + gap) * MS / 300);
        let slow = found.iter().skip(1).filter(|&&time| time > passed);
        assert_eq!(slow.count(), 0, "gaps of {gap} sectors: {found:?}");
    }
}

/// An arm that leaves a stream late reads on until then, and what it will have read is in the
/// cache when it has passed the head, not when the arm decides to stay.
#[test]
fn nothing_is_read_before_it_has_passed_the_head() {
    let stream: Vec<_> = (0..40)
        .map(|turn| (0, Read, 1_000_000 + turn * 256, 256))
        .collect();
    let end = 1_000_000 + 40 * 256;
    for away in 1..100 {
        let mut disk = disk(|_| {});
        let took = each(&mut disk, &stream);
        let now = took.into_iter().fold(Nanos::ZERO, |sum, one| sum + one);
        let far = Command {
            tag: 1,
            kind: Read,
            start: Sectors(1_000_000 - away * 3000),
            count: Sectors(8),
        };
        let ahead = Command {
            tag: 2,
            start: Sectors(end + 600),
            ..far
        };
        disk.submit(now, far);
        disk.submit(now, ahead);
        let (mut completions, mut took) = (Vec::new(), Nanos::ZERO);
        while let Some(next) = disk.next_event().filter(|_| took == Nanos::ZERO) {
            disk.advance(next, &mut completions);
            if completions.iter().any(|one| one.tag == 2) {
                took = next - now;
            }
        }
        // The platters have at most 400 sectors in a millisecond.
        assert!(took > Nanos(600 * MS / 400), "{away}: {took}");
    }
}

#[test]
fn nothing_passes_a_slow_interface_faster_than_it_is() {
    // USB 2.0: 35 MB/s before platters of five times that.
    let slow = |numbers: &mut DiskParameters| numbers.interface = BytesPerSecond(35e6);
    let commands = |kind| {
        let place = |turn| Stream::new(turn).below(7_000_000) * 1000;
        let all = (0..20).map(move |turn| (50, kind, place(turn), 2048));
        all.collect::<Vec<_>>()
    };
    let least = Nanos((2048.0 * 512.0 / 35e6 * 1e9) as u64);
    for kind in [Read, WriteThrough] {
        let found = each(&mut disk(slow), &commands(kind));
        assert!(found.iter().all(|&time| time >= least), "{found:?}");
        let quick = each(&mut disk(|_| {}), &commands(kind));
        assert!(quick.iter().any(|&time| time < least), "{quick:?}");
    }
}

#[test]
fn read_ahead_without_end_is_as_far_as_the_disk() {
    let ahead = |bytes: u64| {
        move |numbers: &mut DiskParameters| {
            assert!(numbers.set_named("read_ahead_sequential_bytes", bytes as f64));
            assert!(numbers.set_named("read_ahead_random_bytes", bytes as f64));
        }
    };
    let stream: Vec<_> = (0..50)
        .map(|turn| (turn % 7, Read, turn / 10 * 1_000_000 + turn * 2048, 2048))
        .collect();
    let all = each(&mut disk(ahead(1 << 42)), &stream);
    assert_eq!(each(&mut disk(ahead(1 << 53)), &stream), all);
}

#[test]
fn a_disk_that_takes_centuries_to_pass_is_none() {
    let mut numbers = disk(|_| {}).parameters().clone();
    numbers.capacity = Sectors((1 << 42) - 1);
    for point in &mut numbers.rate_curve {
        point.bytes_per_second = 1e5;
    }
    let error = numbers.validate().expect_err("600 years");
    assert!(error.to_string().contains("thirty years"), "{error}");
}
