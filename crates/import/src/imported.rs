//! The result of an import: a run's cells and records, to be put into a store.

use crate::file_stem;
use crate::given::{FactError, Given};
use raidlab_store::{CellResult, Measurement, Observation, Records, Scope, fact};
use raidlab_tools::Tool;
use std::collections::{BTreeMap, BTreeSet};

/// Names that the imported file does not give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportOptions {
    /// The subject's name; otherwise the one in the file, else the file's name.
    pub subject: Option<String>,
    /// A replacement for the file's name as the subject's name, where another file has
    /// the same name.
    pub file: Option<String>,
    /// The suite's name; otherwise the one in the file, else the tool's name.
    pub suite: Option<String>,
    /// The machine's name; otherwise none.
    pub host: Option<String>,
    /// The file system's label; otherwise the one in the file, else none.
    pub filesystem: Option<String>,
}

impl ImportOptions {
    /// The subject's name made from the file's, where the file does not name it.
    pub(crate) fn file_subject(&self, name: &str) -> String {
        self.file.clone().unwrap_or_else(|| file_stem(name))
    }

    /// The scope of everything about a subject.
    pub(crate) fn scope(&self, subject: &str) -> Scope {
        Scope {
            host: self.host.clone().unwrap_or_default(),
            subject: subject.to_owned(),
            ..Scope::default()
        }
    }
}

/// The facts of the run as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    /// The bench of all rows: always [`crate::BENCH`].
    pub bench: String,
    /// The suite's name.
    pub suite: String,
    /// The suite's title for people.
    pub suite_title: String,
    /// The source of the figures.
    pub source: String,
}

/// The cells and records of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The run's names and source.
    pub run: RunHead,
    /// The cells in the order of jobs, each only once. A cell without rows has claims
    /// or commands only.
    pub cells: Vec<CellResult>,
    /// Records that belong to no cell.
    pub records: Records,
    /// Notes for the user: lines that were not understood, and what to know.
    pub notes: Vec<String>,
}

impl Imported {
    /// The names of the subjects, each once.
    fn subjects(&self) -> BTreeSet<&str> {
        let names = self.cells.iter().map(|cell| cell.cell.subject.as_str());
        names.collect()
    }

    /// Adds facts that the user gave; where a file itself has a fact of a job, that one is kept.
    /// `host` is the imported machine.
    ///
    /// # Errors
    /// When a fact is about a subject of which nothing is imported.
    pub fn take(&mut self, facts: &[Given], host: &str) -> Result<(), FactError> {
        for given in facts {
            let stranger = given
                .subject
                .as_ref()
                .filter(|name| !self.subjects().contains(name.as_str()));
            if let Some(name) = stranger {
                let known = self.subjects().into_iter().map(str::to_owned).collect();
                let error = FactError::NoSubject {
                    name: name.clone(),
                    known,
                };
                return Err(error.at(given.place().to_owned()));
            }
            let records = Records {
                observations: given.observations(host),
                ..Records::default()
            };
            append(&mut self.records, records);
        }
        Ok(())
    }

    /// Merges another import into this run, as if one experiment had made both. A job of the same
    /// name and title is the same job, unless its load on the same subject has other options: then
    /// these become part of its title. In a cell that both have, rows of tools win over printed
    /// figures, which become their published figures; so do those of a second article. Two results
    /// of tools are two repetitions.
    #[must_use]
    pub fn join(mut self, mut other: Self) -> Self {
        self.tell_apart(&mut other);
        let sequences = self.sequences_for(&other);
        for mut cell in other.cells {
            let at = |sequence: u32| sequences.get(&sequence).copied().unwrap_or(sequence);
            move_cell(&mut cell, at);
            self.add(cell);
        }
        let mut records = other.records;
        move_records(&mut records, &|scope| {
            scope.sequence = scope
                .sequence
                .map(|sequence| sequences.get(&sequence).copied().unwrap_or(sequence));
        });
        append(&mut self.records, records);
        if self.run.source != other.run.source {
            self.run.source = format!("{}; {}", self.run.source, other.run.source);
        }
        self.notes.extend(other.notes);
        self.in_order();
        self
    }

