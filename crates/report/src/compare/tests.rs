use super::{Answer, Bound, Difference, RunComparison, compare};
use crate::data::RunData;
use crate::sample;
use crate::terminal::Style;
use raidlab_store::Operation;

/// The made-up run on one machine, and the same after an upgrade that makes
/// reads faster and leaves writes alone.
fn runs() -> Vec<RunData> {
    let mut base = sample::bench();
    base.measurements
        .retain(|m| m.host == "alpha" && m.subject == "md-raid1" && m.part.is_empty());
    base.observations.retain(|o| o.scope.host == "alpha");
    let mut other = base.clone();
    "20261128T061500Z-bench-sample".clone_into(&mut other.run.name);
    for m in &mut other.measurements {
        "gamma".clone_into(&mut m.host);
        // Not the very same noise.
        let noise = 1.0 + 0.002 * f64::from(m.repetition + m.sequence % 3);
        let factor = if m.op == Operation::Read { 1.2 } else { 1.0 };
        m.iops *= factor * noise;
        m.bytes_per_second *= factor * noise;
    }
    for o in &mut other.observations {
        "gamma".clone_into(&mut o.scope.host);
        if o.name == "os.release" {
            "6.12.5-amd64".clone_into(&mut o.value);
        }
    }
    for finding in &mut other.findings {
        if finding.scope.host == "alpha" {
            "gamma".clone_into(&mut finding.scope.host);
        }
    }
    vec![base, other]
}

fn answers(found: &RunComparison, label: &str) -> Vec<Option<Answer>> {
    let rows = found.rows.iter().filter(|row| row.label == label);
    rows.map(|row| Some(row.cells[1].as_ref()?.verdict.as_ref()?.answer))
        .collect()
}

#[test]
fn a_cell_has_the_range_of_its_repetitions() {
    let found = compare(&runs()).unwrap();
    let cells = found.rows.iter().flat_map(|row| row.cells.iter().flatten());
    let mut several = 0;
    for cell in cells.filter(|cell| !cell.struck) {
        assert_eq!(cell.range.is_some(), cell.repetitions > 1);
        if let Some([low, high]) = cell.range {
            several += 1;
            assert!(low < cell.value && cell.value < high, "{cell:?}");
        }
    }
    assert!(several > 3);
}

#[test]
fn one_run_is_no_comparison() {
    let error = compare(&runs()[..1]).unwrap_err();
    assert_eq!(error.to_string(), "1 run given, a comparison needs two");
}

#[test]
fn runs_that_share_no_row_are_no_comparison() {
    let mut runs = runs();
    for m in &mut runs[1].measurements {
        "md-raid5".clone_into(&mut m.subject);
    }
    let error = compare(&runs).unwrap_err().to_string();
    let [base, other] = [0, 1].map(|at| &runs[at].run.name);
    let expected = format!("`{base}` and `{other}` have no row in common");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn hosts_do_not_matter_where_each_run_has_one() {
    let found = compare(&runs()).unwrap();
    assert_eq!(answers(&found, "rr-4"), [Some(Answer::Better); 2]);
    assert_eq!(answers(&found, "bonnie read"), [None; 2]);
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.cells.iter().all(Option::is_some))
    );
    let names: Vec<_> = found
        .differences
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["hosts", "os.release"]);
}

#[test]
fn a_run_that_has_not_come_to_its_end_is_told() {
    let mut runs = runs();
    runs[0].run.finished = Some("2026-11-28T07:15:00Z".to_owned());
    runs[1].run.finished = None;
    let found = compare(&runs).unwrap();
    let is_told = |one: &&Difference| one.name == "came to its end";
    let told = found.differences.iter().find(is_told).expect("it is told");
    assert_eq!(told.values, ["yes", "no"]);
}

#[test]
fn the_largest_certain_difference_comes_first() {
    let found = compare(&runs()).unwrap();
    let ranks: Vec<usize> = found.rows.iter().map(super::order).collect();
    assert!(ranks.is_sorted());
    let sizes = found
        .rows
        .iter()
        .filter(|row| super::order(row) == 0)
        .map(super::size);
    assert!(sizes.collect::<Vec<_>>().is_sorted_by(|a, b| a >= b));
}

#[test]
fn a_row_of_one_run_only_is_shown_without_a_verdict() {
    let mut runs = runs();
    runs[1].measurements.retain(|m| m.job != "seqread");
    let mut found = compare(&runs).unwrap();
    let row = found
        .rows
        .iter_mut()
        .find(|row| row.label == "seqread")
        .unwrap();
    assert!(row.cells[0].is_some() && row.cells[1].is_none());
    assert_eq!(super::order(row), 3);
    // So it is with a time that had not ended in the run that has it.
    row.cells[0].as_mut().unwrap().at_least = true;
    let text = found.markdown();
    assert!(!text.contains("had not ended"), "{text}");
    assert!(text.contains("not in both runs"), "{text}");
}

