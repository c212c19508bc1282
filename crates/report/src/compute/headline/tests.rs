use super::verdicts;
use crate::compute::trust::{trust, what_ran};
use crate::compute::view::View;
use crate::data::RunData;
use crate::sample;
use raidlab_store::Measurement;

fn verdict_of(rates: &[(&str, [f64; 2])]) -> String {
    let mut data = sample::data();
    data.measurements.clear();
    for (subject, iops) in rates {
        for (sequence, iops) in (0..).zip(iops) {
            let mut m = sample::cell(subject, sequence);
            m.iops = *iops;
            if *iops == 0.0 {
                (m.bytes_per_second, m.total_ios, m.total_bytes) = (0.0, 0, 0);
            }
            data.measurements.push(m);
        }
    }
    let view = View::new(&data);
    let found = verdicts(&data, &view);
    let names = &view.names;
    let text = format!("{}: {}", found[0].winner(names), found[0].reason(names));
    text.replace('\u{a0}', " ")
}

#[test]
fn the_geometric_mean_decides() {
    insta::assert_snapshot!(
        verdict_of(&[("md", [100.0, 100.0]), ("gflash", [80.0, 90.0]), ("zfs", [10.0, 80.0])]),
        @"md: behind, on average over 2 rows: gflash 15 % and zfs 72 %; zfs falls to 10 % of the best in job 1"
    );
}

#[test]
fn a_lead_of_one_repetition_is_not_certain() {
    let mut data = sample::bench();
    data.series.clear();
    let words = |data: &RunData| {
        let view = View::new(data);
        let found = verdicts(data, &view);
        let reads = found.iter().find(|one| one.title == "Random read").unwrap();
        (reads.is_uncertain(), reads.certainty(&view.names))
    };
    let measured = words(&data);
    assert!(!measured.0, "{}", measured.1);
    // Each repetition on a model has its own angles and places.
    let mut modelled = data.clone();
    "model".clone_into(&mut modelled.run.bench);
    assert_eq!(words(&modelled), measured);
    data.measurements.retain(|m| m.repetition == 0);
    let (uncertain, certainty) = words(&data);
    assert!(uncertain);
    insta::assert_snapshot!(
            certainty, @"Against md-raid1/ext4@alpha: cannot tell: 1 repetition each.");
    "model".clone_into(&mut data.run.bench);
    assert_eq!(words(&data), (false, String::new()));
}

#[test]
fn struck_rows_are_left_out_and_said_so() {
    let data = sample::bench();
    let view = View::new(&data);
    let found = verdicts(&data, &view);
    let files = found.iter().find(|one| one.title == "File system").unwrap();
    assert!(!files.rows.contains(&"bonnie read".to_owned()));
    let reason = files.reason(&view.names);
    assert!(
        reason.ends_with("left out as struck by the audit: job bonnie read"),
        "{reason}"
    );
}

#[test]
fn subjects_in_unlike_states_are_not_ranked_without_a_word() {
    let mut data = sample::data();
    data.measurements.clear();
    for (subject, sequence) in [("md", 0), ("md", 1), ("zfs", 0), ("zfs", 1), ("lvm", 0)] {
        let mut m = sample::cell(subject, sequence);
        m.sync_percent_start = (subject == "md").then_some(0.5);
        m.sync_percent_end = m.sync_percent_start;
        data.measurements.push(m);
    }
    let reason = |data: &RunData| {
        let view = View::new(data);
        verdicts(data, &view)[0].reason(&view.names)
    };
    let words = reason(&data);
    assert!(
        words.contains(
            "states were not alike: a sync was running in all rows of md, \
                 in none of zfs"
        ),
        "{words}"
    );
    assert!(
        words.contains("not ranked: lvm, without a figure in job 2"),
        "{words}"
    );
    for m in &mut data.measurements {
        m.sync_percent_start = Some(0.5);
        m.sync_percent_end = Some(0.5);
    }
    assert!(!reason(&data).contains("not alike"));
}