    /// Sorts the cells by their jobs.
    pub(crate) fn in_order(&mut self) {
        let key = |cell: &CellResult| (cell.cell.sequence, cell.cell.repetition);
        self.cells.sort_by_key(key);
    }

    /// Whether a cell of the same file is a repetition of this job: both did the same operations
    /// with the same reported options, files included.
    pub(crate) fn repeats(&self, cell: &CellResult, job: &Measurement) -> bool {
        let operations = |cell: &CellResult| -> Vec<_> {
            let rows = cell.rows.iter();
            rows.map(|row| (row.op, row.part.clone())).collect()
        };
        let key = job.cell();
        let known = self.cells.iter().find(|known| known.cell == key);
        known.is_some_and(|known| {
            let told = asked(known);
            known.rows[0].job_title == cell.rows[0].job_title
                && operations(known) == operations(cell)
                && !told.is_empty()
                && told == asked(cell)
        })
    }

    /// Gives jobs of `other` with the name, title and subject of one of these, but another load, a
    /// title with the differing options. Differences between subjects are left to the audit.
    fn tell_apart(&self, other: &mut Self) {
        for cell in &mut other.cells {
            let Some(row) = cell.rows.first() else {
                continue;
            };
            let is_same = |own: &Measurement| own.job == row.job && own.job_title == row.job_title;
            let of_subject = |known: &&CellResult| known.cell.subject == cell.cell.subject;
            let mut known = self.cells.iter().filter(of_subject);
            let unlike = known
                .find(|known| known.rows.iter().any(is_same))
                .map(|known| unlike_options(known, cell));
            for words in unlike.unwrap_or_default() {
                for row in &mut cell.rows {
                    row.job_title = format!("{}, {words}", row.job_title);
                }
            }
        }
    }

    /// The positions that the jobs of `other` get among these jobs.
    fn sequences_for(&self, other: &Self) -> BTreeMap<u32, u32> {
        let jobs = |import: &Self| -> BTreeMap<(String, String), u32> {
            let rows = import.cells.iter().flat_map(|cell| &cell.rows);
            rows.map(|row| ((row.job.clone(), row.job_title.clone()), row.sequence))
                .collect()
        };
        let own = jobs(self);
        let used = self.cells.iter().chain(&other.cells);
        let used = used.map(|cell| cell.cell.sequence + 1);
        let mut next = used.max().unwrap_or(0);
        let mut others: Vec<_> = jobs(other).into_iter().collect();
        others.sort_by_key(|(_, sequence)| *sequence);
        let same_suite = self.run.suite == other.run.suite;
        let taken = |sequence| self.cells.iter().any(|own| own.cell.sequence == sequence);
        let mut free = |sequence| {
            if same_suite && !taken(sequence) {
                return sequence;
            }
            next += 1;
            next - 1
        };
        let mut places = BTreeMap::new();
        for (job, sequence) in others {
            let known = own.get(&job).copied();
            places.insert(sequence, known.unwrap_or_else(|| free(sequence)));
        }
        // Cells with claims alone do not have the name of their job.
        for cell in &other.cells {
            let sequence = cell.cell.sequence;
            places.entry(sequence).or_insert_with(|| free(sequence));
        }
        places
    }

    /// Adds a cell; [`Imported::join`] says what becomes of one that is there already.
    pub(crate) fn add(&mut self, mut new: CellResult) {
        // Not every tool counts operations, so a count of 0 alone does not mean a printed figure.
        let is_printed = |cell: &CellResult| {
            let mut rows = cell.rows.iter();
            rows.all(|row| row.total_ios == 0 && !row.published.is_empty())
        };
        let Some(place) = self.cells.iter().position(|cell| cell.cell == new.cell) else {
            self.cells.push(new);
            return;
        };
        let known = &mut self.cells[place];
        match (is_printed(known), is_printed(&new)) {
            (_, true) => {
                append(&mut known.records, new.records);
                add_printed(known, new.rows);
            }
            (true, false) => {
                let mut printed = std::mem::replace(known, new);
                append(&mut known.records, std::mem::take(&mut printed.records));
                add_printed(known, printed.rows);
            }
            (false, false) => {
                let repetition = new.cell.repetition + 1;
                new.cell.repetition = repetition;
                for row in &mut new.rows {
                    row.repetition = repetition;
                }
                move_records(&mut new.records, &|scope| {
                    scope.repetition = scope.repetition.map(|_| repetition);
                });
                self.add(new);
            }
        }
    }
}

