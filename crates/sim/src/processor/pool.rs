//! The work of a pool of ZFS for a request, and the threads that do it.
//!
//! The model is OpenZFS 2.3 on Linux, from its sources:
//!
//! * **A request** to a volume goes to a thread of `zvol_tq`, which looks up each block that
//!   it touches (`record_ns`: dnode, dbuf, ARC), and sleeps until all of them are in memory.
//!   Then it copies between them and the request, and ends it. On FreeBSD the asking thread
//!   does that itself.
//! * **A read** of a block is begun by the thread that misses it (`zio_ns`: the I/O, that of the
//!   mirror and that of its child). The lock of the disk's queue is taken when a command goes into
//!   it, and when one has ended (`queue_ns`). Its interrupt hands it to `z_rd_int`, which takes the
//!   queue's lock and sends the commands that may follow, ends the I/O (`zio_end_ns`), verifies its
//!   checksum, decompresses it, and wakes the waiting thread.
//! * **A write** only makes blocks dirty. The one thread `txg_sync` makes an I/O of each
//!   (`sync_ns`); `z_wr_iss` compresses it, makes its checksum, gives it a place and sends
//!   it, and `z_wr_int` ends it.
//!
//! The queue merges before this file sees a command, so costs of blocks are counted by the blocks
//! that fit into a command; each member's command has its share of the costs that a block has once,
//! whatever the number of its copies. Simplified: the orders of a request when an indirect block
//! has come are made by the thread that ends that block's read; and one command of many blocks
//! takes its lock once, for so long.

use super::charges::{Charges, Checksum, Compression};
use super::locks::LockName;
use super::task::{Action, Part, Place, Role};
use super::taskqs::TaskqName;
use super::{ArrayKind, Processor};
use raidlab_array::{
    CommandId, Finished, MemberCommand, Mixed, Operation, Outputs, Request, RequestId,
};
use raidlab_units::{Nanos, Sectors};
use std::collections::HashMap;

/// A volume in a pool, as far as its threads go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolPaths {
    /// The size of a block of the volume.
    pub block: Sectors,
    /// The room that a block takes on a disk, compressed.
    pub placed: Sectors,
    /// The number of disks that get each write.
    pub members: u32,
    /// Whether requests go to the taskq of volumes: on Linux.
    pub has_taskq: bool,
    /// The checksum of blocks.
    pub checksum: Checksum,
    /// The compression of blocks.
    pub compression: Compression,
}

/// The commands and requests of a pool that are on their way.
#[derive(Debug, Default)]
pub(super) struct InPool {
    /// Commands that the disks have.
    sent: HashMap<CommandId, MemberCommand, Mixed>,
    /// The requests, with the threads that sleep until they end, and their sizes.
    owners: HashMap<RequestId, (usize, Sectors)>,
    /// The command that is just being ended.
    ending: Option<MemberCommand>,
    /// The number of tasks of its threads: commands to be ended, writes to be sent, requests
    /// to be copied.
    pub(super) tasks: usize,
}

impl PoolPaths {
    /// Adds the work of a job's thread after its system call.
    pub(super) fn enter(&self, request: Request, charges: &Charges, to: &mut Vec<Part>) {
        if self.has_taskq {
            to.push(Part::Do(Box::new(Action::Enter(request))));
        } else {
            self.begin(request, charges, to);
        }
    }

    /// Adds the look-ups of the blocks that a request touches.
    fn begin(&self, request: Request, charges: &Charges, to: &mut Vec<Part>) {
        if matches!(request.operation, Operation::Read | Operation::Write) {
            let block = self.block.0.max(1);
            let end = (request.start.0 + request.count.0).div_ceil(block);
            let blocks = end - request.start.0 / block;
            to.push(Part::Charge(Place::Record, charges.record * blocks));
        }
        to.push(Part::Do(Box::new(Action::Request(request))));
    }

    /// The number of blocks that a command may hold.
    fn blocks(&self, command: &MemberCommand) -> u64 {
        command.count.0.div_ceil(self.placed.0.max(1)).max(1)
    }

    /// The pass of a disk's queue, with the blocks of a command.
    fn queue(&self, command: &MemberCommand, charges: &Charges) -> Part {
        let queue = u8::try_from(command.slot.index()).unwrap_or(u8::MAX);
        let hold = charges.queue * self.blocks(command);
        Part::Lock(LockName::VdevQueue(queue), hold)
    }

    /// Adds the making of a command's I/O, which goes into its disk's queue.
    fn send(&self, command: MemberCommand, charges: &Charges, to: &mut Vec<Part>) {
        let time = charges.zio * self.blocks(&command);
        to.push(Part::Charge(Place::Record, time));
        if command.operation != Operation::Flush {
            to.push(self.queue(&command, charges));
        }
        to.push(Part::Do(Box::new(Action::Send(command))));
    }

    /// The number of sectors of a command before they were compressed.
    fn whole(&self, command: &MemberCommand) -> Sectors {
        Sectors(command.count.0 * self.block.0 / self.placed.0.max(1))
    }
}

