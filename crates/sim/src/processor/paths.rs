//! The threads of an array, and the locks that its requests pass on their way.
//!
//! They are md's, from its sources: `wait_barrier` and `allow_barrier` of RAID 1 and 10,
//! `chunk_aligned_read` and `make_stripe_request` of RAID 5, the bitmap's counters. Locks without a
//! line of waiting cores (of a stripe, of a bucket's counter) are part of the charges.

use super::STRIPE_SECTORS;
use super::charges::Charges;
use super::locks::LockName;
use super::pool::PoolPaths;
use super::task::{Part, Place};
use raidlab_array::{Operation, StripeWork};
use raidlab_units::{Nanos, Sectors};

/// The number of RAID 5's hash locks (`NR_STRIPE_HASH_LOCKS`).
const HASH_LOCKS: u32 = 8;

/// The kind of an array, as far as its threads and locks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArrayKind {
    /// A disk, for which nothing is mapped.
    #[default]
    Disk,
    /// Linear and RAID 0, which map requests and take no lock.
    Stripes,
    /// RAID 1, with whole copies and a barrier for each bucket.
    Mirror,
    /// RAID 10, with copies in stripes and one barrier.
    Raid10,
    /// RAID 4 and 5, which compute parity by XOR.
    Parity,
    /// RAID 6, which computes Q as well.
    DoubleParity,
    /// A volume in a pool of ZFS.
    Pool(PoolPaths),
}

/// The locks of md that an older Linux has and a newer one has not, under the names that hosts'
/// files have for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OldLocks {
    /// Whether each request to a RAID 10 takes `resync_lock` at its begin and its end and wakes the
    /// queue of the barrier: before Linux 6.1.
    pub barrier: bool,
    /// Whether RAID 1 wakes the queue of the barrier, and so takes its lock, at the end of each
    /// request and once more when a write was handed to the members: from 4.11, when it lost its
    /// own `resync_lock`, to 6.5 (drivers/md/raid1.c, `_allow_barrier`, `raid1_write_request`).
    pub wake_up: bool,
    /// Whether each read past RAID 5's stripe cache takes `device_lock`: before 5.13.
    pub direct_read: bool,
    /// Whether each write to RAID 5 takes the lock of one queue, `wait_for_overlap`, when it joins
    /// and when it leaves it: before 6.11.
    pub overlap: bool,
    /// Whether RAID 5 with a bitmap counts each block of a write, and not the write as a whole:
    /// before 6.14 (drivers/md/raid5.c, `__add_stripe_bio` and `handle_stripe_clean_event`, until
    /// commit cd5fc6533818).
    pub block_counts: bool,
}

/// The sender of the members' writes of a RAID 1 or RAID 10 that has a bitmap, whose pages have to
/// be on the disks before (Linux drivers/md/raid1-10.c, `raid1_add_bio_to_plug`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BitmapWrites {
    /// The process sends them when the plug of its write ends (block/fops.c, `blkdev_write_iter`):
    /// before Linux 6.5.
    Process,
    /// The array's thread sends them and is woken for it, as there is no plug: from 6.5 to 6.9.
    Thread,
    /// The process sends them in the plug of each of its bios (block/blk-core.c, `__submit_bio`):
    /// from 6.10 on. Before that it sleeps until a worker of the kernel has looked for pages to be
    /// written (drivers/md/md-bitmap.c, `bitmap_unplug_async`).
    #[default]
    Worker,
}

/// The array of a machine as its processor sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrayPaths {
    /// The kind of the array.
    pub kind: ArrayKind,
    /// The old locks that its md has.
    pub old: OldLocks,
    /// The way in which writes pass the array's write-intent bitmap; `None`: it has none.
    pub bitmap: Option<BitmapWrites>,
    /// The number of workers on each socket, RAID 5's `group_thread_cnt`; 0: its thread
    /// does all itself.
    pub group_threads: u32,
    /// Whether there is no plug for a request that is one bio (Linux 6.5 to 6.9, commit
    /// 712c7364655f; block/blk-core.c, `__submit_bio`, has one since). Where a disk has a
    /// scheduler, a thread of the kernel takes the commands of a process from there to the
    /// driver (block/blk-mq.c, `blk_mq_submit_bio`, which calls `blk_mq_run_hw_queue` with
    /// `async`). RAID 5 lets go of each stripe as soon as the process has been there, for
    /// its thread (`release_stripe_plug`).
    pub unplugged: bool,
    /// Whether workers wake on cores that share a cache with that of the process that wrote (Linux
    /// since 6.6, kernel/workqueue.c, `WQ_AFFN_CACHE`).
    pub workers_near: bool,
}