/// All options that a cell's tool was given, by the names of their facts; empty where
/// some are unknown.
fn asked(cell: &CellResult) -> BTreeMap<&str, &str> {
    let all = &cell.records.observations;
    if all.iter().any(|one| one.name == fact::FIO_OPTIONS_UNTOLD) {
        return BTreeMap::new();
    }
    let is_option = |name: &str| {
        ["fio.option.", "dd.operand."]
            .iter()
            .any(|of| name.starts_with(of))
    };
    let told = all.iter().filter(|one| is_option(&one.name));
    told.map(|one| (one.name.as_str(), one.value.as_str()))
        .collect()
}

/// The tool's option behind a fact of a job, if it shapes the load: not one of names,
/// places and seeds.
#[must_use]
pub fn load_option(fact: &str) -> Option<&str> {
    let mut tools = Tool::all().iter();
    tools.find_map(|tool| tool.load_option(fact))
}

/// The options that shape a cell's load.
fn load_options(cell: &CellResult) -> BTreeMap<&str, &str> {
    let told = cell.records.observations.iter();
    told.filter_map(|one| Some((load_option(&one.name)?, one.value.as_str())))
        .collect()
}

/// The options in which a new cell's load differs from a known one's, in words; empty where not all
/// options of both are known.
fn unlike_options(known: &CellResult, new: &CellResult) -> Vec<String> {
    let is_untold = |one: &Observation| one.name == fact::FIO_OPTIONS_UNTOLD;
    if [known, new]
        .iter()
        .any(|cell| cell.records.observations.iter().any(is_untold))
    {
        return Vec::new();
    }
    let (known, new) = (load_options(known), load_options(new));
    let others = new
        .iter()
        .filter(|(name, value)| known.get(*name) != Some(value));
    let others = others.map(|(name, value)| format!("{name}={value}"));
    let missing = known.keys().filter(|name| !new.contains_key(*name));
    others
        .chain(missing.map(|name| format!("without {name}")))
        .collect()
}

/// Adds printed figures to the rows of a cell; a figure without such a row becomes a row.
fn add_printed(cell: &mut CellResult, printed: Vec<Measurement>) {
    for row in printed {
        let is_same = |own: &&mut Measurement| own.op == row.op && own.part == row.part;
        match cell.rows.iter_mut().find(is_same) {
            Some(own) => {
                for figure in row.published {
                    if !own.published.contains(&figure) {
                        own.published.push(figure);
                    }
                }
            }
            None => cell.rows.push(row),
        }
    }
}

/// Moves a cell and all that belongs to it to another position among the jobs.
pub(crate) fn move_cell(cell: &mut CellResult, at: impl Fn(u32) -> u32) {
    cell.cell.sequence = at(cell.cell.sequence);
    for row in &mut cell.rows {
        row.sequence = at(row.sequence);
    }
    move_records(&mut cell.records, &|scope| {
        scope.sequence = scope.sequence.map(&at);
    });
}

fn move_records(records: &mut Records, change: &dyn Fn(&mut Scope)) {
    let scopes = records.observations.iter_mut().map(|one| &mut one.scope);
    let scopes = scopes.chain(records.commands.iter_mut().map(|one| &mut one.scope));
    let scopes = scopes.chain(records.events.iter_mut().map(|one| &mut one.scope));
    let scopes = scopes.chain(records.series.iter_mut().map(|one| &mut one.scope));
    scopes.for_each(change);
}

/// Adds records; an observation whose name and scope exist already is left out.
fn append(records: &mut Records, new: Records) {
    for setting in new.settings {
        if !records.settings.contains(&setting) {
            records.settings.push(setting);
        }
    }
    for one in new.observations {
        let is_known = |known: &Observation| known.name == one.name && known.scope == one.scope;
        if !records.observations.iter().any(is_known) {
            records.observations.push(one);
        }
    }
    records.commands.extend(new.commands);
    records.events.extend(new.events);
    records.series.extend(new.series);
}
