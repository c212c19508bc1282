//! The use of the cores: by which threads, and for what.

use super::Processor;
use super::locks::LockUse;
use super::task::{Place, Role};
use raidlab_units::Nanos;

const PLACES: usize = Place::ALL.len();

/// The work in cores at a moment, and the work that waits for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoesOn {
    /// The number of cores at each place.
    pub(crate) at: [usize; PLACES],
    /// The number of requests and answers that wait for their job's thread.
    pub(crate) for_thread: usize,
    /// The number of stripes that wait for the array's thread or a worker, or of tasks that wait
    /// for threads of a pool.
    pub(crate) for_array_thread: usize,
}

/// The time by place, for each thread and for interrupts.
#[derive(Debug, Default)]
pub(super) struct Bill {
    threads: Vec<[Nanos; PLACES]>,
    interrupts: [Nanos; PLACES],
}

impl Bill {
    pub(super) fn add(&mut self, role: Role, place: Place, time: Nanos) {
        let account = match role {
            Role::Interrupt => &mut self.interrupts,
            Role::Thread(thread) => {
                if self.threads.len() <= thread {
                    self.threads.resize(thread + 1, [Nanos::ZERO; PLACES]);
                }
                &mut self.threads[thread]
            }
        };
        account[place as usize] += time;
    }
}

/// A thread's share of the cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUse {
    /// The name of the thread: `md0_raid5`, or `md0_raid5 workers` for all workers together, or a
    /// taskq for all of its threads.
    pub name: String,
    /// The time on a core.
    pub busy: Nanos,
}

/// The use of a machine's cores in a time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessorUse {
    /// The number of cores.
    pub cores: u64,
    /// The time of all jobs' threads outside of the kernel.
    pub user: Nanos,
    /// The time of all jobs' threads in the kernel, without interrupts.
    pub system: Nanos,
    /// The time that cores spent in interrupts.
    pub interrupts: Nanos,
    /// The kernel's own threads that did anything.
    pub threads: Vec<ThreadUse>,
    /// The time of all of these by purpose, where it is not zero.
    pub places: Vec<(&'static str, Nanos)>,
    /// Every lock of md or ZFS that was taken.
    pub locks: Vec<LockUse>,
}

fn sum(account: &[Nanos]) -> Nanos {
    account
        .iter()
        .copied()
        .fold(Nanos::ZERO, |all, one| all + one)
}

impl Processor {
    /// Sets the place at which a core is from now on, if any.
    pub(super) fn at(&mut self, core: usize, place: Option<Place>) {
        let for_job = matches!(self.role(core), Role::Thread(thread) if thread >= self.first_job);
        let own = &mut self.cores[core];
        if let Some((before, for_job)) = own.place.take() {
            self.at[before as usize] -= 1;
            self.at_jobs -= usize::from(for_job);
        }
        if let Some(place) = place {
            own.place = Some((place, for_job));
            self.at[place as usize] += 1;
            self.at_jobs += usize::from(for_job);
        }
    }

    /// The work that goes on in the cores now.
    pub(crate) fn goes_on(&self) -> GoesOn {
        let for_threads = self.turns.stripes() + self.pool.tasks;
        let at =
            |places: &[Place]| -> usize { places.iter().map(|&it| self.at[it as usize]).sum() };
        let handled = at(match self.array.is_pool() {
            false => &[Place::Stripe, Place::Parity],
            true => &[Place::Record, Place::Checksum, Place::Compress, Place::Copy],
        });
        GoesOn {
            at: self.at,
            for_thread: self.in_line.saturating_sub(self.at_jobs),
            for_array_thread: for_threads.saturating_sub(handled),
        }
    }

    /// The use of the cores since the start.
    pub(crate) fn used(&self) -> ProcessorUse {
        let nobody = [Nanos::ZERO; PLACES];
        let of = |thread: usize| self.bill.threads.get(thread).unwrap_or(&nobody);
        let first = 1 + self.workers;
        let all_of = |threads: std::ops::Range<usize>| {
            threads.fold(Nanos::ZERO, |all, thread| all + sum(of(thread)))
        };
        let (mut user, mut all) = (Nanos::ZERO, Nanos::ZERO);
        for account in self.bill.threads.iter().skip(self.first_job) {
            user += account[Place::User as usize];
            all += sum(account);
        }
        let name = self.array.thread();
        let mut threads = vec![ThreadUse {
            name: name.to_owned(),
            busy: sum(of(0)),
        }];
        if self.workers > 0 {
            threads.push(ThreadUse {
                name: format!("{name} workers"),
                busy: all_of(1..first),
            });
        }
        threads.extend(self.taskqs.iter().map(|taskq| ThreadUse {
            name: taskq.name.in_kernel().to_owned(),
            busy: all_of(taskq.threads.clone()),
        }));
        let accounts = || self.bill.threads.iter().chain([&self.bill.interrupts]);
        let places = Place::ALL.iter().map(|&(place, name)| {
            let each = accounts().map(|account| account[place as usize]);
            (name, each.fold(Nanos::ZERO, |all, one| all + one))
        });
        ProcessorUse {
            cores: self.cores.len() as u64,
            user,
            system: all - user,
            interrupts: sum(&self.bill.interrupts),
            threads,
            places: places.collect(),
            locks: self.locks.used(),
        }
    }
}

impl ProcessorUse {
    /// The use since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Nanos, then: Nanos| now.saturating_sub(then);
        let threads = self.threads.iter().zip(&earlier.threads);
        let places = self.places.iter().zip(&earlier.places);
        let locks = self.locks.iter().zip(&earlier.locks);
        Self {
            cores: self.cores,
            user: less(self.user, earlier.user),
            system: less(self.system, earlier.system),
            interrupts: less(self.interrupts, earlier.interrupts),
            threads: threads
                .map(|(now, then)| ThreadUse {
                    name: now.name.clone(),
                    busy: less(now.busy, then.busy),
                })
                .filter(|thread| thread.busy > Nanos::ZERO)
                .collect(),
            places: places
                .map(|(now, then)| (now.0, less(now.1, then.1)))
                .filter(|place| place.1 > Nanos::ZERO)
                .collect(),
            locks: locks
                .map(|(now, then)| LockUse {
                    name: now.name,
                    passes: now.passes - then.passes,
                    contended: now.contended - then.contended,
                    wait: less(now.wait, then.wait),
                    hold: less(now.hold, then.hold),
                })
                .filter(|lock| lock.passes > 0)
                .collect(),
        }
    }

    /// The time of all cores together in which they were used.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        let threads = self.threads.iter().map(|thread| thread.busy);
        let kernel = threads.fold(Nanos::ZERO, |all, one| all + one);
        self.user + self.system + self.interrupts + kernel
    }
}
