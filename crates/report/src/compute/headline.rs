//! The answer in words, computed: which subject is best at what, and by how much.
//!
//! Subjects are compared per class by the geometric mean of their ratio to the best figure of each
//! row, over the rows that all of them have. A lead below two percent is called a draw: even ratios
//! between subjects are not known better than that. A subject that leads the mean but not most of
//! the rows owes it to an outlier: then the class has no single winner. Where the disks were not
//! fitted, a lead within their uncertainty does not count: see [`super::doubt`].

use super::certainty::{Side, compare, stream_of};
use super::doubt::Limits;
use super::states::{not_ranked, unlike};
use super::trust::MODEL_BENCH;
use super::view::{Row, View};
use crate::data::RunData;
use crate::format::{list, list_of_many, signed_percent};
use raidlab_statistics::{Comparison, Correction, Verdict as Answer, correct_table};
use raidlab_store::Operation;
use raidlab_units::{distinct, grouped};

/// The number of rows up to which they are listed by name.
const NAMED_ROWS: usize = 6;

/// The lead below which the result is a draw, percent.
const DRAW_PERCENT: f64 = 2.0;

/// The ratio to the next figure from which the best of a row stands out.
const STANDS_OUT_RATIO: f64 = 3.0;

/// The share of the best below which a subject's figure is remarked on.
const FALLS_TO_RATIO: f64 = 0.25;

/// The number of trailing subjects that are named when there are many.
const NAMED_BEHIND: usize = 3;

/// The result of the subjects in one class.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// The class in words.
    pub title: String,
    /// Labels of the rows compared.
    pub rows: Vec<String>,
    /// Indexes of the best subject and of those that draw with it; empty where
    /// there is no single winner.
    pub best: Vec<usize>,
    /// The other subjects with their average distance, percent below the best, nearest first; empty
    /// where there is no single winner.
    pub behind: Vec<(usize, f64)>,
    /// The leaders of rows: the subjects, by index, and the labels of the rows that they lead.
    pub leads: Vec<(Vec<usize>, Vec<String>)>,
    /// Remarks on rows in which a subject stands out or falls far behind, as clauses.
    pub remarks: Vec<String>,
    /// The certainty of the lead: the best against the next, or against the one that draws with it;
    /// `None` for single runs of a model, which have no chance in them.
    pub lead: Option<Lead>,
    /// The subjects that may really equal the best, as the disks were not fitted.
    pub open: Option<Open>,
}

/// Subjects that cannot be told from a class's best.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Open {
    /// The subjects' indexes, the nearest first.
    pub subjects: Vec<usize>,
    /// The limits of the comparison with the nearest.
    pub limits: Limits,
}

/// The comparison of a class's best with another subject.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lead {
    /// The index, from 0, of that subject.
    pub next: usize,
    /// The comparison of the best's figures with that subject's.
    pub comparison: Comparison,
}

/// The class's name for people: the title of its first note, else its id.
pub(crate) fn class_title(data: &RunData, class: &str) -> String {
    let note = data.notes.iter().find(|note| note.class == class);
    note.map_or_else(
        || capitalised(&class.replace('-', " ")),
        |note| note.title.clone(),
    )
}

fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A verdict for each class in which at least two subjects can be compared.
pub(crate) fn verdicts(data: &RunData, view: &View<'_>) -> Vec<Verdict> {
    let classes = view.classes().into_iter();
    let mut found: Vec<Verdict> = classes
        .flat_map(|class| Work::ALL.map(|work| verdict(data, view, class, work)))
        .flatten()
        .collect();
    // Every class is one more chance of a false winner.
    let leads = found.iter().filter_map(|verdict| verdict.lead.as_ref());
    let mut table: Vec<Comparison> = leads.map(|lead| lead.comparison).collect();
    correct_table(&mut table, Correction::Holm);
    let leads = found.iter_mut().filter_map(|verdict| verdict.lead.as_mut());
    for (lead, corrected) in leads.zip(table) {
        lead.comparison = corrected;
    }
    found
}

