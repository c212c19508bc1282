//! Discards: who gets them, what they cost, who waits for them.

use crate::bench::{Bench, DISCARD, group, random, strict};
use raidlab_sim::JobResult;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{Engine, JobSpec, Pattern};

const MIB: u64 = 1 << 20;

fn run(take_discards: u64, job: JobSpec) -> JobResult {
    let bench = Bench {
        take_discards,
        ..Bench::default()
    };
    bench.machine().run(&group([job])).expect("runs")
}

fn trims(pattern: Pattern) -> JobSpec {
    JobSpec {
        pattern,
        block_size: Bytes(64 << 10),
        size: Some(Bytes(MIB)),
        ..JobSpec::default()
    }
}

#[test]
fn discards_reach_the_disks_that_take_them_and_take_their_time() {
    let result = run(1, trims(Pattern::Trim));
    let trims = result.trims();
    assert_eq!((trims.ios, trims.bytes), (16, Bytes(MIB)));
    assert_eq!((result.reads().ios, result.writes().ios), (0, 0));
    let each = strict().overhead_cached + DISCARD;
    assert!(trims.latency.min().abs_diff(each.0) * 1000 < each.0);
    assert!(trims.latency.max().abs_diff(each.0) * 1000 < each.0);
    let busy: Vec<Nanos> = result.members.iter().map(|member| member.busy).collect();
    assert_eq!(busy, [each * 16, Nanos::ZERO]);
}

#[test]
fn each_block_is_discarded_and_then_written() {
    for pattern in [Pattern::TrimWrite, Pattern::RandTrimWrite] {
        let result = run(2, trims(pattern));
        assert_eq!((result.trims().ios, result.writes().ios), (16, 16));
        assert_eq!(result.writes().bytes, Bytes(MIB));
    }
}

/// fio's libaio has no discards: the thread waits for each. Where an engine queues them,
/// eight at a time end together.
#[test]
fn a_discard_holds_its_clone_up_unless_its_engine_queues_it() {
    let job = |queues_trims| JobSpec {
        queues_trims,
        engine: Engine::Libaio,
        block_size: Bytes(4096),
        ..random(Pattern::RandTrim, 8, 64)
    };
    let [waits, queues] = [false, true].map(|queues| run(2, job(queues)));
    let each = strict().overhead_cached + DISCARD;
    assert_eq!((waits.trims().ios, queues.trims().ios), (64, 64));
    assert!(waits.runtime >= each * 64, "{}", waits.runtime);
    assert!(queues.runtime <= waits.runtime / 6, "{}", queues.runtime);
}

#[test]
fn a_discard_of_several_ranges_is_one_request() {
    let result = run(
        2,
        JobSpec {
            ranges: 8,
            block_size: Bytes(4096),
            ..trims(Pattern::RandTrim)
        },
    );
    assert_eq!((result.trims().ios, result.trims().bytes), (32, Bytes(MIB)));
}
