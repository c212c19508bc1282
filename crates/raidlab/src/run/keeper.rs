//! Who receives a run's results: the store, standard output, the display.

use super::prepare::{self, Prepared};
use super::progress::Display;
use crate::failure::{Failure, Kind};
use jiff::Timestamp;
use raidlab_lab::{Progress, Published, RunEnd, Sink};
use raidlab_shell::Command;
use raidlab_store::{
    AccuracyNote, CellResult, ExportError, Measurement, Records, Run, RunId, RunSummary, Setting,
    Store, StoreError, to_json_line,
};
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};

/// A run that has begun.
pub struct Begun {
    /// Its number.
    pub id: RunId,
    /// Its name.
    pub name: String,
}

/// Why a result could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// By the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// As a line of JSON.
    #[error(transparent)]
    Line(#[from] ExportError),
    /// By standard output.
    #[error("cannot write standard output")]
    Print(#[source] io::Error),
}

impl KeepError {
    /// With the kind that decides the exit code.
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Store(error) => error.into(),
            Self::Line(error) => error.into(),
            print @ Self::Print(_) => Failure::new(Kind::Output, print),
        }
    }
}

/// Writes down that a run begins, with what its reader must know.
///
/// # Errors
/// When the store cannot be written.
pub fn begin(bench: &str, prepared: &Prepared, store: &mut Store) -> Result<Begun, StoreError> {
    let now = Timestamp::now();
    let suite = &prepared.suite;
    let seed = prepared.experiments.first().map_or(0, |one| one.seed);
    let stem = format!("{}-{}", now.strftime("%Y%m%dT%H%M%SZ"), suite.name);
    let mut run = Run {
        name: stem,
        started: seconds(now),
        finished: None,
        bench: bench.to_owned(),
        suite: suite.name.clone(),
        suite_title: suite.title.clone(),
        seed,
        raidlab_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line(),
        arguments: std::env::args().skip(1).collect(),
        plan_hash: prepared.hash(),
    };
    let id = begin_as(store, &mut run)?;
    let mut notes = suite.published.as_ref().map_or_else(Vec::new, notes);
    notes.extend(prepared.remarks.iter().cloned());
    store.add_notes(id, &notes)?;
    let name = run.name;
    Ok(Begun { id, name })
}

/// Writes down that a run begins, under its name or, where another one began
/// within the same second, the name with a number.
///
/// # Errors
/// When the store cannot be written.
pub fn begin_as(store: &mut Store, run: &mut Run) -> Result<RunId, StoreError> {
    let stem = run.name.clone();
    let mut number = 1;
    loop {
        match store.begin_run(run) {
            Err(StoreError::RunExists { .. }) if number < 1000 => {
                number += 1;
                run.name = format!("{stem}-{number}");
            }
            begun => return begun,
        }
    }
}

/// Goes on with a run that did not come to its end.
///
/// # Errors
/// When what would be run now is not what was begun.
pub fn go_on(run: &RunSummary, prepared: &Prepared) -> Result<Begun, Failure> {
    if run.run.plan_hash != prepared.hash() {
        let words = format!(
            "run {} was begun with another suite, subject or number of disks",
            run.run.name
        );
        return Err(Failure::words(Kind::Input, words)
            .help("put the files back as they were, or begin a new run"));
    }
    Ok(Begun {
        id: run.id,
        name: run.run.name.clone(),
    })
}

/// Writes down which experiments of a run failed; one without failures has gone to
/// its end, and another can be resumed.
///
/// # Errors
/// When the store cannot be written.
pub fn end(
    store: &mut Store,
    run: RunId,
    end: &RunEnd,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    let remarks = end.failures.iter().map(|(index, error)| {
        let mut reasons = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            reasons.push(error.to_string());
            cause = error.source();
        }
        prepare::remark(
            &format!("{} failed", prepared.label(*index)),
            reasons.join(": "),
        )
    });
    store.add_notes(run, &remarks.collect::<Vec<_>>())?;
    if end.failures.is_empty() {
        store.finish_run(run, &seconds(Timestamp::now()))?;
    }
    Ok(())
}

