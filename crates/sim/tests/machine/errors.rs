//! Requests that fail.

use crate::bench::group;
use raidlab_array::{
    CommandId, Finished, MemberError, Operation, Outputs, Request, RequestError, RequestId, Slot,
    SyncProgress,
};
use raidlab_random::Stream;
use raidlab_sim::{Host, Machine, MachineConfig, SimError, Subject, SubjectError};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{JobSpec, Pattern};
use std::sync::{Arc, Mutex};

/// Fails every read at once, and does all else at once; or, with a `period`, never
/// answers, and looks at the clock so often.
struct FailsReads {
    period: Option<Nanos>,
    now: Nanos,
    /// Where a thread answers: an `s` for each request and a `t` for each turn of the thread,
    /// in the order in which they came, each with the microsecond.
    turns: Option<Arc<Mutex<String>>>,
    pending: Vec<RequestId>,
}

impl FailsReads {
    fn note(&self, turn: char) {
        if let Some(turns) = &self.turns {
            let note = format!("{turn}{} ", self.now.0 / 1000);
            turns.lock().expect("nobody panicked").push_str(&note);
        }
    }
}

impl Subject for FailsReads {
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.now = now;
        if self.period.is_some() {
            return;
        }
        if self.turns.is_some() {
            self.note('s');
            self.pending.push(request.id);
            return;
        }
        let fails = request.operation == Operation::Read;
        out.finished.push(Finished {
            id: request.id,
            result: match fails {
                true => Err(RequestError::NoMember),
                false => Ok(()),
            },
        });
    }

    fn complete(&mut self, _: Nanos, _: CommandId, _: Result<(), MemberError>, _: &mut Outputs) {}

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.note('t');
        let answers = self
            .pending
            .drain(..)
            .map(|id| Finished { id, result: Ok(()) });
        out.finished.extend(answers);
    }

    fn threads_go_first(&self) -> bool {
        true
    }

    fn next_tick(&self) -> Option<Nanos> {
        let thread = (!self.pending.is_empty()).then_some(self.now);
        thread.or(self.period.map(|period| self.now + period))
    }

    fn waits(&self) -> Vec<String> {
        vec!["all waits for nobody".to_owned()]
    }

    fn fail(&mut self, _: Nanos, _: Slot, _: &mut Outputs) -> Result<(), SubjectError> {
        Ok(())
    }

    fn remove(&mut self, _: Nanos, _: Slot, _: &mut Outputs) -> Result<(), SubjectError> {
        Ok(())
    }

    fn insert(&mut self, _: Nanos, _: Slot, _: &mut Outputs) -> Result<(), SubjectError> {
        Ok(())
    }

    fn sync(&self) -> Option<SyncProgress> {
        None
    }

    fn freeze_sync(&mut self) {}

    fn thaw_sync(&mut self, _: Nanos, _: &mut Outputs) {}

    fn leap_sync(&mut self, _: Nanos, _: Sectors, _: &mut Outputs) {}

    fn leap_write(&mut self, _: Sectors, _: Sectors) {}

    fn leap_sample(&self) -> Nanos {
        Nanos::SECOND
    }

    fn is_idle(&self) -> bool {
        true
    }

    fn health(&self) -> String {
        "_".to_owned()
    }

    fn size(&self) -> Sectors {
        Sectors(1 << 20)
    }

    fn member_sector(&self, sector: Sectors) -> Sectors {
        sector
    }
}

fn machine(period: Option<Nanos>) -> Machine {
    machine_with(period, None, (None, None))
}

fn machine_with(
    period: Option<Nanos>,
    turns: Option<Arc<Mutex<String>>>,
    (scheduler_clock, one_processor): (Option<Nanos>, Option<Nanos>),
) -> Machine {
    Machine::new(MachineConfig {
        subject: Box::new(FailsReads {
            period,
            now: Nanos::ZERO,
            turns,
            pending: Vec::new(),
        }),
        disks: Vec::new(),
        host: Host {
            scheduler_clock,
            one_processor,
            ..Host::new(Nanos::from_micros(10))
        },
        random: Stream::new(1),
        leaps: false,
        processor: None,
    })
}

