//! Claims of an article about its figures, tested against measured rows.
//!
//! A claim is a sentence and one or more tests: the ratio of a cell to another, or to several
//! together, lies within bounds. A claim is reproduced when all its tests hold, in part when
//! some do. The bounds are in the claim's file and follow the words of the sentence: where an
//! article says "twice", they are generous around two; where it says "more", they begin at one.
//! Some were written after rows had been seen: they are no blind test. A claim that cannot be
//! tested says why.
//!
//! A cell is named `subject job operation`, with `subject/filesystem` where a suite measures a
//! subject on several; the operation may be left out where the job has one only. Background work of
//! arrays is the job `background`: `md background recovery` is the time that a rebuild takes,
//! `md background recovery rate` its rate; one that was unfinished at the run's end has no time. A
//! cell's value is the mean of the rows of the first run that has any: repetitions, and parts such
//! as iozone's record sizes. Where these lie so far apart that other rows among them would have
//! given the opposite answer, the comparison says so.

use crate::background::BACKGROUND_JOB;
use crate::catalogue::{self, Kind, LoadError};
use crate::document::{Document, FileError};
use crate::files::Files;
use crate::settings;
use raidlab_store::{Measurement, Metric, Operation, shown};
use serde::Deserialize;
use std::ops::RangeInclusive;
use toml::Spanned;

#[cfg(test)]
mod tests;

/// The claims of one article.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    /// The short name, which is that of the file: `unequal-2008`.
    pub name: String,
    /// The name of the claims in headings, for people.
    pub title: String,
    /// The author and place of publication of the claims.
    pub source: String,
    /// The suites whose rows the claims are tested against.
    pub suites: Vec<String>,
    /// The commands that measure the rows of these suites.
    pub commands: Vec<String>,
    /// A remark on how the rows differ from the article's; may be empty.
    pub remark: String,
    /// The claims, in the order of the article.
    pub claims: Vec<Claim>,
}

/// A sentence of an article, and the tests that it implies.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The claim's short and unique name: `P1`.
    pub id: String,
    /// The sentence of the article that is judged.
    pub says: String,
    /// The reason for the outcome; may be empty.
    pub why: String,
    /// The reason why the claim cannot be tested, if it cannot.
    untestable: Option<String>,
    tests: Vec<Test>,
}

/// One comparison of a claim: figures of two subjects, or of one subject against a bound.
#[derive(Debug, Clone, PartialEq)]
struct Test {
    of: Selector,
    /// The cells that `of` is compared with, by the sum of their values.
    to: Vec<Selector>,
    at_least: f64,
    at_most: f64,
}

/// The name of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Selector {
    subject: String,
    filesystem: Option<String>,
    job: String,
    operation: Option<String>,
    /// The metric, where it is not the one that the row's table shows.
    metric: Option<Metric>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaims {
    schema: Spanned<u32>,
    name: String,
    title: String,
    source: String,
    suites: Vec<String>,
    commands: Vec<String>,
    #[serde(default)]
    remark: String,
    claim: Vec<Spanned<RawClaim>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    id: String,
    says: String,
    #[serde(default)]
    why: String,
    untestable: Option<String>,
    /// The jobs for each of which every test with `{job}` in it is done.
    #[serde(default)]
    jobs: Vec<String>,
    #[serde(default)]
    tests: Vec<Spanned<RawTest>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTest {
    of: String,
    to: Vec<String>,
    #[serde(default)]
    at_least: f64,
    at_most: Option<f64>,
}

/// The outcome of a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<'a> {
    /// The claim that was judged.
    pub claim: &'a Claim,
    /// The verdict on the measured figures.
    pub verdict: Verdict,
    /// The outcome of each comparison for which there are rows.
    pub outcomes: Vec<Outcome>,
    /// The number of comparisons for which there are none.
    pub not_run: usize,
    /// Whether the outcomes would be others without the rows that an audit struck out.
    pub rests_on_struck: bool,
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every test holds.
    Reproduced,
    /// Some of the comparisons hold, and others do not or have no rows.
    InPart {
        /// The number of comparisons that hold.
        holds: usize,
        /// The number of all comparisons.
        of: usize,
    },
    /// None of the comparisons holds.
    NotReproduced,
    /// There are no rows for the claim.
    NotRun,
    /// The claim is about something that no row measures.
    NotTestable,
}

