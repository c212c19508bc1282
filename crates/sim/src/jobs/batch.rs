//! Requests that a clone hands over together (fio's `iodepth_batch`).
//!
//! fio keeps what it has queued until that are so many requests, or until it has to wait or
//! to sleep (ioengines.c, `td_io_queue` and `td_io_getevents`; io_u.c, `rate_ddir`). Where
//! more than two are submitted together Linux has a plug for them (fs/aio.c,
//! `AIO_PLUG_THRESHOLD`; io_uring/io_uring.h, `IO_PLUG_THRESHOLD`). There a request becomes
//! part of the one before it if it lies beside it, up to what a disk takes, unless it is to
//! be durable (block/blk-merge.c, `blk_attempt_plug_merge`).
//!
//! The model merges them above the array. Those that are no neighbours come to it one by one, as
//! if they had no plug. With a processor each request is handed over by itself, as each costs time.

use super::Jobs;
use crate::machine::Machine;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{Direction, Engine, IoUnit};

/// The most requests that Linux takes without a plug.
const WITHOUT_PLUG: usize = 2;

/// A request of a clone in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) clone: usize,
    pub(super) issued: Nanos,
    pub(super) direction: Direction,
    pub(super) offset: Bytes,
    pub(super) bytes: Bytes,
    /// Whether the clone does nothing else meanwhile.
    pub(super) holds_up: bool,
    /// The flight of the first range, and the number of ranges that have not ended, counted there.
    pub(super) first: usize,
    pub(super) ranges: u32,
    pub(super) failed: bool,
    /// Whether the flush that a system call makes behind its durable write was made, or is not due.
    pub(super) has_flushed: bool,
    /// The next of the flights that one request to the subject stands for.
    pub(super) next: Option<usize>,
}

impl Jobs {
    /// Whether a clone keeps a request until it has more of them; what it has kept goes before
    /// one that it does not keep.
    pub(super) fn keeps(
        &mut self,
        machine: &mut Machine,
        index: usize,
        unit: IoUnit,
        id: usize,
    ) -> bool {
        let clone = &mut self.clones[index];
        let moves = matches!(unit.direction, Direction::Read | Direction::Write);
        let has_queue = clone.job.engine == Engine::Libaio && machine.processor.is_none();
        let most = clone.job.submit_batch;
        let keeps = most > 1 && moves && has_queue && !clone.job.sync_writes;
        if keeps {
            clone.batch.push((unit, id));
        }
        let goes_on = clone.batch.len() < most as usize
            && clone.in_flight < clone.limit()
            && !clone.pace.waits_for_answers();
        if !keeps || !goes_on {
            self.commit(machine, index);
        }
        keeps
    }

    /// Hands over the requests that a clone has kept, merged where they lie side by side.
    pub(super) fn commit(&mut self, machine: &mut Machine, index: usize) {
        let batch = std::mem::take(&mut self.clones[index].batch);
        let is_plugged = batch.len() > WITHOUT_PLUG;
        let longest = machine.host.maximum_request;
        // Each with its first and its last flight.
        let mut requests: Vec<(IoUnit, usize, usize)> = Vec::new();
        for (unit, id) in batch {
            let before = requests.last_mut().filter(|_| is_plugged);
            if let Some((before, _, last)) = before
                && let Some(both) = merged(before, &unit, longest)
                && let Some(flight) = &mut self.flights[*last]
            {
                flight.next = Some(id);
                (*before, *last) = (both, id);
                continue;
            }
            requests.push((unit, id, id));
        }
        for (unit, id, _) in requests {
            self.hand_over(machine, index, &unit, id);
        }
    }
}

/// Returns both as one request, if they lie side by side on whole sectors.
fn merged(before: &IoUnit, unit: &IoUnit, longest: Bytes) -> Option<IoUnit> {
    let length = Bytes(before.length.0 + unit.length.0);
    let ends = |it: &IoUnit| it.offset.0 + it.length.0;
    let (first, border) = match (ends(before), ends(unit)) {
        (end, _) if end == unit.offset.0 => (before, end),
        (_, end) if end == before.offset.0 => (unit, end),
        _ => return None,
    };
    let fits = before.direction == unit.direction && length <= longest;
    (fits && border.is_multiple_of(512)).then_some(IoUnit { length, ..*first })
}
