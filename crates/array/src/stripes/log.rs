//! The write log, which closes the write hole.
//!
//! A row's blocks cannot be written at one moment. If the power fails between them and a member is
//! lost as well, parity computes bytes for the lost blocks that were never written. So every job
//! first writes its blocks to the logs of the members it concerns (its *participants*): a
//! *transaction*. Only when all records are durable does it write in place.
//!
//! **Records.** Each member has a ring of blocks of 4 KiB. A record is a header (`record`) and the
//! new blocks for this member, written in one command with force-unit-access. Transactions that are
//! ready at the same time form a *batch*; one batch is in flight at a time, and the next one starts
//! when all its commands have succeeded or the failure of their members is recorded. The header
//! names session, batch, transaction, participants, the window, its own member and place, and
//! checksums of everything.
//!
//! **Participants** are the members that take part in the window, those under recovery too,
//! wherever they are filled. A window may be filled in part, and be filled as a whole a moment
//! later: if a member had its records of some windows only, a replay would write an older one over
//! later in-place writes.
//!
//! **Reuse.** A transaction is *retired* when its in-place writes were flushed on all members (by
//! any flush, or by the log's own when a ring is half full). The oldest records of a ring are
//! *void* once they are retired, but never those of its newest durable batch. The header of every
//! later record *announces* the oldest one that is not void, and when it is durable the space of
//! the void ones is free. So no write over void records, torn or in part, can bring an older one
//! back to life. If a ring has void records and yet no room, records without extents announce them.
//!
//! **Replay** ([`replay`]). Records that a ring's newest announcement makes void do not count. A
//! transaction is *committed* if every participant that survives and is trusted in the window has
//! its record, or if any record of a later batch exists: batches follow each other, so all records
//! of the earlier one were durable, and one that is void was retired (each ring keeps its newest
//! batch, so a ring that reused space shows a later batch). All committed transactions are written
//! again, each survivor its own blocks, in the order of their numbers. That is right also for those
//! that were retired: the records that count in a ring are complete, so any in-place write after a
//! transaction that counts there counts too, or was never begun.
//!
//! When a member is added, no earlier record counts any more (`arrival`).
//!
//! **Waiting.** No record leaves before the superblocks of all members name this run: until then a
//! crash would have the records of the run before replayed once more, and they must all be there.
//! Nor does one leave while a bad block is not recorded where a member that cannot be spared did
//! not take a write that the others have: until its bad-block log names it only the record tells
//! what it lacks. A recovery that cannot fill a block loses no data, and holds nothing back.

mod arrival;
mod record;
mod replay;
mod ring;
#[cfg(test)]
mod tests;
mod write;

pub use replay::{LogArea, LogError, ReplayWrite, Trust, replay};

pub(super) use record::MOST_EXTENTS;

