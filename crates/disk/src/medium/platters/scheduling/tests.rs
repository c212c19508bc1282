//! Choices worked out by hand, on a disk with round numbers: a sector passes in
//! a microsecond, a revolution is 8 ms, every move takes 1 ms.

use super::{Candidate, Departure, Mechanics, Order, Pool, Revolution, Scheduling};
use crate::medium::platters::seek::SeekCurve;
use crate::surface::{RatePoint, Surface};
use proptest::collection;
use proptest::prelude::*;
use raidlab_units::Sectors;

const REVOLUTION: u64 = 8_000_000;
const SEEK: SeekCurve = SeekCurve {
    settle_ns: 1e6,
    root_ns: 0.0,
    knee: 0.0,
    slope_ns: 0.0,
};
const ROTATION: Scheduling = Scheduling {
    order: Order::Rotation,
    margin_ns: 0,
    jitter_ns: 0,
    age_weight: 0.0,
    single_pool: false,
};
/// The arm over position 0 at time 0.
const DEPARTURE: Departure = Departure {
    head: 0,
    free: 0,
    at: 0,
    streaming: false,
    extra_settle_ns: 0.0,
};

fn surface() -> Surface {
    let rate = RatePoint {
        place: 0.0,
        bytes_per_second: 512e6,
    };
    Surface::new(Sectors(8_000_000), &[rate])
}

fn mechanics(surface: &Surface) -> Mechanics<'_> {
    Mechanics {
        surface,
        seek: &SEEK,
        revolution: Revolution::new(REVOLUTION),
        phase: 0,
    }
}

/// A position: a track and microseconds on it.
fn on_track(track: u64, microseconds: u64) -> u64 {
    track * REVOLUTION + microseconds * 1_000
}

/// Eight sectors at `start`.
fn candidate(sequence: u64, start: u64, arrived: u64) -> Candidate {
    Candidate {
        tag: Some(sequence),
        start,
        end: start + 8_000,
        bytes: 4096,
        arrived,
        sequence,
        follows: false,
        detour: 0,
        partial: [false; 2],
    }
}

/// Eight sectors at each of `starts`; the sequence follows the place in the pool.
fn pool(starts: &[u64]) -> Pool {
    let mut pool = Pool::default();
    for (sequence, &start) in (0..).zip(starts) {
        pool.insert(candidate(sequence, start, 0));
    }
    pool
}

/// Where the scheduler goes.
fn choice(
    scheduling: Scheduling,
    starts: &[u64],
    departure: &Departure,
    leave: u64,
) -> Option<u64> {
    let (surface, pool) = (surface(), pool(starts));
    scheduling
        .choose(&pool, &mechanics(&surface), departure, |it| {
            it.follows || it.start.abs_diff(departure.head) < leave
        })
        .map(|choice| pool.candidates()[choice.index].start)
}

#[test]
fn the_platter_turns() {
    let surface = surface();
    let mut mechanics = mechanics(&surface);
    // Microseconds on the track, time and phase in microseconds; the wait.
    for (place, time, phase, wait) in [
        (3_000, 1_000, 0, 2_000),
        (3_000, 3_000, 0, 0),
        (3_000, 4_000, 0, 7_000),
        (3_000, 1_000, 1_000, 1_000),
        (3_000, 17_000, 7_000, 3_000),
    ] {
        mechanics.phase = phase * 1_000;
        let wait_ns = mechanics.rotation(on_track(5, place), time * 1_000);
        assert_eq!(wait_ns, wait * 1_000, "{place} at {time} by {phase}");
    }
}

#[test]
fn the_first_to_pass_after_the_move_wins() {
    // The arm arrives at 1000 us: 900 has just passed, 1100 comes first.
    let starts = [on_track(10, 2_000), on_track(90, 1_100), on_track(3, 900)];
    assert_eq!(choice(ROTATION, &starts, &DEPARTURE, 0), Some(starts[1]));
    let starts = [on_track(3, 900), on_track(10, 7_999)];
    assert_eq!(choice(ROTATION, &starts, &DEPARTURE, 0), Some(starts[1]));
}