fn run(tolerates_errors: [bool; 3]) -> Result<[u64; 2], SimError> {
    let mut machine = machine(None);
    let job = JobSpec {
        pattern: Pattern::RandRw,
        size: Some(Bytes(1 << 20)),
        tolerates_errors,
        ..JobSpec::default()
    };
    let result = machine.run(&group([job]))?;
    Ok([result.reads().ios, result.writes().ios])
}

/// As with fio's `continue_on_error`: what failed counts for nothing, and the job does
/// all of its amount.
#[test]
fn a_job_goes_on_after_errors_that_it_tolerates() {
    let lost = SimError::Request(RequestError::NoMember);
    assert_eq!(run([false; 3]), Err(lost.clone()));
    assert_eq!(run([false, true, true]), Err(lost));
    let [reads, writes] = run([true, false, false]).expect("it goes on");
    assert_eq!(reads, 0);
    assert!((90..170).contains(&writes), "half of 256: {writes}");
}

/// The error of a job on a subject that never answers.
fn never_ends(period: Nanos) -> SimError {
    let job = JobSpec {
        name: "patient".to_owned(),
        pattern: Pattern::RandWrite,
        size: Some(Bytes(1 << 20)),
        io_depth: 3,
        engine: raidlab_workload::Engine::Libaio,
        ..JobSpec::default()
    };
    let end = machine(Some(period)).run(&group([job]));
    end.expect_err("it never ends")
}

/// Until the job's end would have come after a year; the run has an error instead that
/// says what waits for what.
#[test]
fn a_request_without_an_answer_ends_the_run() {
    let error = never_ends(Nanos::SECOND);
    let SimError::Unanswered { at, .. } = &error else {
        panic!("{error}");
    };
    assert!((600..=660).contains(&(at.0 / Nanos::SECOND.0)), "{at}");
    let text = error.to_string();
    for part in [
        "`patient`",
        "a write of 4 KiB",
        "3 requests",
        "all waits for nobody",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// A subject that wants to be asked again at once, for ever: the run would never end.
#[test]
fn an_instant_without_an_end_ends_the_run() {
    let error = never_ends(Nanos::ZERO);
    let SimError::TimeStandsStill { at, waits, .. } = &error else {
        panic!("{error}");
    };
    assert!(*at < Nanos::SECOND, "{at}");
    assert!(waits.contains("all waits for nobody"), "{waits}");
}

/// A process goes on until it sleeps, unless the host's scheduler has billed it last: then the
/// thread has its turn after each request. With one processor three answers at a time are three
/// turnarounds, for which the thread waits. The sources are fio's io_u.c, `io_u_queued_complete`,
/// and `RUN_TO_PARITY` of Linux's kernel/sched/features.h.
#[test]
fn a_thread_goes_before_a_process_that_is_behind_and_else_after_it() {
    let clock = Some(Nanos::from_millis(10));
    for (host, first) in [
        ((None, None), "s0 s0 s0 t0 s10 s10 s10 t10 "),
        ((clock, None), "s0 t0 s0 t0 s0 t0 "),
        (
            (None, Some(Nanos::from_micros(1))),
            "s0 s0 s0 t0 s10 s21 s32 t33 ",
        ),
    ] {
        let turns = Arc::new(Mutex::new(String::new()));
        let job = JobSpec {
            pattern: Pattern::RandWrite,
            size: Some(Bytes(24 << 10)),
            io_depth: 3,
            engine: raidlab_workload::Engine::Libaio,
            ..JobSpec::default()
        };
        let mut machine = machine_with(None, Some(Arc::clone(&turns)), host);
        machine.run(&group([job])).expect("it ends");
        let turns = turns.lock().expect("nobody panicked");
        assert!(turns.starts_with(first), "{host:?}: {turns}");
    }
}
