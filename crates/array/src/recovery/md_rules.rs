//! Differences between Linux versions in md and the block layer below it.
//!
//! Everything else that [`MdThreads`](super::MdThreads) describes is the same in Linux 6.1 and
//! 6.12, as in Debian (6.1.192 and 6.12.117). The comparison, and the differences without a rule
//! here, are in `docs/notes/md-rules.md`.

use raidlab_units::Sectors;

/// The rules of one Linux version where others differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdRules {
    /// Whether all of a process's request leaves together, and its parts side by side on a member
    /// are one command. A write has a plug from its begin to its end (Linux 6.1 block/fops.c,
    /// `blkdev_write_iter`), and a read is with the disks' schedulers before any of them is asked
    /// for a command (block/blk-mq.c, `blk_mq_submit_bio`: `blk_mq_sched_insert_request` with
    /// `async`), but for one of more than [`Self::OF_ONE_BIO`], which has a plug in both
    /// (block/fops.c, `__blkdev_direct_IO`). So all chunks of a write have passed the barrier
    /// before its bits are written, too. Since 6.10 each piece that a request is cut into has a
    /// plug of its own (block/blk-core.c, `__submit_bio`), and leaves by itself.
    pub plugs_requests: bool,
    /// Whether bits stay of all writes that end while a member is missing or filled (Linux 6.12
    /// drivers/md/md-bitmap.c, `bitmap_endwrite`), not only of those that had to leave a member out
    /// (6.1: `R1BIO_Degraded`, `R10BIO_Degraded`, `STRIPE_DEGRADED`).
    pub keeps_all_degraded_bits: bool,
    /// Whether bits are written by a worker of md's, before which others may set theirs (Linux 6.12
    /// drivers/md/md-bitmap.c, `bitmap_unplug_async`, since 6.5). In 6.1 the process that has set
    /// them does it at once (raid1.c and raid10.c, `raid1_unplug` and `raid10_unplug`).
    pub bits_by_worker: bool,
    /// Whether the list of a plug runs from its oldest request to its newest (Linux 6.12.117
    /// block/blk-mq.c, `blk_add_rq_to_plug`: `rq_list_add_tail`), so that of the requests for a
    /// disk the oldest is tried and the length of the oldest of all empties it. Else it runs the
    /// other way (6.1: `rq_list_add`), and it is the newest.
    pub plug_begins_with_oldest: bool,
    /// Whether each flush goes to the members by itself (Linux 6.12 drivers/md/md.c,
    /// `md_flush_request`), not one at a time for all waiting requests (6.1: `flush_bio`).
    pub flushes_at_once: bool,
    /// Whether the block layer cuts requests to a RAID 10 by chunk also where all members hold each
    /// of them (Linux 6.12.117 drivers/md/raid10.c, `raid10_set_queue_limits`), so each chunk comes
    /// to the barrier by itself, behind the bits of the ones before.
    pub cuts_full_copies: bool,
    /// Whether a disk whose scheduler has nothing beyond the last command begins with the
    /// oldest request, and goes upwards from there (Linux 6.1 block/mq-deadline.c,
    /// `deadline_next_request`: `next_rq`). Else it goes on from the place of the last
    /// command (6.12: `latest_pos`).
    pub sweeps_start_anew: bool,
}

impl MdRules {
    /// Sectors of the longest request that is one bio: 256 pages (`BIO_MAX_VECS`).
    pub const OF_ONE_BIO: Sectors = Sectors(2048);

    /// The rules of Linux 6.12 (Debian's 6.12.117).
    pub const LINUX_6_12: Self = Self {
        plugs_requests: false,
        keeps_all_degraded_bits: true,
        bits_by_worker: true,
        plug_begins_with_oldest: true,
        flushes_at_once: true,
        cuts_full_copies: true,
        sweeps_start_anew: false,
    };

    /// The rules of Linux 6.1 (Debian's 6.1.192).
    pub const LINUX_6_1: Self = Self {
        plugs_requests: true,
        keeps_all_degraded_bits: false,
        bits_by_worker: false,
        plug_begins_with_oldest: false,
        flushes_at_once: false,
        cuts_full_copies: false,
        sweeps_start_anew: true,
    };
}
