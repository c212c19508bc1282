//! The thread's work on a stripe (`handle_stripe`).
//!
//! It is called when no command holds the stripe: all reads and writes of it have finished. It
//! answers the requests that it can, then determines what has to be read or computed, whether new
//! data can be taken over, and what a sync still lacks. Computing takes no time, but its result is
//! used in a later turn, as the stripe goes to the end of the thread's list with it.
//!
//! Stripes of a chunk that one request fills, one after the other, are
//! a batch: the first one stands for all, and they become free
//! together (`stripe_add_to_batch_list`, `break_stripe_batch_list`).

use super::commands::Plugged;
use super::stripe::{Check, Drained, Part, Stripe, SyncStage};
use super::{BLOCK, Raid5d};
use raidlab_array::{Operation, Outputs, Purpose, RequestError, Slot};
use raidlab_geometry::{Level, Row, SlotSet};
use raidlab_units::{Sectors, Span};

/// The state of a stripe at the start of a turn (`struct stripe_head_state`).
#[derive(Debug)]
struct Analysis {
    number: u64,
    /// The slots of parity, in the order P, Q.
    parities: SlotSet,
    p: Slot,
    q: Option<Slot>,
    /// The slots whose block cannot be read.
    failed: SlotSet,
    /// Blocks that are being computed in this turn.
    computes: SlotSet,
    /// The slots whose block is to be read, and those whose block is to be written.
    reads: SlotSet,
    writes: SlotSet,
    syncs: bool,
}

impl Analysis {
    /// Returns the blocks whose content will be in memory when it is needed.
    fn known(&self, stripe: &Stripe) -> SlotSet {
        stripe.fresh | self.computes
    }

    fn reads(&mut self, slot: Slot, stripe: &mut Stripe) {
        stripe.locked = stripe.locked.with(slot);
        self.reads = self.reads.with(slot);
    }

    fn writes(&mut self, slot: Slot, stripe: &mut Stripe) {
        stripe.locked = stripe.locked.with(slot);
        self.writes = self.writes.with(slot);
    }
}

impl Raid5d {
    pub(super) fn handle(&mut self, number: u64, out: &mut Outputs) {
        let row = self.map.row(number * BLOCK / self.map.chunk().0);
        let failed = self.lost_blocks(number);
        let may_check = self.parity_is_due(number);
        let mut stripe = self.cache.take(number);
        self.cache.work.handled += 1;
        stripe.wants_handling = false;
        stripe.is_known = true;
        // Blocks of missing members need no rewriting.
        stripe.refused = stripe.refused - failed;
        stripe.rewritten = stripe.rewritten - failed;
        for other in &stripe.batch {
            self.cache.stripe(*other).is_known = true;
        }
        // A stripe of a batch is synced after the batch is broken up.
        if stripe.sync == SyncStage::Requested && stripe.batch.is_empty() {
            stripe.sync = SyncStage::Runs;
            stripe.is_in_sync = false;
        }
        let mut found = Analysis {
            number,
            parities: parities(&row),
            p: row.p(),
            q: row.q(),
            failed: failed | stripe.refused,
            computes: SlotSet::EMPTY,
            reads: SlotSet::EMPTY,
            writes: SlotSet::EMPTY,
            syncs: stripe.is_synced_now(),
        };
        self.fill_readers(&mut stripe, out);
        if found.failed.len() > self.map.level().parity_count() {
            self.give_up(&found, &mut stripe, out);
            found.syncs = false;
        }
        self.write_drained(&mut found, &mut stripe);
        self.answer_writers(&found, &mut stripe, out);
        self.fetch(&mut found, &mut stripe);
        if !stripe.writes.is_empty() && stripe.drained.is_none() && stripe.check == Check::Idle {
            self.take_new_data(&mut found, &mut stripe, may_check);
        }
        let quiet = stripe.locked.is_empty() && found.computes.is_empty();
        let compares = found.syncs && quiet && !stripe.is_in_sync;
        if stripe.check != Check::Idle || compares {
            self.check_parity(&mut found, &mut stripe);
        }
        if found.syncs && stripe.locked.is_empty() && found.computes.is_empty() && stripe.is_in_sync
        {
            stripe.sync = SyncStage::No;
            self.sync_stripe_done(number);
        }
        self.rewrite_refused(&mut found, &mut stripe);
        if !found.computes.is_empty() {
            stripe.fresh = stripe.fresh | found.computes;
            stripe.wants_handling = true;
            self.computes(self.map.data_count() * found.computes.len());
        }
        self.send(&found, &mut stripe, out);
        self.cache.put_back(number, stripe);
    }

