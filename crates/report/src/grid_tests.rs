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
