//! The agreement of two runs of the same cells: a cross-validation of one bench by another.
//!
//! Each cell of the second run is compared with the base's, in percent of the base's figure, and
//! judged by the bounds that the reader declares: for a class of jobs, or for all. The cells within
//! each bound are counted; a cell is "beyond" where it exceeds the widest bound of its class. If the
//! second run has repetitions, the cells are counted too whose base is no further from the
//! repetitions' range than that: what is beyond the bound and near the range may be chance. The
//! members' counts are shown beside it. A member's share is the part of all commands of the array
//! (reads and writes apart) that it served; the largest difference of a share shows whether the two
//! runs choose members alike, whatever their speeds.

#[cfg(test)]
mod tests;
mod text;

use super::{ComparedCell, ComparedRow, RunComparison};
use crate::format::{figure as shown, signed_percent_fine};
use raidlab_units::distinct;
use serde::Serialize;
use std::str::FromStr;

/// A bound on the difference between runs for a class of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The class; `None` for every class without a bound of its own.
    pub class: Option<String>,
    /// The bound, percent of the base's figure, either way; above 0.
    pub percent: f64,
}

/// The error of a bound that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no bound: a percentage above 0, or a class of jobs with one")]
pub struct BoundError {
    text: String,
}

impl FromStr for Bound {
    type Err = BoundError;

    /// Parses `3`, or `random-read=3`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || BoundError {
            text: text.to_owned(),
        };
        let (class, percent) = match text.split_once('=') {
            Some((class, percent)) => (Some(class.to_owned()), percent),
            None => (None, text),
        };
        let percent: f64 = percent.parse().map_err(|_| error())?;
        let sane = percent > 0.0 && percent.is_finite() && class.as_deref() != Some("");
        sane.then_some(Self { class, percent }).ok_or_else(error)
    }
}

/// The counts of one member in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemberCounts {
    /// The number of read commands of the member.
    pub reads: u64,
    /// The number of write commands of the member.
    pub writes: u64,
}

/// The agreement of two runs, cell by cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// The subjects, in the order of the base's rows.
    pub places: Vec<String>,
    /// The jobs, in the order of the base's rows.
    pub jobs: Vec<AgreementRow>,
    /// Whether most jobs ran on few subjects: then only the cells beyond their bounds are shown.
    pub is_sparse: bool,
    /// The bounds, percent, the narrowest first.
    pub bounds: Vec<f64>,
    /// The results for each class, and for all classes together where there are several and none
    /// has bounds of its own.
    pub classes: Vec<ClassAgreement>,
    /// The cells beyond their bounds, the farthest first.
    pub beyond: Vec<BeyondCell>,
    /// The number of cells that are in one of the runs only, that an audit struck out, whose time
    /// had not ended, or whose figure is 0 in the base or not known.
    pub not_compared: usize,
}

/// A cell beyond its bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeyondCell {
    /// The name of the cell's job.
    pub job: String,
    /// The subject, and what else distinguishes the row (file system, host).
    pub place: String,
    /// The job's class.
    pub class: String,
    /// Both figures, base first.
    pub figures: [String; 2],
    /// The unit of both figures: `iops`, `MB/s`, `s`.
    pub unit: &'static str,
    /// The difference, percent.
    pub percent: f64,
    /// The difference as printed.
    pub text: String,
}

/// The row of one job, with a cell for each subject.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgreementRow {
    /// The job's name, with its operation where it has several.
    pub label: String,
    /// The class that the job belongs to.
    pub class: String,
    /// The cells in the order of the places; `None` where a run has no such cell, an audit struck
    /// it out, or its time had not ended.
    pub cells: Vec<Option<AgreementCell>>,
}

/// One cell that both runs have, with both figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgreementCell {
    /// The second run's figure over the base's, less one, in percent.
    pub percent: f64,
    /// The difference as printed.
    pub text: String,
    /// Whether the difference is within the bound; `None` where none is declared.
    pub within: Option<bool>,
    /// Whether the base is within the bound of the range of the second run's repetitions; `None`
    /// for a single one, and where no bound is declared.
    pub near_range: Option<bool>,
    /// The counts of each member in the base's run, slot by slot.
    pub base: Vec<MemberCounts>,
    /// The counts of each member in the second run, slot by slot.
    pub other: Vec<MemberCounts>,
    /// The largest difference of a member's share of the reads or of the writes,
    /// percent points; `None` where members were not counted.
    pub share_points: Option<f64>,
}