/// A job that did nothing ran all the same.
#[test]
fn a_row_of_zeros_is_in_both_runs() {
    let mut zeros = sample::data();
    for m in &mut zeros.measurements {
        (m.iops, m.bytes_per_second, m.total_ios, m.total_bytes) = (0.0, 0.0, 0, 0);
    }
    let found = compare(&[zeros, sample::data()]).unwrap();
    assert!(found.rows.iter().all(|row| row.cells[1].is_some()));
    for text in [found.markdown(), found.html().unwrap()] {
        assert!(text.contains("a figure is 0 or not known"));
        assert!(!text.contains("not in both runs"));
    }
}

#[test]
fn single_repetitions_cannot_tell_but_their_series_can() {
    let mut runs = runs();
    for run in &mut runs {
        run.measurements.retain(|m| m.repetition == 0);
        let hosts = run.measurements[0].host.clone();
        run.series
            .retain(|series| series.scope.repetition == Some(0) && series.scope.host == "alpha");
        for series in &mut run.series {
            series.scope.host.clone_from(&hosts);
        }
    }
    let found = compare(&runs).unwrap();
    assert_eq!(answers(&found, "seqread"), [Some(Answer::Better); 2]);
    for run in &mut runs {
        run.series.clear();
    }
    let found = compare(&runs).unwrap();
    assert_eq!(answers(&found, "seqread"), [Some(Answer::CannotTell); 2]);
}

#[test]
fn models_have_no_chance_in_them() {
    let mut other = sample::data();
    for m in &mut other.measurements {
        m.iops *= 0.9;
        m.bytes_per_second *= 0.9;
    }
    let found = compare(&[sample::data(), other.clone()]).unwrap();
    assert_eq!(found.runs[1].worse, found.rows.len());
    assert!(
        found.correction.ends_with("there is no chance."),
        "{}",
        found.correction
    );
    let verdict = found.rows[0].cells[1]
        .as_ref()
        .unwrap()
        .verdict
        .as_ref()
        .unwrap();
    assert_eq!(verdict.words, "-10 % (modelled: no chance in it)");
    // Another seed is chance, and once is not often enough to tell it.
    other.run.seed += 1;
    let found = compare(&[sample::data(), sample::data(), other]).unwrap();
    assert_eq!(found.runs[2].cannot_tell, found.rows.len());
    let words = "there is no chance. No row was measured often enough";
    assert!(found.correction.contains(words), "{}", found.correction);
}

/// One repetition differs from the median of two by chance, whatever the seed.
#[test]
fn other_repetitions_of_a_model_are_chance() {
    let mut other = sample::data();
    let mut again = other.measurements.clone();
    for m in &mut again {
        m.repetition = 1;
        m.iops *= 1.2;
        m.bytes_per_second *= 1.2;
    }
    other.measurements.extend(again);
    let found = compare(&[sample::data(), other.clone()]).unwrap();
    assert_eq!(found.runs[1].cannot_tell, found.rows.len());
    let verdict = found.rows[0].cells[1].as_ref().unwrap().verdict.as_ref();
    let words = verdict.map(|verdict| verdict.words.as_str());
    assert_eq!(words, Some("cannot tell: 1 against 2 repetitions"));
    let found = compare(&[other.clone(), other]).unwrap();
    assert_eq!(found.runs[1].same, found.rows.len());
    assert!(found.correction.ends_with("there is no chance."));
}

#[test]
fn runs_on_disks_that_nobody_fitted_are_told_apart_as_far_as_these_are_known() {
    let answers = |change: f64, ratio: f64| {
        let mut base = sample::data();
        for m in &mut base.measurements {
            m.disk_band = Some(raidlab_store::DiskBand {
                low: 0.5,
                high: 2.0,
                ratio,
            });
        }
        let mut other = base.clone();
        "20261128T061500Z-again".clone_into(&mut other.run.name);
        for m in &mut other.measurements {
            m.iops *= change;
            m.bytes_per_second *= change;
        }
        let found = compare(&[base, other]).unwrap();
        let row = &found.rows[0].cells[1].as_ref().unwrap();
        let verdict = row.verdict.as_ref().unwrap();
        (verdict.answer, verdict.words.clone(), row.text.clone())
    };
    assert_eq!(answers(1.3, 1.2).0, Answer::Better);
    let (answer, words, text) = answers(1.15, 1.2);
    assert_eq!(answer, Answer::CannotTell);
    assert!(words.contains("within a factor of 1.20"), "{words}");
    assert!(text.contains('…'), "{text}");
    // What is the same stays the same.
    assert_eq!(answers(1.0, 1.2).0, Answer::Same);
}

