use super::{Bound, MemberCounts, share_points};
use crate::compare::{ComparedCell, ComparedRow, compare};
use crate::sample;

#[test]
fn bounds_are_for_a_class_or_for_all() {
    let read = |text: &str| text.parse::<Bound>().ok();
    let bound = |class: Option<&str>, percent| {
        let class = class.map(str::to_owned);
        Some(Bound { class, percent })
    };
    assert_eq!(read("3"), bound(None, 3.0));
    assert_eq!(read("random-read=2.5"), bound(Some("random-read"), 2.5));
    for wrong in ["", "0", "-1", "inf", "=3", "mixed=", "3%"] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}

#[test]
fn a_cell_is_judged_by_its_own_class() {
    let mut other = sample::data();
    for m in &mut other.measurements {
        m.iops *= 0.96;
        m.bytes_per_second *= 0.96;
    }
    let found = compare(&[sample::data(), other]).unwrap();
    let class = found.rows[0].class.clone();
    let bounds = [
        "5".parse().unwrap(),
        format!("{class}=3").parse::<Bound>().unwrap(),
    ];
    let agreement = found.agreement(1, &bounds);
    for job in &agreement.jobs {
        for cell in job.cells.iter().flatten() {
            assert!((cell.percent + 4.0).abs() < 0.01, "{}", cell.percent);
            assert_eq!(cell.within, Some(job.class != class));
            // Both runs have the same members' counts.
            assert!(cell.share_points.is_none_or(|points| points < 1e-9));
        }
    }
    let judged: usize = agreement.classes.iter().map(|one| one.cells).sum();
    let there = agreement.jobs.iter().flat_map(|job| &job.cells).flatten();
    assert_eq!(judged, there.count());
    assert_eq!(agreement.bounds, [3.0, 5.0]);
    for one in &agreement.classes {
        let own = one.class == class;
        let expected = if own {
            [Some(0), None]
        } else {
            [None, Some(one.cells)]
        };
        assert_eq!(one.within, expected, "{}", one.class);
        assert_eq!(one.median_text, "4.0\u{a0}%");
    }
    let its = agreement.jobs.iter().filter(|job| job.class == class);
    let its = its.flat_map(|job| job.cells.iter().flatten()).count();
    assert_eq!(agreement.beyond.len(), its);
}

#[test]
fn several_bounds_count_side_by_side_and_the_widest_says_what_is_beyond() {
    let mut other = sample::data();
    let mut jobs: Vec<String> = other.measurements.iter().map(|m| m.job.clone()).collect();
    jobs.dedup();
    for m in &mut other.measurements {
        let place = jobs.iter().position(|job| *job == m.job).unwrap();
        let factor = [1.02, 0.93, 1.5][place % 3];
        m.iops *= factor;
        m.bytes_per_second *= factor;
    }
    let found = compare(&[sample::data(), other]).unwrap();
    let bounds = ["10", "3"].map(|bound| bound.parse::<Bound>().unwrap());
    let agreement = found.agreement(1, &bounds);
    assert_eq!(agreement.bounds, [3.0, 10.0]);
    let all = agreement.classes.last().unwrap();
    assert_eq!(all.class, super::ALL_CLASSES);
    let cells = agreement.jobs.iter().flat_map(|job| &job.cells).flatten();
    let sizes: Vec<f64> = cells.map(|cell| cell.percent.abs()).collect();
    let within = |bound: f64| Some(sizes.iter().filter(|size| **size <= bound).count());
    assert_eq!(all.within, [within(3.0), within(10.0)]);
    assert!(within(3.0) > Some(0) && within(3.0) < within(10.0));
    assert_eq!(Some(sizes.len() - agreement.beyond.len()), within(10.0));
    assert!(agreement.beyond.iter().all(|cell| cell.percent > 40.0));
    let classes = &agreement.classes[..agreement.classes.len() - 1];
    let cells: usize = classes.iter().map(|class| class.cells).sum();
    assert_eq!(cells, all.cells);
}

#[test]
fn what_is_beyond_the_bound_may_be_near_the_range_of_the_repetitions() {
    let mut found = compare(&[sample::data(), sample::data()]).unwrap();
    let bounds = ["10".parse::<Bound>().unwrap()];
    let before = found.agreement(1, &bounds);
    assert!(before.classes.iter().all(|one| one.near_range.is_none()));
    for (range, near) in [([1.05, 3.0], 1), ([1.2, 3.0], 0), ([0.2, 0.92], 1)] {
        let whole = |row: &&mut ComparedRow| row.cells.iter().all(Option::is_some);
        let row = found.rows.iter_mut().find(whole).expect("both have it");
        let base = row.cells[0].as_ref().expect("there").value;
        let cell = row.cells[1].as_mut().expect("there");
        (cell.value, cell.range) = (base * 2.0, Some(range.map(|factor| factor * base)));
        let after = found.agreement(1, &bounds);
        assert_eq!(after.beyond.len(), before.beyond.len() + 1);
        assert!(
            after.beyond[0].figures[1].contains(" to "),
            "{:?}",
            after.beyond[0]
        );
        let all = after.classes.last().expect("several classes");
        assert_eq!(all.near_range, Some(near), "{range:?}");
    }
}

#[test]
fn a_time_that_had_not_ended_is_not_judged() {
    let mut found = compare(&[sample::data(), sample::data()]).unwrap();
    let bounds = ["3".parse::<Bound>().unwrap()];
    let before = found.agreement(1, &bounds);
    let row = found.rows.iter_mut().find(|row| row.cells[1].is_some());
    let cell = row.unwrap().cells[1].as_mut().unwrap();
    (cell.at_least, cell.value) = (true, cell.value * 100.0);
    let after = found.agreement(1, &bounds);
    assert_eq!(after.not_compared, before.not_compared + 1);
    assert_eq!(after.beyond.len(), before.beyond.len());
}

#[test]
fn a_rate_of_0_is_judged_where_it_was_told() {
    for told in [false, true] {
        let mut found = compare(&[sample::data(), sample::data()]).unwrap();
        let bounds = ["3".parse::<Bound>().unwrap()];
        let before = found.agreement(1, &bounds).not_compared;
        let rows = found.rows.iter_mut().filter(|row| row.more_is_better);
        let cell = rows.flat_map(|row| &mut row.cells[1]).next().unwrap();
        (cell.told, cell.value) = (told, 0.0);
        let after = found.agreement(1, &bounds);
        assert_eq!(after.not_compared - before, usize::from(!told));
        assert_eq!(after.beyond.iter().any(|cell| cell.percent == -100.0), told);
    }
}

#[test]
fn shares_say_who_serves() {
    let cell = |reads: [u64; 2]| ComparedCell {
        members: reads
            .map(|reads| MemberCounts { reads, writes: 0 })
            .to_vec(),
        ..ComparedCell::default()
    };
    // 50 and 50 percent against 60 and 40, at twice the speed.
    let points = share_points(&cell([500, 500]), &cell([1200, 800])).unwrap();
    assert!((points - 10.0).abs() < 1e-9, "{points}");
    assert_eq!(share_points(&cell([0, 0]), &cell([1, 1])), None);
}
