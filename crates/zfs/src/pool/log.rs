//! The intent log: what makes writes durable before their transaction group is on disk.
//!
//! Every write to the volume leaves a record with a copy of its data in memory, until its group
//! has been synced (`zvol_log_write`, `zil_clean`). A flush, and a write that is to be durable,
//! *commit*: all records that are in no log block yet go into log blocks, of up to 128 KiB and in
//! steps of 4 KiB; each block is written to all disks, and then their caches are flushed
//! (`zil_commit`). With nothing to log a commit waits for the last log block under way, if there is
//! one (`zil_prune_commit_list`). Of several log blocks one behind the other, those that nobody
//! waits for leave the flush to the next one (`zil_lwb_flush_defer`), and a flush comes after the
//! writes of all blocks before it. A commit ends when all blocks up to its last one are durable.
//!
//! When a log block is sent depends on the release ([`IntentLog`]):
//!
//! * *Batches*, until OpenZFS 0.7: one batch of log blocks is under way at a time. Commits
//!   that come meanwhile are the next batch, together (`zl_next_batch`). Log blocks lie where
//!   the pool writes.
//! * *Pipeline*, OpenZFS 2.3: a lone commit's block is sent at once. Where commits meet, a block
//!   stays open for a tenth of the time that the last ones took, so that others join it
//!   (`zl_parallel`, `zfs_commit_timeout_pct`), and the next block does not wait for it. Log
//!   blocks have a metaslab of their own at the front of the disks (`vdev_metaslab_init`).
//!
//! Left out: log devices; the first blocks after a change of load, whose size ZFS
//! guesses wrong; and volume blocks above 32 KiB, which ZFS writes to their places in
//! place of a copy (`WR_INDIRECT`).

use super::io::WriteFor;
use super::{Pool, Timer, finish};
use crate::config::IntentLog;
use crate::leaf_queue::Class;
use crate::map::Place;
use raidlab_array::{Outputs, RequestId};
use raidlab_units::{Bytes, Nanos, Sectors};
use std::collections::VecDeque;

/// The bytes of a record without its data (`lr_write_t`), which are also those of a log block's
/// own header (`zil_chain_t`).
const HEADER_BYTES: u64 = 192;
/// The largest log block (`zil_maxblocksize`).
const LARGEST_BYTES: u64 = 128 << 10;
/// Log blocks are multiples of this (`ZIL_MIN_BLKSZ`).
const STEP_BYTES: u64 = 4096;
/// So many bursts of log blocks are taken to be of several writers after two commits have met
/// in one block (`ZIL_BURSTS`).
const BURSTS: u32 = 8;

/// How far a log block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// On its way to the disks.
    Writing,
    /// In the disks' caches.
    Written,
    Flushing,
    /// Flushed, or left to the flush of the next block.
    Durable,
}

/// A log block.
#[derive(Debug, Default)]
struct Block {
    /// Bytes of records and their data.
    bytes: u64,
    /// The flushes and durable writes that end with it.
    commits: Vec<RequestId>,
}

/// A log block that was sent.
#[derive(Debug)]
struct Sent {
    block: Block,
    stage: Stage,
    at: Nanos,
}

/// The intent log of the pool's volume.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Bytes of records that are in no log block: of the open group and of the one that is synced.
    records: [u64; 2],
    /// The block that takes further records, and when it is sent at the latest.
    open: Option<(Block, Nanos)>,
    /// Blocks under way in their order; the first has the number `first`.
    sent: VecDeque<Sent>,
    first: u64,
    /// Commits that wait for the batch under way.
    next_batch: Vec<RequestId>,
    /// For so many more bursts a block is held open for others to join.
    parallel: u32,
    /// How long a block takes from its writing to its flush, as a moving average.
    latency: Nanos,
    /// Where the next block begins in the log's own metaslab, in sectors.
    cursor: u64,
}

impl Log {
    /// Whether no commit is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.open.is_none() && self.sent.is_empty()
    }

    /// The number of requests that wait for log blocks; each keeps a thread of the volume.
    pub(super) fn commits(&self) -> usize {
        let open = self.open.iter().map(|(block, _)| block);
        let blocks = open.chain(self.sent.iter().map(|sent| &sent.block));
        let waiting: usize = blocks.map(|block| block.commits.len()).sum();
        waiting + self.next_batch.len()
    }

    /// A write to the volume leaves a record.
    pub(super) fn record(&mut self, data: Bytes) {
        self.records[0] += HEADER_BYTES + data.0;
    }

    /// The open group is synced from here on.
    pub(super) fn group_closes(&mut self) {
        let [open, _] = self.records;
        self.records = [0, open];
    }

    /// The group that was synced is on the disks, so its records are not needed any more.
    pub(super) fn group_is_synced(&mut self) {
        self.records[1] = 0;
    }
}

