//! Reports of a suite that draws its cells: many subjects, each with a few of the jobs.

use crate::terminal::Style;
use crate::{html, markdown, sample, terminal};

/// Twenty subjects: one job ran on each, and two ran on the first.
#[test]
fn tables_leave_out_subjects_that_none_of_their_jobs_ran_on() {
    let mut data = sample::data();
    data.measurements = (0..20)
        .map(|number| sample::cell(&format!("subject-{number}"), number))
        .chain([sample::cell("subject-0", 1)])
        .collect();
    let page = html(&data).expect("a page");
    let (page, text) = (page.as_str(), markdown(&data));
    let shown = terminal(&data, &Style::default());
    for (what, words) in [("page", page), ("markdown", &text), ("terminal", &shown)] {
        let said = words
            .matches("more subjects none of these jobs ran")
            .count();
        assert!(said > 0, "{what}: {words}");
        assert!(
            words.contains("20 subjects (subject-0, subject-1, "),
            "{what}"
        );
        assert!(words.contains("subject-11 and 8 more)"), "{what}");
    }
    // Figures and latencies, and what is told of each subject once.
    let rows = page.matches("<tr><th scope=\"row\">").count();
    assert!(rows < 100, "{rows} rows for 21 figures");
}

/// Of Markdown, a line right below a table is a row of it.
#[test]
fn nothing_but_its_rows_touches_a_table() {
    let mut data = sample::data();
    let cells = (0..40).flat_map(|number| {
        let name = format!("subject-{number}");
        (0..20).map(move |job| sample::cell(&name, job))
    });
    data.measurements = cells.chain([sample::cell("subject-40", 1)]).collect();
    let text = markdown(&data);
    let lines: Vec<&str> = text.lines().collect();
    let heads = (2..lines.len()).filter(|&at| lines[at].starts_with("| ---"));
    assert!(heads.clone().count() > 4, "{text}");
    for head in heads {
        assert_eq!(lines[head - 2], "", "above {}", lines[head - 1]);
        let mut below = lines[head..].iter();
        let after = below.find(|line| !line.starts_with('|'));
        assert_eq!(
            after.copied().unwrap_or_default(),
            "",
            "below {}",
            lines[head - 1]
        );
    }
}
