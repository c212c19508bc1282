//! The uncertainty of modelled disks that were not fitted, and what follows for figures and ranks.
//!
//! A row of such disks carries a band: how far the real rate may be from the modelled one
//! ([`DiskBand`]). Two figures on the same disks err together: their ratio is known better than
//! either. So there are two kinds of comparison. On the same disks the error of the ratio counts,
//! after the common error has cancelled; on different disks each figure may lie anywhere in its own
//! band. A lead that vanishes at the worse end is not counted as one.

use crate::format::{figure, list};
use raidlab_store::{DiskBand, Measurement};
use std::collections::BTreeSet;

/// The range of the real figure, in the unit of `value`; `None` where all disks were fitted, or are
/// real, and where there is no figure.
pub(crate) fn around(m: &Measurement, value: f64) -> Option<(f64, f64)> {
    let band = m.disk_band.filter(|_| value > 0.0)?;
    Some((value * band.low, value * band.high))
}

/// A band as tables print it, in its figure's unit: `128…326`.
pub(crate) fn words((low, high): (f64, f64)) -> String {
    format!("{}…{}", figure(low), figure(high))
}

/// The range of the real ratio of two figures, given the uncertainty of their disks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// The lower factor: the real ratio is at least so many times the modelled one.
    pub low: f64,
    /// The upper factor: the real ratio is at most so many times the modelled one.
    pub high: f64,
    /// Whether the two ran on the same disks, whose common error cancels.
    pub same_disks: bool,
}

impl Limits {
    /// The limits of `one` over `other`; `None` where there is no uncertainty.
    pub(crate) fn of(one: &Measurement, other: &Measurement) -> Option<Self> {
        if one.disk_band.is_none() && other.disk_band.is_none() {
            return None;
        }
        let known = DiskBand {
            low: 1.0,
            high: 1.0,
            ratio: 1.0,
        };
        let [a, b] = [one, other].map(|m| m.disk_band.unwrap_or(known));
        let same_disks = models(one) == models(other);
        let (low, high) = if same_disks {
            let ratio = a.ratio.max(b.ratio);
            (1.0 / ratio, ratio)
        } else {
            (a.low / b.high, a.high / b.low)
        };
        Some(Self {
            low,
            high,
            same_disks,
        })
    }

    /// The limits of a geometric mean of ratios, each with its own limits: those of one disk err
    /// together, so the mean errs as they do on average. Ratios without limits count.
    pub(crate) fn mean(all: &[Option<Self>]) -> Option<Self> {
        let there: Vec<&Self> = all.iter().flatten().collect();
        let first = there.first()?;
        let count = all.len() as f64;
        let mean = |end: fn(&Self) -> f64| {
            (there.iter().map(|one| end(one).ln()).sum::<f64>() / count).exp()
        };
        Some(Self {
            low: mean(|one| one.low),
            high: mean(|one| one.high),
            same_disks: first.same_disks && there.iter().all(|one| one.same_disks),
        })
    }

    /// Whether a modelled ratio may really be 1, or on its other side.
    pub(crate) fn leave_open(&self, ratio: f64) -> bool {
        ratio * self.low <= 1.0 && 1.0 <= ratio * self.high
    }

    /// The uncertainty that keeps the comparison open, or does not, in words.
    pub(crate) fn words(&self) -> String {
        if self.same_disks {
            format!(
                "the disks were never fitted; as both ran on the same ones, the ratio is known \
                 within a factor of {:.2}",
                self.high
            )
        } else {
            format!(
                "the disks were never fitted and are not the same, so that the real ratio may be \
                 {:.2} to {:.2} times this one",
                self.low, self.high
            )
        }
    }
}

/// The models of the disks that took part: an idle member says nothing of a figure.
fn models(m: &Measurement) -> BTreeSet<&str> {
    let members = m.members.iter();
    let busy = members.filter(|member| member.read_ios + member.write_ios > 0);
    busy.map(|member| member.model.as_str()).collect()
}

