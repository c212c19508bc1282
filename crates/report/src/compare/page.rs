//! A comparison as one HTML file.

use super::RunComparison;
use crate::html::ReportError;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;

#[derive(Serialize)]
struct Page<'a> {
    comparison: &'a RunComparison,
    /// The counts of each run's verdicts against the base, in words.
    counts: Vec<String>,
    /// The number of differences, by kinds.
    difference_counts: String,
    /// Whether the differences are folded away.
    folded: bool,
}

impl RunComparison {
    /// The comparison as one file: nothing is fetched when it is opened.
    ///
    /// # Errors
    /// A template that cannot be filled in, a defect of this crate.
    pub fn html(&self) -> Result<String, ReportError> {
        let mut environment = Environment::new();
        for (name, source) in [
            ("compare.html", include_str!("../../templates/compare.html")),
            ("style.css", include_str!("../../templates/style.css")),
        ] {
            environment.add_template(name, source)?;
        }
        let page = environment.get_template("compare.html")?;
        Ok(page.render(Serde(Page {
            comparison: self,
            counts: (0..self.runs.len()).map(|run| self.counts(run)).collect(),
            difference_counts: self.difference_counts(),
            folded: self.differences_are_many(),
        }))?)
    }
}
