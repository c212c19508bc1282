//! Reads: answers from the cache and from the running read-ahead, waiting reads, and the
//! length of read-ahead.

use super::scheduling::Candidate;
use super::{Arm, Platters, Work};
use crate::command::Command;
use raidlab_units::Nanos;

impl Platters {
    pub(super) fn read_ahead_on(&self) -> bool {
        self.parameters.segments > 0
    }

    pub(super) fn submit_read(&mut self, now: u64, command: &Command) {
        let mut read = self.candidate(now, command, Some(command.tag));
        self.locate(&mut read, command);
        if self.read_from_write_cache(now, &read, command.tag) {
            return;
        }
        // Read-ahead does not include sectors that a shingled disk has elsewhere.
        if self.read_ahead_on() && read.detour == 0 {
            self.note_streaming_progress(now);
            let held = self.segments.find(read.start);
            if let Some(index) = held.or_else(|| self.passing(now, &read)) {
                let segment_end = self.segments.get(index).end;
                if read.end <= segment_end {
                    let span = self.read_ahead_distance(&read, true);
                    self.segments.read(read.start, read.end, span);
                    self.extend_streaming(index, &read);
                    let ready = now.max(self.passed_at(read.end)) + self.interface.overhead;
                    self.interface.transfer(ready, read.bytes, command.tag);
                    return;
                }
                if self.serve_from_stream(index, &read) {
                    return;
                }
                // Only the part that the segment lacks is read from the medium.
                let start = segment_end.max(read.start);
                read.bytes = share(read.bytes, read.end - start, read.end - read.start);
                read.start = start;
            }
        }
        self.reads.insert(read);
        self.wake(now);
    }

    /// Answers a read that is completely inside one cached write from there, also while that one
    /// is being written.
    pub(super) fn read_from_write_cache(&mut self, now: u64, read: &Candidate, tag: u64) -> bool {
        let holds = |write: &Candidate| write.start <= read.start && read.end <= write.end;
        let written = match &self.arm {
            Arm::Busy { what: Work::Destage(write), .. } => Some(write),
            _ => None,
        };
        let near = self.dirty.touching(read.start, read.end).map(|(_, write)| write);
        let held = near.chain(written).any(holds);
        if held {
            self.interface
                .transfer(now + self.interface.overhead, read.bytes, tag);
        }
        held
    }

    /// The time at which the head passes, or has passed, this position of a segment: the past,
    /// except for data that an arm which leaves a stream late has yet to read.
    fn passed_at(&self, position: u64) -> u64 {
        let (from, since, to) = self.stayed;
        let ahead = (from..=to).contains(&position);
        if ahead { since + (position - from) } else { 0 }
    }

    /// Records the progress of the running read-ahead in its segment.
    pub(super) fn note_streaming_progress(&mut self, now: u64) {
        if let Arm::Streaming {
            segment: Some(segment),
            from,
            since,
            limit,
            ..
        } = self.arm
        {
            let reached = (from + now.saturating_sub(since)).min(limit);
            self.segments.extend(segment, reached);
        }
    }

    /// Extends the read-ahead after a hit in the stream under the head, restarting it where it had
    /// stopped at its limit.
    pub(super) fn extend_streaming(&mut self, index: usize, read: &Candidate) {
        let ahead = self.read_ahead_distance(read, true);
        if let Arm::Streaming {
            segment,
            limit,
            decide_at,
            ..
        } = &mut self.arm
            && *segment == Some(index)
            && *decide_at == u64::MAX
            // A stopped read-ahead would have to wait for the platter again:
            // restarting it at the limit is left to the next miss.
            && self.segments.get(index).end < *limit
        {
            *limit = (*limit).max(read.end.saturating_add(ahead));
        }
    }

    /// The segment of the read-ahead, if the head passes the start of this read before the drive
    /// has begun the command: those data are in the cache by then.
    fn passing(&self, now: u64, read: &Candidate) -> Option<usize> {
        let Arm::Streaming {
            segment,
            from,
            since,
            limit,
            decide_at,
        } = self.arm
        else {
            return None;
        };
        let taken_up = (now + self.parameters.overhead_idle.0).min(decide_at);
        let reached = (from + taken_up.saturating_sub(since)).min(limit);
        segment.filter(|_| (from..=reached).contains(&read.start))
    }

