//! Emulated zones: no device sees a write that is not at a write pointer.

use crate::bench::{Bench, group};
use raidlab_array::Operation;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{Engine, JobSpec, Pattern, ZoneRules};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const MIB: u64 = 1 << 20;

const RULES: ZoneRules = ZoneRules {
    size: Bytes(MIB),
    capacity: Bytes(MIB),
    most_open: 0,
    most_open_of_job: 0,
    reads_beyond: false,
    reset_threshold_millionths: 0,
    reset_frequency_millionths: 0,
};

fn job(pattern: Pattern, rules: ZoneRules) -> JobSpec {
    JobSpec {
        pattern,
        zones: Some(rules),
        engine: Engine::Libaio,
        io_depth: 4,
        num_jobs: 4,
        block_size: Bytes(64 << 10),
        size: Some(Bytes(64 * MIB)),
        random_map: false,
        runtime: Some(Nanos::from_secs(5)),
        time_based: true,
        ..JobSpec::default()
    }
}

/// Runs jobs on one disk; the writes that it saw, by the time at which they came, and
/// what the jobs did.
fn writes<const N: usize>(jobs: [JobSpec; N]) -> (Vec<(u64, u64)>, raidlab_sim::JobResult) {
    let mut machine = Bench {
        members: 1,
        ..Bench::default()
    }
    .machine();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let all = Rc::clone(&seen);
    machine.watch_commands(Box::new(move |command| {
        if command.operation == Operation::Write {
            let place = (command.start.to_bytes().0, command.count.to_bytes().0);
            all.borrow_mut().push((command.arrived, place));
        }
    }));
    let result = machine.run(&group(jobs)).expect("runs");
    let mut seen = seen.take();
    // Those of one moment are in flight together, in the order of their places.
    seen.sort_unstable();
    (seen.into_iter().map(|(_, place)| place).collect(), result)
}

/// Checks that every write is at its zone's write pointer or begins it anew; how many
/// zones were begun.
fn check(writes: &[(u64, u64)]) -> u64 {
    let mut pointers: BTreeMap<u64, u64> = BTreeMap::new();
    let mut begun = 0;
    for &(start, length) in writes {
        let zone = start / MIB;
        let pointer = pointers.entry(zone).or_default();
        assert!(start + length <= (zone + 1) * MIB);
        if start == zone * MIB {
            *pointer = start;
            begun += 1;
        }
        assert_eq!(start, *pointer, "zone {zone}");
        *pointer = start + length;
    }
    begun
}

#[test]
fn clones_write_zones_in_sequence_whatever_they_draw() {
    for pattern in [Pattern::RandWrite, Pattern::Write] {
        let (writes, result) = writes([job(pattern, RULES)]);
        assert!(writes.len() > 500, "{}", writes.len());
        let begun = check(&writes);
        assert!(result.zone_resets <= begun);
        assert_eq!(result.writes().ios, writes.len() as u64);
    }
}

#[test]
fn no_more_zones_are_open_than_may_be() {
    let rules = ZoneRules {
        most_open: 3,
        ..RULES
    };
    let (writes, _) = writes([job(Pattern::RandWrite, rules)]);
    check(&writes);
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    for (start, length) in writes {
        let zone = start / MIB;
        open.insert(zone, start + length - zone * MIB);
        if open[&zone] == MIB {
            open.remove(&zone);
        }
        assert!(open.len() <= 3, "{open:?}");
    }
}

#[test]
fn discards_of_zones_empty_them_and_reach_no_disk() {
    let writer = job(Pattern::RandWrite, RULES);
    let trimmer = JobSpec {
        name: "trim".to_owned(),
        block_size: Bytes(MIB),
        num_jobs: 1,
        ..job(Pattern::RandTrim, RULES)
    };
    let (writes, result) = writes([writer, trimmer]);
    check(&writes);
    let trims = result.trims();
    assert!(trims.ios > 100, "{}", trims.ios);
    assert_eq!(trims.bytes, Bytes(trims.ios * MIB));
    assert!(result.zone_resets >= trims.ios);
}

#[test]
fn where_nothing_was_written_nothing_is_read() {
    let reads = JobSpec {
        time_based: false,
        runtime: None,
        ..job(Pattern::Read, RULES)
    };
    let (_, result) = writes([reads.clone()]);
    assert_eq!(result.reads().ios, 0);
    let beyond = ZoneRules {
        reads_beyond: true,
        ..RULES
    };
    let (_, result) = writes([JobSpec {
        zones: Some(beyond),
        ..reads
    }]);
    assert_eq!(result.reads().ios, 4 * 1024);
}

#[test]
fn mixed_jobs_read_what_was_written() {
    let (writes, result) = writes([job(Pattern::RandRw, RULES)]);
    check(&writes);
    assert!(result.reads().ios > 50 && result.writes().ios > 50);
}