use super::config::{BLOCK, LogConfig};
use super::flush::Flush;
use super::job::{Item, Job, JobId, Phase};
use super::{Mutation, StripeArray, mutated};
use crate::request::{Outputs, ScratchId, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Span;
use record::Header;
use ring::Ring;
use std::collections::{BTreeMap, VecDeque};

/// The sectors that one command of emptying a ring writes.
const WIPE: u64 = 2048;

/// A batch of log records that is being written.
#[derive(Debug)]
struct Batch {
    outstanding: usize,
    jobs: Vec<JobId>,
    scratch: Vec<ScratchId>,
    /// The members that arrive, if it is a batch of marks for them.
    arrivals: SlotSet,
}

/// A member's log area that is being emptied by writing zeros.
#[derive(Debug)]
struct Wipe {
    slot: Slot,
    /// Whether the member has failed since the emptying began.
    dead: bool,
    /// The sectors of the ring, from its start, that are done or in flight.
    next: u64,
}

/// The log of a running array.
#[derive(Debug)]
pub(super) struct Log {
    session: u64,
    /// The place of the ring on each member.
    area: Span,
    /// The rings of the members that are present.
    rings: BTreeMap<Slot, Ring>,
    next_transaction: u64,
    next_batch: u64,
    /// Jobs that wait for a batch.
    queue: VecDeque<JobId>,
    batch: Option<Batch>,
    /// The transactions not retired, and whether they are written in place.
    live: BTreeMap<u64, bool>,
    /// Whether a flush for the log's own sake is in flight.
    flushing: bool,
    /// The rings without room for the job that was tried last.
    without_room: SlotSet,
    /// Members that were added, and whose rings must not be written yet.
    arrivals: SlotSet,
    /// Whether no record may leave yet: the superblocks do not name this run, or no bad-block log
    /// names a write that a member refused.
    pub(super) is_held: bool,
    wipes: BTreeMap<ScratchId, Wipe>,
}

/// A record with its place in the ring.
#[derive(Debug)]
struct Placed {
    slot: Slot,
    at: u64,
    items: Vec<Item>,
    header: Header,
}

impl Log {
    pub(super) fn new(config: &LogConfig, members: usize) -> Self {
        let mut log = Self {
            session: config.session,
            area: config.ring,
            rings: BTreeMap::new(),
            next_transaction: 1,
            next_batch: 1,
            queue: VecDeque::new(),
            batch: None,
            live: BTreeMap::new(),
            flushing: false,
            without_room: SlotSet::EMPTY,
            arrivals: SlotSet::EMPTY,
            is_held: !mutated(Mutation::LogBeforeSession),
            wipes: BTreeMap::new(),
        };
        for slot in SlotSet::first(members).iter() {
            log.begin_ring(slot);
        }
        log
    }

    /// Returns the place of the ring on each member.
    pub(super) const fn area(&self) -> Span {
        self.area
    }

    /// Begins the ring of a slot's member with no record that counts.
    pub(super) fn begin_ring(&mut self, slot: Slot) {
        let ring = Ring::new(self.area.count().0);
        self.rings.insert(slot, ring);
    }

    /// Finds a place in every participant's ring, or in none; returns each place, and the oldest
    /// transaction that counts in its ring.
    fn place(&mut self, transaction: u64, needs: &[(Slot, u64)]) -> Option<Vec<(u64, u64)>> {
        let batch = self.next_batch;
        let rings = &self.rings;
        let find = |slot, sectors| rings.get(&slot)?.find(batch, sectors);
        let places: Vec<_> = needs
            .iter()
            .map(|(slot, sectors)| find(*slot, *sectors))
            .collect();
        let lacking = needs
            .iter()
            .zip(&places)
            .filter(|(_, place)| place.is_none());
        self.without_room = lacking.map(|((slot, _), _)| *slot).collect();
        let places: Vec<u64> = places.into_iter().collect::<Option<_>>()?;
        let taken = needs.iter().zip(places).map(|((slot, sectors), at)| {
            let ring = self.rings.get_mut(slot)?;
            Some((at, ring.take(transaction, batch, at, *sectors)))
        });
        taken.collect()
    }

    fn retire(&mut self, transactions: &[u64]) {
        for transaction in transactions {
            self.live.remove(transaction);
        }
        let live = &self.live;
        for ring in self.rings.values_mut() {
            ring.retire(|transaction| !live.contains_key(&transaction));
        }
    }

    fn is_half_full(&self) -> bool {
        self.rings.values().any(Ring::is_half_full)
    }

    /// Returns what holds the log back, in words.
    pub(super) fn waits(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_held {
            lines.push(
                "the write log waits until superblocks name this run, or a bad block is recorded"
                    .to_owned(),
            );
        }
        if self.is_admitting() {
            lines.push("the write log waits for a member that has been added".to_owned());
        }
        let waiting = self.queue.len();
        if waiting > 0 && !self.without_room.is_empty() {
            lines.push(format!("{waiting} windows wait for room in the write log"));
        }
        lines
    }
}

impl StripeArray {
    /// Returns the members whose log has to hold a job's writes.
    fn participants(&self, job: &Job) -> SlotSet {
        let service = self.members.in_service();
        let slots = job.writes.iter().map(|item| item.slot);
        slots
            .filter(|slot| service.contains(*slot))
            .filter(|slot| {
                self.members.is_filled(*slot, job.span()) || !mutated(Mutation::LogUnfilledLeftOut)
            })
            .collect()
    }

    /// Whether a job's writes must be logged. Those of a recovery, which go only to members under
    /// recovery, need not: they follow from the other members, before a replay and after it.
    pub(super) fn must_log(&self, job: &Job) -> bool {
        let mut participants = self.participants(job).iter();
        self.log.is_some()
            && participants.any(|slot| self.members.is_filled(slot, job.span()))
            && !mutated(Mutation::LogSkipped)
    }

    pub(super) fn log_later(&mut self, id: JobId) {
        if let Some(log) = &mut self.log {
            log.queue.push_back(id);
        }
    }

    /// Writes the next batch if one may go.
    pub(super) fn pump_log(&mut self, out: &mut Outputs) -> bool {
        let must_wait = self.writes_must_wait();
        let Some(log) = &mut self.log else {
            return false;
        };
        if log.batch.is_some() || must_wait || log.is_held {
            return false;
        }
        if !log.arrivals.is_empty() {
            return self.pump_arrivals(out);
        }
        if log.queue.is_empty() || log.is_admitting() {
            return false;
        }
        if mutated(Mutation::LogReusedEarly) {
            let live: Vec<u64> = log.live.keys().copied().collect();
            log.retire(&live);
        }
        let mut batch = Batch {
            outstanding: 0,
            jobs: Vec::new(),
            scratch: Vec::new(),
            arrivals: SlotSet::EMPTY,
        };
        let mut records = Vec::new();
        let mut moved = false;
        while let Some(id) = self.log.as_mut().and_then(|log| log.queue.pop_front()) {
            let Some(mut job) = self.jobs.remove(&id) else {
                continue;
            };
            let placed = self.place_job(&mut job, &mut records);
            self.jobs.insert(id, job);
            if !placed {
                if let Some(log) = &mut self.log {
                    log.queue.push_front(id);
                }
                break;
            }
            batch.jobs.push(id);
            moved = true;
        }
        if !moved && let Some(log) = &mut self.log {
            records = log.announcements();
            moved = !records.is_empty();
        }
        self.write_records(records, &mut batch, out);
        let flush_due = self.log.as_ref().is_some_and(|log| {
            let waits = !log.queue.is_empty() || log.is_half_full();
            waits && !log.flushing && log.live.values().any(|written| *written)
        });
        if let Some(log) = &mut self.log
            && moved
        {
            log.next_batch += 1;
            log.batch = Some(batch);
        }
        if flush_due {
            if let Some(log) = &mut self.log {
                log.flushing = true;
            }
            self.flush_members(None, out);
        }
        let empty = self.log.as_ref().and_then(|log| log.batch.as_ref());
        if empty.is_some_and(|batch| batch.outstanding == 0) {
            self.batch_done(out);
        }
        moved
    }

    /// Finds room for a job's records; returns false if there is none now.
    fn place_job(&mut self, job: &mut Job, records: &mut Vec<Placed>) -> bool {
        let participants = self.participants(job);
        let items_of = |slot| {
            let mine = job.writes.iter().filter(move |item| item.slot == slot);
            mine.copied().collect::<Vec<Item>>()
        };
        let per_slot: Vec<(Slot, Vec<Item>)> = participants
            .iter()
            .map(|slot| (slot, items_of(slot)))
            .collect();
        let needs: Vec<(Slot, u64)> = per_slot
            .iter()
            .map(|(slot, items)| {
                let payload: u64 = items.iter().map(|item| item.count).sum();
                (*slot, BLOCK + payload.next_multiple_of(BLOCK))
            })
            .collect();
        let Some(log) = &mut self.log else {
            return false;
        };
        let transaction = log.next_transaction;
        let Some(places) = log.place(transaction, &needs) else {
            return false;
        };
        log.next_transaction += 1;
        log.live.insert(transaction, false);
        job.transaction = Some(transaction);
        for ((slot, items), (at, oldest)) in per_slot.into_iter().zip(places) {
            let header = Header {
                session: log.session,
                batch: log.next_batch,
                transaction,
                oldest,
                position: at,
                slot,
                participants,
                window: (job.start, job.end),
                extents: items.iter().map(|item| (item.start, item.count)).collect(),
                checksums: Vec::new(),
            };
            records.push(Placed {
                slot,
                at,
                items,
                header,
            });
        }
        true
    }

    pub(super) fn log_part_done(&mut self, out: &mut Outputs) {
        let batch = self.log.as_mut().and_then(|log| log.batch.as_mut());
        if let Some(batch) = batch {
            batch.outstanding -= 1;
            if batch.outstanding == 0 {
                self.batch_done(out);
            }
        }
    }

    fn batch_done(&mut self, out: &mut Outputs) {
        let Some(log) = &mut self.log else {
            return;
        };
        let Some(batch) = log.batch.take() else {
            return;
        };
        for ring in log.rings.values_mut() {
            ring.all_durable();
        }
        for scratch in batch.scratch {
            self.release(scratch, out);
        }
        self.marked(batch.arrivals, out);
        for id in batch.jobs {
            self.with_job(id, out, |array, job, out| {
                job.phase = Phase::Logged;
                array.proceed(job, out)
            });
        }
    }

    /// Records that a transaction's in-place writes are done.
    pub(super) fn log_written(&mut self, transaction: u64) {
        if let Some(log) = &mut self.log {
            log.live.insert(transaction, true);
        }
    }

    /// Returns the transactions that a flush sent now will make durable.
    pub(super) fn log_written_transactions(&self) -> Vec<u64> {
        let live = self.log.iter().flat_map(|log| &log.live);
        live.filter(|(_, written)| **written)
            .map(|(number, _)| *number)
            .collect()
    }

    /// Handles the end of a flush. It counts also while a failure is not recorded: until it is, no
    /// record is written that could announce void ones, or take their place (`pump_log`), and
    /// afterwards the failed member does not count.
    pub(super) fn log_flushed(&mut self, flush: &Flush) {
        if let Some(log) = &mut self.log {
            if flush.request.is_none() {
                log.flushing = false;
            }
            log.retire(&flush.transactions);
        }
    }

    pub(super) fn log_lost_member(&mut self, slot: Slot) {
        let Some(log) = &mut self.log else {
            return;
        };
        log.rings.remove(&slot);
        log.arrivals = log.arrivals.without(slot);
        for wipe in log.wipes.values_mut().filter(|wipe| wipe.slot == slot) {
            wipe.dead = true;
        }
    }
}