/// A comparison of a claim with the rows that were measured for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The cells and their values in words.
    pub words: String,
    /// The value of the first cell over the sum of the others' values.
    pub ratio: f64,
    /// Whether the ratio lies within the bounds of the claim.
    pub holds: bool,
    /// Whether other repetitions of the same cells could give the opposite answer: a bound lies
    /// between the least ratio that the rows can give and the greatest.
    pub is_close: bool,
    /// The bounds of the claim: 0 and infinity where there is none.
    pub bounds: RangeInclusive<f64>,
}

impl Claims {
    /// Loads built-in claims by name, or a file by path.
    ///
    /// # Errors
    /// When there are none of that name, or the file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        let document = catalogue::find(&Files::default(), Kind::Claims, name_or_path)?;
        Ok(Self::read(&document)?)
    }

    pub(crate) fn read(document: &Document) -> Result<Self, FileError> {
        let raw: RawClaims = document.decode(&[])?;
        settings::check_schema(document, &raw.schema)?;
        let mut claims: Vec<Claim> = Vec::new();
        for spanned in raw.claim {
            let span = spanned.span();
            let claim = spanned.into_inner();
            if claims.iter().any(|other| other.id == claim.id) {
                let what = format!("claim `{}` is there twice", claim.id);
                return Err(document.invalid(span, what, "give each an id of its own"));
            }
            if claim.untestable.is_some() != claim.tests.is_empty() {
                let remedy = "give it `tests`, or say why not in `untestable`";
                return Err(document.invalid(span, "a claim is tested or it is not", remedy));
            }
            let mut for_each = claim
                .tests
                .iter()
                .map(|test| test.get_ref().is_for_each_job());
            if !claim.jobs.is_empty() && !for_each.any(|one| one) {
                let remedy = "write {job} into its cells, or leave `jobs` out";
                return Err(document.invalid(span, "no test is of `jobs`", remedy));
            }
            let mut tests = Vec::new();
            for test in &claim.tests {
                tests.extend(read_test(document, test, &claim.jobs)?);
            }
            claims.push(Claim {
                id: claim.id,
                says: claim.says,
                why: claim.why,
                untestable: claim.untestable,
                tests,
            });
        }
        Ok(Self {
            name: raw.name,
            title: raw.title,
            source: raw.source,
            suites: raw.suites,
            commands: raw.commands,
            remark: raw.remark,
            claims,
        })
    }

    /// Tests every claim against rows, run by run: those of the first run that has a cell count.
    #[must_use]
    pub fn judge(&self, runs: &[Vec<Measurement>]) -> Vec<Judged<'_>> {
        let claims = self.claims.iter();
        claims
            .map(|claim| claim.judge(&self.suites, runs))
            .collect()
    }

    /// Judges the claims as [`Self::judge`] does, and marks those whose figures would be others
    /// without the rows that an audit struck out. `kept`: the runs without these rows.
    #[must_use]
    pub fn judge_audited(
        &self,
        runs: &[Vec<Measurement>],
        kept: &[Vec<Measurement>],
    ) -> Vec<Judged<'_>> {
        let mut judged = self.judge(runs);
        for (one, without) in judged.iter_mut().zip(self.judge(kept)) {
            one.rests_on_struck = one.outcomes != without.outcomes;
        }
        judged
    }
}

impl RawTest {
    fn cells(&self) -> impl Iterator<Item = &String> {
        self.to.iter().chain([&self.of])
    }

    fn is_for_each_job(&self) -> bool {
        self.cells().any(|cell| cell.contains("{job}"))
    }
}