/// The kinds of work whose rows of one class are compared together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Jobs, by their rates or times.
    Jobs,
    /// Syncs that make members equal, and the time until all are filled.
    Rebuilds,
    /// Recoveries by which arrays were made: a RAID 5 is, and other arrays are not.
    Makings,
    /// Syncs that only compare members: whose rebuild is short need not be quick at this.
    Checks,
}

impl Work {
    const ALL: [Self; 4] = [Self::Jobs, Self::Rebuilds, Self::Makings, Self::Checks];

    fn of(row: &Row<'_>) -> Self {
        match row.head.op {
            _ if row.is_of_job() => Self::Jobs,
            Operation::Check => Self::Checks,
            _ if row.head.is_of_making() => Self::Makings,
            _ => Self::Rebuilds,
        }
    }
}

/// A class's rows of one kind of work that can be compared, and those that cannot because the audit
/// struck out figures in them; where every row has such figures, all rows stay and the subjects
/// concerned are left out.
fn comparable<'v, 'a>(
    view: &'v View<'a>,
    class: &str,
    work: Work,
) -> (Vec<&'v Row<'a>>, Vec<&'v Row<'a>>) {
    let rows = view.all_rows().filter(|row| Work::of(row) == work);
    let rows = rows.filter(|row| row.head.class == class && row.is_main());
    let struck = |row: &&Row<'_>| row.cells.iter().flatten().any(|cell| cell.fatal);
    let (out, clean): (Vec<_>, Vec<_>) = rows.partition(struck);
    if clean.is_empty() {
        (out, clean)
    } else {
        (clean, out)
    }
}

/// A row's figures of the subjects that take part, best first.
struct Ranking {
    label: String,
    figures: Vec<(usize, f64)>,
}

impl Ranking {
    fn new(row: &Row<'_>, subjects: &[usize]) -> Self {
        let values = row.valid_values();
        let figure = |&subject: &usize| {
            let value = values[subject].filter(|value| *value > 0.0)?;
            Some((subject, row.rate.goodness(value)))
        };
        let mut figures: Vec<_> = subjects.iter().filter_map(figure).collect();
        figures.sort_by(|a, b| b.1.total_cmp(&a.1));
        Self {
            label: row.label.clone(),
            figures,
        }
    }

    /// Each subject's figure as a share of the best, best first.
    fn ratios(&self) -> impl Iterator<Item = (usize, f64)> {
        let best = self.figures[0].1;
        self.figures
            .iter()
            .map(move |(s, value)| (*s, value / best))
    }

    /// The best subject and those that draw with it.
    fn leaders(&self) -> Vec<usize> {
        let near = |(subject, ratio)| (100.0 * (1.0 - ratio) < DRAW_PERCENT).then_some(subject);
        let mut leaders: Vec<usize> = self.ratios().filter_map(near).collect();
        leaders.sort_unstable();
        leaders
    }
}

/// Whether a row of this kind of work says anything on who is better.
fn says_something(row: &Row<'_>, work: Work) -> bool {
    match work {
        // Where nobody did anything nobody is better.
        Work::Jobs => row.cells.iter().flatten().any(|cell| cell.value > 0.0),
        // Not every array has a third recovery, and an unfinished one cannot be ranked.
        Work::Rebuilds | Work::Makings | Work::Checks => {
            row.valid_values().into_iter().flatten().count() > 1
        }
    }
}

