use super::{Plan, Step, SyncWalk};
use crate::config::{Initial, MemberConfig};
use crate::member::{MemberRules, Members};
use crate::recovery::{CheckpointRule, SyncKind, Throttle};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span};

fn members() -> Members {
    let member = MemberConfig {
        size: Sectors(1000),
        data_offset: Sectors::ZERO,
        rotational: true,
        write_mostly: false,
        bad_blocks: None,
    };
    Members::new(vec![Initial::InSync(member); 2], MemberRules::default())
}

/// A walk over 1000 sectors, of which `todo` is to be done.
fn walk(throttle: Throttle, drains: bool, todo: &[(u64, u64)]) -> SyncWalk {
    let rule = CheckpointRule {
        parts: 4,
        interval: Nanos::from_secs(300),
        interval_of_recovery: Nanos::from_secs(300),
    };
    let mut walk = SyncWalk::new(throttle, Some(rule), drains);
    let plan = Plan {
        kind: SyncKind::Check,
        targets: SlotSet::first(2),
        todo: todo
            .iter()
            .map(|(from, to)| Span::new(*from, *to))
            .collect(),
        total: Sectors(1000),
    };
    walk.begin(Nanos::ZERO, plan, &members());
    walk
}

/// Begins the next block, of 100 sectors or 10, and gives it.
fn begin(walk: &mut SyncWalk) -> Option<Span> {
    let Step::Block(start) = walk.step(Nanos::ZERO, &members()) else {
        return None;
    };
    let block = walk.block_at(start, 100, 10);
    walk.take(block);
    Some(block)
}

#[test]
fn the_position_is_the_lowest_of_what_is_in_work_and_to_do() {
    let mut walk = walk(Throttle::None, true, &[(50, 250), (900, 1000)]);
    let first = begin(&mut walk).unwrap();
    let second = begin(&mut walk).unwrap();
    assert_eq!([first, second], [Span::new(50, 150), Span::new(150, 250)]);
    walk.ended(second);
    assert_eq!((walk.position(), walk.next()), (Sectors(50), Sectors(900)));
    walk.ended(first);
    assert_eq!(walk.position(), Sectors(900));
}

#[test]
fn what_is_given_back_is_done_again_in_small_blocks() {
    let mut walk = walk(Throttle::None, true, &[(0, 300)]);
    let blocks = [begin(&mut walk).unwrap(), begin(&mut walk).unwrap()];
    walk.give_back(blocks[0]);
    for start in (0..100).step_by(10) {
        assert_eq!(begin(&mut walk), Some(Span::new(start, start + 10)));
    }
    assert_eq!(begin(&mut walk), Some(Span::new(200, 300)));
    assert_eq!(walk.in_work(), 12);
}

#[test]
fn checkpoints_wait_for_what_is_in_work_where_the_walk_drains() {
    for (drains, expected) in [(true, Step::Wait), (false, Step::Checkpoint(Sectors(300)))] {
        let mut walk = walk(Throttle::None, drains, &[(0, 1000)]);
        let blocks: Vec<_> = (0..3).map(|_| begin(&mut walk).unwrap()).collect();
        blocks.into_iter().for_each(|block| walk.ended(block));
        let fourth = Span::new(300, 400);
        walk.take(fourth);
        assert_eq!(walk.step(Nanos::ZERO, &members()), expected);
        walk.ended(fourth);
        assert_eq!(
            walk.step(Nanos::ZERO, &members()),
            match drains {
                true => Step::Checkpoint(Sectors(400)),
                false => Step::Block(Sectors(400)),
            }
        );
    }
}

#[test]
fn a_sync_ends_with_nothing_in_work() {
    let mut walk = walk(Throttle::None, true, &[(0, 200)]);
    let block = begin(&mut walk).unwrap();
    walk.stop();
    assert_eq!(walk.step(Nanos::ZERO, &members()), Step::Wait);
    walk.ended(block);
    assert_eq!(walk.step(Nanos::ZERO, &members()), Step::Abort);
    assert_eq!(walk.end(), Sectors(100));
    assert!(
        !walk.is_running() && !walk.is_held,
        "nobody stopped a recovery"
    );
}

#[test]
fn a_frozen_walk_leaps_and_finishes() {
    let mut walk = walk(Throttle::None, false, &[(0, 1000)]);
    assert_eq!(walk.leap(Nanos(1), Sectors(500)), None, "it is not frozen");
    let block = begin(&mut walk).unwrap();
    walk.freeze(Nanos::ZERO);
    assert_eq!(begin(&mut walk), None);
    assert_eq!(
        walk.leap(Nanos(1), Sectors(500)),
        None,
        "a block is in work"
    );
    walk.ended(block);
    assert_eq!(walk.leap(Nanos(1), Sectors(500)), Some(Span::new(100, 500)));
    assert_eq!(walk.position(), Sectors(500));
    assert_eq!(walk.leap(Nanos(2), Sectors(400)), None, "never back");
    walk.leap(Nanos(2), Sectors(1000));
    assert_eq!(walk.step(Nanos(2), &members()), Step::Finish);
}

/// A tick that is asked for at a time that has passed is asked for again and again.
#[test]
fn other_speeds_wake_nobody_who_does_not_sleep() {
    let rate = Throttle::Rate {
        maximum_kib_per_second: 50,
        busy_kib_per_second: 50,
    };
    let mut walk = walk(rate, true, &[(0, 200)]);
    begin(&mut walk).unwrap();
    assert_eq!(begin(&mut walk), None);
    assert_eq!(
        walk.wakes_at(),
        Some(Nanos::from_secs(1)),
        "50 KiB at 50 KiB/s"
    );
    walk.set_speeds(Nanos(5), 50, 100_000_000, &members());
    assert_eq!(walk.wakes_at(), Some(Nanos(5)));
    let later = Nanos::from_secs(1);
    assert_eq!(walk.step(later, &members()), Step::Block(Sectors(100)));
    walk.take(Span::new(100, 200));
    walk.set_speeds(later, 50, 50, &members());
    assert_eq!(walk.wakes_at(), None, "it has begun all");
}

#[test]
fn what_is_passed_over_is_not_to_do() {
    let mut walk = walk(Throttle::None, true, &[(0, 200), (300, 400)]);
    walk.pass_over(Sectors(350));
    assert_eq!(walk.todo(), Some(Sectors(350)));
    walk.pass_over(Sectors(u64::MAX));
    assert_eq!((walk.todo(), walk.next()), (None, Sectors(1000)));
    assert_eq!(walk.step(Nanos::ZERO, &members()), Step::Finish);
}
