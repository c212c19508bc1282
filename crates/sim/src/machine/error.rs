//! The error with which a simulation ends before its time.

use crate::subject::SubjectError;
use raidlab_units::Nanos;
use raidlab_workload::JobError;
use thiserror::Error;

/// The reason why a simulation cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimError {
    /// A job that cannot run on this subject.
    #[error("job `{job}` cannot run")]
    Job {
        /// The job's name.
        job: String,
        /// The thing in the job that does not fit.
        #[source]
        source: JobError,
    },
    /// Requests are in flight and no event will ever come.
    #[error(
        "the simulation is stuck at {at}: {in_flight} requests in flight and no event ({waits})"
    )]
    Stuck {
        /// The virtual time at which this was found.
        at: Nanos,
        /// The number of requests without an answer.
        in_flight: usize,
        /// The things that wait, and for what: in the subject, and at its disks.
        waits: String,
    },
    /// Events come without end, and time does not pass.
    #[error("time stands still at {at}: {events} events in one instant ({waits})")]
    TimeStandsStill {
        /// The instant that does not pass.
        at: Nanos,
        /// The number of events in it.
        events: u64,
        /// The things that wait, and for what: in the subject, and at its disks.
        waits: String,
    },
    /// A job ran far longer than anything sensible.
    #[error("the job did not end within {limit} of virtual time")]
    Endless {
        /// The virtual time that a job may take.
        limit: Nanos,
    },
    /// A request is not answered, so its job will not end.
    #[error(
        "job `{job}` is at a standstill at {at}: {what} has had no answer for {limit} of virtual \
         time ({waits})"
    )]
    Unanswered {
        /// The job that has the oldest request in flight.
        job: String,
        /// The time at which this was found, since the start of the machine.
        at: Nanos,
        /// The request in words: operation, size, place, and how many are in flight with it.
        what: String,
        /// The time that a request may take.
        limit: Nanos,
        /// The things that wait, and for what: in the subject, and at its disks.
        waits: String,
    },
    /// A state of the subject did not come about.
    #[error("the wait did not end within {at_most} of virtual time ({waits})")]
    Waited {
        /// The virtual time that the wait was given.
        at_most: Nanos,
        /// The things that wait, and for what: in the subject, and at its disks.
        waits: String,
    },
    /// The watcher of the job ended it.
    #[error("the job was interrupted")]
    Interrupted,
    /// A request failed: the subject has lost data.
    #[error("a request failed")]
    Request(#[source] raidlab_array::RequestError),
    /// The subject refused a verb.
    #[error("the subject refused")]
    Subject(#[source] SubjectError),
}
