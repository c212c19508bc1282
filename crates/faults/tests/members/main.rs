//! Members that come back with a bad-block log, and members that are lost while a new
//! array is in its first resync: the sequences by themselves, at every level.

mod seldom;

use raidlab_faults::script::{Action, Restart, Step};
use raidlab_faults::{Options, Outcome, run_with};
use raidlab_geometry::{Copies, Layout, Level, ParityLayout};

const SECOND: u64 = 1_000_000_000;

fn arrays() -> Vec<Options> {
    let near = Layout::Copies(Copies::near(2));
    let parity = Layout::Parity(ParityLayout::LeftSymmetric);
    [
        (Level::Raid1, Layout::None, 2),
        (Level::Raid1, Layout::None, 3),
        (Level::Raid10, near, 4),
        (Level::Raid4, Layout::Parity(ParityLayout::ParityLast), 4),
        (Level::Raid5, parity, 4),
        (Level::Raid6, parity, 5),
    ]
    .map(|(level, layout, members)| Options {
        bitmap_chunk: Some(64),
        log: level.parity_count() > 0,
        ..Options::plain(level, layout, members, (16, 640))
    })
    .into()
}

fn after(after_ns: u64, action: Action) -> Step {
    Step { after_ns, action }
}

fn at_once(action: Action) -> Step {
    after(0, action)
}

fn write(start: u64, count: u64) -> Step {
    at_once(Action::Write {
        start,
        count,
        force_unit_access: false,
    })
}

fn everything() -> Step {
    at_once(Action::Read {
        start: 0,
        count: 640,
    })
}

fn run(options: &Options, script: &[Step]) -> Outcome {
    run_with(options.clone(), Some(script.to_vec()), 1, false)
}

/// Member 1 goes, gets an entry in its log where the bitmap says nothing, and comes
/// back after these steps.
fn noted_while_away(steps: &[Step]) -> Vec<Step> {
    let begin = [
        write(0, 640),
        after(12 * SECOND, Action::Drain),
        at_once(Action::Fail { member: 1 }),
        after(SECOND, Action::Drain),
        at_once(Action::NoteBad {
            member: 1,
            sector: 100,
            count: 20,
        }),
    ];
    let end = [
        at_once(Action::Mend {
            fresh: false,
            healed: true,
        }),
        after(3 * SECOND, Action::Drain),
    ];
    [&begin, steps, &end].concat()
}

/// So it comes back; everything is read several times, and the place is written or repaired.
fn noted(last: &[Step]) -> Vec<Step> {
    let mut script = noted_while_away(&[]);
    script.extend([everything(); 4]);
    script.extend_from_slice(last);
    script.push(after(3 * SECOND, Action::Drain));
    script.extend([everything(); 4]);
    script
}

fn stories_of_logs() -> [Vec<Step>; 3] {
    let cut = Action::PowerCut(Restart {
        seed: 5,
        missing: None,
        stale: false,
        again: None,
    });
    [
        noted(&[at_once(Action::Check { repair: true })]),
        noted(&[write(0, 640)]),
        noted(&[at_once(cut), everything()]),
    ]
}

#[test]
fn what_was_noted_elsewhere_is_not_read_after_a_re_add() {
    for options in arrays() {
        for script in stories_of_logs() {
            let outcome = run(&options, &script);
            assert_eq!(outcome.violation, None, "{options:?}");
            let mut deeds = outcome.statistics.reach.deeds();
            let noted = deeds.any(|(deed, _)| deed == "bad blocks noted elsewhere");
            assert!(noted, "{options:?}");
        }
    }
}

/// A new array, all of whose members hold rubbish; `lost` go one after the other.
fn lost(members: &[usize], restart: Option<Action>) -> Vec<Step> {
    let mut script = vec![write(3, 20), write(100, 8)];
    for (member, start) in members.iter().zip([30, 333]) {
        let action = Action::Lose { member: *member };
        script.push(after(200_000, action));
        script.extend([write(start, 40), write(start + 200, 1), everything()]);
    }
    script.extend(restart.map(at_once));
    script.extend([everything(), write(500, 30)]);
    script.push(at_once(Action::Drain));
    script.push(at_once(Action::Mend {
        fresh: true,
        healed: true,
    }));
    script.extend([write(7, 3), everything()]);
    script
}

fn stories_of_first_resyncs(options: &Options) -> Vec<Vec<Step>> {
    let restart = Restart {
        seed: 9,
        missing: None,
        stale: false,
        again: None,
    };
    let mut restarts = vec![None];
    // Without a log nobody can tell a first resync after a crash.
    if options.log || options.level.parity_count() == 0 {
        restarts.push(Some(Action::PowerCut(restart)));
        restarts.push(Some(Action::Stop(restart)));
    }
    let mut stories = Vec::new();
    for first in 0..options.members {
        for restart in &restarts {
            stories.push(lost(&[first], *restart));
            if options.level == Level::Raid6 {
                let second = (first + 2) % options.members;
                stories.push(lost(&[first, second], *restart));
            }
        }
    }
    stories
}

/// Syncs of one small block at a time are far from their end when the first member
/// goes.
fn new_arrays() -> Vec<Options> {
    let logged = arrays().into_iter().filter(|options| options.log);
    let without_log = logged.map(|options| Options {
        log: false,
        ..options
    });
    let all = without_log.chain(arrays());
    all.map(|options| Options {
        assume_clean: false,
        sync_block: 8,
        sync_depth: 1,
        ..options
    })
    .collect()
}

#[test]
fn a_member_lost_in_the_first_resync_costs_nothing() {
    for options in new_arrays() {
        for script in stories_of_first_resyncs(&options) {
            let outcome = run(&options, &script);
            assert_eq!(outcome.violation, None, "{options:?}\n{script:#?}");
        }
    }
}

/// The two seeded bugs that undo what these stories are about.
#[cfg(feature = "mutations")]
#[test]
fn the_seeded_bugs_of_these_stories_are_found() {
    use raidlab_array::mutation::{self, Mutation};
    let found = |mutation, options: &Options, script: &[Step]| {
        let before = mutation::choose(Some(mutation));
        let outcome = run(options, script);
        mutation::choose(before);
        outcome.violation.is_some()
    };
    for options in arrays() {
        // A write hides it.
        let bug = Mutation::LogOfMemberForgotten;
        let mut stories = stories_of_logs().into_iter();
        let seen = stories.any(|script| found(bug, &options, &script));
        assert!(seen, "{options:?}");
    }
    let parity = |options: &Options| options.level.parity_count() > 0;
    for options in new_arrays().into_iter().filter(parity) {
        // A RAID 4 can miss its parity all the same.
        let bug = Mutation::FirstResyncDistrusted;
        let stories = stories_of_first_resyncs(&options);
        let count = stories.len();
        let seen = stories.into_iter();
        let seen = seen.filter(|script| found(bug, &options, script)).count();
        assert!(seen * 4 >= count * 3, "{seen} of {count}: {options:?}");
    }
}
