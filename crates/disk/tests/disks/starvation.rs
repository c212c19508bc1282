//! Nobody waits for ever. A chain of contiguous commands costs the arm nothing and would be
//! served for ever; the chain limit lets others in. Writes that wait for room in the cache go
//! before reads, but only twice as many as wait.

use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, Feature, Preset};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};

const BLOCK: u64 = 128 << 10;
const READERS: u64 = 32;
/// Of the chain, always in flight.
const LINKS: u64 = 2;

/// What the random reads have beside them.
#[derive(Debug, Clone, Copy)]
enum Beside {
    /// A chain of this kind.
    Chain(CommandKind),
    /// So many random writes of 4 KiB at a time.
    Writes(u64),
}
const TURNAROUND: Nanos = Nanos::from_micros(11);

fn strict() -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    Preset::parse("wd4000fyyz.toml", text)
        .expect("the shipped preset is valid")
        .parameters("strict")
        .expect("it has a strict set")
        .clone()
}

/// What a minute gave.
struct Minute {
    /// How many random reads ended.
    random: u64,
    /// How many of the other commands ended.
    beside: u64,
    /// The longest that a random read took.
    longest: Nanos,
}

/// So many random reads of 4 KiB at a time, and what is beside them, for a minute.
fn minute(parameters: DiskParameters, readers: u64, beside: Beside) -> Minute {
    let others = match beside {
        Beside::Chain(_) => LINKS,
        Beside::Writes(count) => count,
    };
    let mut random = Stream::new(3);
    let mut disk = Disk::new(parameters, Nanos::ZERO, random.fork("disk", 0));
    // When each command is next issued, or was; then whether it is in flight.
    let mut issue = vec![Some(Nanos::ZERO); usize::try_from(readers + others).expect("few")];
    let mut issued = vec![Nanos::ZERO; issue.len()];
    let (mut counts, mut longest, mut next) = ([0_u64; 2], Nanos::ZERO, 0);
    let mut completions = Vec::new();
    let end = Nanos::from_secs(60);
    loop {
        let event = disk.next_event().unwrap_or(Nanos::MAX);
        let host = (0..issue.len())
            .filter_map(|tag| issue[tag].map(|time| (time, tag)))
            .min();
        let host_time = host.map_or(Nanos::MAX, |(time, _)| time);
        let now = event.min(host_time);
        if now > end {
            break;
        }
        if let Some((_, tag)) = host.filter(|_| host_time <= event) {
            issue[tag] = None;
            issued[tag] = now;
            let is_read = (tag as u64) < readers;
            let (kind, start, bytes) = match beside {
                Beside::Chain(kind) if !is_read => {
                    next += BLOCK;
                    (kind, next - BLOCK, BLOCK)
                }
                _ if is_read => (CommandKind::Read, random.below(3 << 28) * 4096, 4096),
                _ => (CommandKind::Write, random.below(3 << 28) * 4096, 4096),
            };
            disk.submit(
                now,
                Command {
                    tag: tag as u64,
                    kind,
                    start: Bytes(start).to_sectors(),
                    count: Bytes(bytes).to_sectors(),
                },
            );
            continue;
        }
        completions.clear();
        disk.advance(now, &mut completions);
        for completion in &completions {
            let tag = usize::try_from(completion.tag).expect("few");
            let is_read = completion.tag < readers;
            counts[usize::from(!is_read)] += 1;
            if is_read {
                longest = longest.max(now - issued[tag]);
            }
            issue[tag] = Some(now + TURNAROUND);
        }
    }
    // Reads that have waited to the end count too.
    for tag in 0..usize::try_from(readers).expect("few") {
        if issue[tag].is_none() {
            longest = longest.max(end - issued[tag]);
        }
    }
    Minute {
        random: counts[0],
        beside: counts[1],
        longest,
    }
}

#[test]
fn random_reads_and_a_chain_both_go_on() {
    // Alone the readers get some 170 a second. A chain of reads gets one
    // command in each visit while so many wait.
    for kind in [CommandKind::Read, CommandKind::Write] {
        let minute = minute(strict(), READERS, Beside::Chain(kind));
        assert!(
            minute.random >= 30 * 60,
            "{kind:?}: {} a minute",
            minute.random
        );
        assert!(
            minute.beside >= 5 * 60,
            "{kind:?}: {} a minute",
            minute.beside
        );
    }
    // Beside reads nobody waits long. Beside writes the arm comes back to the
    // chain after each read, so that the far ones are passed over for long.
    let longest = minute(strict(), READERS, Beside::Chain(CommandKind::Read)).longest;
    assert!(longest < Nanos::from_secs(10), "{longest}");
}