impl ArrayPaths {
    pub(super) const fn has_parity(&self) -> bool {
        matches!(self.kind, ArrayKind::Parity | ArrayKind::DoubleParity)
    }

    /// Whether the subject is a volume in a pool.
    pub(super) const fn is_pool(&self) -> bool {
        matches!(self.kind, ArrayKind::Pool(_))
    }

    /// The sender of a write to a member that a process has asked for.
    pub(super) const fn sender(&self) -> BitmapWrites {
        match (self.kind, self.bitmap) {
            (ArrayKind::Mirror | ArrayKind::Raid10, Some(writes)) => writes,
            _ => BitmapWrites::Process,
        }
    }

    /// Whether there is an array of md at all.
    pub(super) const fn maps(&self) -> bool {
        !matches!(self.kind, ArrayKind::Disk | ArrayKind::Pool(_))
    }

    /// The name of the array's thread.
    pub(super) const fn thread(&self) -> &'static str {
        match self.kind {
            ArrayKind::Disk | ArrayKind::Stripes => "md0",
            ArrayKind::Mirror => "md0_raid1",
            ArrayKind::Raid10 => "md0_raid10",
            ArrayKind::Parity => "md0_raid5",
            ArrayKind::DoubleParity => "md0_raid6",
            ArrayKind::Pool(_) => "txg_sync",
        }
    }

    /// Adds the passes of the lock of the bitmap's counters for a request that begins or ends.
    fn count(&self, operation: Operation, count: Sectors, charges: &Charges, to: &mut Vec<Part>) {
        if self.bitmap.is_some() && operation == Operation::Write {
            let passes = match self.has_parity() && self.old.block_counts {
                true => count.0.div_ceil(STRIPE_SECTORS),
                false => 1,
            };
            to.extend((0..passes).map(|_| Part::Lock(LockName::Bitmap, charges.bitmap)));
        }
    }

    /// Adds the parts that the submitting thread passes before the array takes a request of so many
    /// sectors, given as `count`.
    pub(super) fn before(
        &self,
        operation: Operation,
        count: Sectors,
        charges: &Charges,
        to: &mut Vec<Part>,
    ) {
        if self.maps() {
            to.push(Part::Charge(Place::Array, charges.request));
        }
        let mut pass = |name, hold| to.push(Part::Lock(name, hold));
        match self.kind {
            ArrayKind::Raid10 if self.old.barrier => pass(LockName::Resync, charges.lock),
            ArrayKind::Mirror if self.old.wake_up && operation == Operation::Write => {
                pass(LockName::BarrierQueue, charges.lock);
            }
            ArrayKind::Parity | ArrayKind::DoubleParity => match operation {
                Operation::Read if self.old.direct_read => {
                    pass(LockName::Device, charges.lock);
                }
                Operation::Read => pass(LockName::DirectReads, Nanos::ZERO),
                Operation::Write if self.old.overlap => {
                    pass(LockName::OverlapQueue, charges.lock);
                    pass(LockName::OverlapQueue, charges.lock);
                }
                _ => {}
            },
            _ => {}
        }
        self.count(operation, count, charges, to);
    }

    /// Adds the parts that the thread that ends a request passes.
    pub(super) fn after(
        &self,
        operation: Operation,
        count: Sectors,
        charges: &Charges,
        to: &mut Vec<Part>,
    ) {
        self.count(operation, count, charges, to);
        if self.has_parity() && operation == Operation::Read {
            to.push(Part::Lock(LockName::DirectReads, Nanos::ZERO));
        }
        let mut pass = |name| to.push(Part::Lock(name, charges.lock));
        match self.kind {
            ArrayKind::Raid10 if self.old.barrier => {
                pass(LockName::Resync);
                pass(LockName::BarrierQueue);
            }
            ArrayKind::Mirror if self.old.wake_up => pass(LockName::BarrierQueue),
            _ => {}
        }
        if self.maps() {
            to.push(Part::Charge(Place::Array, charges.request_end));
        }
    }

    /// Adds the work for stripes that were found, handled and let go.
    pub(super) fn stripes(
        &self,
        work: StripeWork,
        first_hash: &mut u8,
        charges: &Charges,
        to: &mut Vec<Part>,
    ) {
        let times = |count: u32, each: Nanos| each * u64::from(count);
        let mut hash = |count: u32, hold: Nanos, to: &mut Vec<Part>| {
            for _ in 0..count {
                *first_hash = first_hash.wrapping_add(1);
                to.push(Part::Lock(LockName::Hash(*first_hash), hold));
            }
        };
        // A chain is gone through under the lock (`raid5_get_active_stripe`).
        let chains = charges.chain_picos * u64::from(work.chained);
        let each = Nanos(chains / 1000 / u64::from(work.found.max(1)));
        hash(work.found, charges.lock + each, to);
        to.push(Part::Charge(Place::Stripe, times(work.found, charges.find)));
        to.push(Part::Charge(
            Place::Stripe,
            times(work.handled, charges.handle),
        ));
        let with_q = self.kind == ArrayKind::DoubleParity;
        let parity = charges.parity(work.parity, with_q);
        to.push(Part::Charge(Place::Parity, parity));
        to.push(Part::Charge(Place::Copy, charges.copy(work.copied)));
        // All free stripes go in one pass over a lock's list (`release_inactive_stripe_list`).
        hash(work.freed.min(HASH_LOCKS), charges.lock, to);
    }
}

