//! A benchmark of how many disk I/Os a second of one core simulates: random reads of 4 KiB over the
//! whole disk, at queue depths 4 and 32, on one disk and on a mirror. The measured time is
//! processor time, which other work on the machine changes less than wall time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use raidlab_array::{Array, ArrayConfig, MemberConfig, RecoveryConfig};
use raidlab_disk::{Disk, Order, Preset};
use raidlab_random::Stream;
use raidlab_sim::{ArraySubject, Host, Machine, MachineConfig};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{Engine, JobGroup, JobSpec, Pattern};
use std::hint::black_box;
use std::time::Duration;

/// The number of requests in one iteration.
const REQUESTS: u64 = 100_000;

fn machine(members: u64) -> Machine {
    let text = include_str!("../../../data/disks/wd4000fyyz.toml");
    let preset = Preset::parse("wd4000fyyz.toml", text).expect("the shipped preset is valid");
    let parameters = preset.parameters("strict").expect("it has a strict set");
    let member = MemberConfig {
        size: parameters.capacity,
        data_offset: Sectors::ZERO,
        rotational: true,
        write_mostly: false,
        bad_blocks: None,
    };
    let array = Array::new(ArrayConfig::mirror(
        (0..members).map(|_| member.clone()).collect(),
        parameters.capacity,
        raidlab_policies::read_policy("md-3.16").expect("a policy"),
        RecoveryConfig::md_3_16(),
        Bytes(512 << 10).to_sectors(),
    ))
    .expect("a mirror");
    let random = Stream::new(1);
    Machine::new(MachineConfig {
        subject: Box::new(ArraySubject::new(array, member)),
        disks: (0..members)
            .map(|index| {
                let phase = Nanos(index * 1_234_567);
                Disk::new(parameters.clone(), phase, random.fork("disk", index)).into()
            })
            .collect(),
        host: Host {
            tags: 31,
            order: Order::Sweep,
            ..Host::new(Nanos::from_micros(59))
        },
        random,
        leaps: true,
        processor: None,
    })
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time since the thread began")
}

fn random_reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("random reads");
    group.throughput(Throughput::Elements(REQUESTS));
    group.sample_size(20);
    for (name, members) in [("one disk", 1), ("mirror", 2)] {
        for depth in [4, 32] {
            let jobs = JobGroup {
                jobs: vec![JobSpec {
                    pattern: Pattern::RandRead,
                    engine: Engine::Libaio,
                    io_depth: depth,
                    random_map: false,
                    request_limit: Some(REQUESTS),
                    ..JobSpec::default()
                }],
                stop_together: false,
            };
            group.bench_function(format!("{name}, queue depth {depth}"), |bencher| {
                bencher.iter_custom(|iterations| {
                    let before = processor_time();
                    for _ in 0..iterations {
                        black_box(machine(members).run(&jobs).expect("runs"));
                    }
                    processor_time() - before
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, random_reads);
criterion_main!(benches);
