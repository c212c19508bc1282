//! Clients' requests that the core works on.
//!
//! Reads, writes and flushes are one request to the core each. Trims and zeroes may be 4 GiB long:
//! they go in parts, one after the other, and zeroes are writes of one and the same zero memory. A
//! trim with FUA ends with a flush.

use super::payloads::{Payloads, length};
use crate::export::{Buffer, ErrorCode, Operation, Request};
use crate::member::Memory;
use raidlab_array::mutation::{self, Mutation};
use raidlab_array::{self as core, Finished, RequestError, RequestId};
use raidlab_units::{Bytes, SECTOR_BYTES, Sectors};
use std::sync::Arc;

/// Longest part of a trim, in sectors (64 MiB).
const TRIM_SECTORS: u64 = (64 << 20) / SECTOR_BYTES;
/// Longest part of zeroes, in sectors (1 MiB): the length of the zero memory.
const ZERO_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

struct Active {
    id: RequestId,
    request: Request,
    /// The first sector that has not gone to the core yet, up to `end`.
    next: u64,
    end: u64,
    /// Whether a flush is still to be sent, after the parts.
    flush_owed: bool,
}

/// The table of active requests.
#[derive(Default)]
pub(crate) struct Requests {
    places: Vec<Option<Active>>,
    free: Vec<usize>,
    count: usize,
    generation: u64,
    zeroes: Option<Arc<Memory>>,
    stopping: bool,
}

/// The bits of a [`RequestId`] that are an index into the table. The others distinguish the
/// successive requests of one index.
const PLACE_BITS: u32 = 24;

impl Requests {
    /// Takes a request, and its payload into `payloads`; returns what goes to the core first.
    pub(crate) fn begin(
        &mut self,
        mut request: Request,
        payloads: &mut Payloads,
    ) -> Option<core::Request> {
        if request.operation == Operation::Cache {
            request.complete(Ok(()));
            return None;
        }
        let buffer = std::mem::take(&mut request.buffer);
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.generation += 1;
        let id = RequestId((self.generation << PLACE_BITS) & (u64::MAX >> 1) | place as u64);
        if !buffer.is_empty() {
            payloads.insert(id, Memory::new(buffer));
        }
        let start = Bytes(request.offset).to_sectors().0;
        let forced_trim = request.operation == Operation::Trim
            && request.flags.force_unit_access
            && !mutation::is(Mutation::ForcedTrimUnflushed);
        self.places[place] = Some(Active {
            id,
            next: start,
            end: start + Bytes(u64::from(request.length)).to_sectors().0,
            flush_owed: forced_trim
                || request.operation == Operation::Flush && !mutation::is(Mutation::FlushSwallowed),
            request,
        });
        self.count += 1;
        if mutation::is(Mutation::SlotFreedEarly) {
            self.free.push(place);
        }
        self.go_on(place, Ok(()), payloads)
    }

    /// Takes the core's answer to a part. Returns the next part, or `None` when the client
    /// has been answered.
    pub(crate) fn finished(
        &mut self,
        finished: Finished,
        payloads: &mut Payloads,
    ) -> Option<core::Request> {
        self.go_on(place(finished.id), finished.result, payloads)
    }

    /// Answers every request with an error: the array has stopped.
    pub(crate) fn fail_all(&mut self, payloads: &mut Payloads) {
        for place in 0..self.places.len() {
            self.answer(place, Err(ErrorCode::Io), payloads);
        }
    }

    /// Stops long requests: no further part goes to the core, and their clients are told that the
    /// server is going away.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    /// Returns the number of requests that are not answered yet.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn go_on(
        &mut self,
        place: usize,
        result: Result<(), RequestError>,
        payloads: &mut Payloads,
    ) -> Option<core::Request> {
        let active = self.places.get_mut(place)?.as_mut()?;
        let is_taken = |error: &RequestError| match error {
            RequestError::ReadOnly => mutation::is(Mutation::RefusalTaken),
            _ => mutation::is(Mutation::FailureTaken),
        };
        let result = match result {
            Err(error) if is_taken(&error) => Ok(()),
            result => result,
        };
        let result = result
            .map_err(error_code)
            .and_then(|()| match self.stopping {
                true if active.next < active.end => Err(ErrorCode::Shutdown),
                _ => next(active, &mut self.zeroes, payloads),
            });
        match result {
            Ok(Some(part)) => return Some(part),
            Ok(None) => self.answer(place, Ok(()), payloads),
            Err(error) => self.answer(place, Err(error), payloads),
        }
        None
    }

    fn answer(&mut self, place: usize, result: Result<(), ErrorCode>, payloads: &mut Payloads) {
        let Some(Active {
            id, mut request, ..
        }) = self.places.get_mut(place).and_then(Option::take)
        else {
            return;
        };
        self.count -= 1;
        self.free.push(place);
        let buffer = payloads.remove(id).and_then(Memory::into_buffer);
        let result = match (&buffer, request.operation) {
            // A range of the client's bytes is still borrowed.
            (None, Operation::Read) => Err(ErrorCode::Io),
            _ => result,
        };
        request.buffer = buffer.unwrap_or_else(Buffer::empty);
        request.complete(result);
    }
}