#[test]
fn either_run_of_a_model_may_be_the_base() {
    let mut other = sample::data();
    for m in &mut other.measurements {
        m.iops *= 1.0202;
        m.bytes_per_second *= 1.0202;
    }
    let found = compare(&[sample::data(), other.clone()]).unwrap();
    assert_eq!(found.runs[1].better, found.rows.len());
    let found = compare(&[other, sample::data()]).unwrap();
    assert_eq!(found.runs[1].worse, found.rows.len());
}

#[test]
fn equal_figures_of_unlike_disks_that_nobody_fitted_are_not_called_the_same() {
    let base = sample::data();
    let mut other = base.clone();
    for m in &mut other.measurements {
        m.disk_band = Some(raidlab_store::DiskBand {
            low: 0.5,
            high: 2.0,
            ratio: 1.2,
        });
        for member in &mut m.members {
            "another".clone_into(&mut member.model);
        }
    }
    let found = compare(&[base, other]).unwrap();
    assert_eq!(found.runs[1].cannot_tell, found.rows.len());
}

#[test]
fn three_runs_have_two_verdicts_each() {
    let mut runs = runs();
    runs.push(runs[1].clone());
    let found = compare(&runs).unwrap();
    let row = &found.rows[0];
    assert!(row.cells[1].as_ref().unwrap().verdict.is_some());
    assert!(row.cells[2].as_ref().unwrap().verdict.is_some());
    assert_eq!(
        found
            .html()
            .unwrap()
            .matches("<h1>3 runs compared</h1>")
            .count(),
        1
    );
}

#[test]
fn on_a_terminal() {
    let style = Style {
        width: Some(140),
        ..Style::default()
    };
    insta::assert_snapshot!(compare(&runs()).unwrap().text(&style));
}

/// In a narrow terminal what is said of each row has the room of a word, and no letter a line
/// of its own.
#[test]
fn a_verdict_in_a_narrow_terminal_keeps_its_words_whole() {
    for width in [40, 60, 80] {
        let style = Style {
            width: Some(width),
            ..Style::default()
        };
        let text = compare(&runs()).unwrap().text(&style);
        let table = text.lines().skip_while(|line| !line.contains("verdict"));
        let is_letter = |line: &&str| line.trim().chars().count() == 1;
        assert_eq!(table.filter(is_letter).count(), 0, "{text}");
        assert!(text.contains(" verdict"), "{text}");
        assert!(text.contains("cannot tell:"), "{text}");
    }
}

#[test]
fn in_markdown() {
    insta::assert_snapshot!(compare(&runs()).unwrap().markdown());
}

/// The runs, with a bound for reads and one for all else.
fn judged(runs: &[RunData]) -> RunComparison {
    let bounds = ["random-read=22", "3"].map(|bound| bound.parse::<Bound>().unwrap());
    compare(runs).unwrap().within(&bounds)
}

/// The runs, the second with more facts than anyone reads through.
fn runs_with_much_that_differs() -> Vec<RunData> {
    let mut runs = runs();
    let fact = runs[1].observations[0].clone();
    for number in 0..30 {
        let mut own = fact.clone();
        own.name = format!("environment.of.{number}");
        runs[1].observations.push(own);
    }
    runs
}

#[test]
fn within_bounds_on_a_terminal() {
    let style = Style {
        width: Some(140),
        ..Style::default()
    };
    insta::assert_snapshot!(judged(&runs_with_much_that_differs()).text(&style));
}

#[test]
fn within_bounds_in_markdown() {
    insta::assert_snapshot!(judged(&runs()).markdown());
}

#[test]
fn what_differs_comes_last_and_much_of_it_is_folded() {
    for (runs, many) in [(runs(), false), (runs_with_much_that_differs(), true)] {
        let found = judged(&runs);
        let (page, markdown) = (found.html().unwrap(), found.markdown());
        let place = |text: &str, part: &str| text.find(part).unwrap();
        assert!(place(&page, "id=\"agreement-1\"") < place(&page, "id=\"rows\""));
        assert!(place(&page, "id=\"rows\"") < place(&page, "id=\"differences\""));
        assert!(place(&markdown, "### Agreement") < place(&markdown, "### Row by row"));
        assert!(place(&markdown, "### Row by row") < place(&markdown, "## What differs"));
        assert_eq!(page.contains("<details open>"), !many);
        assert_eq!(markdown.contains("<details>"), many);
        assert_eq!(
            found.text(&Style::default()).contains("`--html FILE`"),
            many
        );
    }
}