fn verdict(data: &RunData, view: &View<'_>, class: &str, work: Work) -> Option<Verdict> {
    let (mut rows, left_out) = comparable(view, class, work);
    rows.retain(|row| says_something(row, work));
    let rate = rows.first()?.rate;
    let usable = |row: &&Row<'_>, subject: usize| row.valid_values()[subject] > Some(0.0);
    let takes_part = |subject: &usize| rows.iter().all(|row| usable(row, *subject));
    let subjects: Vec<usize> = (0..view.names.len()).filter(takes_part).collect();
    if subjects.len() < 2 {
        return None;
    }
    let rankings: Vec<_> = rows
        .iter()
        .map(|row| Ranking::new(row, &subjects))
        .collect();
    let (scores, leads) = standing(&subjects, &rankings);
    let top = scores[0];
    let below = |sum: f64| 100.0 * (1.0 - ((sum - top.1) / rankings.len() as f64).exp());
    let (best, behind) = scores
        .iter()
        .map(|(subject, sum)| (*subject, below(*sum)))
        .partition::<Vec<_>, _>(|(_, percent)| *percent < DRAW_PERCENT);
    let led = leads.iter().filter(|(own, _)| own.contains(&top.0));
    let single = 2 * led.map(|(_, labels)| labels.len()).sum::<usize>() > rankings.len();
    let best: Vec<usize> = best.iter().filter(|_| single).map(|(s, _)| *s).collect();
    let mut remarks = remarks(&view.names, &rankings, |subject| {
        let own = scores.iter().find(|(s, _)| *s == subject);
        own.map_or(1.0, |(_, sum)| (sum / rankings.len() as f64).exp())
    });
    remarks.extend(not_ranked(&rows, &view.names));
    if work == Work::Jobs {
        // This comes first: a ranking of unlike states is not valid.
        remarks.splice(0..0, unlike(&rows, &subjects, &view.names, &data.findings));
    }
    remarks.extend(going_on(&rows, &view.names));
    if !left_out.is_empty() {
        let labels: Vec<String> = left_out.iter().map(|row| row.label.clone()).collect();
        remarks.push(format!(
            "left out as struck by the audit: {}",
            jobs(&labels)
        ));
    }
    let lead = |next: usize| {
        let side = |column| Side::of_class(&rows, column, &data.series);
        let mut stream = stream_of(data.run.seed, rows[0]);
        let comparison = compare(&side(next), &side(top.0), rate, &mut stream)?;
        Some(Lead { next, comparison })
    };
    let next = scores.get(1).map(|(subject, _)| *subject);
    let open = open(&rows, &scores);
    Some(Verdict {
        title: match work {
            Work::Makings => "Making of the array".to_owned(),
            Work::Checks => "Check".to_owned(),
            Work::Jobs | Work::Rebuilds => class_title(data, class),
        },
        lead: next
            .filter(|_| single && has_chance(data, &rows))
            .and_then(lead),
        rows: rankings
            .iter()
            .map(|ranking| ranking.label.clone())
            .collect(),
        best,
        behind: if single { behind } else { Vec::new() },
        leads,
        remarks,
        open,
    })
}