/// RFC 3339 in UTC, to the second.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What the figures' source says of each class: what was fitted on what, then
/// what is declared, the narrower statements first as they stand there.
fn notes(published: &Published) -> Vec<AccuracyNote> {
    let mut notes = Vec::new();
    for class in &published.classes {
        let note = AccuracyNote {
            class: class.id.clone(),
            title: class.title.clone(),
            ..AccuracyNote::default()
        };
        notes.push(AccuracyNote {
            statement: class.fitted_on.trim().to_owned(),
            ..note.clone()
        });
        notes.extend(class.accuracy.iter().map(|accuracy| AccuracyNote {
            statement: accuracy.note.clone(),
            declared_percent: Some(accuracy.percent),
            subjects: accuracy.subjects.clone(),
            jobs: accuracy.jobs.clone(),
            ..note.clone()
        }));
    }
    notes
}

/// The command line, for repeating the run in a shell.
pub fn command_line() -> String {
    Command::reads("raidlab", std::env::args().skip(1)).to_string()
}

/// Keeps what a run measures.
pub struct Keeper<'a> {
    store: &'a mut Store,
    run: RunId,
    display: Display,
    /// Whether lines of JSON are printed; no more once the reader has gone.
    json: bool,
    /// Settings not yet in the store: they come one by one, and each
    /// transaction waits for the disk.
    settings: Vec<Setting>,
    /// Those seen: experiments share disks and hosts.
    seen: BTreeSet<Setting>,
}

impl<'a> Keeper<'a> {
    /// Keeps in `store` and displays progress on standard error.
    pub fn new(store: &'a mut Store, run: RunId, prepared: &Prepared, json: bool) -> Self {
        Self {
            store,
            run,
            display: Display::new(&prepared.experiments),
            json,
            settings: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    /// Ends the display and keeps what is left.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn finish(mut self) -> Result<(), KeepError> {
        self.display.clear();
        self.flush()
    }

    fn flush(&mut self) -> Result<(), KeepError> {
        if !self.settings.is_empty() {
            let records = Records {
                settings: std::mem::take(&mut self.settings),
                ..Records::default()
            };
            self.store.add_records(self.run, &records)?;
        }
        Ok(())
    }

    /// A row on standard output.
    fn print(&mut self, row: &Measurement) -> Result<(), KeepError> {
        let line = to_json_line(row)?;
        let printed = self.display.aside(|| {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{line}").and_then(|()| stdout.flush())
        });
        match printed {
            // The store wants the other rows all the same.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.json = false,
            printed => printed.map_err(KeepError::Print)?,
        }
        Ok(())
    }
}

impl Sink for Keeper<'_> {
    type Error = KeepError;

    fn progress(&mut self, experiment: usize, progress: Progress) {
        self.display.progress(experiment, progress);
    }

    fn record(&mut self, _: usize, mut records: Records) -> Result<(), KeepError> {
        for setting in std::mem::take(&mut records.settings) {
            if self.seen.insert(setting.clone()) {
                self.settings.push(setting);
            }
        }
        if records != Records::default() {
            self.store.add_records(self.run, &records)?;
        }
        Ok(())
    }

    fn cell(&mut self, _: usize, result: CellResult) -> Result<(), KeepError> {
        self.flush()?;
        self.store.add_cell(self.run, &result)?;
        if self.json {
            for row in &result.rows {
                self.print(row)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{BenchError, Choices, Finish, Suite};

    /// Whether a run that went so can be resumed.
    fn goes_on(failures: Vec<(usize, BenchError)>) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path().join("s.db")).expect("a new store");
        let suite = Suite::load("quick").expect("built in");
        let prepared = Prepared {
            experiments: suite.experiments(&suite.subjects, &Choices::default()),
            suite,
            remarks: Vec::new(),
        };
        let run = begin("model", &prepared, &mut store).expect("room for a run");
        let ended = RunEnd {
            finish: Finish::Complete,
            failures,
            rows: 0,
        };
        end(&mut store, run.id, &ended, &prepared).expect("room for its end");
        let found = store.run_by_name(&run.name).expect("it is there");
        found.run.finished.is_none()
    }

    #[test]
    fn a_run_has_come_to_its_end_when_no_experiment_failed() {
        assert!(!goes_on(Vec::new()));
        let failed = BenchError::Setup {
            what: "the guest".to_owned(),
            source: "it spins".into(),
        };
        assert!(goes_on(vec![(0, failed)]));
    }
}
