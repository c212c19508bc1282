//! Running the experiments of a suite, several at a time.
//!
//! Worker threads take experiments, fit by fit, and send messages to the caller's thread, which
//! passes on progress at once and measurements in the order of the experiments: those of the first
//! unfinished experiment as they arise, those of later ones when their turn comes. So a sink sees
//! the same rows in the same order at any number of threads. Where an experiment is not repeatable,
//! on real machines, where a cell takes minutes to hours, order is given up for safety: everything
//! is passed on at once. When the run is cancelled or an experiment fails, what was measured is
//! delivered all the same.
//!
//! In a resumed run, experiments that were finished are not run again; the sink is told when their
//! turn has come.

use crate::background::{ArrayLook, Background, kept};
use crate::bench::{Bench, BenchError, Finish, Observer, Progress};
use crate::experiment::Experiment;
use crate::published::Published;
use crate::subject::SubjectKind;
use raidlab_store::{Cell, CellResult, Measurement, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The receiver of a run's results, on the thread that called [`run_suite`].
pub trait Sink {
    /// The error of storing a result.
    type Error: std::error::Error + 'static;

    /// Called when an experiment (by its position) made progress; at once, in no order.
    fn progress(&mut self, _experiment: usize, _progress: Progress) {}
    /// Takes records that belong to no single cell; in order.
    ///
    /// # Errors
    /// When they cannot be stored; the run is then cancelled.
    fn record(&mut self, experiment: usize, records: Records) -> Result<(), Self::Error>;
    /// Takes a finished cell, its rows with the published figures; in order.
    ///
    /// # Errors
    /// When it cannot be stored; the run is then cancelled.
    fn cell(&mut self, experiment: usize, result: CellResult) -> Result<(), Self::Error>;
    /// Called after all results of an experiment; in order.
    ///
    /// # Errors
    /// When that cannot be recorded; the run is then cancelled.
    fn ended(&mut self, _experiment: usize) -> Result<(), Self::Error> {
        Ok(())
    }
    /// Called at the turn of an experiment that was finished before the run was
    /// interrupted; in order.
    ///
    /// # Errors
    /// When its results cannot be found; the run is then cancelled.
    fn ended_before(&mut self, _experiment: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The way in which a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// Whether every experiment was carried out.
    pub finish: Finish,
    /// The experiments that failed, by position, with the reason; the others were carried on.
    pub failures: Vec<(usize, BenchError)>,
}

/// The way in which the experiments of a run are carried out.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions<'a> {
    /// The number of experiments at the same time, at least 1.
    pub threads: usize,
    /// A flag that is set to stop the run.
    pub cancel: &'a AtomicBool,
    /// The figures to attach to the rows.
    pub published: Option<&'a Published>,
    /// The state of the run before it was interrupted.
    pub before: &'a Before,
}

/// The finished part of an interrupted run.
#[derive(Debug, Clone, Default)]
pub struct Before {
    /// The experiments that are not to be run, by position: they are finished, or belong
    /// to another shard.
    pub ended: BTreeSet<usize>,
    /// The finished cells of other experiments; empty where the bench repeats exactly.
    pub finished: BTreeSet<Cell>,
    /// The rows of those cells, by the position of their experiment.
    pub rows: BTreeMap<usize, Vec<Measurement>>,
}

/// The reason why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E: std::error::Error + 'static> {
    /// An experiment cannot run on this bench; nothing has been run.
    #[error("subject `{subject}` cannot run")]
    Check {
        /// The subject of the experiment that was refused.
        subject: String,
        /// The bench's reason.
        #[source]
        source: BenchError,
    },
    /// The sink could not keep a result.
    #[error("a result could not be kept")]
    Sink(#[source] E),
}

/// Runs experiments on a bench and delivers what they measure to `sink`, in
/// the experiments' order whatever `threads` is.
///
/// # Errors
/// [`RunError::Check`] before anything runs; the sink's error after every
/// worker has stopped. An experiment's failure does not end the run, see
/// [`RunEnd::failures`].
pub fn run_suite<S: Sink>(
    bench: &dyn Bench,
    experiments: &[Experiment],
    options: RunOptions<'_>,
    sink: &mut S,
) -> Result<RunEnd, RunError<S::Error>> {
    let ended = &options.before.ended;
    for (_, experiment) in (experiments.iter().enumerate()).filter(|(one, _)| !ended.contains(one))
    {
        bench.check(experiment).map_err(|source| RunError::Check {
            subject: experiment.subject.name.clone(),
            source,
        })?;
    }
    let order = &start_order(experiments);
    let queue = Queue::new(bench, experiments, order);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, experiments.len().max(1)) {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || work(bench, experiments, options, queue, &sender));
        }
        drop(sender);
        let delivery = Delivery::new(bench, experiments.len(), options, sink);
        let end = delivery.run(&receiver);
        if end.is_err() {
            options.cancel.store(true, Ordering::Relaxed);
        }
        end.map_err(RunError::Sink)
    })
}