#[cfg(test)]
mod tests {
    use super::{ArrayKind, ArrayPaths, BitmapWrites, LockName, OldLocks, Operation, StripeWork};
    use crate::processor::charges::{Charges, ProcessorNumbers};
    use crate::processor::task::Part;
    use raidlab_units::{Nanos, Sectors};

    /// 64 stripes in each of two chains, at 10.27 ns, under the lock that takes 100 ns.
    #[test]
    fn a_hash_lock_is_held_while_its_chain_is_gone_through() {
        let charges = Charges::of(&ProcessorNumbers {
            speed: 1.0,
            lock_ns: 100.0,
            ..ProcessorNumbers::default()
        });
        let paths = ArrayPaths {
            kind: ArrayKind::Parity,
            ..ArrayPaths::default()
        };
        let work = StripeWork {
            found: 2,
            chained: 128,
            ..StripeWork::default()
        };
        let mut parts = Vec::new();
        paths.stripes(work, &mut 0, &charges, &mut parts);
        let holds = parts.iter().filter_map(|part| match part {
            Part::Lock(_, hold) => Some(*hold),
            _ => None,
        });
        assert_eq!(holds.collect::<Vec<_>>(), [Nanos(757); 2]);
    }

    /// A write of 16 blocks to RAID 5 counts each of them where Linux is older than 6.14.
    #[test]
    fn parity_counts_each_block_in_its_bitmap() {
        let charges = Charges::of(&ProcessorNumbers {
            speed: 1.0,
            bitmap_ns: 150.0,
            ..ProcessorNumbers::default()
        });
        let passes = |kind, block_counts| {
            let paths = ArrayPaths {
                kind,
                bitmap: Some(BitmapWrites::default()),
                old: OldLocks {
                    block_counts,
                    ..OldLocks::default()
                },
                ..ArrayPaths::default()
            };
            let mut parts = Vec::new();
            paths.before(Operation::Write, Sectors(128), &charges, &mut parts);
            paths.after(Operation::Write, Sectors(128), &charges, &mut parts);
            paths.before(Operation::Read, Sectors(128), &charges, &mut parts);
            let counts = |part: &&Part| matches!(part, Part::Lock(LockName::Bitmap, Nanos(150)));
            parts.iter().filter(counts).count()
        };
        assert_eq!(passes(ArrayKind::Parity, true), 32);
        assert_eq!(passes(ArrayKind::Parity, false), 2);
        assert_eq!(passes(ArrayKind::Mirror, true), 2);
    }
}
