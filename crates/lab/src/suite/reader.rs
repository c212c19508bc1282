//! Reading a suite's file: what is written, checked and put together.

use super::checker::Checker;
use super::freshness::{self, Footprint};
use super::grid::Grid;
use super::named::named_at;
use super::regions::{RawDisk, read_disks};
use super::selection::{RawSelection, read_filesystems, read_subjects};
use super::step::{Context, RawStep, ReadStep, read_step};
use super::{Begin, Job, Places, Rounds, Step, Suite};
use crate::catalogue::{self, Kind, LoadError};
use crate::document::{Document, FileError, Reserved};
use crate::files::Files;
use crate::published::Published;
use crate::settings;
use raidlab_tools::Tool;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    schema: Spanned<u32>,
    name: String,
    title: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    source: String,
    disks: Spanned<Vec<Spanned<RawDisk>>>,
    subjects: Spanned<Vec<Spanned<RawSelection>>>,
    processor: Option<Spanned<String>>,
    filesystems: Option<Spanned<Vec<Spanned<super::selection::RawFileSystem>>>>,
    repetitions: Option<Spanned<u32>>,
    #[serde(default)]
    begin: Begin,
    published: Option<Spanned<String>>,
    #[serde(default)]
    rounds: BTreeMap<Spanned<String>, RawRounds>,
    step: Spanned<Vec<Spanned<RawStep>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRounds {
    at_most: Spanned<u32>,
    track: Spanned<String>,
}

/// Fields that people expect in other places than their own.
fn reserved() -> Vec<Reserved> {
    let called = Tool::all().iter().filter(|tool| !tool.has_jobs());
    // No key can end in `++`.
    let keys = called.map(|tool| tool.name().trim_end_matches('+'));
    keys.map(|key| (key, "use `tool` and `arguments`"))
        .chain([
            ("repeat", "use `repetitions` for the whole suite"),
            ("at", "write it into the `events` of a job"),
        ])
        .collect()
}

/// The fewest rounds: with less there is no window of five.
const FEWEST_ROUNDS: u32 = 5;
/// The most repetitions of a run: more take longer than its disks live.
pub const MOST_REPETITIONS: u32 = 1000;
/// The largest number of an array's members.
pub const MOST_DISKS: usize = 256;
/// The most rounds that a suite may ask for.
const MOST_ROUNDS: u32 = 1000;

impl Suite {
    /// Reads and checks a suite's file; relative paths start from `folder`. `draw`: the
    /// number of the draw, where something is drawn.
    ///
    /// # Errors
    /// With file, line, field and remedy.
    pub(super) fn read(
        files: &Files,
        document: &Document,
        folder: &Path,
        draw: u64,
    ) -> Result<Self, LoadError> {
        let raw: RawSuite = document.decode(&reserved())?;
        settings::check_schema(document, &raw.schema)?;
        check_count(document, &raw.disks)?;
        let (disks, regions) = read_disks(document, raw.disks.get_ref())?;
        let mut grid = Grid::new(document, draw);
        let context = Context {
            files,
            document,
            folder,
            suite: &raw.name,
        };
        let mut subjects = read_subjects(context, &raw.subjects, disks.len(), &mut grid)?;
        let filesystems = read_filesystems(document, raw.filesystems.as_ref())?;
        let repetitions = read_repetitions(document, raw.repetitions.as_ref())?;
        let disks: Vec<String> = disks
            .iter()
            .map(|disk| catalogue::resolve(disk, folder))
            .collect();
        let mut published = read_published(files, document, raw.published.as_ref(), folder)?;
        if let Some(figures) = published.as_mut().filter(|it| it.disks.is_empty()) {
            figures.disks.clone_from(&disks);
        }
        let checker = Checker::new(
            document,
            disks.len(),
            &subjects,
            !grid.has_axes(),
            published.as_ref(),
        );
        let builder = Builder::new(document, &raw.rounds, grid.subjects());
        let built = read_steps(context, &raw.step, &grid, checker, builder)?;
        for (subject, own) in subjects.iter_mut().zip(built.own) {
            subject.steps = Some(own);
        }
        let draw = grid.draw();
        let places = places(document, &raw, built.places);
        let processor = raw.processor.map(Spanned::into_inner);
        let title = raw.title.unwrap_or_else(|| raw.name.clone());
        Ok(Self {
            name: raw.name,
            title: match draw {
                Some(number) => format!("{title}, draw {number}"),
                None => title,
            },
            draw,
            description: raw.description,
            source: raw.source,
            disks,
            figures_of: regions.clone(),
            regions,
            processor: processor.map(|name| catalogue::resolve(&name, folder)),
            places,
            filesystems: filesystems.unwrap_or_else(|| vec![None]),
            repetitions,
            begin: raw.begin,
            subjects,
            published,
            steps: built.steps,
            remarks: built.remarks,
        })
    }
}