/// A message from a worker to the caller's thread.
enum Message {
    Progress(Progress),
    Record(Records),
    Cell(Box<CellResult>),
    Ended(Result<Finish, BenchError>),
    EndedBefore,
}

/// The order in which experiments start: fit by fit, pools first, as they take longest and the
/// others fill the time beside them.
fn start_order(experiments: &[Experiment]) -> Vec<usize> {
    let fit = |experiment: &Experiment| {
        experiments
            .iter()
            .position(|other| other.fit == experiment.fit)
    };
    let mut order: Vec<usize> = (0..experiments.len()).collect();
    order.sort_by_key(|&index| {
        let experiment = &experiments[index];
        (fit(experiment), !has_pool(experiment), index)
    });
    order
}

fn has_pool(experiment: &Experiment) -> bool {
    experiment.subject.kind == SubjectKind::ZfsMirror
}

/// The experiments that no worker has taken yet, in the order in which they start, and the
/// resources that running ones occupy.
struct Queue<'a>(Mutex<Waiting<'a>>);

/// The waiting experiments, each with the resource that it occupies.
struct Waiting<'a> {
    waiting: Vec<(usize, Option<&'a str>)>,
    occupied: BTreeSet<&'a str>,
}

impl<'a> Queue<'a> {
    fn new(bench: &dyn Bench, experiments: &'a [Experiment], order: &[usize]) -> Self {
        let waiting = order
            .iter()
            .map(|&index| (index, bench.occupies(&experiments[index])));
        Self(Mutex::new(Waiting {
            waiting: waiting.collect(),
            occupied: BTreeSet::new(),
        }))
    }

    /// The next experiment for a worker whose last one occupied `left`. `None`: the waiting
    /// experiments need resources in use, and are left to the workers that use them.
    fn take(&self, left: Option<&str>) -> Option<(usize, Option<&'a str>)> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { waiting, occupied } = &mut *guard;
        if let Some(left) = left {
            occupied.remove(left);
        }
        let free = |(_, needs): &(usize, Option<&str>)| {
            needs.is_none_or(|needs| !occupied.contains(needs))
        };
        let taken = waiting.remove(waiting.iter().position(free)?);
        occupied.extend(taken.1);
        Some(taken)
    }
}

/// Takes experiments until none is left.
fn work(
    bench: &dyn Bench,
    experiments: &[Experiment],
    options: RunOptions<'_>,
    queue: &Queue<'_>,
    sender: &Sender<(usize, Message)>,
) {
    let mut left = None;
    while let Some((index, occupies)) = queue.take(left) {
        left = occupies;
        let experiment = &experiments[index];
        let before = options.before.rows.get(&index);
        let mut reporter = Reporter {
            index,
            experiment,
            options,
            sender,
            background: Background::default(),
            rows: before.cloned().unwrap_or_default(),
        };
        if options.before.ended.contains(&index) {
            reporter.send(Message::EndedBefore);
            continue;
        }
        let end = if reporter.cancelled() {
            Ok(Finish::Cancelled)
        } else {
            bench.run(experiment, &mut reporter)
        };
        if !matches!(end, Ok(Finish::Cancelled)) {
            reporter.end_background(bench.name());
        }
        reporter.send(Message::Ended(end));
    }
}

/// A worker's observer: sends everything on, and adds the array's background work.
struct Reporter<'a> {
    index: usize,
    experiment: &'a Experiment,
    options: RunOptions<'a>,
    sender: &'a Sender<(usize, Message)>,
    background: Background,
    /// The jobs' rows so far, those from before an interruption too.
    rows: Vec<Measurement>,
}

