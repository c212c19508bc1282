//! What a disk's scheduler costs the thread that sends a command.

use super::locks::LockName;
use super::task::{Part, Place};
use raidlab_disk::Order;
use raidlab_units::Nanos;

/// The time of one core that a request takes more with mq-deadline than without a scheduler, in
/// nanoseconds: its hooks, the second set of tags, the list on the way to the driver. Random reads
/// of 4 KiB on Linux 6.3 with one core, which is busy all the time (Z. Ren et al., ICPE 2024, raw
/// output of fio in github.com/stonet-research/icpe24_io_scheduler_study_artifact, fig-2): 2.86,
/// 2.83, 2.82 and 2.79 us for each at depths of 32 to 256, 3.41, 3.45, 3.40 and 3.39 with
/// mq-deadline, 4.35, 4.19, 4.24 and 4.26 with BFQ, 3.63, 3.58, 3.49 and 3.64 with kyber. The means
/// of the differences, taken for a core at speed 1.
pub(super) const MQ_DEADLINE_NS: f64 = 590.0;

/// The same time with BFQ, in nanoseconds.
pub(super) const BFQ_NS: f64 = 1430.0;

/// The same time with kyber, whose locks are each core's own, in nanoseconds.
pub(super) const KYBER_NS: f64 = 760.0;

/// The parts that a disk's scheduler costs a command; `times` are those of mq-deadline, BFQ and
/// kyber. mq-deadline takes its lock to look for a request to merge with, to insert and to dispatch
/// (block/mq-deadline.c, `dd_bio_merge`, `dd_insert_requests`, `dd_dispatch_request`), BFQ likewise
/// and when the request has ended (block/bfq-iosched.c, `bfq_finish_requeue_request`).
pub(super) fn parts(times: [Nanos; 3], order: Order, disk: u8) -> Vec<Part> {
    let [mq_deadline, bfq, kyber] = times;
    let passes = |count: usize, all: Nanos| {
        let pass = Part::Lock(LockName::Scheduler(disk), all / count as u64);
        vec![pass; count]
    };
    match order {
        Order::None | Order::Sweep => Vec::new(),
        Order::MqDeadline => passes(3, mq_deadline),
        Order::Bfq => passes(4, bfq),
        Order::Kyber => vec![Part::Charge(Place::Scheduler, kyber)],
    }
}
