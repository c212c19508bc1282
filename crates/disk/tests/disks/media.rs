//! Disks that are not plain platters: shingled ones and solid-state ones.

use proptest::prelude::*;
use raidlab_disk::medium::platters::shingles::ShingleParameters;
use raidlab_disk::{
    Command, CommandKind, Completion, Disk, DiskParameters, MediumParameters, Preset,
};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};

fn parameters(name: &str) -> DiskParameters {
    let text = match name {
        "ssd" => include_str!("../../../../data/disks/ssd950pro.toml"),
        _ => include_str!("../../../../data/disks/st4000dm004.toml"),
    };
    let preset = Preset::parse(name, text).expect("the shipped preset is valid");
    preset.parameters("rated").expect("a shipped set").clone()
}

fn shingles(numbers: &mut DiskParameters) -> &mut ShingleParameters {
    match &mut numbers.medium {
        MediumParameters::Shingles(own) => &mut own.shingles,
        other => panic!("{other:?} is not shingled"),
    }
}

/// The first of the family that others measured: an ST8000AS0002, 8 TB, whose cache they
/// found to hold 34 GiB.
fn eight_terabytes() -> DiskParameters {
    let mut numbers = parameters("smr");
    numbers.capacity = Sectors(15_628_053_168);
    shingles(&mut numbers).cache = Bytes(34 << 30);
    numbers
}

/// A shingled disk whose cache is full after 16 MiB.
fn small_cache() -> DiskParameters {
    let mut numbers = parameters("smr");
    shingles(&mut numbers).cache = Bytes(16 << 20);
    numbers
}

fn disk(parameters: DiskParameters) -> Disk {
    Disk::new(parameters, Nanos(0), Stream::new(7))
}

/// Keeps `depth` commands in flight; how long all of them took.
fn keep_busy(disk: &mut Disk, begin: Nanos, depth: usize, commands: &[Command]) -> Nanos {
    let mut now = begin;
    let mut left = commands.iter();
    for command in left.by_ref().take(depth) {
        disk.submit(now, *command);
    }
    let mut done = 0;
    let mut completions = Vec::new();
    while done < commands.len() {
        now = disk.next_event().expect("commands in flight need an event");
        disk.advance(now, &mut completions);
        for _ in completions.drain(..) {
            done += 1;
            if let Some(command) = left.next() {
                disk.submit(now, *command);
            }
        }
    }
    now - begin
}

fn commands(kind: CommandKind, count: u64, place: impl Fn(u64) -> u64, size: u64) -> Vec<Command> {
    let command = |tag| Command {
        tag,
        kind,
        start: Sectors(place(tag)),
        count: Sectors(size),
    };
    (0..count).map(command).collect()
}

/// Somewhere in the first 200 GB.
fn scattered(tag: u64) -> u64 {
    Stream::new(tag).below(50_000_000) * 8
}

fn per_second(count: u64, time: Nanos) -> f64 {
    count as f64 * 1e9 / time.0 as f64
}

#[test]
fn a_solid_state_disk_does_what_its_maker_rates() {
    let rate = |kind, count, size, depth, place: fn(u64) -> u64| {
        let mut disk = disk(parameters("ssd"));
        let all = commands(kind, count, place, size);
        per_second(count, keep_busy(&mut disk, Nanos(0), depth, &all))
    };
    let one = rate(CommandKind::Read, 2000, 8, 1, scattered);
    assert!((10_500.0..11_500.0).contains(&one), "{one}");
    let many = rate(CommandKind::Read, 20_000, 8, 32, scattered);
    assert!((225_000.0..300_000.0).contains(&many), "{many}");
    let write = rate(CommandKind::Write, 2000, 8, 1, scattered);
    assert!((40_000.0..46_000.0).contains(&write), "{write}");
    let stream = |kind| rate(kind, 4000, 2048, 4, |tag| tag * 2048) * 1.048_576;
    let (read, write) = (stream(CommandKind::Read), stream(CommandKind::Write));
    assert!((1900.0..2300.0).contains(&read), "{read} MB/s");
    assert!((850.0..960.0).contains(&write), "{write} MB/s");
}