    /// Returns the members whose block of this stripe is not current.
    fn lost_blocks(&self, number: u64) -> SlotSet {
        let end = (number + 1) * BLOCK;
        let is_lost = |slot: &Slot| {
            let current = self.members.in_sync().contains(*slot)
                || self.members.recovering().contains(*slot)
                    && end <= self.members.filled_below(*slot).0;
            !current || self.members.is_bad(*slot, Span::new(number * BLOCK, end))
        };
        let all = SlotSet::first(self.map.members());
        all.iter().filter(is_lost).collect()
    }

    fn fill_readers(&mut self, stripe: &mut Stripe, out: &mut Outputs) {
        let fresh = stripe.fresh;
        for (_, request) in stripe
            .reads
            .extract_if(.., |(slot, _)| fresh.contains(*slot))
        {
            self.cache.work.copied += Sectors(BLOCK);
            self.settle(request, Ok(()), out);
        }
    }

    /// Fails the requests of a stripe that has lost too
    /// much (`handle_failed_stripe`, `handle_failed_sync`).
    fn give_up(&mut self, found: &Analysis, stripe: &mut Stripe, out: &mut Outputs) {
        stripe.check = Check::Idle;
        if stripe.drained.take().is_some() {
            // None of the computed blocks has been sent yet.
            stripe.locked = SlotSet::EMPTY;
        }
        let failed = Err(RequestError::Failed);
        let written = std::mem::take(&mut stripe.written);
        for part in std::mem::take(&mut stripe.writes).iter().chain(&written) {
            self.settle(part.request, failed, out);
        }
        self.break_batch(stripe, failed, out);
        let lost = |(slot, _): &mut (Slot, _)| found.failed.contains(*slot);
        for (_, request) in stripe.reads.extract_if(.., lost) {
            self.settle(request, Err(RequestError::NoMember), out);
        }
        if stripe.sync == SyncStage::Runs {
            stripe.sync = SyncStage::No;
            self.sync_stripe_failed(found.number, out);
        }
    }

    /// Writes the blocks that were computed in an earlier turn.
    fn write_drained(&self, found: &mut Analysis, stripe: &mut Stripe) {
        let Some(drained) = stripe.drained.take() else {
            return;
        };
        let data: SlotSet = stripe.written.iter().map(|part| part.slot).collect();
        for slot in ((data | found.parities) & stripe.locked).iter() {
            found.writes(slot, stripe);
            let made_whole = found.failed.contains(slot)
                || found.parities.contains(slot) && found.failed.is_empty();
            stripe.is_in_sync |= !drained.modified && found.failed.len() <= 1 && made_whole;
        }
    }

    /// Answers the requests whose data and parity are on the members (`handle_stripe_clean_event`).
    fn answer_writers(&mut self, found: &Analysis, stripe: &mut Stripe, out: &mut Outputs) {
        let there = |slot: Slot, stripe: &Stripe| {
            found.failed.contains(slot)
                || !stripe.locked.contains(slot) && stripe.fresh.contains(slot)
        };
        if stripe.written.is_empty() || !found.parities.iter().all(|slot| there(slot, stripe)) {
            return;
        }
        let locked = stripe.locked;
        let done = |part: &mut Part| !locked.contains(part.slot);
        let done: Vec<_> = stripe.written.extract_if(.., done).collect();
        for part in &done {
            self.settle(part.request, Ok(()), out);
        }
        // Where the parity's member is lost, no parity may have been sent yet (`do_endio`).
        if !done.is_empty() {
            self.break_batch(stripe, Ok(()), out);
        }
    }

    /// Releases the other stripes of a batch, with the state of its head.
    fn break_batch(
        &mut self,
        stripe: &mut Stripe,
        result: Result<(), RequestError>,
        out: &mut Outputs,
    ) {
        self.handles_batch(stripe);
        for number in std::mem::take(&mut stripe.batch) {
            let other = self.cache.stripe(number);
            other.head = None;
            other.fresh = stripe.fresh;
            let mut parts = std::mem::take(&mut other.written);
            if result.is_err() {
                parts.append(&mut other.writes);
            }
            other.wants_handling = !other.writes.is_empty() || !other.reads.is_empty();
            for part in parts {
                self.settle(part.request, result, out);
            }
            self.cache.release(number);
        }
    }

