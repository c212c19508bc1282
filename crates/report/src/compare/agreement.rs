//! How far two runs of the same cells agree: a cross-validation of one bench by
//! another.
//!
//! Each cell of the second run is set beside the base's, in percent of the base's
//! figure, and judged by a bound that the reader declares: for a class of jobs, or
//! for all. Beside it stand the members' counts. A member's share is the part of
//! all commands of the array (reads and writes apart) that it served; the largest
//! difference of a share tells whether the two choose members alike, whatever
//! their speeds.

mod text;

use super::{ComparedCell, ComparedRow, RunComparison};
use crate::format::signed_percent_fine;
use serde::Serialize;
use std::str::FromStr;

/// How far a class of jobs may be apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The class; `None`: every one that has no bound of its own.
    pub class: Option<String>,
    /// Percent of the base's figure, either way; above 0.
    pub percent: f64,
}

/// A bound that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no bound: a percentage above 0, or a class of jobs with one")]
pub struct BoundError {
    text: String,
}

impl FromStr for Bound {
    type Err = BoundError;

    /// `3`, or `random-read=3`.
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

/// What one member did in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemberCounts {
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The two runs, cell by cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// The subjects, in the order of the base's rows.
    pub places: Vec<String>,
    /// The jobs, likewise.
    pub jobs: Vec<AgreementRow>,
    /// What came of each bound.
    pub classes: Vec<ClassAgreement>,
}

/// One job's row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgreementRow {
    /// The job's name, with its operation where it has several.
    pub label: String,
    /// Its class.
    pub class: String,
    /// In the order of the places; `None` where a run has no such cell, or an
    /// audit struck it out.
    pub cells: Vec<Option<AgreementCell>>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgreementCell {
    /// The second run's figure over the base's, less one, in percent.
    pub percent: f64,
    /// The same, printed.
    pub text: String,
    /// Whether that is within the bound; `None` where none is declared.
    pub within: Option<bool>,
    /// The base's members.
    pub base: Vec<MemberCounts>,
    /// The second run's.
    pub other: Vec<MemberCounts>,
    /// The largest difference of a member's share of the reads or of the writes,
    /// percent points; `None` where members were not counted.
    pub share_points: Option<f64>,
}

/// How the cells of a class stand to its bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassAgreement {
    /// The class.
    pub class: String,
    /// Its bound, percent.
    pub bound_percent: f64,
    /// Cells within it.
    pub within: usize,
    /// All its cells.
    pub cells: usize,
    /// The largest difference with its sign, percent.
    pub worst_percent: f64,
    /// The same, printed.
    pub worst_text: String,
    /// Where that is: `rand-read-32, md-raid1`.
    pub worst: String,
}

impl RunComparison {
    /// Cell by cell, how far run number `run` is from the base.
    pub(super) fn agreement(&self, run: usize, bounds: &[Bound]) -> Agreement {
        let mut rows: Vec<&ComparedRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.position);
        let mut places: Vec<String> = Vec::new();
        let mut jobs: Vec<AgreementRow> = Vec::new();
        for row in &rows {
            if !places.contains(&row.place) {
                places.push(row.place.clone());
            }
        }
        for row in rows {
            let at = jobs.iter().position(|job| job.label == row.label);
            let at = at.unwrap_or_else(|| {
                jobs.push(AgreementRow {
                    label: row.label.clone(),
                    class: row.class.clone(),
                    cells: vec![None; places.len()],
                });
                jobs.len() - 1
            });
            let place = places.iter().position(|place| *place == row.place);
            if let Some(place) = place {
                jobs[at].cells[place] = cell(row, run, bound(bounds, &row.class));
            }
        }
        let classes = classes(&places, &jobs, bounds);
        Agreement {
            places,
            jobs,
            classes,
        }
    }
}

/// The bound of a class: its own, else the one for all.
fn bound(bounds: &[Bound], class: &str) -> Option<f64> {
    let own = bounds
        .iter()
        .find(|bound| bound.class.as_deref() == Some(class));
    let all = || bounds.iter().find(|bound| bound.class.is_none());
    own.or_else(all).map(|bound| bound.percent)
}

fn cell(row: &ComparedRow, run: usize, bound: Option<f64>) -> Option<AgreementCell> {
    let (base, other) = (row.cells[0].as_ref()?, row.cells[run].as_ref()?);
    if base.struck || other.struck || base.value <= 0.0 {
        return None;
    }
    let percent = (other.value / base.value - 1.0) * 100.0;
    Some(AgreementCell {
        percent,
        text: signed_percent_fine(percent),
        within: bound.map(|bound| percent.abs() <= bound),
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

/// Parts of the whole; nothing where there is no whole.
#[expect(clippy::cast_precision_loss, reason = "shares for people")]
fn shares(counts: impl Iterator<Item = u64> + Clone) -> Vec<f64> {
    let all: u64 = counts.clone().sum();
    match all {
        0 => Vec::new(),
        all => counts.map(|count| count as f64 / all as f64).collect(),
    }
}

/// What came of each class that has a bound, in the order of jobs.
fn classes(places: &[String], jobs: &[AgreementRow], bounds: &[Bound]) -> Vec<ClassAgreement> {
    let mut all: Vec<ClassAgreement> = Vec::new();
    for job in jobs {
        let Some(bound_percent) = bound(bounds, &job.class) else {
            continue;
        };
        for (place, cell) in places.iter().zip(&job.cells) {
            let Some(cell) = cell else { continue };
            let at = all.iter().position(|one| one.class == job.class);
            let at = at.unwrap_or_else(|| {
                all.push(ClassAgreement {
                    class: job.class.clone(),
                    bound_percent,
                    within: 0,
                    cells: 0,
                    worst_percent: 0.0,
                    worst_text: String::new(),
                    worst: String::new(),
                });
                all.len() - 1
            });
            let class = &mut all[at];
            class.cells += 1;
            class.within += usize::from(cell.within == Some(true));
            if class.cells == 1 || cell.percent.abs() > class.worst_percent.abs() {
                class.worst_percent = cell.percent;
                class.worst_text.clone_from(&cell.text);
                class.worst = format!("{}, {place}", job.label);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Bound, MemberCounts, share_points};
    use crate::compare::{ComparedCell, compare};
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
        for one in &agreement.classes {
            let expected = if one.class == class { 0 } else { one.cells };
            assert_eq!(one.within, expected, "{}", one.class);
        }
    }

    #[test]
    fn shares_say_who_serves() {
        let cell = |reads: [u64; 2]| ComparedCell {
            members: reads
                .map(|reads| MemberCounts {
                    reads,
                    writes: 0,
                    read_bytes: 0,
                    written_bytes: 0,
                })
                .to_vec(),
            ..ComparedCell::default()
        };
        // 50 and 50 percent against 60 and 40, at twice the speed.
        let points = share_points(&cell([500, 500]), &cell([1200, 800])).unwrap();
        assert!((points - 10.0).abs() < 1e-9, "{points}");
        assert_eq!(share_points(&cell([0, 0]), &cell([1, 1])), None);
    }
}