impl Reporter<'_> {
    fn send(&self, message: Message) {
        // The receiver outlives the workers, so a failed send can be ignored.
        self.sender.send((self.index, message)).ok();
    }

    /// Sends the rows of background work when the experiment is over.
    fn end_background(&self, bench: &str) {
        let mut rows = self.background.rows(self.experiment, bench);
        rows.extend(kept(self.experiment, bench, &self.rows));
        if let Some(row) = rows.first() {
            let cell = row.cell();
            let records = Records::default();
            self.send(Message::Cell(Box::new(CellResult {
                cell,
                rows,
                records,
            })));
        }
    }
}

impl Observer for Reporter<'_> {
    fn progress(&mut self, progress: Progress) {
        self.send(Message::Progress(progress));
    }

    fn record(&mut self, records: Records) {
        self.send(Message::Record(records));
    }

    fn look(&mut self, look: ArrayLook) {
        self.background.look(look);
        let events = self.background.drain_events(self.experiment);
        if !events.is_empty() {
            self.record(Records {
                events,
                ..Records::default()
            });
        }
    }

    fn cell(&mut self, result: CellResult) {
        self.rows.extend(result.rows.iter().cloned());
        self.send(Message::Cell(Box::new(result)));
    }

    fn is_finished(&self, cell: &Cell) -> bool {
        self.options.before.finished.contains(cell)
    }

    fn cancelled(&self) -> bool {
        self.options.cancel.load(Ordering::Relaxed)
    }
}

/// Delivers the workers' messages in order.
struct Delivery<'a, S: Sink> {
    /// Messages of the experiments whose turn has not come.
    waiting: Vec<Vec<Message>>,
    turn: usize,
    ordered: bool,
    options: RunOptions<'a>,
    sink: &'a mut S,
    end: RunEnd,
}

impl<'a, S: Sink> Delivery<'a, S> {
    fn new(
        bench: &dyn Bench,
        experiments: usize,
        options: RunOptions<'a>,
        sink: &'a mut S,
    ) -> Self {
        Self {
            waiting: (0..experiments).map(|_| Vec::new()).collect(),
            turn: 0,
            ordered: bench.repeats_exactly(),
            options,
            sink,
            end: RunEnd {
                finish: Finish::Complete,
                failures: Vec::new(),
            },
        }
    }

    fn run(mut self, receiver: &Receiver<(usize, Message)>) -> Result<RunEnd, S::Error> {
        for (index, message) in receiver {
            match message {
                Message::Progress(progress) => self.sink.progress(index, progress),
                message if index == self.turn || !self.ordered => {
                    if self.deliver(index, message)? {
                        self.next_turn(index)?;
                    }
                }
                message => self.waiting[index].push(message),
            }
        }
        Ok(self.end)
    }

    /// Delivers a message; returns whether it was the experiment's last.
    fn deliver(&mut self, index: usize, message: Message) -> Result<bool, S::Error> {
        match message {
            Message::Progress(progress) => self.sink.progress(index, progress),
            Message::Record(records) => self.sink.record(index, records)?,
            Message::Cell(mut result) => {
                if let Some(published) = self.options.published {
                    for row in &mut result.rows {
                        published.attach(row);
                    }
                }
                self.sink.cell(index, *result)?;
            }
            Message::Ended(end) => {
                match end {
                    Ok(Finish::Complete) => self.sink.ended(index)?,
                    Ok(Finish::Cancelled) => self.end.finish = Finish::Cancelled,
                    Err(error) => self.end.failures.push((index, error)),
                }
                return Ok(true);
            }
            Message::EndedBefore => {
                self.sink.ended_before(index)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves on to the next experiment after the last message of one, and delivers the messages
    /// that it has already sent.
    fn next_turn(&mut self, index: usize) -> Result<(), S::Error> {
        self.turn = index + 1;
        while let Some(waiting) = self.waiting.get_mut(self.turn) {
            let mut over = false;
            for message in std::mem::take(waiting) {
                over |= self.deliver(self.turn, message)?;
            }
            if !over {
                break;
            }
            self.turn += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