    /// Reads or computes the blocks that are wanted (`handle_stripe_fill`, `fetch_block`).
    fn fetch(&self, found: &mut Analysis, stripe: &mut Stripe) {
        let all = SlotSet::first(self.map.members());
        let wanted = !stripe.reads.is_empty()
            || !(stripe.writes_of() - stripe.overwrites()).is_empty()
            || !stripe.writes.is_empty() && !found.failed.is_empty()
            || found.syncs && stripe.fresh != all;
        if !wanted || stripe.check != Check::Idle || stripe.drained.is_some() {
            return;
        }
        for slot in all.iter().rev() {
            if stripe.locked.contains(slot)
                || found.known(stripe).contains(slot)
                || !self.needs(found, stripe, slot)
            {
                continue;
            }
            let unknown = all - found.known(stripe);
            let computable = found.q.is_some() && slot == found.p || found.failed.contains(slot);
            if unknown == SlotSet::only(slot) && computable {
                found.computes = found.computes.with(slot);
            } else if unknown.len() == 2 && found.failed.len() >= 2 {
                found.computes = found.computes | unknown;
            } else if !found.failed.contains(slot) {
                found.reads(slot, stripe);
            }
        }
        stripe.wants_handling |= !found.computes.is_empty();
    }

    /// Whether a block has to be read or computed (`need_this_block`).
    fn needs(&self, found: &Analysis, stripe: &Stripe, slot: Slot) -> bool {
        if found.syncs {
            return true;
        }
        let overwrites = stripe.overwrites();
        let reads = stripe.reads_of();
        let writes = stripe.writes_of();
        if reads.contains(slot) || (writes - overwrites).contains(slot) {
            return true;
        }
        // A read from a failed member needs every other block.
        if !(found.failed & reads).is_empty() {
            return true;
        }
        if found.failed.is_empty() || writes.is_empty() {
            return false;
        }
        let gaps = found.failed - stripe.fresh;
        if !(gaps & (writes - overwrites)).is_empty() {
            return true;
        }
        let must_rebuild = found.failed.len() >= 2
            && !(gaps & (writes | found.parities)).is_empty()
            || !self.may_modify()
            || self.parity_is_due(found.number);
        must_rebuild && !(gaps - found.parities - overwrites).is_empty()
    }

    /// Chooses between the two ways of writing, reads what is missing for it, or takes the new data
    /// over (`handle_stripe_dirtying`, `schedule_reconstruction`).
    fn take_new_data(&mut self, found: &mut Analysis, stripe: &mut Stripe, parity_is_due: bool) {
        let all = SlotSet::first(self.map.members());
        let writes = stripe.writes_of();
        let absent = all - found.known(stripe) - stripe.locked;
        let modify = (writes | found.parities) & absent;
        let rebuild = (all - found.parities - stripe.overwrites()) & absent;
        // A block that cannot be read costs more than all others together.
        let cost = |blocks: SlotSet| {
            (blocks - found.failed).len() + (blocks & found.failed).len() * 2 * all.len()
        };
        let (mut modify_cost, mut rebuild_cost) = (cost(modify), cost(rebuild));
        if !self.may_modify() || parity_is_due && found.failed.is_empty() {
            (modify_cost, rebuild_cost) = (2, 1);
        }
        let level = self.map.level();
        if self.write_policy.modifies(level, modify_cost, rebuild_cost) {
            for slot in (modify - found.failed).iter() {
                found.reads(slot, stripe);
            }
        } else {
            rebuild_cost = rebuild.len();
            for slot in (rebuild - found.failed).iter() {
                found.reads(slot, stripe);
            }
        }
        stripe.wants_handling = true;
        if !stripe.locked.is_empty() || modify_cost > 0 && rebuild_cost > 0 {
            return;
        }
        let modified = rebuild_cost > 0;
        let taken = if modified {
            writes & found.known(stripe)
        } else {
            writes
        };
        let drains = |part: &mut Part| taken.contains(part.slot);
        stripe.written.extend(stripe.writes.extract_if(.., drains));
        // In a read-modify-write each changed block is a source twice: its old and its new content.
        let sources = if modified {
            2 * taken.len() + found.parities.len()
        } else {
            self.map.data_count()
        };
        self.computes(sources * (1 + stripe.batch.len()));
        self.handles_batch(stripe);
        self.cache.work.copied += sectors_of(&stripe.written);
        for other in &stripe.batch {
            let other = self.cache.stripe(*other);
            other.written.append(&mut other.writes);
            let copied = sectors_of(&other.written);
            self.cache.work.copied += copied;
        }
        // The blocks stay locked until they are written; in memory they have their new content.
        stripe.locked = stripe.locked | taken | found.parities;
        stripe.fresh = stripe.fresh | taken | found.parities;
        stripe.drained = Some(Drained { modified });
    }

