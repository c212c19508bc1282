//! Open loops beside the theory of queues: Poisson arrivals at a disk whose every access takes
//! the same time are the queue M/D/1, in which a request waits `load / (2 (1 - load))` times
//! that time on average (Pollaczek and Khinchine).

use crate::bench::group;
use raidlab_array::{Array, ArrayConfig, MemberConfig, RecoveryConfig};
use raidlab_disk::medium::constant;
use raidlab_disk::{Disk, DiskParameters, MediumParameters};
use raidlab_random::Stream;
use raidlab_sim::{ArraySubject, Host, JobResult, Machine, MachineConfig};
use raidlab_units::{Bytes, BytesPerSecond, Nanos, Sectors};
use raidlab_workload::{ArrivalProcess, Engine, JobSpec, Pattern, Rate};

/// What an access takes, milliseconds: the time to the place, as the transfer takes none.
const SERVICE: f64 = 1.0;

fn machine() -> Machine {
    let access = Nanos::from_millis(1);
    let medium = MediumParameters::Constant(constant::Parameters { access });
    let rate = BytesPerSecond(1e11);
    let parameters = DiskParameters::uniform(Sectors(1 << 31), rate, medium);
    let member = MemberConfig {
        size: parameters.capacity,
        data_offset: Sectors::ZERO,
        rotational: false,
        write_mostly: false,
        bad_blocks: None,
    };
    let array = Array::new(ArrayConfig::mirror(
        vec![member.clone()],
        parameters.capacity,
        raidlab_policies::read_policy("nearest-head").expect("a policy"),
        RecoveryConfig::md_6(),
        Bytes(512 << 10).to_sectors(),
    ))
    .expect("one disk");
    Machine::new(MachineConfig {
        subject: Box::new(ArraySubject::new(array, member)),
        disks: vec![Disk::new(parameters, Nanos::ZERO, Stream::new(1)).into()],
        host: Host::new(Nanos::ZERO),
        random: Stream::new(3),
        leaps: false,
        processor: None,
    })
}

/// Random reads at so many a second, at most `depth` of them with the disk.
fn job(per_second: u64, depth: u32, offload: bool) -> JobSpec {
    JobSpec {
        pattern: Pattern::RandRead,
        engine: Engine::Libaio,
        io_depth: depth,
        random_map: false,
        request_limit: Some(300_000),
        rate: Some(Rate {
            per_second: [per_second * 4096, 0, 0],
            process: ArrivalProcess::Poisson,
            offload,
            ..Rate::default()
        }),
        ..JobSpec::default()
    }
}

fn run(per_second: u64, depth: u32, offload: bool) -> JobResult {
    let job = job(per_second, depth, offload);
    machine().run(&group([job])).expect("runs")
}

#[test]
fn mean_waits_of_poisson_arrivals_are_those_of_theory() {
    for per_second in [250, 500, 625] {
        let load = per_second as f64 / 1e3 * SERVICE;
        let expected = SERVICE * load / (2.0 * (1.0 - load));
        // Where requests wait does not matter: before the disk, or for a place in the depth.
        for depth in [1, 32] {
            let result = run(per_second, depth, true);
            let mean = result.reads().latency.mean() / 1e6;
            let wait = mean - SERVICE;
            assert!(
                (wait / expected - 1.0).abs() < 0.02,
                "{per_second} a second, depth {depth}: {wait} ms, in theory {expected}"
            );
        }
    }
}

/// A job that waits for all in flight before it sleeps counts as fio does: from when it sent
/// the request.
#[test]
fn a_loop_that_drains_counts_from_the_request() {
    let mean = run(500, 1, false).reads().latency.mean() / 1e6;
    assert!((mean - SERVICE).abs() < 0.01, "{mean} ms");
}

/// An open loop is given a depth that it never reaches. What is not in flight costs nothing.
#[test]
fn a_depth_that_is_not_reached_costs_no_events() {
    for offload in [true, false] {
        let mut looks = [1, 2048].map(|depth| {
            let few = JobSpec {
                request_limit: Some(20_000),
                ..job(100, depth, offload)
            };
            let mut looks = 0;
            let mut watch = |_| {
                looks += 1;
                true
            };
            let ran = machine().run_watched(&group([few]), &mut watch);
            ran.expect("runs");
            looks
        });
        looks.sort_unstable();
        assert!(looks[1] - looks[0] <= 1, "offload {offload}: {looks:?}");
    }
}
