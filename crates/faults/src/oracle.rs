//! What each sector of the array may hold.
//!
//! Every sector has a list of versions: the content it had at first, and one
//! for each write since, with the moments when the write was submitted and
//! done, whether it was acknowledged, and whether it is durable. Moments are
//! numbers of one counter that grows with every submission and every answer.
//!
//! * A version is **older** than another if it was done before the other was
//!   submitted. Two writes in flight together are in no order: either may be
//!   the last.
//! * A **read** may return any version that is not older than one that was
//!   acknowledged before the read was submitted.
//! * After a **power cut** a sector may hold any version that is not older
//!   than a durable one. Durable are an acknowledged write with
//!   force-unit-access, and an acknowledged write for which a flush that was
//!   submitted after the acknowledgement was acknowledged. The versions that
//!   remain are all done then, in no order.
//! * A write that **failed** may have landed, now or at any time before: its
//!   version stays, supersedes nothing, and is superseded by later ones.
//! * What a read of an ambiguous sector returned is **fixed** for the reads
//!   that follow, as long as there is no power cut, no change of the members
//!   and no write to the sector: md reads a mirror that is not in sync from
//!   its first member only, and a stripe's data are where they are. It is not
//!   fixed across these, except when everything is settled: all in sync, and
//!   flushed ([`Oracle::settle`]).
//! * A **discarded** range may hold anything from then on, until rewritten.

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

/// What a sector held that it must not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The array sector that holds a wrong value.
    pub sector: u64,
    /// What was found.
    pub found: Value,
    /// What would have been right.
    pub allowed: Vec<Value>,
    /// Found is one of the versions, but a newer one was promised, or another
    /// one had been fixed by a read.
    pub stale: bool,
}

/// The oracle of one array.
#[derive(Debug, Clone)]
pub struct Oracle {
    sectors: Vec<Sector>,
    now: Moment,
    /// Grows with power cuts and changes of members: what reads fixed before
    /// is not fixed any more.
    era: u64,
    /// The moments and eras in which the reads and flushes in flight were
    /// submitted.
    in_flight: BTreeMap<OperationId, (Moment, u64)>,
}

impl Oracle {
    /// An array whose sectors hold these values.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = Value>) -> Self {
        Self {
            sectors: values.into_iter().map(Sector::new).collect(),
            now: 1,
            era: 0,
            in_flight: BTreeMap::new(),
        }
    }

    /// An array each of whose sectors holds one of several values.
    #[must_use]
    pub fn ambiguous(values: impl IntoIterator<Item = Vec<Value>>) -> Self {
        let mut oracle = Self::new([]);
        oracle.sectors = values.into_iter().map(Sector::ambiguous).collect();
        oracle
    }

    /// Sectors of the array.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// The array has so many sectors from now on. What is new may hold anything. False if
    /// something is lost that was durable.
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

    /// A write is submitted: one value for each sector from `start` on.
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

    /// A discard is submitted.
    pub fn discard_submitted(&mut self, discard: OperationId, start: u64, count: u64) {
        let now = self.moment();
        for sector in &mut self.sectors[start as usize..(start + count) as usize] {
            sector.versions.push(Version::written(discard, now, None));
            sector.fixed = None;
            sector.changed = now;
        }
    }

    /// A write or discard is acknowledged, or failed.
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

    /// A write or discard was refused: nothing of it may ever be seen.
    pub fn write_refused(&mut self, write: OperationId, (start, count): (u64, u64)) {
        for sector in &mut self.sectors[start as usize..(start + count) as usize] {
            sector.versions.retain(|version| version.write != write);
        }
    }

    /// A read or a flush is submitted.
    pub fn submitted(&mut self, operation: OperationId) {
        let now = self.moment();
        self.in_flight.insert(operation, (now, self.era));
    }

    /// A flush is acknowledged: what had been acknowledged when it was
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

    /// A read or flush failed.
    pub fn failed(&mut self, operation: OperationId) {
        self.in_flight.remove(&operation);
    }

    /// A read is answered with these values.
    ///
    /// # Errors
    /// The first sector that must not hold what was found.
    pub fn read_done(
        &mut self,
        read: OperationId,
        start: u64,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<(), Wrong> {
        let Some((submitted, era)) = self.in_flight.remove(&read) else {
            return Ok(());
        };
        // A read during which a member failed may be of two members.
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

    /// The array's members changed: what reads fixed is open again.
    pub const fn members_changed(&mut self) {
        self.era += 1;
    }

    /// The power was cut: nothing is in flight any more.
    pub fn power_cut(&mut self) {
        let now = self.moment();
        self.era += 1;
        self.in_flight.clear();
        for sector in &mut self.sectors {
            sector.power_cut(now);
        }
    }

    /// The range may hold anything from now on: lost by agreement.
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

    /// The moment of the latest thing that the oracle was told.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// The sectors of which something was written, ended or became durable
    /// after this moment, or may still be in a cache.
    pub fn changed_since(&self, moment: Moment) -> impl Iterator<Item = u64> + '_ {
        let sectors = (0..).zip(&self.sectors);
        let changed = sectors.filter(move |(_, it)| it.changed > moment || !it.is_plain());
        changed.map(|(sector, _)| sector)
    }

    /// Everything is in sync, nothing is in flight, all is flushed, and the
    /// sector was found to hold this value on every member: it holds no other.
    ///
    /// # Errors
    /// It must not hold it.
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

    /// Whether the sector could hold only one value after a power cut now.
    #[must_use]
    pub fn is_certain(&self, sector: u64) -> bool {
        self.sectors[sector as usize].survivors().count() == 1
    }

    /// The values that the sector may hold after a power cut now; `None` among
    /// them is any.
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