/// The places in a suite that name other files, and those of its steps.
fn places(document: &Document, raw: &RawSuite, steps: Vec<String>) -> Places {
    let disks = raw.disks.get_ref().iter();
    Places {
        disks: disks.map(|disk| document.place(disk.span())).collect(),
        processor: raw.processor.as_ref().map(|one| document.place(one.span())),
        steps,
    }
}

/// Reads a suite's steps, checks each one against the subjects that it is for,
/// and puts them together.
fn read_steps(
    context: Context<'_>,
    steps: &Spanned<Vec<Spanned<RawStep>>>,
    grid: &Grid<'_>,
    mut checker: Checker<'_>,
    mut builder: Builder<'_>,
) -> Result<Built, LoadError> {
    if steps.get_ref().is_empty() {
        let remedy = "add a [[step]] with a job";
        let error = context.document.invalid(steps.span(), "no steps", remedy);
        return Err(error.into());
    }
    for step in steps.get_ref() {
        let read = read_step(context, step.get_ref(), step.span())?;
        let doers = grid.doers(step.get_ref(), &read)?;
        checker.check(&read, &doers)?;
        builder.add(read, step.get_ref(), &doers)?;
        let place = context.document.place(step.span());
        builder.places.resize(builder.steps.len(), place);
    }
    let mut built = builder.finish()?;
    let mut steps = steps.get_ref().iter();
    if !steps.any(|step| step.get_ref().is_for_some()) {
        built.own.clear();
    }
    Ok(built)
}

/// Checks that a suite has disks, and not too many.
fn check_count<T>(document: &Document, disks: &Spanned<Vec<T>>) -> Result<(), FileError> {
    let (what, remedy) = match disks.get_ref().len() {
        0 => ("no disks".to_owned(), "name one preset for each member"),
        count if count > MOST_DISKS => (format!("{count} disks"), "name 256 or less"),
        _ => return Ok(()),
    };
    Err(document.invalid(disks.span(), what, remedy))
}

/// Reads the number of repetitions.
fn read_repetitions(
    document: &Document,
    repetitions: Option<&Spanned<u32>>,
) -> Result<u32, FileError> {
    match repetitions {
        None => Ok(1),
        Some(count) if *count.get_ref() > MOST_REPETITIONS => {
            let what = format!(
                "{} repetitions are more than anybody waits for",
                count.get_ref()
            );
            Err(document.invalid(count.span(), what, "write 1000 or less"))
        }
        Some(count) if *count.get_ref() > 0 => Ok(*count.get_ref()),
        Some(count) => {
            let what = "nothing would be done";
            Err(document.invalid(count.span(), what, "write 1 or more"))
        }
    }
}

/// Loads the published figures.
fn read_published(
    files: &Files,
    document: &Document,
    entry: Option<&Spanned<String>>,
    folder: &Path,
) -> Result<Option<Published>, LoadError> {
    let Some(entry) = entry else {
        return Ok(None);
    };
    let loaded = Published::load_from(files, &catalogue::resolve(entry.get_ref(), folder));
    loaded
        .map(Some)
        .map_err(|error| named_at(document, entry.span(), Kind::Published, error))
}

/// Assembles steps: adjacent jobs that name the same rounds become one step.
struct Builder<'a> {
    document: &'a Document,
    tables: &'a BTreeMap<Spanned<String>, RawRounds>,
    steps: Vec<Step>,
    /// The place of each step in the file.
    places: Vec<String>,
    /// The positions of the steps for each subject.
    own: Vec<BTreeSet<usize>>,
    /// The footprint of the previous step, for each subject.
    before: Vec<Footprint>,
    /// Jobs that read what was just written.
    fresh: Vec<String>,
}

/// A suite's steps, assembled.
struct Built {
    steps: Vec<Step>,
    /// The place of each step in the file.
    places: Vec<String>,
    /// The positions of the steps for each subject; empty where all are for all.
    own: Vec<BTreeSet<usize>>,
    remarks: Vec<String>,
}

impl<'a> Builder<'a> {
    fn new(
        document: &'a Document,
        tables: &'a BTreeMap<Spanned<String>, RawRounds>,
        subjects: usize,
    ) -> Self {
        Self {
            document,
            tables,
            steps: Vec::new(),
            places: Vec::new(),
            own: vec![BTreeSet::new(); subjects],
            before: vec![Footprint::default(); subjects],
            fresh: Vec::new(),
        }
    }

