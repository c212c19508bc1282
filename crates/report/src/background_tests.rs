//! What arrays did in the background, in every output.

use crate::compute::headline::verdicts;
use crate::compute::view::View;
use crate::data::RunData;
use crate::{Style, compare, html, markdown, result_tables, sample, terminal};
use raidlab_store::{Measurement, Operation};

/// Reads on two arrays; one of them is whole again after an hour, the other takes an
/// hour and a half, and a third one does not get ready.
fn data() -> RunData {
    let mut data = sample::data();
    let first = |subject: &str| sample::cell(subject, 0);
    data.measurements = ["md", "zfs", "gmirror"].map(first).to_vec();
    for (subject, minutes, percent) in [
        ("md", 60, 100.0),
        ("zfs", 90, 100.0),
        ("gmirror", 120, 61.25),
    ] {
        let row = |op: Operation, more: u64| Measurement {
            suite: "mirror-2015".to_owned(),
            subject: subject.to_owned(),
            fit: "strict".to_owned(),
            sequence: 7,
            job: "background".to_owned(),
            job_title: format!("{op} in words"),
            class: "rebuild".to_owned(),
            op,
            runtime_ns: (minutes * 60 + more) * 1_000_000_000,
            array_state_start: "[U_]".to_owned(),
            array_state_end: if percent < 100.0 { "[U_]" } else { "[UU]" }.to_owned(),
            ..Measurement::blank("model")
        };
        let mut recovery = row(Operation::Recovery, 0);
        recovery.sync_percent_start = Some(0.0);
        recovery.sync_percent_end = Some(percent);
        recovery.bytes_per_second = if subject == "md" { 150e6 } else { 100e6 };
        if subject == "zfs" {
            recovery.runtime_band_ns = 1_000_000_000;
        }
        let mut kept = row(Operation::Kept, 0);
        kept.class = "kept-during-rebuild".to_owned();
        kept.part = "9 read".to_owned();
        kept.kept_percent = Some(if subject == "md" { 55.0 } else { 80.0 });
        data.measurements
            .extend([row(Operation::Degraded, 30), recovery, kept]);
    }
    data
}

#[test]
fn a_table_of_its_own_says_how_long_and_what_had_not_ended() {
    insta::assert_snapshot!(result_tables(&data(), &Style::default()));
}