/// The test for each of the jobs, or unchanged if it names none of them.
fn read_test(
    document: &Document,
    raw: &Spanned<RawTest>,
    jobs: &[String],
) -> Result<Vec<Test>, FileError> {
    let test = raw.get_ref();
    let at_most = test.at_most.unwrap_or(f64::INFINITY);
    if test.to.is_empty() || test.at_least > at_most {
        let remedy = "name a cell in `to`, and let `at_least` be below `at_most`";
        return Err(document.invalid(raw.span(), "nothing can hold here", remedy));
    }
    if test.at_least <= 0.0 && test.at_most.is_none() {
        let remedy = "give `at_least` above 0, or `at_most`";
        return Err(document.invalid(raw.span(), "anything would hold here", remedy));
    }
    if test.is_for_each_job() && jobs.is_empty() {
        let remedy = "say in the claim's `jobs` which ones";
        return Err(document.invalid(raw.span(), "nothing takes the place of {job}", remedy));
    }
    let is_of_all = |cell: &&String| cell.split_whitespace().skip(1).eq([BACKGROUND_JOB]);
    if let Some(cell) = test.cells().find(is_of_all) {
        // A recovery and the time without a member are not repetitions of each other.
        let problem = format!("`{cell}` has several operations");
        let remedy = format!("name one, as in `{cell} recovery`");
        return Err(document.invalid(raw.span(), problem, remedy));
    }
    let mut operations = test
        .cells()
        .filter_map(|cell| cell.split_whitespace().nth(2));
    if let Some(name) = operations.find(|name| name.parse::<Operation>().is_err()) {
        let known = Operation::ALL.iter().map(|op| op.name());
        return Err(document.unknown(raw.span(), "operation", name, known));
    }
    let one = |job: &str| {
        let select = |text: &String| Selector::read(&text.replace("{job}", job));
        let to: Option<Vec<Selector>> = test.to.iter().map(select).collect();
        Some(Test {
            of: select(&test.of)?,
            to: to?,
            at_least: test.at_least,
            at_most,
        })
    };
    let whole = [String::new()];
    let jobs = if test.is_for_each_job() { jobs } else { &whole };
    let tests: Option<Vec<Test>> = jobs.iter().map(|job| one(job)).collect();
    tests.ok_or_else(|| {
        let remedy = "write `subject job`, `subject/filesystem job`, either with an operation, or \
                      with that and what is counted: `duration`, `rate`";
        document.invalid(raw.span(), "a cell has two to four words", remedy)
    })
}

impl Selector {
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (&subject, rest) = words.split_first()?;
        let (&job, rest) = rest.split_first()?;
        let (subject, filesystem) = match subject.split_once('/') {
            Some((subject, filesystem)) => (subject, Some(filesystem.to_owned())),
            None => (subject, None),
        };
        let metric = match rest.get(1) {
            None => None,
            Some(&word) => Some(*Metric::ALL.iter().find(|metric| metric.name() == word)?),
        };
        (rest.len() <= 2).then(|| Self {
            subject: subject.to_owned(),
            filesystem,
            job: job.to_owned(),
            operation: rest.first().map(|&word| word.to_owned()),
            metric,
        })
    }

    fn covers(&self, suites: &[String], row: &Measurement) -> bool {
        let filesystem = self.filesystem.as_ref();
        suites.contains(&row.suite)
            && row.subject == self.subject
            && row.job == self.job
            && !row.is_of_making()
            && filesystem.is_none_or(|name| *name == row.filesystem)
            && (self.operation.as_ref()).is_none_or(|name| name == row.op.name())
    }

    /// The value in the first run with such rows; 0 means that a row lacks the figure. Rows of
    /// several operations have none.
    fn value(&self, suites: &[String], runs: &[Vec<Measurement>], metric: Metric) -> Option<Value> {
        runs.iter().find_map(|rows| {
            let is_known = |row: &&Measurement| metric != Metric::Seconds || !row.is_unfinished();
            let own: Vec<_> = shown(rows.iter().filter(|row| self.covers(suites, row))).collect();
            if own.iter().any(|row| row.op != own[0].op) {
                return None;
            }
            let values = own
                .into_iter()
                .filter(is_known)
                .map(|row| row.value_of(metric));
            let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
            let count = values.len() as f64;
            (count > 0.0).then_some(Value {
                mean: values.iter().sum::<f64>() / count,
                least: values.iter().copied().fold(f64::INFINITY, f64::min),
                most: values.iter().copied().fold(0.0, f64::max),
                metric,
            })
        })
    }

    /// The metric that the first such run's rows show by default.
    fn metric(&self, suites: &[String], runs: &[Vec<Measurement>]) -> Option<Metric> {
        let mut rows = runs.iter().flatten();
        let row = rows.find(|row| self.covers(suites, row))?;
        Some(self.metric.unwrap_or_else(|| row.metric()))
    }

    fn in_words(&self) -> String {
        let filesystem = self.filesystem.as_ref();
        let filesystem = filesystem.map_or_else(String::new, |name| format!("/{name}"));
        format!("{}{filesystem}", self.subject)
    }
}

