//! One sector's versions.

use super::{Moment, OperationId};
use crate::value::Value;

/// What one write made, or may have made, of a sector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version {
    pub(super) write: OperationId,
    pub(super) submitted: Moment,
    /// [`Moment::MAX`] while in flight.
    pub(super) done: Moment,
    pub(super) acknowledged: bool,
    pub(super) durable: bool,
    /// `None`: anything (discarded or lost by agreement).
    pub(super) value: Option<Value>,
}

impl Version {
    pub(super) const fn written(write: OperationId, now: Moment, value: Option<Value>) -> Self {
        Self {
            write,
            submitted: now,
            done: Moment::MAX,
            acknowledged: false,
            durable: false,
            value,
        }
    }

    const fn is_older_than(&self, other: &Self) -> bool {
        self.done < other.submitted
    }
}

/// A sector.
#[derive(Debug, Clone)]
pub(super) struct Sector {
    pub(super) versions: Vec<Version>,
    /// What a read returned, and in which era.
    pub(super) fixed: Option<(Value, u64)>,
}

impl Sector {
    pub(super) fn new(value: Value) -> Self {
        Self {
            versions: vec![Version {
                write: OperationId(0),
                submitted: 0,
                done: 0,
                acknowledged: true,
                durable: true,
                value: Some(value),
            }],
            fixed: None,
        }
    }

    /// One of these values.
    pub(super) fn ambiguous(mut values: Vec<Value>) -> Self {
        values.sort_unstable();
        values.dedup();
        let only = values.len() == 1;
        let version = |value| Version {
            durable: only,
            ..Self::new(value).versions[0]
        };
        Self {
            versions: values.into_iter().map(version).collect(),
            fixed: None,
        }
    }

    /// Nothing but one durable version.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.versions.as_slice(), [only] if only.durable)
    }

    fn readable_versions(&self, submitted: Moment) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(move |version| {
            !self.versions.iter().any(|newer| {
                newer.acknowledged && newer.done < submitted && version.is_older_than(newer)
            })
        })
    }

    /// The values that a read submitted then may return; empty where anything
    /// is allowed.
    pub(super) fn readable(&self, submitted: Moment) -> Vec<Value> {
        let versions = self.readable_versions(submitted);
        versions
            .map(|version| version.value)
            .collect::<Option<Vec<Value>>>()
            .unwrap_or_default()
    }

    /// A read submitted then found this value. `Err` says whether it is an old
    /// one.
    pub(super) fn check(&mut self, submitted: Moment, era: u64, found: Value) -> Result<(), bool> {
        let right = self
            .readable_versions(submitted)
            .any(|version| version.value.is_none_or(|value| value == found));
        if !right {
            let known = |version: &Version| version.value == Some(found);
            return Err(self.versions.iter().any(known));
        }
        // A write in flight may land between two reads.
        if self
            .versions
            .iter()
            .any(|version| version.done == Moment::MAX)
        {
            return Ok(());
        }
        // A write that ended after this read began may have landed since.
        if self.versions.iter().any(|version| version.done > submitted) {
            return Ok(());
        }
        match self.fixed {
            Some((value, fixed_era)) if fixed_era == era && value != found => Err(true),
            _ => {
                self.fixed = Some((found, era));
                Ok(())
            }
        }
    }

    /// What a power cut may leave.
    pub(super) fn survivors(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| {
            let superseded = |newer: &Version| newer.durable && version.is_older_than(newer);
            !self.versions.iter().any(superseded)
        })
    }

    pub(super) fn power_cut(&mut self, now: Moment) {
        self.fixed = None;
        if self.is_plain() {
            return;
        }
        let survivors: Vec<Version> = self.survivors().copied().collect();
        self.versions = survivors;
        let one = self.versions.len() == 1;
        for version in &mut self.versions {
            version.done = now;
            version.acknowledged = true;
            version.durable = one;
        }
    }

    /// Forgets versions that neither a read in flight nor a power cut can
    /// bring back.
    pub(super) fn prune(&mut self, oldest_read: Moment) {
        if self.versions.len() < 2 {
            return;
        }
        let versions = std::mem::take(&mut self.versions);
        let gone = |version: &Version| {
            versions.iter().any(|newer| {
                newer.durable && newer.done < oldest_read && version.is_older_than(newer)
            })
        };
        self.versions = versions
            .iter()
            .filter(|version| !gone(version))
            .copied()
            .collect();
    }
}
