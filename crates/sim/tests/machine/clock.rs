//! fio's clock: read on every 64th I/O of a clone under `gtod_reduce`.

use crate::bench::{Bench, group, timed};
use raidlab_units::Nanos;
use raidlab_workload::{Engine, JobSpec, Pattern};

fn reduced(job: JobSpec) -> JobSpec {
    JobSpec {
        reduced_clock: true,
        ..job
    }
}

#[test]
fn the_requests_of_a_clone_end_two_short_of_64() {
    for (depth, clones, engine) in [
        (1, 1, Engine::Libaio),
        (7, 1, Engine::Libaio),
        (32, 1, Engine::Libaio),
        (4, 3, Engine::Libaio),
        (1, 5, Engine::Sync),
        (1, 32, Engine::Sync),
    ] {
        let job = reduced(JobSpec {
            num_jobs: clones,
            engine,
            ..timed(Pattern::RandRead, depth, 20)
        });
        let result = Bench::default().machine().run(&group([job])).expect("runs");
        let issued = result.reads().ios;
        assert!(issued > 0);
        assert_eq!(
            (issued + 2 * u64::from(clones)) % 64,
            0,
            "{issued} by {clones} clones of depth {depth}"
        );
    }
}

#[test]
fn threads_run_on_until_each_has_its_64() {
    let threads = JobSpec {
        num_jobs: 32,
        engine: Engine::Sync,
        ..timed(Pattern::RandRead, 1, 60)
    };
    let run = |job| Bench::default().machine().run(&group([job])).expect("runs");
    let [plain, tail] = [run(threads.clone()), run(reduced(threads))];
    // Ten reads a second for each thread: up to six seconds for 64 of them,
    // and faster as the others stop. The logs have 61 to 70 s.
    let minute = Nanos::from_secs(60);
    assert!(plain.runtime > minute && plain.runtime < minute + Nanos::from_secs(2));
    let tail = tail.runtime;
    assert!(
        (Nanos::from_secs(61)..Nanos::from_secs(70)).contains(&tail),
        "{tail}"
    );
}

#[test]
fn one_clone_of_the_same_depth_has_hardly_a_tail() {
    let job = reduced(timed(Pattern::RandRead, 32, 60));
    let result = Bench::default().machine().run(&group([job])).expect("runs");
    // 64 I/Os at 310 a second, and the drain of the last 32.
    let limit = Nanos::from_millis(60_000 + 64_000 / 310 + 2_000);
    assert!(result.runtime > Nanos::from_secs(60) && result.runtime < limit);
}
