//! Locks of md, ZFS and the block layer as servers, first come first served.
//!
//! A thread that finds a lock taken spins: its core does nothing else, and is billed. A pass lasts
//! as long as the lock is held, and longer where lock and data come from another core's cache;
//! longest from another socket, and longer the more cores look at it. So a lock that one core alone
//! takes is cheap, and one for which many cores stand in line costs a transfer with each pass.
//!
//! A counter that all cores change is served in the same way: it is not held, but its cache line
//! goes from one core to the next.

use raidlab_units::Nanos;
use std::collections::VecDeque;

/// A lock of md, of ZFS, or of the block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockName {
    /// RAID 10's `resync_lock`, in `wait_barrier` and `allow_barrier`.
    Resync,
    /// The lock of the queue in which requests wait for the barrier, in `wake_up`.
    BarrierQueue,
    /// RAID 5's `device_lock`: lists of stripes, and before 5.13 each direct read.
    Device,
    /// The lock of the queue `wait_for_overlap`.
    OverlapQueue,
    /// The lock of the bitmap's counters.
    Bitmap,
    /// RAID 5's count of direct reads, which is no lock but a cache line that every core changes.
    DirectReads,
    /// One of RAID 5's eight hash locks: lookup and free stripes.
    Hash(u8),
    /// ZFS's lock of a disk's queue.
    VdevQueue(u8),
    /// The lock of a disk's scheduler: `lock` of `struct deadline_data` or `bfq_data`.
    Scheduler(u8),
}

/// The number of hash locks (`NR_STRIPE_HASH_LOCKS`).
const HASH_LOCKS: usize = 8;
/// The place of the first hash lock.
const FIRST_HASH: usize = 6;
/// The place of the lock of the first disk's queue, and the most of such locks.
const FIRST_QUEUE: usize = FIRST_HASH + HASH_LOCKS;
const QUEUES: usize = 32;
/// The place of the lock of the first disk's scheduler, of which there are as many.
const FIRST_SCHEDULER: usize = FIRST_QUEUE + QUEUES;

impl LockName {
    fn place(self) -> usize {
        match self {
            Self::Resync => 0,
            Self::BarrierQueue => 1,
            Self::Device => 2,
            Self::OverlapQueue => 3,
            Self::Bitmap => 4,
            Self::DirectReads => 5,
            Self::Hash(number) => FIRST_HASH + usize::from(number) % HASH_LOCKS,
            Self::VdevQueue(disk) => FIRST_QUEUE + usize::from(disk) % QUEUES,
            Self::Scheduler(disk) => FIRST_SCHEDULER + usize::from(disk) % QUEUES,
        }
    }
}

/// The names of the locks in the source: all hash locks together, all queues', and all schedulers'.
const NAMES: [&str; FIRST_HASH + 3] = [
    "resync_lock",
    "wait_barrier",
    "device_lock",
    "wait_for_overlap",
    "bitmap counts",
    "active_aligned_reads",
    "hash_locks",
    "vq_lock",
    "scheduler",
];

/// The use of a lock in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LockUse {
    /// The name of the lock in the source, or its owner.
    pub name: &'static str,
    /// The number of times that it was taken.
    pub passes: u64,
    /// The number of these times at which it was found taken.
    pub contended: u64,
    /// The time that cores spun for it, all together.
    pub wait: Nanos,
    /// The time for which it was held, the way from other caches included.
    pub hold: Nanos,
}

#[derive(Debug, Clone, Default)]
struct Lock {
    holder: Option<usize>,
    last: Option<usize>,
    /// The cores that spin, each with the time since when, and the time for which it
    /// wants the lock.
    line: VecDeque<(usize, Nanos, Nanos)>,
    used: LockUse,
}

/// All locks of a machine's array.
#[derive(Debug)]
pub(crate) struct Locks {
    locks: Vec<Lock>,
    cores_of_a_socket: usize,
    way: [Nanos; 2],
    crowd_picos: [u64; 2],
}

impl Locks {
    /// Makes free locks. `way` is the time from another core of the socket, and from another
    /// socket; `crowd_picos` the same for each core in line, in picoseconds.
    pub(crate) fn new(cores_of_a_socket: usize, way: [Nanos; 2], crowd_picos: [u64; 2]) -> Self {
        Self {
            locks: vec![Lock::default(); FIRST_SCHEDULER + QUEUES],
            cores_of_a_socket,
            way,
            crowd_picos,
        }
    }