#[test]
fn what_passes_within_the_margin_counts_as_missed() {
    let starts = [on_track(10, 2_000), on_track(90, 1_100)];
    let margin = |microseconds: u64| Scheduling {
        margin_ns: microseconds * 1_000,
        ..ROTATION
    };
    // Arrival plus margin at 1100 us is just in time, a microsecond later not.
    assert_eq!(choice(margin(100), &starts, &DEPARTURE, 0), Some(starts[1]));
    assert_eq!(choice(margin(101), &starts, &DEPARTURE, 0), Some(starts[0]));
    // The margin makes the drive choose, not wait: 1100 us for real.
    let surface = surface();
    let positioning = |jitter| mechanics(&surface).positioning(&DEPARTURE, starts[1], jitter);
    assert_eq!(positioning(0), (1_100_000, Some(1_000_000)));
    assert_eq!(positioning(100_000), (1_100_000, Some(1_100_000)));
    // The jitter makes it come too late: a revolution more.
    assert_eq!(positioning(100_001), (9_100_000, Some(1_100_001)));
}

#[test]
fn a_slower_settle_arrives_later() {
    let starts = [on_track(10, 2_000), on_track(90, 1_100)];
    let writing = Departure {
        extra_settle_ns: 200_000.0,
        ..DEPARTURE
    };
    assert_eq!(choice(ROTATION, &starts, &writing, 0), Some(starts[0]));
}

#[test]
fn a_streaming_head_reads_on_to_what_is_less_than_half_a_revolution_ahead() {
    let streaming = Departure {
        head: on_track(10, 0),
        streaming: true,
        ..DEPARTURE
    };
    // 1100 us by a move, or 1099 us ahead without one.
    let near = [on_track(90, 1_100), on_track(10, 1_099)];
    assert_eq!(choice(ROTATION, &near, &streaming, 0), Some(near[1]));
    let surface = surface();
    let reach = |departure, place| mechanics(&surface).positioning(&departure, place, 0);
    assert_eq!(reach(streaming, streaming.head), (0, None));
    assert_eq!(reach(streaming, near[1]), (1_099_000, None));
    assert_eq!(
        reach(streaming, on_track(10, 3_999)),
        (3_999_000, None),
        "just below half a revolution"
    );
    assert_eq!(
        reach(streaming, on_track(10, 4_000)),
        (4_000_000, Some(1_000_000))
    );
    // Behind the head, or with the head off its track, there is only the move.
    assert_eq!(reach(streaming, on_track(9, 7_999)).1, Some(1_000_000));
    let parked = Departure {
        streaming: false,
        ..streaming
    };
    assert_eq!(reach(parked, parked.head), (8_000_000, Some(1_000_000)));
}

#[test]
fn what_is_to_be_left_does_not_count() {
    let streaming = Departure {
        head: on_track(10, 0),
        streaming: true,
        ..DEPARTURE
    };
    let starts = [on_track(10, 0), on_track(11, 0), on_track(40, 900)];
    let two_tracks = 2 * REVOLUTION;
    assert_eq!(choice(ROTATION, &starts, &streaming, 0), Some(starts[0]));
    assert_eq!(
        choice(ROTATION, &starts, &streaming, two_tracks),
        Some(starts[2])
    );
    assert_eq!(choice(ROTATION, &starts[..2], &streaming, two_tracks), None);
    assert_eq!(choice(ROTATION, &starts[..1], &streaming, two_tracks), None);
}

#[test]
fn the_other_orders_do_not_look_at_the_platter() {
    let by = |order| Scheduling { order, ..ROTATION };
    let starts = [on_track(90, 1_100), on_track(10, 900), on_track(4, 950)];
    let go = |order| choice(by(order), &starts, &DEPARTURE, 0);
    assert_eq!(go(Order::Arrival), Some(starts[0]));
    assert_eq!(go(Order::Seek), Some(starts[2]));
    assert_eq!(go(Order::Rotation), Some(starts[0]));
}

