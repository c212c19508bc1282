//! How many I/Os a second of one core a bare disk simulates.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use raidlab_disk::{Command, CommandKind, Disk, Preset};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use std::hint::black_box;

/// I/Os of one iteration.
const COUNT: u64 = 50_000;
/// Sectors of 3 TiB, in blocks of 4 KiB.
const BLOCKS: u64 = 3 << 28;

/// A closed loop without turnaround: what completes is replaced at once.
fn closed_loop(mut disk: Disk, kind: CommandKind, depth: u64) -> Nanos {
    let mut random = Stream::new(2);
    let mut submit = |disk: &mut Disk, now, tag| {
        let command = Command {
            tag,
            kind,
            start: Sectors(random.below(BLOCKS) * 8),
            count: Sectors(8),
        };
        disk.submit(now, command);
    };
    for tag in 0..depth {
        submit(&mut disk, Nanos::ZERO, tag);
    }
    let mut now = Nanos::ZERO;
    let mut done = 0;
    let mut completions = Vec::new();
    while done < COUNT {
        now = disk.next_event().expect("commands are in flight");
        disk.advance(now, &mut completions);
        done += completions.len() as u64;
        for completion in completions.drain(..) {
            submit(&mut disk, now, completion.tag);
        }
    }
    now
}

fn bare_disk(criterion: &mut Criterion) {
    let text = include_str!("../../../data/disks/wd4000fyyz.toml");
    let preset = Preset::parse("wd4000fyyz.toml", text).expect("the shipped preset is valid");
    let parameters = preset.parameters("strict").expect("it has a strict set");
    let disk = Disk::new(parameters.clone(), Nanos::ZERO, Stream::new(1));
    let mut group = criterion.benchmark_group("bare disk, 4 KiB");
    group.throughput(Throughput::Elements(COUNT));
    group.sample_size(20);
    for (name, kind, depth) in [
        ("random reads, queue depth 1", CommandKind::Read, 1),
        ("random reads, queue depth 4", CommandKind::Read, 4),
        ("random reads, queue depth 32", CommandKind::Read, 32),
        ("cached random writes", CommandKind::Write, 1),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(closed_loop(disk.clone(), kind, depth)));
        });
    }
    group.finish();
}

criterion_group!(benches, bare_disk);
criterion_main!(benches);
