//! Seeds through the whole simulation.

#[cfg(feature = "mutations")]
#[expect(dead_code, reason = "the example `mutants` shares it")]
mod mutants;

use raidlab_faults::exhaustive::Small;
use raidlab_faults::{Filter, run_seed, run_seeds};
use raidlab_geometry::Level;

/// What strikes the driver alone comes, too.
fn of_driver() -> Filter {
    Filter {
        driver: true,
        ..Filter::default()
    }
}

/// The same seed makes the same run, event by event.
#[test]
fn a_seed_is_one_run() {
    let filters = [Filter::default(), of_driver()];
    let all = || {
        let of = |filter| {
            (0..8).map(move |seed| {
                let outcome = run_seed(filter, seed, false);
                (outcome.trace_hash, outcome.statistics)
            })
        };
        filters.iter().flat_map(of).collect::<Vec<_>>()
    };
    let runs = all();
    assert_eq!(runs, all());
    let mut different: Vec<u64> = runs.iter().map(|(hash, _)| *hash).collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), runs.len());
}

/// Short and interrupted commands, late answers and time limits lose nothing.
#[test]
fn a_few_seeds_of_the_driver_keep_every_promise() {
    let summary = run_seeds(&of_driver(), 0..100);
    assert_eq!(summary.failures, []);
}

/// Commands to a member that was given up are refused at once: that they are answered is
/// something to do, also when nothing else is.
#[test]
fn who_was_refused_is_answered() {
    for seed in [51_000_000_838, 51_000_009_826] {
        assert_eq!(run_seed(&of_driver(), seed, false).violation, None);
    }
}

/// A member is given up while it hangs, and has died by the time it would be put back.
#[test]
fn a_disk_that_has_died_since_is_not_put_back() {
    assert_eq!(
        run_seed(&of_driver(), 51_000_008_411, false).violation,
        None
    );
}

/// A disk is fast again, but what it was sent while it was slow is not answered sooner for
/// that: it may still be given up, so that losing another is beyond the budget.
#[test]
fn a_disk_that_was_slow_is_counted_until_it_has_answered() {
    for seed in [51_000_016_559, 53_000_002_125] {
        assert_eq!(run_seed(&of_driver(), seed, false).violation, None);
    }
}

/// Whether the lines are kept or not changes nothing.
#[test]
fn a_trace_that_is_told_is_the_same() {
    let silent = run_seed(&Filter::default(), 3, false);
    let told = run_seed(&Filter::default(), 3, true);
    assert_eq!(silent.trace_hash, told.trace_hash);
    assert!(silent.trace.is_empty());
    assert!(told.trace.len() as u64 > told.statistics.events);
}

/// A few seeds of each level without redundancy or with copies.
#[test]
fn a_few_seeds_keep_every_promise() {
    for level in [Level::Linear, Level::Raid0, Level::Raid1, Level::Raid10] {
        let filter = Filter {
            level: Some(level),
            over_budget: Some(false),
            ..Filter::default()
        };
        let summary = run_seeds(&filter, 0..12);
        assert_eq!(summary.failures, [], "{level}");
        assert!(
            summary.statistics.requests > 100,
            "{level}: nothing was asked"
        );
    }
}

/// One write on the smallest mirror, and its first member replaced, cut off everywhere.
#[test]
fn a_small_mirror_survives_every_crash() {
    let mirrors = Small::all(&Filter {
        level: Some(Level::Raid1),
        bitmap: Some(true),
        ..Filter::default()
    });
    for mirror in &mirrors {
        assert_eq!(mirror.options.level, Level::Raid1);
        assert!(mirror.options.bitmap_chunk.is_some());
    }
    let (write, replaced) = (mirrors.first(), mirrors.last());
    for mirror in [write, replaced] {
        let enumerated = mirror.expect("a mirror with a bitmap").enumerate();
        assert_eq!(enumerated.violation, None);
        assert!(
            enumerated.crash_points > 10 && enumerated.cases > 100,
            "{enumerated:?}"
        );
    }
}

/// Seeded bugs are found: the oracle has teeth.
#[cfg(feature = "mutations")]
#[test]
fn seeded_bugs_are_found() {
    use raidlab_array::mutation::Mutation;
    let filter = Filter {
        level: Some(Level::Raid1),
        ..Filter::default()
    };
    for mutation in [
        Mutation::FlushForgotten,
        Mutation::WriteErrorIgnored,
        Mutation::CheckBlind,
    ] {
        let hunted = mutants::hunt(&filter, mutation, 0, 200);
        assert!(hunted.found.is_some(), "{}", mutation.name());
    }
}

/// A write fails on the last member, and the device that replaces it has it all the same:
/// once reads have given the old content, the new one must not appear.
#[test]
fn what_failed_on_the_old_device_is_copied_again() {
    assert_eq!(
        run_seed(&of_driver(), 56_000_063_365, false).violation,
        None
    );
}
