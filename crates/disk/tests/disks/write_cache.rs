//! The write cache of a disk that turns has each sector once.

use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, Preset};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

use CommandKind::{Flush, Write, WriteThrough};

fn preset(name: &str, set: &str, text: &str) -> DiskParameters {
    let preset = Preset::parse(name, text).expect("the shipped preset is valid");
    preset.parameters(set).expect("a shipped set").clone()
}

fn strict() -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    preset("wd4000fyyz.toml", "strict", text)
}

fn shingled() -> DiskParameters {
    let text = include_str!("../../../../data/disks/st4000dm004.toml");
    preset("st4000dm004.toml", "rated", text)
}

/// When each of these commands was complete, in milliseconds, and when the disk was quiet after
/// that: each is sent when so many others at most are under way.
fn times(
    parameters: DiskParameters,
    depth: usize,
    commands: &[(CommandKind, u64, u64)],
) -> Vec<f64> {
    let mut disk = Disk::new(parameters, Nanos(1_234_567), Stream::new(5));
    let mut times = vec![0.0; commands.len() + 1];
    let (mut sent, mut done, mut now) = (0, 0, Nanos::ZERO);
    let mut completions = Vec::new();
    loop {
        while sent < commands.len() && sent - done < depth {
            let (kind, start, count) = commands[sent];
            let (start, count, tag) = (Sectors(start), Sectors(count), sent as u64);
            disk.submit(
                now,
                Command {
                    tag,
                    kind,
                    start,
                    count,
                },
            );
            sent += 1;
        }
        if done == commands.len() && disk.is_quiet() {
            times[done] = now.0 as f64 / 1e6;
            return times;
        }
        now = disk.next_event().expect("a disk at work has an event");
        disk.advance(now, &mut completions);
        for completion in completions.drain(..) {
            times[usize::try_from(completion.tag).expect("few")] = now.0 as f64 / 1e6;
            done += 1;
        }
    }
}

/// Milliseconds until all of it is on the platters.
fn until_quiet(depth: usize, commands: &[(CommandKind, u64, u64)]) -> f64 {
    times(strict(), depth, commands)[commands.len()]
}

/// Writes that keep the arm busy and the cache full, far from each other.
fn scattered(count: u64) -> Vec<(CommandKind, u64, u64)> {
    (0..count)
        .map(|turn| (Write, 1_000_000 + turn * 7_919_000, 8))
        .collect()
}

#[test]
fn a_block_that_is_written_again_and_again_is_written_at_the_speed_of_the_cache() {
    for disk in [strict(), shingled()] {
        for depth in [1, 32, 64] {
            let all = times(disk.clone(), depth, &[(Write, 4096, 8); 2000]);
            assert!(all[1999] < 500.0, "depth {depth}: {} ms", all[1999]);
        }
    }
}

#[test]
fn a_full_cache_takes_what_it_has() {
    let mut commands = scattered(40);
    let last = commands[31];
    commands.push(last);
    let all = times(strict(), 64, &commands);
    assert!(
        all[40] < 1.0 && all[39] > 5.0,
        "{} and {} ms",
        all[40],
        all[39]
    );
}

#[test]
fn the_platters_get_each_sector_once() {
    // The arm is under way with the first write while the others come.
    let first = (Write, 700_000_000, 8);
    let once = until_quiet(64, &[first, (Write, 4096, 512)]);
    let cases: [(&str, Vec<(u64, u64)>); 4] = [
        ("the same", vec![(4096, 512); 20]),
        (
            "parts of it",
            (0..20).map(|part| (4096 + part * 25, 16)).collect(),
        ),
        (
            "more and more",
            (0..20).map(|more| (4096, 37 + more * 25)).collect(),
        ),
        (
            "moving on",
            (0..20).map(|step| (4096 + step * 25, 37)).collect(),
        ),
    ];
    for (name, writes) in cases {
        let mut commands = vec![first];
        if name == "parts of it" {
            commands.push((Write, 4096, 512));
        }
        commands.extend(writes.iter().map(|&(start, count)| (Write, start, count)));
        let again = until_quiet(64, &commands);
        assert!(
            again < once + 1.0,
            "{name}: {again} ms, {once} ms for all of it at once"
        );
    }
}

#[test]
fn a_flush_waits_for_what_replaced_what_it_waits_for() {
    let first = (Write, 700_000_000, 8);
    // The flush has come before the second write to the block, which covers the first one.
    for (start, count) in [(4096, 8), (4096, 64), (4100, 64)] {
        let commands = [
            first,
            (Write, 4096, 8),
            (Flush, 0, 0),
            (Write, start, count),
        ];
        let all = times(strict(), 64, &commands);
        assert!(all[3] < 1.0, "the write is in the cache: {} ms", all[3]);
        assert!(
            (all[2] - all[4]).abs() < 0.001,
            "{} ms, quiet at {} ms",
            all[2],
            all[4]
        );
    }
}

#[test]
fn who_waits_for_the_medium_is_answered_there() {
    let first = (Write, 700_000_000, 8);
    let place = |kind| (kind, 4096, 8);
    // A cached write and one through the cache are one; of two through the cache each is done.
    for kinds in [
        [Write, WriteThrough],
        [WriteThrough, Write],
        [WriteThrough, WriteThrough],
    ] {
        let commands = [first, place(kinds[0]), place(kinds[1])];
        let all = times(strict(), 64, &commands);
        for (index, kind) in kinds.iter().enumerate() {
            let is_late = all[index + 1] > 5.0;
            assert_eq!(is_late, *kind == WriteThrough, "{kinds:?}: {all:?}");
        }
    }
    let one = times(strict(), 64, &[first, place(WriteThrough)])[2];
    let both = times(strict(), 64, &[first, place(Write), place(WriteThrough)])[3];
    assert!((both - one).abs() < 0.001, "{both} ms and {one} ms");
}

#[test]
fn a_read_of_what_is_being_written_is_answered_from_the_cache() {
    let all = times(
        strict(),
        2,
        &[
            (Write, 700_000_000, 64),
            (CommandKind::Read, 700_000_008, 8),
        ],
    );
    assert!(all[1] < 1.0 && all[2] > 5.0, "{all:?}");
}
