//! Conversion of a file of figures into cells and records.

use super::commands;
use super::schema::{Cell, Claim, Document, Facts, Job, Output, Subject};
use crate::convert::{observations, rows};
use crate::given::{is_known, long_instead};
use crate::imported::{ImportOptions, Imported, RunHead};
use crate::{BENCH, ImportError};
use raidlab_store::{
    CellResult, CommandRecord, Measurement, Observation, Operation, PublishedFigure, Records,
    Scope, fact, fact::claim_part,
};
use raidlab_units::{bytes_in, parse_bytes};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn build(
    name: &str,
    document: &Document,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let builder = Builder {
        name,
        document,
        options,
    };
    builder.check_names()?;
    builder.check_facts()?;
    let mut cells = Vec::new();
    let mut records = Records::default();
    for subject in &document.subject {
        builder.subject(subject, &mut records);
        for (sequence, job) in (0..).zip(&document.job) {
            cells.extend(builder.cell(subject, job, sequence)?);
        }
    }
    Ok(Imported {
        run: RunHead {
            bench: BENCH.to_owned(),
            suite: builder.suite(),
            suite_title: document.title.clone(),
            source: document.source.clone(),
        },
        cells,
        records,
        notes: document.notes.clone(),
    })
}

struct Builder<'a> {
    name: &'a str,
    document: &'a Document,
    options: &'a ImportOptions,
}

