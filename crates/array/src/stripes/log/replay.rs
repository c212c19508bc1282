//! Replay: the writes in the logs that must be repeated.

use super::super::config::BLOCK;
use super::super::{Mutation, mutated};
use super::record::{HEADER_BYTES, Header};
use crate::request::Slot;
use raidlab_geometry::{MAXIMUM_MEMBERS, SlotSet};
use raidlab_units::{SECTOR_BYTES, Sectors};
use std::collections::BTreeMap;

/// The part of a member's data that is trusted to be current when logs are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The member is in sync: its data are right everywhere.
    Everywhere,
    /// The member is recovered below this sector of its data area.
    Below(Sectors),
}

/// The ring of a member that survives.
#[derive(Debug, Clone, Copy)]
pub struct LogArea<'a> {
    /// The slot of the member whose log this is.
    pub slot: Slot,
    /// All bytes of the ring.
    pub bytes: &'a [u8],
    /// The part of its data that counts. A member without such a part is not given.
    pub trust: Trust,
}

/// A write that repeats one that may not have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayWrite {
    /// The slot of the member that is written.
    pub slot: Slot,
    /// The first sector in its data area.
    pub start: Sectors,
    /// The bytes: whole sectors.
    pub bytes: Vec<u8>,
}

/// The reason why logs cannot belong to one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A slot that no array has.
    #[error("slot {} is beyond the last possible one", .0.0)]
    NoSuchSlot(Slot),
    /// Two log areas are given for one slot.
    #[error("slot {} has two logs", .0.0)]
    TwoLogs(Slot),
}

struct FoundRecord<'a> {
    header: Header,
    /// The bytes of each extent of the record.
    payload: Vec<&'a [u8]>,
}

struct Transaction<'a> {
    batch: u64,
    participants: SlotSet,
    start: u64,
    records: BTreeMap<Slot, FoundRecord<'a>>,
}

/// The records in the rings of all members.
#[derive(Default)]
struct Found<'a> {
    trust: BTreeMap<Slot, Trust>,
    /// The transactions by number, in the order in which they are written again.
    transactions: BTreeMap<u64, Transaction<'a>>,
    newest_batch: u64,
}

/// Returns the writes to be repeated, in this order, before the array starts: the committed
/// transactions of a session. `member_size` is the sectors of the members' data areas; records that
/// point beyond it do not count. The writes have no more bytes than the areas. Any bytes are
/// accepted: parts that are not an intact record are skipped.
///
/// # Errors
/// When the areas are not of different slots of one array.
pub fn replay(
    session: u64,
    member_size: Sectors,
    areas: &[LogArea<'_>],
) -> Result<Vec<ReplayWrite>, LogError> {
    let found = Found::on(areas, session, member_size)?;
    let mut writes = Vec::new();
    let transactions = found.transactions.values();
    for transaction in transactions.filter(|it| found.is_committed(it)) {
        for (slot, record) in &transaction.records {
            if !found.counts(*slot, transaction.start) {
                continue;
            }
            for ((start, _), bytes) in record.header.extents.iter().zip(&record.payload) {
                writes.push(ReplayWrite {
                    slot: *slot,
                    start: Sectors(*start),
                    bytes: bytes.to_vec(),
                });
            }
        }
    }
    if mutated(Mutation::ReplayReversed) {
        writes.reverse();
    }
    Ok(writes)
}

impl<'a> Found<'a> {
    /// Collects the transactions of all rings, without those that the rings' own announcements and
    /// marks make void.
    fn on(areas: &[LogArea<'a>], session: u64, member_size: Sectors) -> Result<Self, LogError> {
        let mut found = Self::default();
        // Below the newest mark no record counts, in any ring.
        let mut floor = 0;
        for area in areas {
            if area.slot.index() >= MAXIMUM_MEMBERS {
                return Err(LogError::NoSuchSlot(area.slot));
            }
            if found.trust.insert(area.slot, area.trust).is_some() {
                return Err(LogError::TwoLogs(area.slot));
            }
            let records = records(area, session, member_size);
            // The ring's newest announcement.
            let oldest = records.iter().map(|record| record.header.oldest).max();
            for record in records {
                let header = &record.header;
                if Some(header.transaction) < oldest && !mutated(Mutation::ReplayVoidCounts) {
                    continue;
                }
                if header.is_mark() {
                    floor = floor.max(header.oldest);
                }
                found.newest_batch = found.newest_batch.max(header.batch);
                let transaction = found.transactions.entry(header.transaction);
                let transaction = transaction.or_insert_with(|| Transaction {
                    batch: header.batch,
                    participants: header.participants,
                    start: header.window.0,
                    records: BTreeMap::new(),
                });
                transaction.records.insert(area.slot, record);
            }
        }
        let is_open = |number: u64| number >= floor || mutated(Mutation::ReplayMarkIgnored);
        found.transactions.retain(|number, _| is_open(*number));
        Ok(found)
    }

    /// Whether a member's data at this sector of its data area are current.
    fn counts(&self, slot: Slot, start: u64) -> bool {
        match self.trust.get(&slot) {
            None => false,
            Some(Trust::Everywhere) => true,
            Some(Trust::Below(sector)) => {
                start < sector.0 || mutated(Mutation::ReplayUnfilledTrusted)
            }
        }
    }

    /// Whether the transaction's records are on all members that count, as they are when a
    /// later batch began.
    fn is_committed(&self, transaction: &Transaction) -> bool {
        let needed = transaction.participants.iter();
        let mut needed = needed.filter(|slot| self.counts(*slot, transaction.start));
        transaction.batch < self.newest_batch
            || needed.all(|slot| transaction.records.contains_key(&slot))
            || mutated(Mutation::ReplayIncomplete)
    }
}

/// Returns the intact records of one ring. None lies inside another one, so all payloads together
/// are no larger than the ring.
fn records<'a>(area: &LogArea<'a>, session: u64, member_size: Sectors) -> Vec<FoundRecord<'a>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + u64::from(HEADER_BYTES) <= area.bytes.len() as u64 {
        let record = record_at(area, at, session, member_size);
        at += record
            .as_ref()
            .map_or(BLOCK, |found| found.header.sectors())
            * SECTOR_BYTES;
        found.extend(record);
    }
    found
}

fn record_at<'a>(
    area: &LogArea<'a>,
    at: u64,
    session: u64,
    member_size: Sectors,
) -> Option<FoundRecord<'a>> {
    let rest = area.bytes.get(usize::try_from(at).ok()?..)?;
    let header = Header::decode(rest)?;
    let is_ours = header.session == session
        && header.slot == area.slot
        && header.position == at / SECTOR_BYTES
        && header.participants.contains(area.slot)
        && header.window.1 <= member_size.0;
    if !is_ours {
        return None;
    }
    let mut payload = Vec::new();
    let mut from = HEADER_BYTES as usize;
    for ((_, count), checksum) in header.extents.iter().zip(&header.checksums) {
        let to = from.checked_add(usize::try_from(count * SECTOR_BYTES).ok()?)?;
        let bytes = rest.get(from..to)?;
        if crc32c::crc32c(bytes) != *checksum {
            return None;
        }
        payload.push(bytes);
        from = to;
    }
    Some(FoundRecord { header, payload })
}