impl Claim {
    /// The reason why the claim cannot be tested, else the reason for its outcome.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.untestable.as_deref().unwrap_or(&self.why)
    }

    fn judge(&self, suites: &[String], runs: &[Vec<Measurement>]) -> Judged<'_> {
        let tests = self.tests.iter();
        let outcomes: Vec<Outcome> = tests
            .filter_map(|test| test.measure(suites, runs))
            .collect();
        let holds = outcomes.iter().filter(|outcome| outcome.holds).count();
        let of = self.tests.len();
        let verdict = match (holds, outcomes.len()) {
            _ if self.untestable.is_some() => Verdict::NotTestable,
            (_, 0) => Verdict::NotRun,
            (holds, _) if holds == of => Verdict::Reproduced,
            (0, _) => Verdict::NotReproduced,
            (holds, _) => Verdict::InPart { holds, of },
        };
        let not_run = of - outcomes.len();
        Judged {
            claim: self,
            verdict,
            outcomes,
            not_run,
            rests_on_struck: false,
        }
    }
}

impl Test {
    fn measure(&self, suites: &[String], runs: &[Vec<Measurement>]) -> Option<Outcome> {
        // Cells with different block sizes are compared by their bytes.
        let metrics = self.to.iter().chain([&self.of]);
        let metrics = metrics.map(|one| one.metric(suites, runs));
        let metrics: Vec<Metric> = metrics.collect::<Option<_>>()?;
        let metric = match metrics.as_slice() {
            [first, others @ ..] if others.iter().all(|other| other == first) => *first,
            mixed if mixed.iter().any(|metric| !metric.is_of_jobs()) => return None,
            _ => Metric::BytesPerSecond,
        };
        let of = self.of.value(suites, runs, metric)?;
        let to = self.to.iter().map(|one| one.value(suites, runs, metric));
        let to: Vec<Value> = to.collect::<Option<_>>()?;
        let sum = |of: fn(&Value) -> f64| to.iter().map(of).sum::<f64>();
        let ratio = of.mean / sum(|one| one.mean);
        let least = of.least / sum(|one| one.most);
        let greatest = of.most / sum(|one| one.least);
        let allowed = self.at_least..=self.at_most;
        let holds = allowed.contains(&ratio);
        let always = allowed.contains(&least) && allowed.contains(&greatest);
        let never = greatest < self.at_least || least > self.at_most;
        let others = self.to.iter().zip(&to);
        let others: Vec<String> = others
            .map(|(cell, value)| format!("{} {}", cell.in_words(), value.in_words()))
            .collect();
        let operation = self.of.operation.as_ref();
        let operation = operation.map_or_else(String::new, |name| format!(" {name}"));
        Some(Outcome {
            words: format!(
                "{}{operation}: {} {} : {}",
                self.of.job,
                self.of.in_words(),
                of.in_words(),
                others.join(" + ")
            ),
            ratio,
            holds,
            is_close: !always && !never,
            bounds: allowed,
        })
    }
}

/// The value of a cell over its repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Value {
    mean: f64,
    /// The smallest row, and the largest.
    least: f64,
    most: f64,
    metric: Metric,
}

impl Value {
    /// The value in words: about three digits, the spread of the rows, and a unit.
    fn in_words(self) -> String {
        let (scale, unit) = match self.metric {
            Metric::BytesPerSecond => (1e6, "MB/s"),
            Metric::OperationsPerSecond => (1.0, "/s"),
            Metric::Seconds => (1.0, "s"),
            Metric::KeptPercent => (1.0, "%"),
        };
        let half_range = (self.most - self.least) / 2.0 / scale;
        let mean = self.mean / scale;
        let digits = match mean {
            mean if mean >= 100.0 => 0,
            mean if mean >= 10.0 => 1,
            _ => 2,
        };
        if half_range > 0.0 {
            format!("{mean:.digits$} ± {half_range:.digits$} {unit}")
        } else {
            format!("{mean:.digits$} {unit}")
        }
    }
}

impl Verdict {
    /// The verdict in words, as printed.
    #[must_use]
    pub fn in_words(self) -> String {
        match self {
            Self::Reproduced => "reproduced".to_owned(),
            Self::InPart { holds, of } => format!("in part: {holds} of {of}"),
            Self::NotReproduced => "not reproduced".to_owned(),
            Self::NotRun => "not run".to_owned(),
            Self::NotTestable => "not testable here".to_owned(),
        }
    }
}