#[test]
fn the_page_is_whole_and_its_names_are_text() {
    let mut runs = runs();
    "<b>&".clone_into(&mut runs[1].run.name);
    let page = compare(&runs).unwrap().html().unwrap();
    assert!(page.trim_end().ends_with("</html>"));
    assert!(!page.contains("<b>&<"));
    for forbidden in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page.matches("<s>").count(), 1 + 2 * 2);
}

/// Tools give jobs without a name the same one, and an import has those of many files.
#[test]
fn jobs_that_are_called_alike_are_rows_of_their_own() {
    let run = |rates: [(u32, &str, f64); 2]| {
        let mut data = sample::data();
        data.measurements = rates
            .map(|(sequence, title, iops)| {
                let mut m = sample::cell("md", sequence);
                (m.job, m.job_title) = ("test".to_owned(), title.to_owned());
                m.iops = iops;
                m
            })
            .to_vec();
        data
    };
    let base = run([(0, "reads of 4 KiB", 100.0), (1, "reads of 64 KiB", 50.0)]);
    // In another order, as files may be named.
    let other = run([(0, "reads of 64 KiB", 50.0), (1, "reads of 4 KiB", 200.0)]);
    let found = compare(&[base.clone(), other]).unwrap();
    let ratio = |label: &str| {
        let rows: Vec<_> = found.rows.iter().filter(|row| row.label == label).collect();
        assert_eq!(rows.len(), 1, "{label}");
        rows[0].cells[1]
            .as_ref()
            .unwrap()
            .verdict
            .as_ref()
            .unwrap()
            .ratio
    };
    assert_eq!(found.rows.len(), 2);
    assert_eq!(ratio("test: reads of 4 KiB"), 2.0);
    assert_eq!(ratio("test: reads of 64 KiB"), 1.0);
    let agreement = found.agreement(1, &["3".parse::<Bound>().unwrap()]);
    assert_eq!((agreement.jobs.len(), agreement.beyond.len()), (2, 1));
    // Not even what they do tells them apart.
    let twins = run([(0, "reads", 100.0), (1, "reads", 50.0)]);
    let found = compare(&[twins.clone(), twins]).unwrap();
    let labels: Vec<&str> = found.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["test: reads", "test: reads #2"]);
}

/// The one repetition that had ended is not the one in the middle.
#[test]
fn a_time_that_had_not_ended_has_no_verdict() {
    let run = |times: &[(u64, f64)]| {
        let mut data = sample::data();
        data.measurements.clear();
        for (repetition, (seconds, percent)) in (0..).zip(times) {
            let mut m = sample::cell("md", 0);
            (m.op, m.repetition) = (Operation::Recovery, repetition);
            m.runtime_ns = seconds * 1_000_000_000;
            m.sync_percent_end = Some(*percent);
            m.bytes_per_second = 0.0;
            data.measurements.push(m);
        }
        data
    };
    let base = run(&[(100, 100.0)]);
    let other = run(&[(90, 100.0), (300, 10.0)]);
    let found = compare(&[base, other]).unwrap();
    let cell = found.rows[0].cells[1].as_ref().unwrap();
    assert!(cell.at_least && cell.verdict.is_none(), "{cell:?}");
}

/// The suites that come with raidlab have jobs that are called as what arrays do.
#[test]
fn a_job_and_what_an_array_does_may_have_one_name() {
    let mut job = sample::cell("md", 0);
    (job.job, job.class) = ("recovery".to_owned(), "recovery".to_owned());
    let mut copying = sample::cell("md", 1);
    copying.op = Operation::Recovery;
    copying.class = "rebuild".to_owned();
    copying.sync_percent_end = Some(100.0);
    copying.bytes_per_second = 0.0;
    let mut base = sample::data();
    base.measurements = vec![job, copying];
    let mut other = base.clone();
    other.measurements[0].iops *= 0.5;
    other.measurements[0].bytes_per_second *= 0.5;
    let found = compare(&[base, other]).unwrap();
    let agreement = found.agreement(1, &["3".parse::<Bound>().unwrap()]);
    let cells: Vec<_> = agreement
        .jobs
        .iter()
        .map(|job| {
            let percent = job.cells[0].as_ref().unwrap().percent;
            (job.label.as_str(), job.class.as_str(), percent)
        })
        .collect();
    assert_eq!(
        cells,
        [
            ("recovery", "recovery", -50.0),
            ("recovery (s)", "rebuild", 0.0)
        ]
    );
    let classes = agreement.classes.iter();
    assert_eq!(classes.map(|one| one.cells).collect::<Vec<_>>(), [1, 1, 2]);
}
