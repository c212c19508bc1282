//! Taskqs: lines of tasks, each with threads of its own.
//!
//! A task goes to a thread that has nothing to do, the one that came to rest last, or
//! waits until one has done its task. Who dispatches it takes the taskq's lock, for which
//! nobody stands in line here (there are several taskqs of each kind in truth), and wakes
//! the thread. In OpenZFS 2.3 ends of reads, ends of writes and writes on their way have so
//! many threads as are 80 % of the cores (`zio_taskq_batch_pct`), and volumes have as many
//! as there are cores, 32 at least (`zvol_threads`). Each request to a volume keeps its
//! thread until it ends.

use super::task::{Action, Part, Place};
use super::{ArrayKind, ArrayPaths, Processor};
use raidlab_units::Nanos;
use std::collections::VecDeque;
use std::ops::Range;

/// Which of a pool's taskqs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskqName {
    /// The taskq for requests to volumes (`zvol_tq`).
    Volume,
    /// The taskq for reads that a disk has ended (`z_rd_int`).
    ReadEnd,
    /// The taskq for writes on their way to disks (`z_wr_iss`).
    WriteIssue,
    /// Writes and flushes that have ended.
    WriteEnd,
}

/// Their names in the kernel, in the order of [`TaskqName`].
const NAMES: [&str; 4] = ["zvol_tq", "z_rd_int", "z_wr_iss", "z_wr_int"];
/// The fewest threads of the taskq for volumes (`zvol_threads`).
const VOLUME_THREADS: usize = 32;

/// A taskq of ZFS: threads that take their turns from one line.
#[derive(Debug)]
pub(super) struct Taskq {
    pub(super) name: &'static str,
    pub(super) threads: Range<usize>,
    /// The numbers of the threads that have no task.
    idle: Vec<usize>,
    line: VecDeque<Vec<Part>>,
}

/// The taskqs of a subject on so many cores; none but those of a pool.
pub(super) fn of(array: &ArrayPaths, cores: usize) -> Vec<Taskq> {
    if !matches!(array.kind, ArrayKind::Pool(_)) {
        return Vec::new();
    }
    let batch = (cores * 80 / 100).max(1);
    let counts = [cores.max(VOLUME_THREADS), batch, batch, batch];
    let mut first = 1;
    let mut all = Vec::new();
    for (name, count) in NAMES.into_iter().zip(counts) {
        let threads = first..first + count;
        first = threads.end;
        all.push(Taskq {
            name,
            idle: threads.clone().rev().collect(),
            threads,
            line: VecDeque::new(),
        });
    }
    all
}

impl Processor {
    /// Puts a task into a taskq. It ends with [`Action::TaskOver`], now or later.
    pub(super) fn dispatch_task(
        &mut self,
        now: Nanos,
        core: usize,
        name: TaskqName,
        task: Vec<Part>,
    ) {
        let mut cost = self.charges.lock;
        let taskq = &mut self.taskqs[name as usize];
        match taskq.idle.pop() {
            None => taskq.line.push_back(task),
            Some(thread) => {
                self.threads[thread].work.extend(task);
                if self.wake(thread, now) {
                    cost += self.charges.wake_call;
                }
            }
        }
        self.put_first(core, &mut vec![Part::Charge(Place::Switch, cost)]);
    }

    /// A thread has done its task: it takes the next one, or rests.
    pub(crate) fn task_over(&mut self, thread: usize) {
        let mut taskqs = self.taskqs.iter_mut();
        let Some(taskq) = taskqs.find(|taskq| taskq.threads.contains(&thread)) else {
            return;
        };
        match taskq.line.pop_front() {
            Some(task) => self.threads[thread].work.extend(task),
            None => taskq.idle.push(thread),
        }
    }

    /// Whether a thread is a taskq's.
    pub(super) fn is_of_taskq(&self, thread: usize) -> bool {
        thread > self.workers && thread < self.first_job
    }

    /// The last part of each task, with which its thread is free again.
    pub(super) fn task_end() -> Part {
        Part::Do(Box::new(Action::TaskOver))
    }
}