#[test]
fn random_writes_are_fast_until_the_cache_is_full() {
    let mut disk = disk(small_cache());
    let writes = |from: u64, count| {
        let place = move |tag| scattered(from + tag);
        commands(CommandKind::Write, count, place, 8)
    };
    // 12 MiB, then the rest and 2 MiB more.
    let fresh = keep_busy(&mut disk, Nanos(0), 4, &writes(0, 3072));
    let full = keep_busy(&mut disk, fresh, 4, &writes(3072, 1536));
    let (fresh, full) = (per_second(3072, fresh), per_second(1536, full));
    assert!(fresh > 1000.0, "{fresh}");
    assert!(full < fresh / 10.0, "{full} after {fresh}");
}

#[test]
fn idle_time_cleans_the_cache() {
    let mut disk = disk(small_cache());
    let all = commands(CommandKind::Write, 3072, scattered, 8);
    let mut now = keep_busy(&mut disk, Nanos(0), 4, &all);
    let mut completions = Vec::new();
    // Every band takes at most two seconds.
    while let Some(at) = disk.next_event() {
        assert!(at <= now + Nanos::from_secs(3), "{at} after {now}");
        now = at;
        disk.advance(now, &mut completions);
    }
    assert!(completions.is_empty() && disk.is_quiet());
    let again = keep_busy(&mut disk, now, 4, &all);
    let again = per_second(3072, again);
    assert!(again > 1000.0, "{again}");
}

#[test]
fn a_long_stream_of_writes_needs_the_cache_for_its_begin_alone() {
    let mut disk = disk(parameters("smr"));
    let gib = |from: u64| {
        let place = move |tag| (from + tag) * 1024;
        commands(CommandKind::Write, 2048, place, 1024)
    };
    let begin = keep_busy(&mut disk, Nanos(0), 4, &gib(0));
    assert!(!disk.is_steady());
    let then = keep_busy(&mut disk, begin, 4, &gib(2048));
    assert!(disk.is_steady());
    let rate = |time| per_second(2048, time) * 0.524_288;
    let (begin, then) = (rate(begin), rate(then));
    assert!((85.0..105.0).contains(&begin), "{begin} MB/s");
    assert!((170.0..195.0).contains(&then), "{then} MB/s");
}

/// Random writes of 4 KiB over the whole of a prepared disk: seven a second were measured
/// on it, with a full queue, and about a second for each one alone (Tom's Hardware, review
/// of the Seagate Archive HDD 8 TB).
#[test]
fn sustained_random_writes_fall_to_what_was_measured() {
    let mut disk = disk(eight_terabytes());
    let writes = |from: u64, count| {
        let place = move |tag| Stream::new(from + tag).below(1_950_000_000) * 8;
        commands(CommandKind::Write, count, place, 8)
    };
    let fresh = keep_busy(&mut disk, Nanos(0), 4, &writes(0, 131_000));
    let full = keep_busy(&mut disk, fresh, 4, &writes(131_000, 200));
    let after = keep_busy(&mut disk, fresh + full, 1, &writes(131_200, 100));
    let (fresh, full) = (per_second(131_000, fresh), per_second(128, full));
    assert!(fresh > 1000.0, "{fresh}");
    assert!((1.7..28.0).contains(&full), "{full} a second, measured 7");
    let alone = after.0 as f64 / 1e9 / 100.0;
    assert!((0.25..2.0).contains(&alone), "{alone} s, measured about 1");
}

/// Writes of 4 MiB at random places, a flush behind each: 90 MiB/s until the cache is full,
/// then 7.5 (github.com/aicodix/smr, ema.png).
#[test]
fn chunks_at_random_places_fall_by_as_much_as_was_measured() {
    let mut numbers = eight_terabytes();
    shingles(&mut numbers).cache = Bytes(1 << 30);
    let mut disk = disk(numbers);
    let mut now = Nanos(0);
    let mut rate = |chunks: std::ops::Range<u64>| {
        let (begin, count) = (now, chunks.end - chunks.start);
        for chunk in chunks {
            let start = Stream::new(chunk).below(1_900_000) * 8192;
            let place = move |tag| start + tag * 1024;
            let mut all = commands(CommandKind::Write, 8, place, 1024);
            now += keep_busy(&mut disk, now, 8, &all);
            all.truncate(1);
            all[0].kind = CommandKind::Flush;
            now += keep_busy(&mut disk, now, 1, &all);
        }
        per_second(count * 4, now - begin)
    };
    let fresh = rate(0..250);
    rate(250..260);
    let full = rate(260..300);
    assert!((45.0..180.0).contains(&fresh), "{fresh} MiB/s, measured 90");
    assert!((3.7..15.0).contains(&full), "{full} MiB/s, measured 7.5");
    let fall = fresh / full;
    assert!(
        (6.0..24.0).contains(&fall),
        "{fall} times less, measured 12"
    );
}