    /// Adds a step, whose jobs, event or wait are for these subjects.
    fn add(
        &mut self,
        read: ReadStep,
        raw: &RawStep,
        doers: &[BTreeSet<usize>],
    ) -> Result<(), FileError> {
        if let (Some(round), true) = (&raw.round, raw.is_for_some()) {
            let what = "rounds are for all subjects";
            let remedy = "leave `for` and `draw` out of their jobs";
            return Err(self.document.invalid(round.span(), what, remedy));
        }
        match read {
            ReadStep::Event(event, _) => self.pass(Step::Event(event), doers),
            ReadStep::Check => self.pass(Step::Check, doers),
            ReadStep::Wait(wait) => self.pass(Step::Wait(wait), doers),
            ReadStep::Jobs { jobs, .. } => {
                for ((job, footprint), doers) in jobs.into_iter().zip(doers) {
                    let mut before = doers.iter().map(|&place| &self.before[place]);
                    if before.any(|before| footprint.reads_what_was_written_by(before)) {
                        self.fresh.push(job.name.clone());
                    }
                    for &place in doers {
                        self.before[place].clone_from(&footprint);
                    }
                    match &raw.round {
                        None => self.push(Step::Job(job), doers),
                        Some(round) => self.add_to_rounds(job, round, doers)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, step: Step, doers: &BTreeSet<usize>) {
        for &place in doers {
            self.own[place].insert(self.steps.len());
        }
        self.steps.push(step);
    }

    /// Adds a step that reads and writes nothing.
    fn pass(&mut self, step: Step, doers: &[BTreeSet<usize>]) {
        for doers in doers {
            for &place in doers {
                self.before[place] = Footprint::default();
            }
            self.push(step.clone(), doers);
        }
    }

    fn add_to_rounds(
        &mut self,
        job: Job,
        name: &Spanned<String>,
        doers: &BTreeSet<usize>,
    ) -> Result<(), FileError> {
        let Some(table) = self.tables.get(name.get_ref().as_str()) else {
            let what = format!("there is no table [rounds.{}]", name.get_ref());
            let remedy = "add it, with `at_most` and `track`";
            return Err(self.document.invalid(name.span(), what, remedy));
        };
        if !job.events.is_empty() {
            let what = "an event would happen in every round";
            let remedy = "move it to a step before or after the rounds";
            return Err(self.document.invalid(name.span(), what, remedy));
        }
        if let Some(Step::Rounds(last)) = self.steps.last_mut()
            && last.name == *name.get_ref()
        {
            last.jobs.push(job);
            return Ok(());
        }
        let same =
            |step: &Step| matches!(step, Step::Rounds(rounds) if rounds.name == *name.get_ref());
        if self.steps.iter().any(same) {
            let what = format!(
                "the rounds `{}` have ended in an earlier step",
                name.get_ref()
            );
            let remedy = "put their jobs one after the other";
            return Err(self.document.invalid(name.span(), what, remedy));
        }
        let at_most = *table.at_most.get_ref();
        if !(FEWEST_ROUNDS..=MOST_ROUNDS).contains(&at_most) {
            let what = format!("{at_most} rounds are too few or too many");
            let remedy = format!("write {FEWEST_ROUNDS} to {MOST_ROUNDS}");
            return Err(self.document.invalid(table.at_most.span(), what, remedy));
        }
        let rounds = Rounds {
            name: name.get_ref().clone(),
            at_most,
            track: table.track.get_ref().clone(),
            jobs: vec![job],
        };
        self.push(Step::Rounds(rounds), doers);
        Ok(())
    }

    fn finish(self) -> Result<Built, FileError> {
        for (name, table) in self.tables {
            let rounds = self.steps.iter().find_map(|step| match step {
                Step::Rounds(rounds) if rounds.name == *name.get_ref() => Some(rounds),
                _ => None,
            });
            let Some(rounds) = rounds else {
                let what = format!("no job is in the rounds `{}`", name.get_ref());
                let remedy = format!("write round = \"{}\" into its steps", name.get_ref());
                return Err(self.document.invalid(name.span(), what, remedy));
            };
            let measured = rounds.jobs.iter().filter(|job| !job.prepares);
            let known: Vec<String> = measured.map(|job| job.name.clone()).collect();
            if !known.contains(table.track.get_ref()) {
                let (track, what) = (&table.track, "the rounds' job");
                return Err((self.document).unknown(track.span(), what, track.get_ref(), known));
            }
        }
        Ok(Built {
            steps: self.steps,
            places: self.places,
            own: self.own,
            remarks: freshness::remark(&self.fresh).into_iter().collect(),
        })
    }
}
