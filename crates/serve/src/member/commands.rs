//! Commands to the members of one array: short ones are continued, errors translated to the core's,
//! hung members given up.

mod counters;
mod later;
mod verdict;

pub use counters::MemberCounters;

use super::nested::{NestedEnded, NestedJobs};
use super::open::SHRUNK;
use super::{Backend, Ended, Job, Member, RegisteredMemory, Transfer, Waker};
use later::Later;
use raidlab_array::mutation::{self, Mutation};
use raidlab_array::{CommandId, MemberError};
use raidlab_units::Nanos;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use verdict::{Verdict, is_unawaited, judge, plant_in_rest};

/// The first token of commands to inner arrays, which have no time limit: they sort behind all
/// that have one.
const NESTED_TOKENS: u64 = 1 << 63;

/// The most attempts of a command that the kernel asks to repeat (EINTR, EAGAIN).
const ATTEMPTS: u32 = 100;

/// The most times that a command's limit is extended. Answers are taken between two extensions, so
/// a member that hangs is given up at last, however busy the caller is.
const EXCUSES: u8 = 16;

/// Limits for all members of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MembersConfig {
    /// The time after which a member that leaves a command unanswered is gone.
    pub command_limit: Nanos,
}

impl Default for MembersConfig {
    /// 30 seconds, the kernel's own time limit for a SCSI command.
    fn default() -> Self {
        Self {
            command_limit: Nanos::from_secs(30),
        }
    }
}

/// The end of a command: success or an error.
#[derive(Debug)]
pub struct Answer {
    /// The command that has ended.
    pub id: CommandId,
    /// Success, or the error in the core's words.
    pub result: Result<(), MemberError>,
    /// The command's transfer; `None` if it hangs and still has it.
    pub transfer: Option<Transfer>,
}

#[derive(Debug)]
struct Flight {
    id: CommandId,
    place: usize,
    sent: Nanos,
    /// The time when the member counts as hung.
    deadline: Nanos,
    excuses: u8,
    attempts: u32,
}

#[derive(Debug, Default)]
struct Place {
    member: Option<Member>,
    hung: bool,
    /// The reason why the whole member once counted as gone.
    lost: Option<String>,
    /// Whether no command has succeeded since one failed for a reason that concerns all of it.
    is_gone: bool,
    counters: MemberCounters,
}

/// The members of one array.
#[derive(Debug)]
pub struct Members {
    backend: Box<dyn Backend>,
    nested: NestedJobs,
    config: MembersConfig,
    places: Vec<Place>,
    /// Commands under way by token: the oldest first, as tokens only grow.
    flights: BTreeMap<u64, Flight>,
    later: Later,
    /// Jobs of members given up, which the kernel has not returned.
    abandoned: BTreeMap<u64, usize>,
    next_token: u64,
    ready: Vec<Answer>,
    ended: Vec<(Job, Ended)>,
    nested_ended: Vec<NestedEnded>,
}

impl Members {
    /// A set without members. `waker`: the one with which the backend was started; without one the
    /// caller has to poll for answers of inner arrays.
    #[must_use]
    pub fn new(
        backend: Box<dyn Backend>,
        config: MembersConfig,
        waker: Option<&Arc<Waker>>,
    ) -> Self {
        Self {
            backend,
            nested: NestedJobs::new(waker.cloned()),
            config,
            places: Vec::new(),
            flights: BTreeMap::new(),
            later: Later::default(),
            abandoned: BTreeMap::new(),
            next_token: 0,
            ready: Vec::new(),
            ended: Vec::new(),
            nested_ended: Vec::new(),
        }
    }