fn place(id: RequestId) -> usize {
    (id.0 & ((1 << PLACE_BITS) - 1)) as usize
}

/// Returns the next part of a request for the core; `None` when it is done.
fn next(
    active: &mut Active,
    zeroes: &mut Option<Arc<Memory>>,
    payloads: &mut Payloads,
) -> Result<Option<core::Request>, ErrorCode> {
    let left = active.end - active.next;
    let mut part = core::Request {
        id: active.id,
        operation: core::Operation::Flush,
        start: Sectors(active.next),
        count: Sectors(left),
        force_unit_access: false,
        process: active.request.client,
    };
    if left == 0 {
        (part.start, part.count) = (Sectors::ZERO, Sectors::ZERO);
        return Ok(std::mem::take(&mut active.flush_owed).then_some(part));
    }
    let force = active.request.flags.force_unit_access
        && !mutation::is(Mutation::RequestForceUnitAccessLost);
    match active.request.operation {
        Operation::Flush | Operation::Cache => return Ok(None),
        Operation::Read => part.operation = core::Operation::Read,
        Operation::Write => {
            part.operation = core::Operation::Write;
            part.force_unit_access = force;
        }
        Operation::Trim => {
            part.operation = core::Operation::Discard;
            if mutation::is(Mutation::TrimShifted) {
                part.start = Sectors(part.start.0.saturating_sub(1));
            }
            part.count = Sectors(left.min(TRIM_SECTORS));
        }
        Operation::WriteZeroes => {
            part.operation = core::Operation::Write;
            part.force_unit_access = force;
            part.count = Sectors(left.min(ZERO_SECTORS));
            payloads.insert(active.id, zeroes_of(zeroes, payloads)?);
        }
    }
    active.next += part.count.0;
    if part.operation == core::Operation::Discard && mutation::is(Mutation::TrimPartSkipped) {
        active.next = active.end.min(active.next + TRIM_SECTORS);
    }
    Ok(Some(part))
}

fn zeroes_of(
    zeroes: &mut Option<Arc<Memory>>,
    payloads: &Payloads,
) -> Result<Arc<Memory>, ErrorCode> {
    if let Some(zeroes) = zeroes {
        return Ok(Arc::clone(zeroes));
    }
    let bytes = length(Sectors(ZERO_SECTORS));
    let mut buffer = payloads.take(bytes).map_err(|_| ErrorCode::OutOfMemory)?;
    if !mutation::is(Mutation::ZeroesOfBefore) {
        buffer.fill(0);
    }
    Ok(Arc::clone(zeroes.insert(Memory::new(buffer))))
}

fn error_code(error: RequestError) -> ErrorCode {
    match error {
        RequestError::NoMember | RequestError::Failed => ErrorCode::Io,
        RequestError::ReadOnly => ErrorCode::NotPermitted,
        RequestError::OutOfRange => ErrorCode::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::{Payloads, Requests, ZERO_SECTORS, length, zeroes_of};
    use crate::export::{Buffer, Completions, ErrorCode, Operation, Request, RequestFlags};
    use raidlab_array::Finished;
    use raidlab_units::Sectors;
    use std::sync::{Arc, Mutex};

    #[derive(Default)]
    struct Told(Mutex<Vec<Result<(), ErrorCode>>>);

    impl Completions for Told {
        fn completed(&self, _: u64, _: Buffer, result: Result<(), ErrorCode>) {
            self.0.lock().unwrap().push(result);
        }
    }

    /// Zeroes of 4 GiB would keep a server from its end for as long as they take.
    #[test]
    fn a_long_request_ends_with_the_part_under_way_when_the_server_ends() {
        for (parts, answer) in [(3, Err(ErrorCode::Shutdown)), (1, Ok(()))] {
            let told = Arc::new(Told::default());
            let (mut requests, mut payloads) = (Requests::default(), Payloads::default());
            let request = Request::new(
                Operation::WriteZeroes,
                0,
                parts << 20,
                RequestFlags::default(),
                Buffer::empty(),
                (Arc::clone(&told) as Arc<dyn Completions>, 0),
            );
            let part = requests.begin(request, &mut payloads).expect("a part");
            assert_eq!(part.count, Sectors(ZERO_SECTORS));
            requests.stop();
            let (id, result) = (part.id, Ok(()));
            let more = requests.finished(Finished { id, result }, &mut payloads);
            assert!(more.is_none() && requests.len() == 0);
            assert_eq!(*told.0.lock().unwrap(), [answer]);
        }
    }

    #[test]
    fn zeroes_are_none_of_the_bytes_that_the_memory_had_before() {
        let payloads = Payloads::default();
        let bytes = length(Sectors(ZERO_SECTORS));
        payloads.take(bytes).expect("room").fill(7);
        let zeroes = zeroes_of(&mut None, &payloads).expect("room");
        let zeroes = zeroes.read(0..bytes).expect("free");
        assert!(zeroes.iter().all(|byte| *byte == 0));
    }
}