/// Whether these rows depend on chance. On a model each repetition has its own angles and places,
/// and a single one is the same for all subjects.
fn has_chance(data: &RunData, rows: &[&Row<'_>]) -> bool {
    let is_repeated = |row: &&Row<'_>| row.repetitions.iter().any(|all| all.len() > 1);
    data.run.bench != MODEL_BENCH || rows.iter().any(is_repeated)
}

/// Subjects and the sums of the logarithms of their ratios, best first.
type Scores = Vec<(usize, f64)>;
/// Subjects that lead together, and the labels of the rows that they lead.
type Leads = Vec<(Vec<usize>, Vec<String>)>;

/// The scores over all rankings, and the leaders of rows.
fn standing(subjects: &[usize], rankings: &[Ranking]) -> (Scores, Leads) {
    let mut scores: Scores = subjects.iter().map(|&subject| (subject, 0.0)).collect();
    for ranking in rankings {
        for (subject, ratio) in ranking.ratios() {
            let own = scores.iter_mut().filter(|(s, _)| *s == subject);
            own.for_each(|(_, sum)| *sum += ratio.ln());
        }
    }
    scores.sort_by(|a, b| b.1.total_cmp(&a.1));
    let leads = rankings
        .iter()
        .map(|one| (one.leaders(), one.label.clone()));
    (scores, grouped(leads))
}

/// A clause on subjects whose figures are of unfinished work.
fn going_on(rows: &[&Row<'_>], names: &[String]) -> Option<String> {
    let goes_on = |column: &usize| {
        let mut cells = rows.iter().filter_map(|row| row.cells[*column]);
        cells.any(|cell| cell.at_least)
    };
    let columns = (0..names.len()).filter(goes_on);
    let names: Vec<&str> = columns.map(|column| names[column].as_str()).collect();
    let words = || format!("not ranked, as it had not ended: {}", list(&names));
    (!names.is_empty()).then(words)
}

/// The subjects that the best of these scores, sums of logarithms over `rows`, may really not lead.
fn open(rows: &[&Row<'_>], scores: &[(usize, f64)]) -> Option<Open> {
    let (top, best) = *scores.first()?;
    let against = |subject: usize| {
        let limits: Vec<Option<Limits>> = rows
            .iter()
            .map(|row| Limits::of(row.cells[top]?.m, row.cells[subject]?.m))
            .collect();
        Limits::mean(&limits)
    };
    let others = scores[1..].iter().filter_map(|(subject, sum)| {
        let ratio = ((best - sum) / rows.len() as f64).exp();
        let limits = against(*subject)?;
        limits.leave_open(ratio).then_some((*subject, limits))
    });
    let others: Vec<(usize, Limits)> = others.collect();
    Some(Open {
        limits: others.first()?.1,
        subjects: others.iter().map(|(subject, _)| *subject).collect(),
    })
}

/// A clause for each subject that stands out in some rows, and one for the deepest fall
/// of each subject, if it is much deeper than the subject's `mean` ratio.
fn remarks(names: &[String], rankings: &[Ranking], mean: impl Fn(usize) -> f64) -> Vec<String> {
    let mut remarks = Vec::new();
    let next = |ranking: &Ranking| ranking.figures[0].1 / ranking.figures[1].1;
    let (high, others): (Vec<&Ranking>, Vec<_>) =
        (rankings.iter()).partition(|ranking| next(ranking) > STANDS_OUT_RATIO);
    let heights = high
        .into_iter()
        .map(|one| (one.figures[0].0, (next(one), one.label.clone())));
    let deep =
        |(subject, ratio): &(usize, f64)| *ratio < FALLS_TO_RATIO && *ratio < mean(*subject) / 2.0;
    let falls = others.into_iter().flat_map(|ranking| {
        let deep = ranking.ratios().filter(deep);
        deep.map(move |(subject, ratio)| (subject, (ratio, &ranking.label)))
    });
    for (leader, rows) in grouped(heights) {
        let ratios = || rows.iter().map(|(ratio, _)| *ratio);
        let (least, most) = (
            ratios().fold(f64::MAX, f64::min),
            ratios().fold(0.0, f64::max),
        );
        let labels: Vec<String> = rows.iter().map(|(_, label)| label.clone()).collect();
        let times = distinct([least, most].map(|times| format!("{times:.0}"))).join(" to ");
        remarks.push(format!(
            "{} stands out in {} with {times} times the next",
            names[leader],
            jobs(&labels)
        ));
    }
    remarks.extend(grouped(falls).into_iter().filter_map(|(subject, rows)| {
        let (ratio, label) = rows.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!(
            "{} falls to {:.0}\u{a0}% of the best in job {label}",
            names[subject],
            100.0 * ratio
        ))
    }));
    remarks
}

impl Verdict {
    /// The names of the best, or the statement that there is none.
    pub(crate) fn winner(&self, names: &[String]) -> String {
        if self.best.is_empty() {
            return "no single winner".to_owned();
        }
        if let Some(open) = &self.open {
            let mut all = self.best.clone();
            all.extend(open.subjects.iter().filter(|one| !self.best.contains(one)));
            return format!("cannot tell between {}", named(&all, names));
        }
        named(&self.best, names)
    }

    /// The single best subject, if that is certain.
    pub(crate) fn sole_winner(&self) -> Option<usize> {
        match self.best.as_slice() {
            [one] if self.open.is_none() => Some(*one),
            _ => None,
        }
    }

    /// Whether the lead may be chance, or is within the disks' uncertainty.
    pub(crate) fn is_uncertain(&self) -> bool {
        let lead = self.lead.as_ref();
        self.open.is_some()
            || lead.is_some_and(|lead| matches!(lead.comparison.verdict, Answer::CannotTell { .. }))
    }

    /// The certainty of the lead, in words; empty for models of fitted disks.
    pub(crate) fn certainty(&self, names: &[String]) -> String {
        let mut sentences = Vec::new();
        if let Some(lead) = &self.lead {
            sentences.push(format!(
                "Against {}: {}.",
                names[lead.next], lead.comparison
            ));
        }
        if let Some(open) = &self.open {
            let nearest = &names[open.subjects[0]];
            sentences.push(format!("Against {nearest}: {}.", open.limits.words()));
        }
        sentences.join(" ")
    }

    /// The reason for the winner, in words.
    pub(crate) fn reason(&self, names: &[String]) -> String {
        let mut clauses = Vec::new();
        if self.best.is_empty() {
            let lead = |(subjects, labels): &(Vec<usize>, Vec<String>)| {
                format!("{} in {}", named(subjects, names), jobs(labels))
            };
            let leads: Vec<String> = self.leads.iter().map(lead).collect();
            clauses.push(format!("best are {}", leads.join("; ")));
        } else if self.behind.is_empty() {
            clauses.push(format!("all within {DRAW_PERCENT}\u{a0}%"));
        } else {
            let behind = behind(&self.behind, names);
            let over = if self.rows.len() > 1 {
                format!(", on average over {} rows", self.rows.len())
            } else {
                String::new()
            };
            clauses.push(format!("behind{over}: {behind}"));
        }
        clauses.extend(self.remarks.iter().cloned());
        clauses.join("; ")
    }
}

/// Lists subjects by their names, and of many only the first ones.
fn named(subjects: &[usize], names: &[String]) -> String {
    let own = subjects.iter().map(|&subject| names[subject].clone());
    list_of_many(&own.collect::<Vec<_>>())
}

/// The jobs in words: `job 1`, `jobs 1 and 2`, `27 rows`.
fn jobs(labels: &[String]) -> String {
    match labels.len() {
        1 => format!("job {}", labels[0]),
        few if few <= NAMED_ROWS => format!("jobs {}", list(labels)),
        many => format!("{many} rows"),
    }
}

/// A distance as tables have it, without its sign: what does something is not 100 % behind.
fn less(percent: f64) -> String {
    signed_percent(-percent).trim_start_matches('-').to_owned()
}

/// The distances of the other subjects, in words; the farthest of many in one clause.
fn behind(all: &[(usize, f64)], names: &[String]) -> String {
    let named = if all.len() > NAMED_BEHIND + 1 {
        NAMED_BEHIND
    } else {
        all.len()
    };
    let (near, far) = all.split_at(named);
    let mut clauses: Vec<String> = near
        .iter()
        .map(|(subject, percent)| format!("{} {}", names[*subject], less(*percent)))
        .collect();
    if let [(_, from), .., (_, to)] = far {
        let ends = distinct([from, to].map(|percent| less(*percent)));
        let percents = ends.join(" to ").replacen("\u{a0}% to", " to", 1);
        clauses.push(format!("{} others {percents}", far.len()));
    }
    list(&clauses)
}

#[cfg(test)]
mod tests;