#[test]
fn age_is_worth_its_weight() {
    let (surface, mut pool) = (surface(), Pool::default());
    // The old one needs 2 ms, the new one 1.1 ms.
    for (sequence, start, arrived) in [
        (0, on_track(10, 2_000), 0),
        (1, on_track(90, 1_100), REVOLUTION),
    ] {
        pool.insert(candidate(sequence, start, arrived));
    }
    let later = Departure {
        free: REVOLUTION,
        at: REVOLUTION,
        ..DEPARTURE
    };
    // The difference of 0.9 ms against a credit of 8 ms times the weight.
    for (age_weight, chosen) in [(0.0, 1), (0.112, 1), (0.113, 0)] {
        let scheduling = Scheduling {
            age_weight,
            ..ROTATION
        };
        let choice = scheduling.choose(&pool, &mechanics(&surface), &later, |_| false);
        let index = choice.map(|choice| choice.index);
        assert_eq!(index, Some(chosen), "weight {age_weight}");
    }
}

#[test]
fn equal_costs_go_to_the_first_in_the_pool() {
    let starts = [on_track(10, 2_000), on_track(90, 2_000)];
    assert_eq!(choice(ROTATION, &starts, &DEPARTURE, 0), Some(starts[0]));
}

#[test]
fn a_run_is_served_from_its_start() {
    // The second half passes first, but the first half is before it.
    let halves = [on_track(10, 1_004), on_track(10, 996)];
    for starts in [halves, [halves[1], halves[0]]] {
        assert_eq!(choice(ROTATION, &starts, &DEPARTURE, 0), Some(halves[1]));
    }
    let mut pool = pool(&halves);
    let first = pool.remove(1);
    assert_eq!((first.start, pool.len()), (halves[1], 1));
    assert!(!pool.candidates()[0].follows);
    assert!(!pool.is_empty());
}

#[test]
fn a_run_of_many_frees_one_after_the_other() {
    let starts: Vec<u64> = [3, 1, 2, 0].map(|step| on_track(10, 8 * step)).to_vec();
    let mut pool = pool(&starts);
    let mut served = Vec::new();
    while !pool.is_empty() {
        let free: Vec<usize> = (0..pool.len())
            .filter(|&index| !pool.candidates()[index].follows)
            .collect();
        assert_eq!(free.len(), 1, "one head of the run at a time");
        served.push(pool.remove(free[0]).start);
    }
    assert!(served.is_sorted());
}

/// What must hold of a choice, told slowly: no command of the pool passes earlier, as far as
/// the drive can tell and less its credit for age, and of those that pass at the same time it
/// is the first.
fn slowest_choice(
    pool: &Pool,
    mechanics: &Mechanics<'_>,
    departure: &Departure,
    scheduling: &Scheduling,
) -> Option<usize> {
    let cost = |index: &usize| {
        let candidate = &pool.candidates()[*index];
        let start = candidate.start;
        let seek = mechanics.seek_ns(departure, departure.head.abs_diff(start)) + scheduling.margin_ns;
        let turned = seek + mechanics.rotation(start, departure.at + seek);
        let through = mechanics.read_through(departure, start);
        let waited = departure.at.saturating_sub(candidate.arrived);
        let credit = waited as f64 * scheduling.age_weight;
        through.map_or(turned, |through| through.min(turned)) as i64 - credit as i64
    };
    let served = (0..pool.len()).filter(|index| !pool.candidates()[*index].follows);
    served.min_by_key(cost)
}

