//! The number of I/Os per second of one core that a bare disk simulates.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use raidlab_disk::medium::flash::translation::State;
use raidlab_disk::{Command, CommandKind, Disk, MediumParameters, Preset};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use std::hint::black_box;

/// The number of I/Os of one iteration.
const COUNT: u64 = 50_000;
/// The number of I/Os with flash, whose tables are copied before each iteration.
const FLASH_COUNT: u64 = 1_000_000;

/// Runs a closed loop without turnaround: a completed command is replaced at once. `reads` of a
/// hundred are reads.
fn closed_loop(mut disk: Disk, reads: u32, depth: u64, count: u64) -> Nanos {
    let mut random = Stream::new(2);
    let blocks = disk.parameters().capacity.0 / 8;
    let mut submit = |disk: &mut Disk, now, tag| {
        let kind = if random.percent(reads) {
            CommandKind::Read
        } else {
            CommandKind::Write
        };
        let command = Command {
            tag,
            kind,
            start: Sectors(random.below(blocks) * 8),
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
    while done < count {
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
    for (name, reads, depth) in [
        ("random reads, queue depth 1", 100, 1),
        ("random reads, queue depth 4", 100, 4),
        ("random reads, queue depth 32", 100, 32),
        ("cached random writes", 0, 1),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(closed_loop(disk.clone(), reads, depth, COUNT)));
        });
    }
    group.finish();
}

/// Measures a solid-state disk in steady state, where each write causes copies.
fn bare_flash(criterion: &mut Criterion) {
    let text = include_str!("../../../data/disks/p5520.toml");
    let preset = Preset::parse("p5520.toml", text).expect("the shipped preset is valid");
    let mut parameters = preset.parameters("rated").expect("its only set").clone();
    if let MediumParameters::Flash(own) = &mut parameters.medium {
        own.state = State::Steady;
    }
    let disk = Disk::new(parameters, Nanos::ZERO, Stream::new(1));
    let mut group = criterion.benchmark_group("bare flash in steady state, 4 KiB, queue depth 32");
    group.throughput(Throughput::Elements(FLASH_COUNT));
    group.sample_size(20);
    for (name, reads) in [
        ("random reads", 100),
        ("70 % reads", 70),
        ("random writes", 0),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || disk.clone(),
                |disk| black_box(closed_loop(disk, reads, 32, FLASH_COUNT)),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, bare_disk, bare_flash);
criterion_main!(benches);