impl Processor {
    /// Takes note of an action that is about to happen in a pool.
    pub(super) fn note(&mut self, role: Role, action: &Action) {
        if !self.array.is_pool() {
            return;
        }
        let mut done = false;
        match (role, action) {
            (Role::Thread(thread), Action::Request(request)) => {
                self.pool.owners.insert(request.id, (thread, request.count));
            }
            (_, Action::Complete(id)) => {
                self.pool.ending = self.pool.sent.remove(id);
                done = self.pool.ending.is_some();
            }
            (_, Action::Send(command)) => done = command.operation == Operation::Write,
            (_, Action::Answer(_)) => done = true,
            _ => {}
        }
        self.pool.tasks -= usize::from(done);
    }

    /// Notes that a disk has a pool's command.
    pub(super) fn sent_by_pool(&mut self, command: MemberCommand) {
        if self.array.is_pool() {
            self.pool.sent.insert(command.id, command);
        }
    }

    /// Puts a request into the taskq of volumes.
    pub(crate) fn enter_taskq(&mut self, now: Nanos, core: usize, request: Request) {
        if let ArrayKind::Pool(pool) = self.array.kind {
            let mut task = Vec::new();
            pool.begin(request, &self.charges, &mut task);
            self.dispatch_task(now, core, TaskqName::Volume, task);
        }
    }

    /// Hands a command that has ended from an interrupt to a taskq.
    pub(crate) fn hand_on(&mut self, now: Nanos, core: usize, id: CommandId) {
        let ArrayKind::Pool(pool) = self.array.kind else {
            return;
        };
        let mut task = Vec::new();
        let mut name = TaskqName::WriteEnd;
        if let Some(command) = self.pool.sent.get(&id) {
            if command.operation == Operation::Read {
                name = TaskqName::ReadEnd;
            }
            if command.operation != Operation::Flush {
                task.push(pool.queue(command, &self.charges));
            }
        }
        task.push(Part::Do(Box::new(Action::Complete(id))));
        self.pool.tasks += 1;
        task.push(Self::task_end());
        self.dispatch_task(now, core, name, task);
    }

    /// Hands a write from the syncing thread to a taskq.
    pub(crate) fn issue(&mut self, now: Nanos, core: usize, command: MemberCommand) {
        let ArrayKind::Pool(pool) = self.array.kind else {
            return;
        };
        let charges = &self.charges;
        let copies = u64::from(pool.members.max(1));
        let [compress, _] = charges.compression(pool.compression, pool.whole(&command));
        let checksum = charges.checksum(pool.checksum, command.count);
        let mut task = vec![
            Part::Charge(Place::Compress, compress / copies),
            Part::Charge(Place::Checksum, checksum / copies),
        ];
        pool.send(command, charges, &mut task);
        task.push(Self::task_end());
        self.dispatch_task(now, core, TaskqName::WriteIssue, task);
    }

    /// Charges the outputs that a pool ordered when it was called on a core.
    pub(super) fn follow_pool(
        &mut self,
        now: Nanos,
        core: usize,
        pool: &PoolPaths,
        outputs: &mut Outputs,
    ) {
        let mut parts = Vec::new();
        let mut is_syncing = false;
        for command in outputs.commands.drain(..) {
            if command.operation == Operation::Write {
                let copies = u64::from(pool.members.max(1));
                let time = self.charges.sync * pool.blocks(&command) / copies;
                let work = &mut self.threads[0].work;
                work.push_back(Part::Charge(Place::Record, time));
                work.push_back(Part::Do(Box::new(Action::Issue(command))));
                self.pool.tasks += 1;
                is_syncing = true;
            } else {
                pool.send(command, &self.charges, &mut parts);
            }
        }
        if is_syncing && self.wake(0, now) {
            parts.push(Part::Charge(Place::Switch, self.charges.wake_call));
        }
        if let Some(command) = self.pool.ending.take() {
            let charges = &self.charges;
            let end = charges.zio_end * pool.blocks(&command);
            parts.push(Part::Charge(Place::Record, end));
            if command.operation == Operation::Read {
                let checksum = charges.checksum(pool.checksum, command.count);
                let whole = pool.whole(&command);
                let [_, back] = charges.compression(pool.compression, whole);
                parts.push(Part::Charge(Place::Checksum, checksum));
                if pool.placed < pool.block {
                    parts.push(Part::Charge(Place::Compress, back));
                }
            }
        }
        for finished in outputs.finished.drain(..) {
            parts.push(Part::Do(Box::new(Action::Gather(finished))));
        }
        self.put_first(core, &mut parts);
    }

    /// Has the thread of a request copy and answer it, as all that it needs is there.
    pub(crate) fn gather(&mut self, now: Nanos, core: usize, finished: Finished) {
        let Some((thread, count)) = self.pool.owners.remove(&finished.id) else {
            return;
        };
        let copy = self.charges.copy(count);
        self.pool.tasks += 1;
        let is_task = self.is_of_taskq(thread);
        let work = &mut self.threads[thread].work;
        work.push_back(Part::Charge(Place::Copy, copy));
        work.push_back(Part::Do(Box::new(Action::Answer(finished))));
        if is_task {
            work.push_back(Self::task_end());
        }
        if self.wake(thread, now) {
            let call = Part::Charge(Place::Switch, self.charges.wake_call);
            self.put_first(core, &mut vec![call]);
        }
    }
}