impl Builder<'_> {
    fn suite(&self) -> String {
        let own = self.options.suite.clone().or(self.document.suite.clone());
        own.unwrap_or_else(|| self.document.name.clone())
    }

    fn wrong(&self, place: String, problem: impl Into<String>) -> ImportError {
        ImportError::Figure {
            name: self.name.to_owned(),
            place,
            problem: problem.into(),
        }
    }

    /// Checks that names differ from each other, and in more than capital letters.
    fn check_once<'n>(
        &self,
        what: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), ImportError> {
        let mut known = BTreeMap::new();
        for name in names {
            match known.insert(name.to_lowercase(), name) {
                None => {}
                Some(other) if other == name => {
                    return Err(self.wrong(format!("{what} {name}"), "told twice"));
                }
                Some(other) => {
                    let problem = format!("differs from {what} {other} in capital letters alone");
                    return Err(self.wrong(format!("{what} {name}"), problem));
                }
            }
        }
        Ok(())
    }

    /// Checks that every figure is of a subject and a job that the file names.
    fn check_names(&self) -> Result<(), ImportError> {
        let document = self.document;
        let jobs = document.job.iter();
        self.check_once("job", jobs.clone().map(|job| &*job.name))?;
        self.check_once("subject", document.subject.iter().map(|one| &*one.name))?;
        // Jobs share a class, but not one that is written in two ways.
        let classes: BTreeSet<&str> = jobs.map(|job| &*job.class).collect();
        self.check_once("class", classes.into_iter())?;
        let of_cells = document.subject.iter().flat_map(|subject| {
            let cells = subject.cell.iter();
            cells.map(move |cell| (subject.name.as_str(), cell.job.as_str()))
        });
        let outputs = document.output.iter();
        let of_outputs = outputs.map(|one| (one.subject.as_str(), one.job.as_str()));
        let claims = document.claim.iter();
        let of_claims = claims.map(|one| (one.subject.as_str(), one.job.as_str()));
        for (subject, job) in of_cells.chain(of_outputs).chain(of_claims) {
            let place = format!("subject {subject}, job {job}");
            if !document.subject.iter().any(|known| known.name == subject) {
                return Err(self.wrong(place, "no such subject"));
            }
            if !document.job.iter().any(|known| known.name == job) {
                return Err(self.wrong(place, "no such job"));
            }
        }
        Ok(())
    }

    /// Checks that somebody may read each fact. A file of figures has long names alone.
    fn check_facts(&self) -> Result<(), ImportError> {
        let document = self.document;
        let subjects = document.subject.iter();
        let jobs = document.job.iter();
        let outputs = document.output.iter();
        let all = std::iter::once(("facts".to_owned(), &document.facts))
            .chain(subjects.map(|one| (format!("subject {}, facts", one.name), &one.facts)))
            .chain(jobs.map(|one| (format!("job {}, facts", one.name), &one.facts)))
            .chain(outputs.map(|one| {
                let place = format!("output of subject {}, job {}, facts", one.subject, one.job);
                (place, &one.facts)
            }));
        for (place, facts) in all {
            if let Some(name) = facts.keys().find(|name| !is_known(name)) {
                let problem = format!("there is no fact `{name}`; {}", long_instead(name));
                return Err(self.wrong(place, problem));
            }
        }
        Ok(())
    }

    fn observation(&self, scope: &Scope, name: &str, value: &str, unit: &str) -> Observation {
        Observation::new(scope, name, value, unit, &self.document.source)
    }

    fn facts(&self, scope: &Scope, facts: &Facts, all: &mut Vec<Observation>) {
        for (name, value) in facts {
            if all
                .iter()
                .any(|known| known.name == *name && known.scope == *scope)
            {
                continue;
            }
            let unit = if name.ends_with("_bytes") {
                "bytes"
            } else {
                ""
            };
            all.push(self.observation(scope, name, value, unit));
        }
    }

    /// Adds the records of a subject, with the machine's facts, as subjects of one article may be
    /// on several machines.
    fn subject(&self, subject: &Subject, records: &mut Records) {
        let scope = Scope {
            filesystem: subject.filesystem.clone(),
            ..self.options.scope(&subject.name)
        };
        self.facts(&scope, &subject.facts, &mut records.observations);
        self.facts(&scope, &self.document.facts, &mut records.observations);
        for command in &subject.commands {
            records.commands.push(record(&scope, command));
        }
    }

    /// Adds a job on a subject; nothing where the article has no figure of it.
    fn cell(
        &self,
        subject: &Subject,
        job: &Job,
        sequence: u32,
    ) -> Result<Option<CellResult>, ImportError> {
        let template = self.template(subject, job, sequence)?;
        let scope = Scope::of(&template);
        let mut cell = CellResult {
            cell: template.cell(),
            rows: Vec::new(),
            records: Records::default(),
        };
        let place = |op: &str| format!("subject {}, job {}, {op}", subject.name, job.name);
        let is_this = |one: &str, other: &str| one == subject.name && other == job.name;
        for figure in subject.cell.iter().filter(|figure| figure.job == job.name) {
            let problem = |text: String| self.wrong(place(&figure.op), text);
            let row = printed_row(&template, figure).map_err(problem)?;
            let is_same = |known: &Measurement| known.op == row.op && known.part == row.part;
            if cell.rows.iter().any(is_same) {
                return Err(self.wrong(place(&figure.op), "told twice"));
            }
            self.claims_of_cell(&row, figure, &mut cell.records.observations);
            cell.rows.push(row);
        }
        let mut command = None;
        let outputs = self.document.output.iter();
        for output in outputs.filter(|one| is_this(&one.subject, &one.job)) {
            command = output.command.as_ref();
            if !cell.rows.is_empty() {
                return Err(self.wrong(place("output"), "there are figures of it already"));
            }
            self.output(&template, output, &place("output"), &mut cell)?;
        }
        let claims = self.document.claim.iter();
        for claim in claims.filter(|one| is_this(&one.subject, &one.job)) {
            let op = operation(&claim.op).map_err(|text| self.wrong(place(&claim.op), text))?;
            self.claim(&scope, op, claim, &mut cell.records.observations);
        }
        let is_empty = cell.rows.is_empty() && cell.records.observations.is_empty();
        if is_empty && job.command.is_none() {
            return Ok(None);
        }
        self.facts(&scope, &job.facts, &mut cell.records.observations);
        if let Some(command) = command.or(job.command.as_ref()) {
            for (name, value, unit) in commands::facts(command) {
                let known = &mut cell.records.observations;
                if !known.iter().any(|one| one.name == name) {
                    known.push(self.observation(&scope, &name, &value, &unit));
                }
            }
            cell.records.commands.push(record(&scope, command));
        }
        Ok(Some(cell))
    }

    fn template(
        &self,
        subject: &Subject,
        job: &Job,
        sequence: u32,
    ) -> Result<Measurement, ImportError> {
        let block = match &job.block {
            None => 0,
            Some(text) => {
                let bytes = parse_bytes(text);
                bytes
                    .map_err(|error| self.wrong(format!("job {}", job.name), error.to_string()))?
                    .0
            }
        };
        Ok(Measurement {
            suite: self.suite(),
            host: self.options.host.clone().unwrap_or_default(),
            subject: subject.name.clone(),
            filesystem: subject.filesystem.clone(),
            sequence,
            job: job.name.clone(),
            job_title: job.title.clone(),
            class: job.class.clone(),
            tool: job.tool.clone(),
            block_size_bytes: block,
            queue_depth: job.queue_depth,
            streams: job.streams,
            ..Measurement::blank(BENCH)
        })
    }

    fn claims_of_cell(&self, row: &Measurement, figure: &Cell, all: &mut Vec<Observation>) {
        let scope = Scope::of(row);
        let mut add = |what: &str, value: &str, unit: &str| {
            let name = fact::claim(row.op, &row.part, what);
            all.push(self.observation(&scope, &name, value, unit));
        };
        add(claim_part::VALUE, &figure.value, &figure.unit);
        if let Some(percent) = figure.percent {
            add(claim_part::PERCENT, &percent.to_string(), "percent");
        }
        if let Some(base) = figure.base {
            add(claim_part::BASE, &base.to_string(), &figure.unit);
        }
        if let Some(winner) = figure.winner {
            add(claim_part::WINNER, flag(winner), "");
        }
    }

    fn claim(&self, scope: &Scope, op: Operation, claim: &Claim, all: &mut Vec<Observation>) {
        let mut add = |what: &str, value: &str, unit: &str| {
            let name = fact::claim(op, &claim.part, what);
            all.push(self.observation(scope, &name, value, unit));
        };
        if let Some(value) = &claim.value {
            add(claim_part::VALUE, value, &claim.unit);
        }
        if let Some(percent) = claim.percent {
            add(claim_part::PERCENT, &percent.to_string(), "percent");
        }
        if let Some(winner) = claim.winner {
            add(claim_part::WINNER, flag(winner), "");
        }
    }

    /// Adds the rows and facts of quoted output.
    fn output(
        &self,
        template: &Measurement,
        output: &Output,
        place: &str,
        cell: &mut CellResult,
    ) -> Result<(), ImportError> {
        let wrong = |text: String| self.wrong(place.to_owned(), text);
        let format = raidlab_tools::detect(&output.text)
            .ok_or_else(|| wrong("no tool's output".to_owned()))?;
        let mut result = (format.parse)(&output.text).map_err(|error| wrong(error.to_string()))?;
        if let Some(op) = &output.op {
            let op = operation(op).map_err(wrong)?;
            for part in &mut result.parts {
                part.operation = op;
            }
        }
        if let Some(version) = &output.version {
            result.version.clone_from(version);
        }
        let mut made = rows(&result, template);
        for row in &mut made {
            row.published.push(PublishedFigure {
                source: "article".to_owned(),
                iops: row.iops,
                bytes_per_second: (row.bytes_per_second > 0.0).then_some(row.bytes_per_second),
                reliability: output.reliability.word().to_owned(),
                sync_percent: None,
                note: output.note.clone(),
            });
        }
        if made.is_empty() {
            return Err(wrong(format!("{} gave no value", format.tool)));
        }
        cell.rows.extend(made);
        let scope = Scope::of(template);
        let known = &mut cell.records.observations;
        for one in observations(&result, &scope) {
            if !known.iter().any(|known| known.name == one.name) {
                known.push(one);
            }
        }
        self.facts(&scope, &output.facts, known);
        Ok(())
    }
}