    /// Serves a read from the stream under the head, which will pass its end: it waits for that.
    pub(super) fn serve_from_stream(&mut self, index: usize, read: &Candidate) -> bool {
        let Arm::Streaming {
            segment,
            from,
            since,
            limit,
            ..
        } = self.arm
        else {
            return false;
        };
        let reached = self.segments.get(index).end;
        let running = reached < limit;
        let others = self.reads.len() + usize::from(!self.door.is_empty());
        if segment != Some(index)
            || !running
            || !self.parameters.stream.budget_left(self.visit_bytes, others)
        {
            return false;
        }
        self.arm = Arm::Busy {
            until: since + (read.end - from),
            what: Work::Read(*read).from(reached),
        };
        true
    }

    /// The length of read-ahead after `read`, as a distance of positions: bytes become time at the
    /// rate of the read itself.
    pub(super) fn read_ahead_distance(&self, read: &Candidate, sequential: bool) -> u64 {
        let stream = &self.parameters.stream;
        let ahead = if sequential {
            stream.sequential_read_ahead
        } else {
            stream.random_read_ahead
        };
        share((read.end - read.start).max(1), ahead.0, read.bytes.max(1))
    }

    /// Handles the end of a read: stays for the stream, reads ahead, or continues with other work.
    pub(super) fn after_read(&mut self, now: u64, read: &Candidate) {
        if !self.read_ahead_on() {
            self.dispatch(now, true);
            return;
        }
        let span = self.read_ahead_distance(read, true);
        let segment = self.segments.read(read.start, read.end, span);
        let sequential = self.segments.get(segment).sequential;
        self.visit_is_stream = sequential;
        if sequential {
            self.answer_from_segment(now, segment);
        }
        let stream = &self.parameters.stream;
        let others = self.reads.len() + usize::from(!self.door.is_empty());
        let idle = others == 0 && self.dirty.is_empty() && self.flushes.is_empty();
        let decide_at = if idle {
            u64::MAX
        } else if sequential
            && stream.follow_on_wait > Nanos::ZERO
            && !self.reads.has_start(read.end)
            && stream.budget_left(self.visit_bytes, others)
        {
            now + stream.follow_on_wait.0
        } else {
            self.dispatch(now, true);
            return;
        };
        self.arm = Arm::Streaming {
            segment: Some(segment),
            from: read.end,
            since: now,
            limit: read.end.saturating_add(self.read_ahead_distance(read, sequential)),
            decide_at,
        };
        self.rest_if_free(now);
    }

    /// Answers reads that came while the head was on its way past them.
    pub(super) fn answer_from_segment(&mut self, now: u64, segment: usize) {
        let held = *self.segments.get(segment);
        while let Some(index) = self.reads.first_within(held.start, held.end) {
            let read = self.reads.remove(index);
            if let Some(tag) = read.tag {
                self.interface.transfer(now, read.bytes, tag);
            }
        }
    }

    /// Ends read-ahead at `at`; returns true if the head is still over its position.
    pub(super) fn stop_streaming(&mut self, at: u64) -> bool {
        self.note_streaming_progress(at);
        let Arm::Streaming {
            from, since, limit, ..
        } = self.arm
        else {
            return false;
        };
        let reached = from + at.saturating_sub(since);
        self.head = reached.min(limit);
        self.arm = Arm::Idle;
        reached <= limit && at >= since
    }
}

/// `value` times `numerator` / `denominator`, which is above 0; numbers of impossible disks may be
/// too large for the product.
pub(super) fn share(value: u64, numerator: u64, denominator: u64) -> u64 {
    match value.checked_mul(numerator) {
        Some(product) => product / denominator,
        None => {
            let product = u128::from(value) * u128::from(numerator);
            u64::try_from(product / u128::from(denominator)).unwrap_or(u64::MAX)
        }
    }
}