/// The cells of a class counted by its bounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassAgreement {
    /// The class; [`ALL_CLASSES`] for all together.
    pub class: String,
    /// The number of cells of the class.
    pub cells: usize,
    /// The number of cells within each of the agreement's bounds; `None` where the bound is not one
    /// of the class.
    pub within: Vec<Option<usize>>,
    /// The number of cells whose base is within the widest bound of the range of the second run's
    /// repetitions; `None` if no cell of the class has repetitions.
    pub near_range: Option<usize>,
    /// The median of the absolute differences, as printed.
    pub median_text: String,
    /// The largest difference as printed.
    pub worst_text: String,
    /// The cell with the largest difference: `rand-read-32, md-raid1`.
    pub worst: String,
}

/// The name of all classes together.
pub const ALL_CLASSES: &str = "all";

impl RunComparison {
    /// The agreement of run number `run` with the base, cell by cell.
    pub(super) fn agreement(&self, run: usize, bounds: &[Bound]) -> Agreement {
        let mut rows: Vec<&ComparedRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.position);
        let places = distinct(rows.iter().map(|row| row.place.clone()));
        let mut jobs: Vec<AgreementRow> = Vec::new();
        let (mut beyond, mut not_compared) = (Vec::new(), 0);
        for row in rows {
            let label = own_label(row, &self.rows);
            let at = jobs.iter().position(|job| job.label == label);
            let at = at.unwrap_or_else(|| {
                jobs.push(AgreementRow {
                    label,
                    class: row.class.clone(),
                    cells: vec![None; places.len()],
                });
                jobs.len() - 1
            });
            let place = places.iter().position(|place| *place == row.place);
            if let Some(place) = place {
                jobs[at].cells[place] = cell(row, run, widest(bounds, &row.class));
                not_compared += usize::from(jobs[at].cells[place].is_none());
                beyond.extend(beyond_cell(row, run, jobs[at].cells[place].as_ref()));
            }
        }
        beyond.sort_by(|one, other| other.percent.abs().total_cmp(&one.percent.abs()));
        let mut percents: Vec<f64> = bounds.iter().map(|bound| bound.percent).collect();
        percents.sort_by(f64::total_cmp);
        percents.dedup();
        let cells = jobs.iter().flat_map(|job| &job.cells).flatten().count();
        Agreement {
            is_sparse: cells * 2 < jobs.len() * places.len(),
            classes: classes(&places, &jobs, bounds, &percents),
            bounds: percents,
            places,
            jobs,
            beyond,
            not_compared,
        }
    }
}

/// A row's label; for background work with its unit, where a job has the same name, as
/// `recovery` may be.
fn own_label(row: &ComparedRow, all: &[ComparedRow]) -> String {
    let is_jobs = |other: &ComparedRow| !other.in_background && other.label == row.label;
    if row.in_background && all.iter().any(is_jobs) {
        format!("{} ({})", row.label, row.unit)
    } else {
        row.label.clone()
    }
}

/// The bounds of a class: its own, else those for all.
fn bounds_of<'a>(bounds: &'a [Bound], class: &str) -> impl Iterator<Item = f64> + use<'a> {
    let own = |bound: &Bound| bound.class.as_deref() == Some(class);
    let wanted = bounds.iter().find(|bound| own(bound));
    let wanted = wanted.and_then(|bound| bound.class.clone());
    let its = bounds.iter().filter(move |bound| bound.class == wanted);
    its.map(|bound| bound.percent)
}

/// The widest bound of a class.
fn widest(bounds: &[Bound], class: &str) -> Option<f64> {
    bounds_of(bounds, class).reduce(f64::max)
}

/// The cell as an entry beyond its bound, if it is.
fn beyond_cell(row: &ComparedRow, run: usize, cell: Option<&AgreementCell>) -> Option<BeyondCell> {
    let cell = cell.filter(|cell| cell.within == Some(false))?;
    let figure = |run: usize| {
        let found = row.cells[run].as_ref();
        found.map_or_else(String::new, |cell| match cell.range {
            Some([low, high]) => format!("{} ({} to {})", cell.text, shown(low), shown(high)),
            None => cell.text.clone(),
        })
    };
    Some(BeyondCell {
        job: row.label.clone(),
        place: row.place.clone(),
        class: row.class.clone(),
        figures: [figure(0), figure(run)],
        unit: row.unit,
        percent: cell.percent,
        text: cell.text.clone(),
    })
}