proptest! {
    /// Commands come and go; some of them at the same place, some one after the other.
    #[test]
    fn the_first_to_pass_is_found(
        steps in collection::vec((0_u64..400, 0_u64..8, any::<Option<prop::sample::Index>>()), 1..60),
        heads in collection::vec((0_u64..400, any::<bool>(), 0_u64..20_000_000), 1..8),
        margin_ns in prop::sample::select(vec![0, 300_000]),
        age_weight in prop::sample::select(vec![0.0, 0.05, 1.0]),
    ) {
        let surface = surface();
        let seek = SeekCurve { root_ns: 9e6, knee: 0.1, slope_ns: 6e6, ..SEEK };
        let mechanics = Mechanics { seek: &seek, ..mechanics(&surface) };
        let mut pool = Pool::default();
        for (sequence, (track, eighth, leaves)) in (0..).zip(steps) {
            let start = on_track(track, eighth * 8);
            pool.insert(candidate(sequence, start, sequence * 400_000));
            if let Some(index) = leaves {
                pool.remove(index.index(pool.len()));
            }
        }
        let scheduling = Scheduling { margin_ns, age_weight, ..ROTATION };
        for (track, streaming, at) in heads {
            let departure = Departure { head: on_track(track, 16), at, streaming, ..DEPARTURE };
            let chosen = scheduling.choose(&pool, &mechanics, &departure, |it| it.follows);
            let slowest = slowest_choice(&pool, &mechanics, &departure, &scheduling);
            prop_assert_eq!(chosen.map(|choice| choice.index), slowest);
        }
    }

    #[test]
    fn an_angle_is_a_remainder(
        ns in 1_u64..200_000_000,
        time in prop_oneof![any::<u64>(), 0_u64..1_000_000_000, Just(u64::MAX)],
        turns in 0_u64..1_000_000,
    ) {
        let revolution = Revolution::new(ns);
        prop_assert_eq!(revolution.angle(time), time % ns);
        prop_assert_eq!(revolution.angle(turns * ns), 0);
        prop_assert_eq!(revolution.angle(turns * ns + ns - 1), ns - 1);
    }

    /// Against a list that is looked through from its start to its end each time.
    #[test]
    fn a_pool_is_a_list(
        steps in collection::vec((0_u64..30, 1_u64..4, any::<Option<prop::sample::Index>>()), 1..60),
        (from, to) in (0_u64..30, 0_u64..30),
        head in 0_u64..30,
    ) {
        let (mut pool, mut list) = (Pool::default(), Vec::<Candidate>::new());
        for (sequence, (start, length, leaves)) in (0..).zip(steps) {
            let mut new = Candidate { end: start + length, ..candidate(sequence, start, 0) };
            pool.insert(new);
            new.follows = list.iter().any(|other| other.end == new.start);
            for other in &mut list {
                other.follows |= other.start == new.end;
            }
            list.push(new);
            if let Some(index) = leaves {
                let index = index.index(list.len());
                let gone = list.swap_remove(index);
                prop_assert_eq!(pool.remove(index), gone);
                for other in &mut list {
                    other.follows &= other.start != gone.end;
                }
            }
        }
        prop_assert_eq!(pool.candidates(), &list[..]);
        prop_assert_eq!(pool.has_start(from), list.iter().any(|one| one.start == from));
        prop_assert_eq!(pool.has_end(from), list.iter().any(|one| one.end == from));
        let within = list.iter().position(|one| from <= one.start && one.end <= to);
        prop_assert_eq!(pool.first_within(from, to), within);
        let touches = |one: &Candidate| one.start <= to && from <= one.end;
        let mut touching: Vec<usize> = pool.touching(from, to).map(|(index, _)| index).collect();
        touching.sort_unstable();
        let expected = (0..list.len()).filter(|&index| touches(&list[index]));
        prop_assert!(from > to || touching.into_iter().eq(expected));
        let outwards: Vec<(u64, u64, usize)> = pool.outwards(head).collect();
        prop_assert!(outwards.is_sorted_by_key(|(distance, ..)| *distance));
        let mut all: Vec<usize> = outwards.iter().map(|(.., index)| *index).collect();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..list.len()));
        let is_far = |&(distance, start, index): &(u64, u64, usize)| {
            list[index].start == start && start.abs_diff(head) == distance
        };
        prop_assert!(outwards.iter().all(is_far));
    }
}