#[test]
fn what_was_written_at_random_is_read_from_the_cache_until_it_is_clean() {
    let mut disk = disk(parameters("smr"));
    // 4 MiB in blocks of 4 KiB, each once, in a random order.
    let order = |tag: u64| 1_000_000 + tag * 389 % 1024 * 8;
    let writes = commands(CommandKind::Write, 1024, order, 8);
    let mut now = keep_busy(&mut disk, Nanos(0), 4, &writes);
    let reads = commands(CommandKind::Read, 32, |tag| 1_000_000 + tag * 256, 256);
    let scattered = keep_busy(&mut disk, now, 1, &reads);
    now += scattered;
    let mut completions = Vec::new();
    while let Some(at) = disk.next_event() {
        now = at;
        disk.advance(now, &mut completions);
    }
    let clean = keep_busy(&mut disk, now, 1, &reads);
    assert!(
        scattered.0 > 20 * clean.0,
        "{scattered} before, {clean} after"
    );
}

/// A band that is cleaned makes room for several writes. The second place went to whoever came
/// next, and the oldest of 32 writers waited for minutes.
#[test]
fn nobody_passes_those_who_wait_for_a_band_to_be_cleaned() {
    let mut disk = disk(small_cache());
    let place = |tag| Stream::new(tag).below(900_000) * 8192;
    let fill = commands(CommandKind::Write, 5000, place, 8);
    let mut now = keep_busy(&mut disk, Nanos(0), 32, &fill);
    let writes = commands(CommandKind::Write, 200, |tag| place(tag + 5000), 8);
    let mut left = writes.iter();
    for write in left.by_ref().take(32) {
        disk.submit(now, *write);
    }
    let (mut ended, mut completions) = (Vec::new(), Vec::new());
    while ended.len() < writes.len() {
        now = disk.next_event().expect("writes in flight need an event");
        disk.advance(now, &mut completions);
        for done in completions.drain(..) {
            ended.push(done.tag);
            if let Some(write) = left.next() {
                disk.submit(now, *write);
            }
        }
    }
    assert!(ended.is_sorted(), "{ended:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every command is completed once, whatever the disk does beside.
    #[test]
    fn every_command_ends_once(
        ssd in any::<bool>(),
        depth in 1_usize..40,
        script in prop::collection::vec((0_u8..5, 0_u64..200_000, 1_u64..600), 1..300),
    ) {
        let numbers = if ssd { parameters("ssd") } else {
            let mut numbers = small_cache();
            let shingles = shingles(&mut numbers);
            shingles.cache = Bytes(1 << 20);
            shingles.stream = Bytes(1 << 19);
            shingles.band = Bytes(1 << 20);
            numbers
        };
        let mut disk = disk(numbers);
        let mut seen = vec![false; script.len()];
        let mut now = Nanos(0);
        let mut completions = Vec::new();
        let mut in_flight = 0;
        let mut orders = script.iter().enumerate().peekable();
        while in_flight > 0 || orders.peek().is_some() {
            while in_flight < depth && let Some((tag, &(kind, start, count))) = orders.next() {
                let kind = match kind {
                    0 => CommandKind::Flush,
                    1 => CommandKind::WriteThrough,
                    2 | 3 => CommandKind::Write,
                    _ => CommandKind::Read,
                };
                let (start, count) = (Sectors(start), Sectors(count));
                disk.submit(now, Command { tag: tag as u64, kind, start, count });
                in_flight += 1;
            }
            let next = disk.next_event().expect("commands in flight need an event");
            prop_assert!(next >= now);
            now = next;
            disk.advance(now, &mut completions);
            for Completion { tag } in completions.drain(..) {
                let tag = usize::try_from(tag).expect("a tag of the script");
                prop_assert!(!seen[tag], "{} twice", tag);
                seen[tag] = true;
                in_flight -= 1;
            }
        }
        while let Some(next) = disk.next_event() {
            prop_assert!(next >= now);
            now = next;
            disk.advance(now, &mut completions);
        }
        prop_assert!(completions.is_empty() && disk.is_quiet());
    }
}