    /// Counts the work on the head of a batch for each of the other stripes
    /// too (`raid_run_ops`, `break_stripe_batch_list`).
    fn handles_batch(&mut self, head: &Stripe) {
        let others = u32::try_from(head.batch.len()).unwrap_or(u32::MAX);
        self.cache.work.handled += others;
    }

    /// Counts `blocks` blocks of parity computation.
    fn computes(&mut self, blocks: usize) {
        self.cache.work.parity += Sectors(BLOCK * blocks as u64);
    }

    /// Checks parity (`handle_parity_checks5` and `6`). As there are no bytes, it always agrees.
    fn check_parity(&mut self, found: &mut Analysis, stripe: &mut Stripe) {
        let is_raid6 = self.map.level() == Level::Raid6;
        stripe.wants_handling = true;
        match stripe.check {
            Check::Idle if found.failed.len() < self.map.level().parity_count() => {
                stripe.check = Check::Compared { computed: false };
                self.computes(self.map.members());
                // A comparison of P alone overwrites it in memory.
                let checks_p = !is_raid6 || found.q.is_some_and(|q| found.failed.contains(q));
                if checks_p {
                    stripe.fresh = stripe.fresh.without(found.p);
                }
            }
            Check::Compared { computed: false } => {
                stripe.check = Check::Idle;
                if found.failed.is_empty() {
                    stripe.is_in_sync = true;
                } else if is_raid6 {
                    stripe.check = Check::Compared { computed: true };
                }
            }
            Check::Idle | Check::Compared { computed: true } => {
                stripe.check = Check::Idle;
                let unknown = SlotSet::first(self.map.members()) - stripe.fresh;
                // Even without P or Q the lost blocks are known.
                if stripe.is_in_sync || unknown.len() > usize::from(is_raid6) {
                    return;
                }
                for slot in found.failed.iter() {
                    found.writes(slot, stripe);
                }
                stripe.is_in_sync = true;
            }
        }
    }

    /// Rewrites blocks that the medium refused to read, and then reads them again.
    fn rewrite_refused(&self, found: &mut Analysis, stripe: &mut Stripe) {
        let known = found.known(stripe);
        for slot in ((stripe.refused & known) - stripe.locked).iter() {
            if stripe.rewritten.contains(slot) {
                found.reads(slot, stripe);
            } else {
                stripe.rewritten = stripe.rewritten.with(slot);
                found.writes(slot, stripe);
            }
        }
    }

    /// Puts the commands into the plug (`ops_run_io`).
    fn send(&mut self, found: &Analysis, stripe: &mut Stripe, out: &mut Outputs) {
        let purpose = if found.syncs {
            Purpose::Sync
        } else {
            Purpose::Foreground
        };
        let durable = stripe.written.iter().any(|part| part.force_unit_access);
        for slot in (found.reads | found.writes).iter().rev() {
            if !self.members.in_service().contains(slot) {
                stripe.locked = stripe.locked.without(slot);
                stripe.wants_handling = true;
                continue;
            }
            let (operation, durable) = if found.writes.contains(slot) {
                (Operation::Write, durable)
            } else {
                (Operation::Read, false)
            };
            for number in std::iter::once(found.number).chain(stripe.batch.iter().copied()) {
                stripe.references += 1;
                let block = Plugged {
                    slot,
                    operation,
                    purpose,
                    force_unit_access: durable,
                    first: number,
                    count: 1,
                };
                self.plug(block, out);
            }
        }
    }
}

/// Returns the sectors that these parts write in all.
fn sectors_of(parts: &[Part]) -> Sectors {
    Sectors(parts.iter().map(|part| part.to - part.from).sum())
}

fn parities(row: &Row) -> SlotSet {
    let p = SlotSet::only(row.p());
    row.q().map_or(p, |q| p.with(q))
}