#[test]
fn without_the_limit_a_chain_starves_random_reads() {
    let without = strict().without(Feature::ChainLimit);
    for kind in [CommandKind::Read, CommandKind::Write] {
        let minute = minute(without.clone(), READERS, Beside::Chain(kind));
        assert!(minute.random < 60, "{kind:?}: {}", minute.random);
        assert!(minute.beside > 60_000, "{kind:?}: {}", minute.beside);
        assert!(minute.longest > Nanos::from_secs(59));
    }
}

/// From the second write in flight on the cache was never without a write that waited, and a
/// read came to its turn once in ten seconds.
#[test]
fn a_read_waits_for_twice_as_many_writes_as_wait() {
    for writers in [2, 8, 31] {
        let minute = minute(strict(), 1, Beside::Writes(writers));
        let share = minute.beside / minute.random.max(1);
        assert!(
            (writers..=2 * writers + 2).contains(&share),
            "{writers}: {share}"
        );
        assert!(
            minute.longest < Nanos::from_secs(1),
            "{writers}: {}",
            minute.longest
        );
    }
}

/// The rate of one stream alone, KiB/s: so many reads in flight, of which each begins where `place`
/// says, in blocks.
fn stream(in_flight: u64, place: impl Fn(u64) -> u64) -> u64 {
    let mut disk = Disk::new(strict(), Nanos::ZERO, Stream::new(5));
    let mut completions = Vec::new();
    let mut next = 0;
    let mut submit = |disk: &mut Disk, now, tag| {
        let (start, count) = (
            Bytes(place(next) * BLOCK).to_sectors(),
            Bytes(BLOCK).to_sectors(),
        );
        next += 1;
        disk.submit(
            now,
            Command {
                tag,
                kind: CommandKind::Read,
                start,
                count,
            },
        );
    };
    for tag in 0..in_flight {
        submit(&mut disk, Nanos::ZERO, tag);
    }
    let mut count = 0;
    while let Some(now) = disk.next_event().filter(|&now| now < Nanos::from_secs(10)) {
        completions.clear();
        disk.advance(now, &mut completions);
        for completion in &completions {
            count += 1;
            submit(&mut disk, now, completion.tag);
        }
    }
    count * BLOCK / 10 / 1024
}

#[test]
fn the_chain_is_really_one() {
    // Alone it runs at the rate of the platters: nothing but the limit, and
    // the readers, keep it from that.
    let rate = stream(LINKS, |block| block);
    assert!((173_000..174_500).contains(&rate), "{rate} KiB/s");
}

/// As on a member of a RAID 5 of three: a mebibyte, and half of one that is left out. Who waits
/// further ahead is of the same stream, and the arm went there and back for each command.
#[test]
fn a_stream_does_not_make_way_for_itself() {
    for in_flight in [4, 16, 30] {
        let rate = stream(in_flight, |block| block + block / 8 * 4);
        assert!(
            (114_000..117_000).contains(&rate),
            "{in_flight}: {rate} KiB/s"
        );
    }
}

/// A chain of sequential writes goes on while a flush waits for one far write:
/// newer writes must not put the flush off.
#[test]
fn a_flush_ends_beside_a_chain_of_writes() {
    let mut disk = Disk::new(strict(), Nanos::ZERO, Stream::new(5));
    let write = |tag, start: u64| Command {
        tag,
        kind: CommandKind::Write,
        start: Bytes(start).to_sectors(),
        count: Bytes(BLOCK).to_sectors(),
    };
    let far = 3 << 40;
    disk.submit(Nanos::ZERO, write(0, 0));
    disk.submit(Nanos::ZERO, write(1, BLOCK));
    disk.submit(Nanos::ZERO, write(2, far));
    let flush = Command {
        tag: 3,
        kind: CommandKind::Flush,
        start: Sectors::ZERO,
        count: Sectors::ZERO,
    };
    disk.submit(Nanos::ZERO, flush);
    let (mut next, mut completions) = (2 * BLOCK, Vec::new());
    while let Some(now) = disk.next_event() {
        assert!(now < Nanos::from_secs(1), "the flush does not end");
        completions.clear();
        disk.advance(now, &mut completions);
        if completions.iter().any(|done| done.tag == 3) {
            return;
        }
        for link in completions.iter().filter(|done| done.tag < 2) {
            disk.submit(now, write(link.tag, next));
            next += BLOCK;
        }
    }
    panic!("the flush is lost");
}
