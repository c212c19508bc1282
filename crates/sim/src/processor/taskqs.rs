//! Taskqs and workqueues: lines of tasks, each with threads of its own.
//!
//! A task goes to a thread that has nothing to do, the one that came to rest last, or waits until
//! one has done its task. The thread that dispatches it takes the taskq's lock, for which there is
//! no line here (there are several taskqs of each kind in truth), and wakes the thread. In OpenZFS
//! 2.3 ends of reads, ends of writes and writes on their way have so many threads as are 80 % of
//! the cores (`zio_taskq_batch_pct`), and volumes have as many as there are cores, 32 at least
//! (`zvol_threads`). Each request to a volume keeps its thread until it ends.
//!
//! md has one workqueue for its bitmaps' pages, with a thread for each core here. A process
//! that sends writes asks it to write the pages with new bits, and sleeps meanwhile, also
//! when there are none (Linux 6.12 drivers/md/md-bitmap.c, `bitmap_unplug_async`).

use super::task::{Action, Part, Place};
use super::{ArrayKind, ArrayPaths, BitmapWrites, Processor};
use raidlab_units::Nanos;
use std::collections::VecDeque;
use std::ops::Range;

/// The name of one of a pool's taskqs, or of md's workqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskqName {
    /// The workqueue that writes pages of bitmaps (`md_bitmap`).
    Bitmap,
    /// The taskq for requests to volumes (`zvol_tq`).
    Volume,
    /// The taskq for reads that a disk has ended (`z_rd_int`).
    ReadEnd,
    /// The taskq for writes on their way to disks (`z_wr_iss`).
    WriteIssue,
    /// The taskq for writes and flushes that have ended.
    WriteEnd,
}

impl TaskqName {
    /// The name in the kernel.
    pub(super) const fn in_kernel(self) -> &'static str {
        match self {
            Self::Bitmap => "md_bitmap",
            Self::Volume => "zvol_tq",
            Self::ReadEnd => "z_rd_int",
            Self::WriteIssue => "z_wr_iss",
            Self::WriteEnd => "z_wr_int",
        }
    }
}

/// The fewest threads of the taskq for volumes (`zvol_threads`).
const VOLUME_THREADS: usize = 32;

/// A taskq: threads that take their turns from one line.
#[derive(Debug)]
pub(super) struct Taskq {
    pub(super) name: TaskqName,
    pub(super) threads: Range<usize>,
    /// The numbers of the threads that have no task.
    idle: Vec<usize>,
    line: VecDeque<Vec<Part>>,
}

/// Makes the taskqs of a subject on this number of cores.
pub(super) fn of(array: &ArrayPaths, cores: usize) -> Vec<Taskq> {
    let batch = (cores * 80 / 100).max(1);
    let counts = match (array.kind, array.sender()) {
        (ArrayKind::Pool(_), _) => vec![
            (TaskqName::Volume, cores.max(VOLUME_THREADS)),
            (TaskqName::ReadEnd, batch),
            (TaskqName::WriteIssue, batch),
            (TaskqName::WriteEnd, batch),
        ],
        (_, BitmapWrites::Worker) => vec![(TaskqName::Bitmap, cores)],
        _ => Vec::new(),
    };
    let mut first = 1;
    let mut all = Vec::new();
    for (name, count) in counts {
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
        let mut taskqs = self.taskqs.iter_mut();
        let taskq = taskqs.find(|taskq| taskq.name == name);
        let taskq = taskq.expect("a taskq of this subject");
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

    /// Ends the task of a thread, which takes the next one, or rests.
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