#[test]
fn less_time_wins_and_what_had_not_ended_is_not_ranked() {
    let data = data();
    let view = View::new(&data);
    let words: Vec<String> = verdicts(&data, &view)
        .iter()
        .map(|one| {
            let (winner, reason) = (one.winner(&view.names), one.reason(&view.names));
            format!("{}: {winner} ({reason})", one.title).replace('\u{a0}', " ")
        })
        .collect();
    insta::assert_snapshot!(words[1..].join("\n"), @r"
    Rebuild: md (behind, on average over 2 rows: zfs 33 %; not ranked, as it had not ended: gmirror)
    Kept during rebuild: zfs and gmirror (behind: md 31 %)
    ");
}

/// Who fills a member soonest need not compare members soonest.
#[test]
fn checks_are_no_rebuilds() {
    let mut data = data();
    let rows = data.measurements.iter();
    let recoveries = rows.filter(|m| m.op == Operation::Recovery);
    let mut checks: Vec<Measurement> = recoveries.cloned().collect();
    for (check, minutes) in checks.iter_mut().zip([900, 30, 20]) {
        check.op = Operation::Check;
        check.runtime_ns = minutes * 60_000_000_000;
    }
    data.measurements.extend(checks);
    let view = View::new(&data);
    let answers = verdicts(&data, &view);
    let answers = answers.iter().filter(|one| !one.title.contains(' '));
    let words: Vec<String> = answers
        .map(|one| format!("{}: {}", one.title, one.winner(&view.names)))
        .collect();
    assert_eq!(words, ["Rebuild: md", "Check: zfs"]);
}

#[test]
fn jobs_are_shown_as_if_there_were_nothing_else() {
    let mut jobs = data();
    let all = terminal(&jobs, &Style::default());
    jobs.measurements.retain(|m| !m.op.is_background());
    let alone = terminal(&jobs, &Style::default());
    let (table, _) = alone.split_once("Published").expect("another table");
    let (_, table) = table.split_once("Results").expect("a table");
    assert!(all.contains(table.trim_end()), "{all}\n{alone}");
}

#[test]
fn the_page_and_markdown_have_it() {
    let data = data();
    let page = html(&data).expect("a page");
    for words in [
        "In the background",
        "s: less is better; others: more",
        ", 61.2&nbsp;% done",
        "How long rebuilds took",
        "A pale bar is a time that had not ended when the run did",
        "What jobs kept of their rate during a sync",
    ] {
        let plain = page.replace('\u{a0}', "&nbsp;").replace("&gt;", ">");
        assert!(plain.contains(words), "{words}");
    }
    insta::assert_snapshot!(
        markdown(&data)
            .lines()
            .skip_while(|line| !line.contains("In the background"))
            .take_while(|line| !line.starts_with("##  ") && !line.contains("Published"))
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn a_longer_rebuild_is_worse_and_one_that_had_not_ended_is_not_compared() {
    let mut slower = data();
    for m in &mut slower.measurements {
        if m.op == Operation::Recovery {
            m.runtime_ns *= 2;
            m.bytes_per_second /= 2.0;
        }
    }
    let found = compare(&[data(), slower]).expect("two runs");
    let words: Vec<String> = found
        .rows
        .iter()
        .filter(|row| row.class != "random-read")
        .map(|row| {
            let cells: Vec<&str> = row
                .cells
                .iter()
                .flatten()
                .map(|cell| cell.text.as_str())
                .collect();
            let verdict = row.cells[1].as_ref().and_then(|cell| cell.verdict.as_ref());
            let verdict = verdict.map(|one| format!("{:?} {}", one.answer, one.percent));
            let direction = if row.more_is_better { "more" } else { "less" };
            format!(
                "{} {} {} ({direction} is better): {} {}",
                row.label,
                row.place,
                row.unit,
                cells.join(" then "),
                verdict.unwrap_or_else(|| "not compared".to_owned())
            )
        })
        .collect();
    insta::assert_snapshot!(words.join("\n").replace('\u{a0}', " "), @r"
    recovery md s (less is better): 3 600 then 7 200 Worse +100 %
    recovery zfs s (less is better): 5 400 then 10 800 Worse +100 %
    recovery rate md MB/s (more is better): 150.0 then 75.0 Worse -50 %
    recovery rate zfs MB/s (more is better): 100.0 then 50.0 Worse -50 %
    recovery rate gmirror MB/s (more is better): 100.0 then 50.0 Worse -50 %
    degraded md s (less is better): 3 630 then 3 630 Same 0 %
    degraded zfs s (less is better): 5 430 then 5 430 Same 0 %
    kept 9 read md % (more is better): 55.0 then 55.0 Same 0 %
    kept 9 read zfs % (more is better): 80.0 then 80.0 Same 0 %
    kept 9 read gmirror % (more is better): 80.0 then 80.0 Same 0 %
    recovery gmirror s (less is better): >7 200 then >14 400 not compared
    degraded gmirror s (less is better): >7 230 then >7 230 not compared
    ");
}

#[test]
fn a_model_s_run_without_jobs_was_not_measured() {
    let mut data = data();
    data.measurements.retain(|m| m.op.is_background());
    for m in &mut data.measurements {
        m.role = raidlab_store::Role::Predicted;
    }
    let text = terminal(&data, &Style::default());
    assert!(text.contains("Every figure comes from a model"), "{text}");
    assert!(!text.contains("Every figure was measured"), "{text}");
}

/// Figures of disks that nobody fitted have a band, and these have none.
#[test]
fn what_has_no_band_is_said_beside_what_has_one() {
    let mut data = data();
    let said = |data: &RunData| terminal(data, &Style::default()).contains("have no band");
    assert!(!said(&data));
    for m in data
        .measurements
        .iter_mut()
        .filter(|m| !m.op.is_background())
    {
        m.disk_band = Some(raidlab_store::DiskBand {
            low: 0.5,
            high: 1.25,
            ratio: 1.1,
        });
    }
    assert!(said(&data));
    // Nor do charts say that they have.
    let again = data
        .measurements
        .iter()
        .filter(|m| m.op == Operation::Recovery);
    let again = again.map(|m| Measurement {
        repetition: 1,
        runtime_ns: m.runtime_ns / 2,
        ..m.clone()
    });
    data.measurements.extend(again.collect::<Vec<_>>());
    let figures = crate::chart::figures(&data, &View::new(&data));
    let rebuilds: Vec<_> = figures
        .iter()
        .filter(|one| one.title.contains("rebuild"))
        .collect();
    assert!(!rebuilds.is_empty());
    for figure in rebuilds {
        assert!(
            !figure.caption.contains("never fitted"),
            "{}",
            figure.caption
        );
    }
}

/// No disk has a time of discards that was measured or published.
#[test]
fn modelled_discards_are_said_to_have_no_band() {
    let mut data = data();
    let said =
        |data: &RunData| terminal(data, &Style::default()).contains("of discards have no band");
    let jobs = data.measurements.iter_mut();
    let job = jobs.into_iter().find(|m| !m.op.is_background());
    let job = job.expect("a job's row");
    job.op = Operation::Trim;
    job.bench = "host".to_owned();
    assert!(!said(&data));
    for m in &mut data.measurements {
        m.bench = "model".to_owned();
    }
    assert!(said(&data));
}

/// A run of syncs alone has no band by which unfitted disks could be known, but facts.
#[test]
fn syncs_on_unfitted_disks_are_said_to_have_no_band() {
    let mut data = data();
    data.measurements.retain(|m| m.op.is_background());
    let said = |data: &RunData| terminal(data, &Style::default());
    assert!(!said(&data).contains("Nobody fitted"), "{}", said(&data));
    for (name, value) in [("model", "sp1614n"), ("fitted", "false")] {
        let scope = raidlab_store::Scope {
            subject: "md".to_owned(),
            ..raidlab_store::Scope::default()
        };
        let name = format!("disk.disk0.{name}");
        let fact = raidlab_store::Observation::new(&scope, name, value, "", "the model");
        data.observations.push(fact);
    }
    let text = said(&data);
    assert!(
        text.contains("Nobody fitted the model to sp1614n. Times"),
        "{text}"
    );
    assert!(text.contains("have no band"), "{text}");
    assert!(!text.contains("nine disks of ten"), "{text}");
}
