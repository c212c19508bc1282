//! The permitted contents of one sector of the array: the versions that writes have made of it.
//!
//! A write adds a version when it is submitted, which ends when it is acknowledged or fails. A
//! version is *older* than another if it had ended before the other was submitted; of two that were
//! in flight together either may be the later one.
//!
//! - *A read* may return any version that is not older than one that was acknowledged before
//!   the read was submitted. Once nothing is in flight, all reads must return the same one.
//! - *A power cut* may leave any version that is not older than a durable one. All that may be
//!   left are then acknowledged; a later read decides which of them it is.

use super::{Moment, OperationId};
use crate::value::Value;

/// The version that one write made, or may have made, of a sector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version {
    pub(super) write: OperationId,
    pub(super) submitted: Moment,
    /// The moment when the write ended; [`Moment::MAX`] while it is in flight.
    pub(super) done: Moment,
    pub(super) acknowledged: bool,
    pub(super) durable: bool,
    /// The value; `None`: any (discarded or lost as agreed).
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
}

/// Returns the moment before which a version must have ended to be older than one of these: a
/// version is older if it ended before the other was submitted.
fn latest<'a>(versions: impl Iterator<Item = &'a Version>) -> Moment {
    versions.map(|version| version.submitted).max().unwrap_or(0)
}

/// The permitted contents of one sector of the array.
#[derive(Debug, Clone)]
pub(super) struct Sector {
    pub(super) versions: Vec<Version>,
    /// The value that a read returned, and the era of the read.
    pub(super) fixed: Option<(Value, u64)>,
    /// The moment when a version was last added, ended, or became durable.
    pub(super) changed: Moment,
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
            changed: 0,
        }
    }

    /// A sector with unknown content from this moment on.
    pub(super) fn unknown(now: Moment) -> Self {
        let mut version = Version::written(OperationId(u64::MAX), now, None);
        version.done = now;
        Self {
            versions: vec![version],
            fixed: None,
            changed: now,
        }
    }

    /// Whether the sector may have any content after a power cut.
    pub(super) fn may_hold_anything(&self) -> bool {
        self.survivors().any(|version| version.value.is_none())
    }

    /// A sector that may hold any one of these values.
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
            changed: 0,
        }
    }

    /// Whether the sector has only one version, which is durable.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.versions.as_slice(), [only] if only.durable)
    }

    fn readable_versions(&self, submitted: Moment) -> impl Iterator<Item = &Version> {
        let promised = |version: &&Version| version.acknowledged && version.done < submitted;
        let limit = latest(self.versions.iter().filter(promised));
        let versions = self.versions.iter();
        versions.filter(move |version| version.done >= limit)
    }

    /// Returns the values that a read submitted at that moment may return; empty where
    /// any is permitted.
    pub(super) fn readable(&self, submitted: Moment) -> Vec<Value> {
        let versions = self.readable_versions(submitted);
        versions
            .map(|version| version.value)
            .collect::<Option<Vec<Value>>>()
            .unwrap_or_default()
    }

    /// Checks the value that a read submitted at that moment returned; `era` is `None` if it fixes
    /// nothing. The error tells whether the value is an old one.
    pub(super) fn check(
        &mut self,
        submitted: Moment,
        era: Option<u64>,
        found: Value,
    ) -> Result<(), bool> {
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
        let Some(era) = era else {
            return Ok(());
        };
        match self.fixed {
            Some((value, fixed_era)) if fixed_era == era && value != found => Err(true),
            _ => {
                self.fixed = Some((found, era));
                Ok(())
            }
        }
    }

    /// Returns the versions that a power cut may leave.
    pub(super) fn survivors(&self) -> impl Iterator<Item = &Version> {
        let limit = self.latest_durable();
        let versions = self.versions.iter();
        versions.filter(move |version| version.done >= limit)
    }

    fn latest_durable(&self) -> Moment {
        latest(self.versions.iter().filter(|version| version.durable))
    }

    pub(super) fn power_cut(&mut self, now: Moment) {
        self.fixed = None;
        if self.is_plain() {
            return;
        }
        self.changed = now;
        let limit = self.latest_durable();
        self.versions.retain(|version| version.done >= limit);
        let one = self.versions.len() == 1;
        for version in &mut self.versions {
            version.done = now;
            version.acknowledged = true;
            version.durable = one;
        }
    }

    /// Removes versions that neither a read in flight nor a power cut can bring back.
    pub(super) fn prune(&mut self, oldest_read: Moment) {
        if self.versions.len() < 2 {
            return;
        }
        let settled = |version: &&Version| version.durable && version.done < oldest_read;
        let limit = latest(self.versions.iter().filter(settled));
        self.versions.retain(|version| version.done >= limit);
    }
}
