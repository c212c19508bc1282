//! Physical sectors of 4 KiB behind logical ones of 512 bytes.

use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, Preset};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};

const TURN_MS: f64 = 11.111;

/// A WD15EARS whose partition begins at a sector.
fn disk(first_sector: u64, change: impl Fn(&mut DiskParameters)) -> Disk {
    let text = include_str!("../../../../data/disks/wd15ears.toml");
    let preset = Preset::parse("wd15ears.toml", text).expect("the shipped preset is valid");
    let mut numbers = preset.parameters("rated").expect("its only set").clone();
    numbers.first_sector = Sectors(first_sector);
    change(&mut numbers);
    Disk::new(numbers, Nanos::ZERO, Stream::new(7))
}

/// Milliseconds for each of these commands, so many at a time, until all of it is on the
/// platters.
fn each(disk: &mut Disk, depth: usize, commands: &[(CommandKind, u64, u64)]) -> f64 {
    let mut left = commands.iter().zip(0..);
    let mut now = Nanos::ZERO;
    let mut submit = |disk: &mut Disk, now| {
        if let Some((&(kind, start, count), tag)) = left.next() {
            let (start, count) = (Sectors(start), Sectors(count));
            disk.submit(
                now,
                Command {
                    tag,
                    kind,
                    start,
                    count,
                },
            );
        }
    };
    (0..depth).for_each(|_| submit(disk, now));
    let mut completions = Vec::new();
    while let Some(next) = disk.next_event().filter(|_| !disk.is_quiet()) {
        now = next;
        disk.advance(now, &mut completions);
        completions.drain(..).for_each(|_| submit(disk, now));
    }
    now.0 as f64 / 1e6 / commands.len() as f64
}

/// 4 KiB in every 16 KiB, as an owner of a WD20EARS tried in 2010 (des.no): 0.60 ms each,
/// and 37 ms behind a table that begins at sector 63.
fn steps(count: u64) -> Vec<(CommandKind, u64, u64)> {
    (0..count)
        .map(|step| (CommandKind::Write, step * 32, 8))
        .collect()
}

fn scattered(kind: CommandKind, count: u64) -> Vec<(CommandKind, u64, u64)> {
    let place = |turn| Stream::new(turn).below(300_000_000) * 8;
    (0..count).map(|turn| (kind, place(turn), 8)).collect()
}

#[test]
fn writes_in_steps_lose_a_revolution_each() {
    let aligned = each(&mut disk(64, |_| {}), 1, &steps(2000));
    let shifted = each(&mut disk(63, |_| {}), 1, &steps(2000));
    let jumper = each(&mut disk(63 + 1, |_| {}), 1, &steps(2000));
    assert!(aligned < 1.0, "{aligned} ms, measured 0.60");
    assert!(
        (TURN_MS..37.5).contains(&shifted),
        "{shifted} ms, measured 37"
    );
    assert!(
        (jumper - aligned).abs() < 1e-9,
        "a jumper's sector makes it right"
    );
}

#[test]
fn random_synchronous_writes_cost_a_revolution_more() {
    // 7 to 8 ms each, and 22 to 24 behind sector 63 (OSNews, February 2010).
    let writes = scattered(CommandKind::WriteThrough, 500);
    let more = each(&mut disk(63, |_| {}), 1, &writes) - each(&mut disk(64, |_| {}), 1, &writes);
    assert!((TURN_MS - 1.0..TURN_MS + 1.0).contains(&more), "{more} ms");
}

#[test]
fn streams_and_reads_pay_nothing() {
    let stream: Vec<_> = (0..20_000)
        .map(|turn| (CommandKind::Write, turn * 8, 8))
        .collect();
    let large: Vec<_> = (0..2000)
        .map(|turn| (CommandKind::Write, turn * 256, 256))
        .collect();
    let reads = scattered(CommandKind::Read, 300);
    for (name, depth, commands) in [
        ("stream", 16, &stream),
        ("large", 4, &large),
        ("reads", 1, &reads),
    ] {
        let aligned = each(&mut disk(64, |_| {}), depth, commands);
        let shifted = each(&mut disk(63, |_| {}), depth, commands);
        let ratio = shifted / aligned;
        assert!((0.95..1.06).contains(&ratio), "{name}: {ratio}");
    }
    // What is in the read cache need not be read: a read of the whole, then a write of a part.
    let pairs: Vec<_> = scattered(CommandKind::Read, 300)
        .into_iter()
        .flat_map(|(_, start, _)| {
            [
                (CommandKind::Read, start - 8 * u64::from(start > 8), 24),
                (CommandKind::WriteThrough, start, 8),
            ]
        })
        .collect();
    let ratio = each(&mut disk(63, |_| {}), 1, &pairs) / each(&mut disk(64, |_| {}), 1, &pairs);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn sectors_of_512_bytes_have_no_parts() {
    let old = |numbers: &mut DiskParameters| numbers.physical_sector = Bytes(512);
    let writes = scattered(CommandKind::WriteThrough, 200);
    let ratio = each(&mut disk(63, old), 1, &writes) / each(&mut disk(64, old), 1, &writes);
    assert!((0.97..1.03).contains(&ratio), "{ratio}");
}
