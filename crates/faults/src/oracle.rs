//! The permitted contents of each sector of the array.
//!
//! Every sector has a list of versions: its first content, and one for each write since, with the
//! moments when the write was submitted and done, whether it was acknowledged, and whether it is
//! durable. Moments are numbers of one counter that grows with every submission and every answer.
//!
//! * A version is **older** than another if it was done before the other was
//!   submitted. Two writes in flight together are in no order: either may be
//!   the last.
//! * A **read** may return any version that is not older than one that was
//!   acknowledged before the read was submitted.
//! * After a **power cut** a sector may contain any version that is not older
//!   than a durable one. Durable are an acknowledged write with
//!   force-unit-access, and an acknowledged write for which a flush that was
//!   submitted after the acknowledgement was acknowledged. The versions that
//!   remain are all done then, in no order.
//! * A write that **failed** may have landed, now or at any time before: its
//!   version stays, supersedes nothing, and is superseded by later ones.
//! * The value that a read of an ambiguous sector returned is **fixed** for the reads
//!   that follow, as long as there is no power cut, no change of the members
//!   and no write to the sector: md reads a mirror that is not in sync from
//!   its first member only, and a stripe has its data in one place. It is not
//!   fixed across these, except when everything is settled: all in sync, and
//!   flushed ([`Oracle::settle`]).
//! * A **discarded** range may contain anything from then on, until rewritten.

mod sector;
#[cfg(test)]
mod tests;

use crate::value::Value;
use sector::{Sector, Version};
use std::collections::BTreeMap;

/// A moment: a number of the oracle's counter.
pub type Moment = u64;

/// A write or read that the oracle knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// A sector with a value that is not permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The array sector with the wrong value.
    pub sector: u64,
    /// The value that was found.
    pub found: Value,
    /// The values that are permitted.
    pub allowed: Vec<Value>,
    /// Whether the value is that of one of the versions, but a newer one was promised, or another
    /// one had been fixed by a read.
    pub stale: bool,
}

/// The oracle of one array.
#[derive(Debug, Clone)]
pub struct Oracle {
    sectors: Vec<Sector>,
    now: Moment,
    /// The era, which grows with power cuts and changes of members: values that reads fixed in an
    /// earlier era are open again.
    era: u64,
    /// The moments and eras in which the reads and flushes in flight were
    /// submitted.
    in_flight: BTreeMap<OperationId, (Moment, u64)>,
}