/// The disks without a fit in some rows, in words; empty where there are none.
///
/// A row has no band where all disks that took part were fitted: so those of such rows are.
/// Where that leaves several of a row with a band, one of them may be fitted all the same.
pub(crate) fn unfitted<'a>(rows: impl Iterator<Item = &'a Measurement> + Clone) -> String {
    let fitted: BTreeSet<&str> = rows
        .clone()
        .filter(|m| m.disk_band.is_none())
        .flat_map(models)
        .collect();
    let others: Vec<BTreeSet<&str>> = rows
        .filter(|m| m.disk_band.is_some())
        .map(|m| &models(m) - &fitted)
        .collect();
    let names: Vec<&str> = others
        .iter()
        .flatten()
        .copied()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let known = |name: &&str| {
        others
            .iter()
            .any(|one| one.len() == 1 && one.contains(name))
    };
    let of_all = if names.iter().all(known) {
        ""
    } else {
        "all of "
    };
    format!("{of_all}{}", list(&names))
}

#[cfg(test)]
mod tests {
    use super::{Limits, around, unfitted, words};
    use crate::sample;
    use raidlab_store::{DiskBand, Measurement};

    fn on(disk: &str, band: Option<DiskBand>) -> Measurement {
        let mut m = sample::cell("md", 0);
        for member in &mut m.members {
            disk.clone_into(&mut member.model);
        }
        m.disk_band = band;
        m
    }

    const BAND: Option<DiskBand> = Some(DiskBand {
        low: 0.5,
        high: 2.0,
        ratio: 1.2,
    });

    #[test]
    fn a_figure_has_its_band_in_words() {
        assert_eq!(around(&on("a", None), 100.0), None);
        let band = around(&on("a", BAND), 100.0).unwrap();
        assert_eq!(words(band), "50.0…200.0");
    }

    #[test]
    fn on_the_same_disks_the_common_error_cancels() {
        let same = Limits::of(&on("a", BAND), &on("a", BAND)).unwrap();
        assert!(same.same_disks && same.leave_open(1.19) && !same.leave_open(1.21));
        assert!(same.leave_open(1.0 / 1.19) && !same.leave_open(1.0 / 1.21));
        let other = Limits::of(&on("a", BAND), &on("b", BAND)).unwrap();
        assert!(!other.same_disks && other.leave_open(3.9) && !other.leave_open(4.1));
        let fitted = Limits::of(&on("a", BAND), &on("b", None)).unwrap();
        assert_eq!((fitted.low, fitted.high), (0.5, 2.0));
        assert_eq!(Limits::of(&on("a", None), &on("b", None)), None);
    }

    /// Two mirrors of the same unlike disks, each of which reads another one of them.
    #[test]
    fn an_idle_member_makes_no_disks_the_same() {
        let read_by = |reader: usize| {
            let mut m = on("a", BAND);
            "b".clone_into(&mut m.members[1].model);
            for (place, member) in m.members.iter_mut().enumerate() {
                (member.read_ios, member.write_ios) = (u64::from(place == reader), 0);
            }
            m
        };
        assert!(Limits::of(&read_by(0), &read_by(0)).unwrap().same_disks);
        let other = Limits::of(&read_by(0), &read_by(1)).unwrap();
        assert!(!other.same_disks && other.leave_open(3.9));
    }

    #[test]
    fn over_several_rows_the_limits_are_averaged() {
        let one = Limits::of(&on("a", BAND), &on("b", None));
        let mean = Limits::mean(&[one, None]).unwrap();
        assert!((mean.high - 2.0_f64.sqrt()).abs() < 1e-9, "{mean:?}");
        assert_eq!(Limits::mean(&[None, None]), None);
    }

    #[test]
    fn a_fitted_disk_beside_others_is_not_said_to_lack_a_fit() {
        let pair = |one: &str, other: &str, band| {
            let mut m = on(one, band);
            other.clone_into(&mut m.members[1].model);
            for member in &mut m.members {
                member.read_ios = 1;
            }
            m
        };
        let said = |rows: &[Measurement]| unfitted(rows.iter());
        let mixed = pair("fitted", "evo", BAND);
        assert_eq!(
            said(&[mixed.clone(), pair("fitted", "fitted", None)]),
            "evo"
        );
        assert_eq!(said(std::slice::from_ref(&mixed)), "all of evo and fitted");
        assert_eq!(
            said(&[mixed, pair("evo", "evo", BAND)]),
            "all of evo and fitted"
        );
        assert_eq!(
            said(&[pair("a", "a", BAND), pair("b", "b", BAND)]),
            "a and b"
        );
        assert_eq!(said(&[pair("a", "a", None)]), "");
    }
}