    /// Takes a lock for a core, and returns how long its pass takes if the lock is free;
    /// `None`: it spins.
    pub(crate) fn take(
        &mut self,
        name: LockName,
        core: usize,
        now: Nanos,
        hold: Nanos,
    ) -> Option<Nanos> {
        let way = self.way(name, core);
        let lock = &mut self.locks[name.place()];
        if lock.holder.is_some() {
            lock.line.push_back((core, now, hold));
            return None;
        }
        Some(lock.grant(core, hold + way))
    }

    /// Releases a lock, which the core that spun longest has then; returns that core, how long it
    /// spun, and how long its pass takes.
    pub(crate) fn release(&mut self, name: LockName, now: Nanos) -> Option<(usize, Nanos, Nanos)> {
        let lock = &mut self.locks[name.place()];
        lock.holder = None;
        let (core, since, hold) = lock.line.pop_front()?;
        let way = self.way(name, core);
        let lock = &mut self.locks[name.place()];
        let spun = now - since;
        lock.used.contended += 1;
        lock.used.wait += spun;
        Some((core, spun, lock.grant(core, hold + way)))
    }

    /// The time that the lock is on its way to a core.
    fn way(&self, name: LockName, core: usize) -> Nanos {
        let socket = |core: usize| core / self.cores_of_a_socket.max(1);
        let lock = &self.locks[name.place()];
        let Some(last) = lock.last.filter(|&last| last != core) else {
            return Nanos::ZERO;
        };
        let far = usize::from(socket(last) != socket(core));
        if name == LockName::DirectReads {
            // Cores do not look at a counter while they wait to change it.
            return self.way[far];
        }
        let crowd = self.crowd_picos[far] * lock.line.len() as u64;
        self.way[far] + Nanos(crowd / 1000)
    }

    /// The use of each lock that was ever taken.
    pub(crate) fn used(&self) -> Vec<LockUse> {
        let mut all: Vec<LockUse> = NAMES
            .iter()
            .map(|name| LockUse {
                name,
                ..LockUse::default()
            })
            .collect();
        for (place, lock) in self.locks.iter().enumerate() {
            let is_queue = usize::from(place >= FIRST_QUEUE);
            let is_scheduler = usize::from(place >= FIRST_SCHEDULER);
            let sum = &mut all[place.min(FIRST_HASH) + is_queue + is_scheduler];
            sum.passes += lock.used.passes;
            sum.contended += lock.used.contended;
            sum.wait += lock.used.wait;
            sum.hold += lock.used.hold;
        }
        all
    }
}

impl Lock {
    fn grant(&mut self, core: usize, time: Nanos) -> Nanos {
        self.holder = Some(core);
        self.last = Some(core);
        self.used.passes += 1;
        self.used.hold += time;
        time
    }
}

#[cfg(test)]
mod tests {
    use super::{LockName, Locks};
    use raidlab_units::Nanos;

    /// By hand: two cores a socket, 10 ns from the neighbour, 30 from the other socket, and 2
    /// or 6 more for each core in line.
    #[test]
    fn a_lock_serves_who_came_first_and_comes_from_the_last_holders_cache() {
        let mut locks = Locks::new(2, [Nanos(10), Nanos(30)], [2000, 6000]);
        let (name, hold) = (LockName::Device, Nanos(100));
        assert_eq!(locks.take(name, 0, Nanos(0), hold), Some(Nanos(100)));
        assert_eq!(locks.take(name, 3, Nanos(20), hold), None);
        assert_eq!(locks.take(name, 1, Nanos(40), hold), None);
        let next = locks.release(name, Nanos(100));
        assert_eq!(next, Some((3, Nanos(80), Nanos(136))));
        let next = locks.release(name, Nanos(236));
        assert_eq!(next, Some((1, Nanos(196), Nanos(130))));
        assert_eq!(locks.release(name, Nanos(360)), None);
        assert_eq!(locks.take(name, 1, Nanos(400), hold), Some(Nanos(100)));
        // Another lock knows nothing of it.
        assert_eq!(
            locks.take(LockName::Hash(9), 0, Nanos(400), hold),
            Some(hold)
        );
        let used = locks.used()[2];
        assert_eq!(
            (used.name, used.passes, used.contended),
            ("device_lock", 4, 2)
        );
        assert_eq!((used.wait, used.hold), (Nanos(276), Nanos(466)));
        assert_eq!(locks.used()[6].passes, 1);
    }
}