    /// Returns the name of the backend, as reports print it.
    #[must_use]
    pub fn backend_name(&self) -> &'static str {
        self.backend.name()
    }

    /// Returns how much of the payloads' memory is registered with the kernel.
    #[must_use]
    pub fn registered(&self) -> Option<RegisteredMemory> {
        self.backend.registered()
    }

    /// Attaches a member at a place; the one before it is detached.
    ///
    /// # Errors
    /// When the backend has no room.
    pub fn attach(&mut self, place: usize, member: &Member) -> io::Result<()> {
        self.detach(place);
        while self.places.len() <= place {
            self.places.push(Place::default());
        }
        if let Member::Storage(storage) = member {
            self.backend.attach(place, storage)?;
        }
        self.places[place] = Place {
            member: Some(member.clone()),
            ..Place::default()
        };
        Ok(())
    }

    /// Detaches a member. Its commands under way are still answered; it stays claimed until the
    /// last of them, hung ones included, has ended.
    pub fn detach(&mut self, place: usize) {
        if let Some(found) = self.places.get_mut(place)
            && let Some(Member::Storage(_)) = found.member.take()
        {
            self.backend.detach(place);
        }
    }

    /// Returns the member at a place.
    #[must_use]
    pub fn member(&self, place: usize) -> Option<&Member> {
        self.places.get(place)?.member.as_ref()
    }

    /// Whether there is no member at a place, and no command is under way to the one before.
    #[must_use]
    pub fn is_vacant(&self, place: usize) -> bool {
        let mut flights = self.flights.values();
        self.member(place).is_none() && flights.all(|flight| flight.place != place)
    }

    /// Whether the member at a place counts as gone: a command hung too long, or one failed with
    /// an error that concerns the whole member, and no other one has succeeded since.
    #[must_use]
    pub fn is_lost(&self, place: usize) -> bool {
        self.places.get(place).is_some_and(Place::is_lost)
    }

    /// Returns the first reason why the member at a place has counted as gone, in words.
    #[must_use]
    pub fn why_lost(&self, place: usize) -> Option<&str> {
        self.places.get(place)?.lost.as_deref()
    }

    /// Returns the counters of a place.
    #[must_use]
    pub fn counters(&self, place: usize) -> MemberCounters {
        self.places
            .get(place)
            .map(|found| found.counters)
            .unwrap_or_default()
    }

    /// Returns the number of commands sent and not answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len() + self.ready.len()
    }

    /// Returns the number of commands of members given up that the kernel has not returned.
    #[must_use]
    pub fn abandoned(&self) -> usize {
        self.abandoned.len()
    }

    /// Sends a command: `offset` in bytes.
    pub fn submit(
        &mut self,
        now: Nanos,
        id: CommandId,
        place: usize,
        offset: u64,
        transfer: Transfer,
    ) {
        let found = self.places.get_mut(place);
        let member = found
            .filter(|found| !found.hung)
            .and_then(|found| found.member.clone());
        let Some(member) = member else {
            self.refuse(id, MemberError::Gone, transfer);
            return;
        };
        let is_swallowed = mutation::is(Mutation::DriverFlushSkipped)
            || mutation::is(Mutation::FlushOfOneLost) && place == 1;
        if matches!(transfer, Transfer::Flush) && is_swallowed {
            self.ready.push(Answer {
                id,
                result: Ok(()),
                transfer: Some(transfer),
            });
            return;
        }
        if let Member::Storage(storage) = &member
            && !matches!(transfer, Transfer::Read(_))
            && let Some(why) = storage.why_lost()
        {
            self.lose(place, why);
            self.refuse(id, MemberError::Gone, transfer);
            return;
        }
        let token = match &member {
            Member::Storage(_) => self.next_token,
            Member::Array(_) => self.next_token | NESTED_TOKENS,
        };
        self.next_token += 1;
        self.places[place].counters.in_flight += 1;
        let flight = Flight {
            id,
            place,
            sent: now,
            deadline: Nanos(now.0.saturating_add(self.config.command_limit.0)),
            excuses: 0,
            attempts: 0,
        };
        if is_unawaited(&transfer) {
            self.abandoned.insert(token, place);
            self.ready.push(Answer {
                id,
                result: Ok(()),
                transfer: None,
            });
        } else {
            self.flights.insert(token, flight);
        }
        match member {
            Member::Storage(storage) => self.backend.submit(Job {
                token,
                place,
                storage,
                offset,
                transfer,
                moved: 0,
            }),
            Member::Array(array) => self.nested.submit(token, &array, offset, transfer),
        }
    }

    /// Answers a command that is not to be sent, at the next wait.
    pub fn refuse(&mut self, id: CommandId, error: MemberError, transfer: Transfer) {
        self.ready.push(Answer {
            id,
            result: Err(error),
            transfer: Some(transfer),
        });
    }

    /// Extends the time limit of the commands under way by a time in which answers were not
    /// taken: the caller was busy, or the process stood still. That is no member's fault, but the
    /// limit is extended only so many times. A short time is ignored, as it is not worth looking
    /// through all commands.
    pub fn excuse(&mut self, time: Nanos) {
        if time.0 < self.config.command_limit.0 / 8 || mutation::is(Mutation::AbsenceCounts) {
            return;
        }
        for (_, flight) in self.flights.range_mut(..NESTED_TOKENS) {
            if flight.excuses < EXCUSES {
                flight.excuses += 1;
                flight.deadline += time;
            }
        }
    }

    /// Sends the commands submitted, waits as [`Backend::wait`] does and appends the answers.
    /// `clock` is read before the wait and after it.
    ///
    /// # Errors
    /// When the backend itself no longer works.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
        clock: &dyn Fn() -> Nanos,
        answers: &mut Vec<Answer>,
    ) -> io::Result<()> {
        self.nested.start();
        let begun = clock();
        self.send_again(begun);
        let mut nested_ended = std::mem::take(&mut self.nested_ended);
        self.nested.collect(&mut nested_ended);
        let timeout = if self.ready.is_empty() && nested_ended.is_empty() {
            let next = self.next_attempt().map(|at| at.saturating_sub(begun));
            let next = next.map(|time| Duration::from_nanos(time.0));
            [timeout, next].into_iter().flatten().min()
        } else {
            Some(Duration::ZERO)
        };
        let mut ended = std::mem::take(&mut self.ended);
        let waited = self.backend.wait(timeout, &mut ended);
        self.nested.collect(&mut nested_ended);
        answers.append(&mut self.ready);
        let now = clock();
        let wanted = timeout.map(|timeout| begun.0.saturating_add(nanos(timeout).0));
        self.excuse(Nanos(
            wanted.map_or(0, |wanted| now.0.saturating_sub(wanted)),
        ));
        for one in nested_ended.drain(..) {
            self.finish(now, one.token, one.transfer, one.result, answers);
        }
        self.nested_ended = nested_ended;
        for (job, result) in ended.drain(..) {
            self.take(now, job, result, answers);
        }
        self.ended = ended;
        self.give_up_hung(now, answers);
        waited
    }

    /// Whether answers of refused commands wait to be taken.
    #[must_use]
    pub const fn has_answers(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the time limit of the oldest command.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let (token, oldest) = self.flights.first_key_value()?;
        (*token < NESTED_TOKENS).then_some(oldest.deadline)
    }

    /// Returns the time when [`Self::wait`] repeats a command for which the host lacked resources.
    #[must_use]
    pub fn next_attempt(&self) -> Option<Nanos> {
        self.later.next()
    }

    fn send_again(&mut self, now: Nanos) {
        for job in self.later.due(now) {
            match self.flights.contains_key(&job.token) {
                true => self.backend.submit(job),
                // The member was given up meanwhile.
                false => drop(self.abandoned.remove(&job.token)),
            }
        }
    }

    fn take(&mut self, now: Nanos, mut job: Job, result: Ended, answers: &mut Vec<Answer>) {
        let Some(flight) = self.flights.get_mut(&job.token) else {
            self.abandoned.remove(&job.token);
            if mutation::is(Mutation::LateAnswerTaken)
                && let Some(oldest) = self.flights.first_key_value().map(|(token, _)| *token)
            {
                self.finish(now, oldest, job.transfer, Ok(()), answers);
            }
            return;
        };
        let result_of_call = result;
        let place = flight.place;
        let verdict = judge(&job, result);
        if let Verdict::Again { moved } = verdict {
            flight.attempts = if moved > 0 { 0 } else { flight.attempts + 1 };
            if flight.attempts < ATTEMPTS {
                job.moved = match mutation::is(Mutation::RestMisplaced) && moved > 0 {
                    true => moved,
                    false => job.moved + moved,
                };
                plant_in_rest(&mut job, moved);
                self.backend.submit(job);
                return;
            }
        }
        if matches!(verdict, Verdict::Later) {
            let at = later::after(now, flight.attempts);
            flight.attempts += 1;
            if at < flight.deadline {
                self.later.put(at, job);
                return;
            }
        }
        let result = match verdict {
            Verdict::Done => Ok(()),
            Verdict::Failed(error) => Err(error),
            Verdict::Again { .. } | Verdict::Later => Err(MemberError::Gone),
        };
        if result == Err(MemberError::Gone) {
            match result_of_call {
                Ok(_) => self.lose(place, SHRUNK),
                Err(error) => self.lose(place, &io::Error::from(error).to_string()),
            }
        }
        self.finish(now, job.token, job.transfer, result, answers);
    }

    fn finish(
        &mut self,
        now: Nanos,
        token: u64,
        transfer: Transfer,
        result: Result<(), MemberError>,
        answers: &mut Vec<Answer>,
    ) {
        if let Some(flight) = self.flights.remove(&token) {
            let place = &mut self.places[flight.place];
            place.note(result);
            place.counters.count(&transfer, result.is_ok());
            place.counters.service_ns += now.0.saturating_sub(flight.sent.0);
            answers.push(Answer {
                id: flight.id,
                result,
                transfer: Some(transfer),
            });
        }
    }

    /// Records why a member counts as gone; the first reason is the cause.
    fn lose(&mut self, place: usize, why: &str) {
        if let Some(found) = self.places.get_mut(place) {
            found.lost.get_or_insert_with(|| why.to_owned());
        }
    }

    fn give_up_hung(&mut self, now: Nanos, answers: &mut Vec<Answer>) {
        while self.next_deadline().is_some_and(|deadline| deadline <= now) {
            let Some((_, oldest)) = self.flights.first_key_value() else {
                return;
            };
            let place = oldest.place;
            self.places[place].hung = true;
            let seconds = self.config.command_limit.0 / Nanos::SECOND.0;
            self.lose(
                place,
                &format!("a command was not answered for {seconds} s"),
            );
            let hung = self
                .flights
                .extract_if(.., |_, flight| flight.place == place);
            for (token, flight) in hung {
                let counters = &mut self.places[place].counters;
                counters.in_flight -= 1;
                counters.errors += 1;
                self.abandoned.insert(token, place);
                let is_taken = mutation::is(Mutation::HungWriteTaken);
                answers.push(Answer {
                    id: flight.id,
                    result: match is_taken {
                        true => Ok(()),
                        false => Err(MemberError::Gone),
                    },
                    transfer: None,
                });
            }
        }
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
