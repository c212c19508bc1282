//! The second half of a block of a sync, which md does in the array's one thread: the bytes read
//! are compared, or written to the others. While the thread writes metadata, and waits for them,
//! blocks that were read wait; so the disks become idle, and a superblock is not starved by a
//! stream of sync commands that lie nearer. Where md is not imitated no block waits.

use super::{Array, Command};
use crate::request::{Outputs, Sender};
use raidlab_units::Nanos;
use std::collections::VecDeque;

/// The blocks of a sync that wait until the array's thread has time for them.
#[derive(Debug, Default)]
pub(super) struct SyncThread {
    /// Whether the thread is writing metadata and handles no block meanwhile.
    is_busy: bool,
    /// Whether the thread has more blocks in hand; those that wait run when it is done with them.
    pub(super) has_more: bool,
    /// Blocks that were read, with the member that they were read from.
    copies: VecDeque<(u32, Command)>,
    /// Blocks of which all copies were read.
    comparisons: VecDeque<u32>,
}

impl SyncThread {
    /// Returns how many blocks wait for the thread.
    pub(super) fn waiting(&self) -> usize {
        self.copies.len() + self.comparisons.len()
    }
}

impl Array {
    /// Tells the thread that metadata are being written from now on, or no longer.
    pub(super) fn set_thread_busy(&mut self, now: Nanos, is_busy: bool, out: &mut Outputs) {
        self.now = now;
        self.thread.is_busy = is_busy && self.recovery.config().threads.is_some();
        if self.thread.waiting() > 0 {
            self.run_thread(out);
            self.pump_corrections(out);
            self.pump_sync(out);
        }
    }

    /// Whether the thread cannot run: it writes metadata, or sleeps for a request.
    fn is_thread_held(&self) -> bool {
        self.thread.is_busy || self.senders.is_asleep(Sender::Thread)
    }

    /// Handles the blocks that wait for the thread, as far as it can.
    pub(super) fn run_thread(&mut self, out: &mut Outputs) {
        while !self.is_thread_held() {
            if let Some((block, command)) = self.thread.copies.pop_front() {
                self.copy_block(block, command.slot, command.start, out);
            } else if let Some(block) = self.thread.comparisons.pop_front() {
                self.compare(block, out);
            } else {
                return;
            }
        }
    }

    /// Handles a block that was read, and is to be written to the others.
    pub(super) fn block_was_read(&mut self, block: u32, command: &Command, out: &mut Outputs) {
        if self.is_thread_held() {
            self.thread.copies.push_back((block, *command));
        } else {
            self.copy_block(block, command.slot, command.start, out);
        }
    }

    /// Handles a block all of whose copies were read, or could not be.
    pub(super) fn copies_were_read(&mut self, block: u32, out: &mut Outputs) {
        if self.is_thread_held() {
            self.thread.comparisons.push_back(block);
        } else {
            self.compare(block, out);
        }
    }
}
