//! The cost of the core per request: submit plus complete, 32 in flight, on a mirror of two. The
//! simulator can spend about 500 ns per read in all.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use raidlab_array::Engine;
use raidlab_array::{
    Array, ArrayConfig, CommandId, MemberConfig, Operation, Outputs, ReadPolicyKind,
    RecoveryConfig, Request, RequestId,
};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use std::collections::VecDeque;
use std::hint::black_box;

const SIZE: Sectors = Sectors(3 << 31);
const REQUESTS: u64 = 10_000;
const DEPTH: u64 = 32;

fn array(read_policy: &str) -> Array {
    let member = MemberConfig {
        size: SIZE,
        data_offset: Sectors::ZERO,
        rotational: true,
        write_mostly: false,
        bad_blocks: None,
    };
    let read_policy: ReadPolicyKind = read_policy.parse().expect("a known policy");
    Array::new(ArrayConfig::mirror(
        vec![member; 2],
        SIZE,
        read_policy,
        RecoveryConfig::md_3_16(),
        Sectors(1024),
    ))
    .expect("a sound configuration")
}

/// The state of a run, kept so that the measured part allocates nothing.
struct Run {
    array: Array,
    starts: Vec<Sectors>,
    in_flight: VecDeque<CommandId>,
    out: Outputs,
}

impl Run {
    fn new(read_policy: &str) -> Self {
        let mut random = Stream::new(1);
        Self {
            array: array(read_policy),
            starts: (0..REQUESTS)
                .map(|_| Sectors(random.below(SIZE.0 / 8) * 8))
                .collect(),
            in_flight: VecDeque::with_capacity(1024),
            out: Outputs::default(),
        }
    }

    /// Runs all requests, first in, first out, `DEPTH` in flight.
    fn all(&mut self, operation: Operation) -> u64 {
        let mut finished = 0;
        for (number, &start) in (0..).zip(&self.starts) {
            let request = Request {
                id: RequestId(number),
                operation,
                start,
                count: Sectors(8),
                force_unit_access: false,
                process: 0,
            };
            self.array.submit(Nanos(number), request, &mut self.out);
            let sent = self.out.commands.drain(..);
            self.in_flight.extend(sent.map(|command| command.id));
            while number - finished >= DEPTH
                && let Some(command) = self.in_flight.pop_front()
            {
                self.array
                    .complete(Nanos(number), command, Ok(()), &mut self.out);
                finished += self.out.finished.drain(..).count() as u64;
            }
        }
        black_box(finished)
    }
}

fn benchmarks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mirror");
    group.throughput(Throughput::Elements(REQUESTS));
    let cases = [
        ("random reads", "md-raid10-5.4", Operation::Read),
        ("random reads", "md-6.9", Operation::Read),
        ("random reads", "least-pending", Operation::Read),
        ("random reads", "round-robin", Operation::Read),
        ("writes", "md-raid10-5.4", Operation::Write),
    ];
    for (name, policy, operation) in cases {
        group.bench_function(format!("{name} {policy}"), |bencher| {
            bencher.iter_batched_ref(
                || Run::new(policy),
                |run| run.all(operation),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