impl Pool {
    /// Makes durable what was written so far; these requests end with that.
    pub(super) fn commit(&mut self, now: Nanos, ids: Vec<RequestId>, out: &mut Outputs) {
        let is_pipeline = self.config.intent_log != IntentLog::Batches;
        let log = &mut self.log;
        if !is_pipeline && !log.sent.is_empty() {
            log.next_batch.extend(ids);
            return;
        }
        if log.records == [0, 0] {
            let open = log.open.as_mut().map(|(block, _)| block);
            let last = open.or(log.sent.back_mut().map(|sent| &mut sent.block));
            match last {
                Some(block) => block.commits.extend(ids),
                None => ids.into_iter().for_each(|id| finish(id, Ok(()), out)),
            }
            return;
        }
        if log.open.is_some() {
            log.parallel = BURSTS;
        } else if is_pipeline && !log.sent.is_empty() {
            log.parallel = log.parallel.max(BURSTS / 2);
        }
        let until = now + Nanos(log.latency.0 / 10);
        let (mut block, until) = log.open.take().unwrap_or((Block::default(), until));
        let mut left: u64 = std::mem::take(&mut log.records).iter().sum();
        loop {
            let room = LARGEST_BYTES - HEADER_BYTES - block.bytes;
            block.bytes += left.min(room);
            if left <= room {
                break;
            }
            left -= room;
            self.send_block(now, std::mem::take(&mut block), out);
        }
        block.commits.extend(ids);
        if self.log.parallel == 0 {
            self.send_block(now, block, out);
        } else {
            self.log.open = Some((block, until));
            self.set_timer(until, Timer::Log);
        }
    }

    /// Sends the open block if others have had their time to join it.
    pub(super) fn send_open_block(&mut self, now: Nanos, out: &mut Outputs) {
        if let Some((block, _)) = self.log.open.take_if(|(_, until)| *until <= now) {
            self.log.parallel -= 1;
            self.send_block(now, block, out);
        }
    }

    fn send_block(&mut self, now: Nanos, block: Block, out: &mut Outputs) {
        let bytes = (block.bytes + HEADER_BYTES).next_multiple_of(STEP_BYTES);
        let count = Bytes(bytes).to_sectors().0;
        let place = match self.config.intent_log {
            IntentLog::Pipeline { metaslab } if metaslab > Sectors::ZERO => {
                let fits = self.log.cursor + count <= metaslab.0;
                let start = if fits { self.log.cursor } else { 0 };
                self.log.cursor = start + count;
                Place { start, count }
            }
            _ => self.map.allocate(count),
        };
        let number = self.log.first + self.log.sent.len() as u64;
        self.log.sent.push_back(Sent {
            block,
            stage: Stage::Writing,
            at: now,
        });
        let purpose = WriteFor::Log { block: number };
        if !self.start_write(now, place, Class::SyncWrite, purpose) {
            self.log_block_done(now, number, out);
        }
    }

    /// A log block was written to all disks, or flushed.
    pub(super) fn log_block_done(&mut self, now: Nanos, number: u64, out: &mut Outputs) {
        let index = number.checked_sub(self.log.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let Some(sent) = index.and_then(|index| self.log.sent.get_mut(index)) else {
            return;
        };
        sent.stage = match sent.stage {
            Stage::Writing => Stage::Written,
            _ => Stage::Durable,
        };
        self.flush_log(out);
        self.end_commits(now, out);
    }

    /// Flushes for the log blocks that are written, with all before them.
    fn flush_log(&mut self, out: &mut Outputs) {
        for index in 0..self.log.sent.len() {
            let has_next = index + 1 < self.log.sent.len();
            let sent = &self.log.sent[index];
            let stage = match sent.stage {
                Stage::Writing => return,
                Stage::Written if sent.block.commits.is_empty() && has_next => Stage::Durable,
                Stage::Written => {
                    let block = self.log.first + index as u64;
                    match self.start_flush(WriteFor::Log { block }, out) {
                        true => Stage::Flushing,
                        false => Stage::Durable,
                    }
                }
                stage => stage,
            };
            self.log.sent[index].stage = stage;
        }
    }

    /// Ends the commits whose last block is durable, with all before it.
    fn end_commits(&mut self, now: Nanos, out: &mut Outputs) {
        let is_first_durable = |sent: &mut Sent| sent.stage == Stage::Durable;
        while let Some(sent) = self.log.sent.pop_front_if(is_first_durable) {
            self.log.first += 1;
            self.log.latency = Nanos((self.log.latency.0 * 7 + (now - sent.at).0) / 8);
            for id in sent.block.commits {
                finish(id, Ok(()), out);
            }
        }
        if self.log.sent.is_empty() && !self.log.next_batch.is_empty() {
            let batch = std::mem::take(&mut self.log.next_batch);
            self.commit(now, batch, out);
        }
    }
}