#[test]
fn a_lead_within_what_is_not_known_of_the_disks_is_none() {
    let told = |lead: f64, same: bool| {
        let mut data = sample::data();
        data.measurements.clear();
        for (subject, iops) in [("md", 100.0 * lead), ("gflash", 100.0), ("zfs", 20.0)] {
            let mut m = sample::cell(subject, 0);
            m.iops = iops;
            m.disk_band = Some(raidlab_store::DiskBand {
                low: 0.5,
                high: 1.5,
                ratio: 1.2,
            });
            for member in &mut m.members {
                let disk = if same { "a" } else { subject };
                disk.clone_into(&mut member.model);
            }
            data.measurements.push(m);
        }
        let view = View::new(&data);
        let verdict = &verdicts(&data, &view)[0];
        let names = &view.names;
        let winner = verdict.winner(names);
        let alone = verdict.sole_winner().map(|one| names[one].clone());
        assert_eq!(alone.is_some(), winner == "md", "{winner}");
        (winner, verdict.certainty(names), verdict.is_uncertain())
    };
    let (winner, certainty, uncertain) = told(1.1, true);
    assert_eq!(winner, "cannot tell between md and gflash");
    assert!(certainty.contains("within a factor of 1.20"), "{certainty}");
    assert!(uncertain);
    // On the same disks the common error cancels.
    assert_eq!(told(1.5, true), ("md".to_owned(), String::new(), false));
    let (winner, certainty, _) = told(1.5, false);
    assert_eq!(winner, "cannot tell between md and gflash");
    assert!(certainty.contains("are not the same"), "{certainty}");
    assert_eq!(told(4.0, false).0, "md");
}

#[test]
fn small_leads_are_draws() {
    insta::assert_snapshot!(
        verdict_of(&[("md", [100.0, 100.0]), ("gflash", [101.0, 101.0])]),
        @"gflash and md: all within 2 %"
    );
}

#[test]
fn of_many_the_nearest_are_named() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let rates: Vec<_> = (0_u8..7)
        .map(|n| (names[usize::from(n)], [100.0 - 10.0 * f64::from(n); 2]))
        .collect();
    insta::assert_snapshot!(
        verdict_of(&rates),
        @"a: behind, on average over 2 rows: b 10 %, c 20 %, d 30 % and 3 others 40 to 60 %"
    );
}

#[test]
fn an_outlier_makes_no_winner() {
    // Random writes of the 2015 article, before and after filling.
    insta::assert_snapshot!(
        verdict_of(&[("md", [180.0, 180.0]), ("gflash", [179.0, 177.0]), ("zfs", [9608.0, 38.0])]),
        @"no single winner: best are zfs in job 1; md and gflash in job 2; zfs stands out in job 1 with 53 times the next; zfs falls to 21 % of the best in job 2"
    );
}

#[test]
fn the_sample_in_words() {
    let data = sample::data();
    let view = View::new(&data);
    let mut text = vec![what_ran(&data, &view)];
    for verdict in verdicts(&data, &view) {
        let winner = verdict.winner(&view.names);
        let reason = verdict.reason(&view.names);
        text.push(format!("{}: {winner}: {reason}", verdict.title));
    }
    text.extend(trust(&data, &view));
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn what_arrays_do_is_not_ranked_with_what_jobs_do() {
    let mut data = sample::data();
    data.measurements.clear();
    let subjects = [("md", 100.0, 80_u64, 10), ("zfs", 50.0, 40, 20)];
    for (subject, iops, seconds, making) in subjects {
        let mut job = sample::cell(subject, 0);
        (job.iops, job.class) = (iops, "rebuild".to_owned());
        let mut recovery = sample::cell(subject, 1);
        recovery.op = raidlab_store::Operation::Recovery;
        recovery.runtime_ns = seconds * 1_000_000_000;
        recovery.sync_percent_end = Some(100.0);
        recovery.class = "rebuild".to_owned();
        let first = Measurement {
            part: raidlab_store::MAKING.to_owned(),
            runtime_ns: making * 1_000_000_000,
            ..recovery.clone()
        };
        data.measurements.extend([job, recovery, first]);
    }
    let view = View::new(&data);
    let found = verdicts(&data, &view);
    let winners: Vec<String> = found.iter().map(|one| one.winner(&view.names)).collect();
    assert_eq!(winners, ["md", "zfs", "md"]);
    assert_eq!(found[2].title, "Making of the array");
}

#[test]
fn of_many_that_draw_the_first_are_named() {
    let names: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let rates: Vec<_> = names
        .iter()
        .map(|name| {
            (
                name.as_str(),
                [if name.len() == 2 { 97.0 } else { 100.0 }; 2],
            )
        })
        .collect();
    insta::assert_snapshot!(verdict_of(&rates));
}

#[test]
fn a_row_of_zeros_ranks_nobody_and_a_subject_with_one_is_told() {
    insta::assert_snapshot!(verdict_of(&[
        ("md", [100.0, 0.0]),
        ("gflash", [80.0, 0.0]),
        ("zfs", [0.0, 0.0])
    ]));
}

#[test]
fn a_subject_far_behind_is_as_far_behind_as_in_the_table() {
    insta::assert_snapshot!(verdict_of(&[("nvme", [40_000.0; 2]), ("md", [170.0; 2])]));
}