const fn flag(value: bool) -> &'static str {
    if value { fact::TRUE } else { fact::FALSE }
}

fn operation(name: &str) -> Result<Operation, String> {
    name.parse()
        .map_err(|error: raidlab_store::UnknownOperation| error.to_string())
}

/// The row of a printed figure.
fn printed_row(template: &Measurement, figure: &Cell) -> Result<Measurement, String> {
    figure.check_numbers()?;
    let mut row = template.clone();
    row.op = operation(&figure.op)?;
    row.part.clone_from(&figure.part);
    let rates = |value: &str| rates(value, figure, row.block_size_bytes);
    let (iops, bytes_per_second) = rates(&figure.value)?;
    let published = |source: &str, rates: (f64, f64), reliability: &str, note: &str| {
        let (iops, bytes) = rates;
        PublishedFigure {
            source: source.to_owned(),
            iops,
            bytes_per_second: (bytes > 0.0).then_some(bytes),
            reliability: reliability.to_owned(),
            sync_percent: figure.sync_percent,
            note: note.to_owned(),
        }
    };
    let word = figure.reliability.word();
    let mut all = vec![published(
        "article",
        (iops, bytes_per_second),
        word,
        &figure.note,
    )];
    for other in &figure.other {
        let rates = rates(&other.value)?;
        all.push(published(&other.source, rates, "disputed", &other.note));
    }
    row.published = all;
    row.iops = iops;
    row.bytes_per_second = bytes_per_second;
    row.cpu_percent = figure.cpu;
    row.sync_percent_start = figure.sync_percent.filter(|percent| *percent < 100.0);
    Ok(row)
}

/// Operations and bytes per second of a printed value; 0 for what it does not tell.
fn rates(value: &str, figure: &Cell, block_bytes: u64) -> Result<(f64, f64), String> {
    let number: f64 = value
        .parse()
        .map_err(|_| format!("`{value}` is no number"))?;
    if !(number.is_finite() && number >= 0.0) {
        return Err(format!("`{value}` is no rate"));
    }
    let unit = figure.means.as_deref().unwrap_or(&figure.unit);
    let block = block_bytes as f64;
    if unit == "1/s" {
        return Ok((number, number * block));
    }
    let factor = bytes_in(unit, 1000.0).filter(|_| unit.ends_with("B/s"));
    let factor = factor.ok_or_else(|| {
        format!(
            "`{unit}` is no unit of a rate: expected 1/s, B/s, kB/s, KiB/s, MB/s, MiB/s, GB/s \
             or GiB/s, in `means` where another was printed"
        )
    })?;
    let bytes = number * factor;
    Ok((if block > 0.0 { bytes / block } else { 0.0 }, bytes))
}

fn record(scope: &Scope, command: &str) -> CommandRecord {
    CommandRecord {
        scope: scope.clone(),
        command: command.to_owned(),
        code: Some(0),
        ..CommandRecord::default()
    }
}