fn cell(row: &ComparedRow, run: usize, bound: Option<f64>) -> Option<AgreementCell> {
    let (base, other) = (row.cells[0].as_ref()?, row.cells[run].as_ref()?);
    // The difference of a time that had not ended is unknown.
    let is_known = |cell: &ComparedCell| !cell.struck && !cell.at_least && cell.told;
    if !is_known(base) || !is_known(other) || base.value <= 0.0 {
        return None;
    }
    let percent = (other.value / base.value - 1.0) * 100.0;
    let near_range = bound.zip(other.range).map(|(bound, [low, high])| {
        let slack = base.value * bound / 100.0;
        (low - slack..=high + slack).contains(&base.value)
    });
    Some(AgreementCell {
        percent,
        text: signed_percent_fine(percent),
        within: bound.map(|bound| percent.abs() <= bound),
        near_range,
        base: base.members.clone(),
        other: other.members.clone(),
        share_points: share_points(base, other),
    })
}

/// The largest difference of a member's share.
fn share_points(base: &ComparedCell, other: &ComparedCell) -> Option<f64> {
    let counts: [fn(&MemberCounts) -> u64; 2] = [|member| member.reads, |member| member.writes];
    let mut largest: Option<f64> = None;
    for count in counts {
        let shares = |cell: &ComparedCell| shares(cell.members.iter().map(count));
        for (own, others) in shares(base).into_iter().zip(shares(other)) {
            let points = (own - others).abs() * 100.0;
            largest = Some(largest.map_or(points, |most| most.max(points)));
        }
    }
    largest
}

/// The shares of the whole; empty where the whole is 0.
fn shares(counts: impl Iterator<Item = u64> + Clone) -> Vec<f64> {
    let all: u64 = counts.clone().sum();
    match all {
        0 => Vec::new(),
        all => counts.map(|count| count as f64 / all as f64).collect(),
    }
}

/// The results of each class that has a bound, in the order of jobs, then of all together.
fn classes(
    places: &[String],
    jobs: &[AgreementRow],
    bounds: &[Bound],
    percents: &[f64],
) -> Vec<ClassAgreement> {
    let judged = jobs.iter().flat_map(|job| {
        let cells = places.iter().zip(&job.cells);
        cells.filter_map(move |(place, cell)| Some((job, place.as_str(), cell.as_ref()?)))
    });
    let judged: Vec<Judged<'_>> = judged.filter(|(.., cell)| cell.within.is_some()).collect();
    let names = distinct(judged.iter().map(|(job, ..)| job.class.as_str()));
    let mut all: Vec<ClassAgreement> = names
        .iter()
        .map(|class| {
            let own = judged.iter().filter(|(job, ..)| job.class == *class);
            let bounds: Vec<f64> = bounds_of(bounds, class).collect();
            class_agreement(class, own.copied().collect(), &bounds, percents)
        })
        .collect();
    if all.len() > 1 && bounds.iter().all(|bound| bound.class.is_none()) {
        all.push(class_agreement(ALL_CLASSES, judged, percents, percents));
    }
    all
}

/// A cell with its job and subject.
type Judged<'a> = (&'a AgreementRow, &'a str, &'a AgreementCell);

/// The results of a class. `own`: the class's bounds; `percents`: the bounds by which
/// cells are counted.
fn class_agreement(
    class: &str,
    cells: Vec<Judged<'_>>,
    own: &[f64],
    percents: &[f64],
) -> ClassAgreement {
    let size = |cell: &Judged<'_>| cell.2.percent.abs();
    let within = |percent: &f64| {
        let count = cells.iter().filter(|cell| size(cell) <= *percent).count();
        own.contains(percent).then_some(count)
    };
    let near: Vec<bool> = cells.iter().filter_map(|cell| cell.2.near_range).collect();
    let mut sizes: Vec<f64> = cells.iter().map(size).collect();
    sizes.sort_by(f64::total_cmp);
    let middle = sizes.len() / 2;
    let median = match sizes.len() % 2 {
        0 => f64::midpoint(sizes[middle.saturating_sub(1)], sizes[middle]),
        _ => sizes[middle],
    };
    // Among equal ones the first is kept.
    let farther = |one: &Judged<'_>, other: &Judged<'_>| size(other) > size(one);
    let worst = cells.iter().copied();
    let worst = worst.reduce(|one, other| if farther(&one, &other) { other } else { one });
    ClassAgreement {
        class: class.to_owned(),
        cells: cells.len(),
        within: percents.iter().map(within).collect(),
        near_range: (!near.is_empty()).then(|| near.iter().filter(|is_near| **is_near).count()),
        median_text: format!("{median:.1}\u{a0}%"),
        worst_text: worst.map_or_else(String::new, |(.., cell)| cell.text.clone()),
        worst: worst.map_or_else(String::new, |(job, place, _)| {
            format!("{}, {place}", job.label)
        }),
    }
}