impl Oracle {
    /// An oracle of an array whose sectors have these values.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = Value>) -> Self {
        Self {
            sectors: values.into_iter().map(Sector::new).collect(),
            now: 1,
            era: 0,
            in_flight: BTreeMap::new(),
        }
    }

    /// An oracle of an array each of whose sectors has one of several values.
    #[must_use]
    pub fn ambiguous(values: impl IntoIterator<Item = Vec<Value>>) -> Self {
        let mut oracle = Self::new([]);
        oracle.sectors = values.into_iter().map(Sector::ambiguous).collect();
        oracle
    }

    /// Returns the number of sectors of the array.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// Changes the size of the array. New sectors may contain anything. Returns false if durable
    /// data is lost.
    pub fn resize(&mut self, size: u64) -> bool {
        let now = self.moment();
        let mut lost = self.sectors.iter().skip(size as usize);
        let is_kept = lost.all(Sector::may_hold_anything);
        self.sectors
            .resize_with(size as usize, || Sector::unknown(now));
        is_kept
    }

    fn moment(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// Records that a write is submitted: one value for each sector from `start` on.
    pub fn write_submitted(
        &mut self,
        write: OperationId,
        start: u64,
        values: impl IntoIterator<Item = Value>,
    ) {
        let now = self.moment();
        let oldest_read = self.oldest_in_flight();
        for (sector, value) in self.sectors[start as usize..].iter_mut().zip(values) {
            sector.prune(oldest_read);
            sector
                .versions
                .push(Version::written(write, now, Some(value)));
            sector.fixed = None;
            sector.changed = now;
        }
    }

    /// Records that a discard is submitted.
    pub fn discard_submitted(&mut self, discard: OperationId, start: u64, count: u64) {
        let now = self.moment();
        for sector in &mut self.sectors[start as usize..(start + count) as usize] {
            sector.versions.push(Version::written(discard, now, None));
            sector.fixed = None;
            sector.changed = now;
        }
    }

    /// Records that a write or discard was acknowledged, or failed.
    pub fn write_done(
        &mut self,
        write: OperationId,
        (start, count): (u64, u64),
        acknowledged: bool,
        force_unit_access: bool,
    ) {
        let now = self.moment();
        for sector in &mut self.sectors[start as usize..(start + count) as usize] {
            let mine = |version: &&mut Version| version.write == write;
            if let Some(version) = sector.versions.iter_mut().find(mine) {
                version.done = now;
                version.acknowledged = acknowledged;
                version.durable = acknowledged && force_unit_access;
                sector.changed = now;
            }
        }
    }

    /// Records that a write or discard was refused: no part of it may ever be seen.
    pub fn write_refused(&mut self, write: OperationId, (start, count): (u64, u64)) {
        for sector in &mut self.sectors[start as usize..(start + count) as usize] {
            sector.versions.retain(|version| version.write != write);
        }
    }

    /// Records that a read or a flush is submitted.
    pub fn submitted(&mut self, operation: OperationId) {
        let now = self.moment();
        self.in_flight.insert(operation, (now, self.era));
    }

    /// Records that a flush was acknowledged: all that had been acknowledged when it was
    /// submitted is durable.
    pub fn flushed(&mut self, flush: OperationId) {
        let Some((submitted, _)) = self.in_flight.remove(&flush) else {
            return;
        };
        let now = self.moment();
        let oldest_read = self.oldest_in_flight();
        for sector in &mut self.sectors {
            if sector.is_plain() {
                continue;
            }
            sector.changed = now;
            for version in &mut sector.versions {
                version.durable |= version.acknowledged && version.done < submitted;
            }
            sector.prune(oldest_read);
        }
    }

    /// Records that a read or flush failed.
    pub fn failed(&mut self, operation: OperationId) {
        self.in_flight.remove(&operation);
    }

    /// Checks the values that a read returned.
    ///
    /// # Errors
    /// The first sector whose value is not permitted.
    pub fn read_done(
        &mut self,
        read: OperationId,
        start: u64,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<(), Wrong> {
        let Some((submitted, era)) = self.in_flight.remove(&read) else {
            return Ok(());
        };
        // The values of a read during which a member failed may be from two members.
        let era = Some(era).filter(|era| *era == self.era);
        for (sector, found) in (start..).zip(values) {
            let state = &mut self.sectors[sector as usize];
            state.check(submitted, era, found).map_err(|stale| Wrong {
                sector,
                found,
                allowed: state.readable(submitted),
                stale,
            })?;
        }
        Ok(())
    }

    /// Records that the array's members changed: values that reads fixed are open again.
    pub const fn members_changed(&mut self) {
        self.era += 1;
    }

    /// Records that the power was cut: nothing is in flight any more.
    pub fn power_cut(&mut self) {
        let now = self.moment();
        self.era += 1;
        self.in_flight.clear();
        for sector in &mut self.sectors {
            sector.power_cut(now);
        }
    }

    /// Permits any content of the range from now on: it is lost as agreed.
    pub fn forget(&mut self, start: u64, count: u64) {
        let now = self.moment();
        let end = (start + count).min(self.size());
        for sector in &mut self.sectors[start as usize..end as usize] {
            let mut version = Version::written(OperationId(u64::MAX), now, None);
            version.done = now;
            sector.versions.push(version);
            sector.fixed = None;
            sector.changed = now;
        }
    }

    /// Returns the moment of the latest record.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// Returns the sectors of which a write was submitted, ended or became durable after this
    /// moment, or may still be in a cache.
    pub fn changed_since(&self, moment: Moment) -> impl Iterator<Item = u64> + '_ {
        let sectors = (0..).zip(&self.sectors);
        let changed = sectors.filter(move |(_, it)| it.changed > moment || !it.is_plain());
        changed.map(|(sector, _)| sector)
    }

    /// Records that the sector has this value on every member, when everything is in sync and
    /// flushed, and nothing is in flight: it is the only one from now on.
    ///
    /// # Errors
    /// The value is not permitted.
    pub fn settle(&mut self, sector: u64, found: Value) -> Result<(), Wrong> {
        let now = self.now;
        let era = Some(self.era);
        let state = &mut self.sectors[sector as usize];
        if state.is_plain() && state.versions[0].value == Some(found) {
            return Ok(());
        }
        state.check(now + 1, era, found).map_err(|stale| Wrong {
            sector,
            found,
            allowed: state.readable(now + 1),
            stale,
        })?;
        *state = Sector {
            changed: now,
            ..Sector::new(found)
        };
        Ok(())
    }

    /// Whether the sector could have only one value after a power cut now.
    #[must_use]
    pub fn is_certain(&self, sector: u64) -> bool {
        self.sectors[sector as usize].survivors().count() == 1
    }

    /// Returns the values that the sector may have after a power cut now; `None` among them
    /// stands for any.
    pub fn survivors(&self, sector: u64) -> impl Iterator<Item = Option<Value>> + '_ {
        let sector = &self.sectors[sector as usize];
        sector.survivors().map(|version| version.value)
    }

    fn oldest_in_flight(&self) -> Moment {
        self.in_flight
            .values()
            .map(|(moment, _)| *moment)
            .min()
            .unwrap_or(self.now)
    }
}
