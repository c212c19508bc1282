//! One job of a log: its rows and facts.

use super::{Context, Run};
use crate::convert::{observations, rows};
use crate::{figures, members};
use raidlab_store::{
    Cell, CellResult, CommandRecord, Measurement, Observation, Records, Scope, fact,
};
use raidlab_units::parse_duration;

impl Context<'_> {
    /// The cell of a run.
    pub(super) fn cell(&self, index: usize) -> CellResult {
        let run = &self.log.runs[index];
        let template = self.template(index);
        let cell = template.cell();
        let scope = Scope::of(&template);
        let mut rows = rows(&run.result, &template);
        for row in &mut rows {
            let model = |disk: &str| self.log.machine.model(disk).to_owned();
            row.members = members::members(&run.result.disks, &model, row.runtime_ns);
            figures::attach(row);
        }
        let mut records = Records {
            observations: observations(&run.result, &scope),
            ..Records::default()
        };
        self.job_facts(run, &scope, &mut records.observations);
        self.state_facts(index, &scope, &cell, &mut records.observations);
        if let (Some(script), Some(job)) = (self.script, &run.job) {
            let label = run.result.parts.first().map_or("", |part| &part.label);
            records.commands.push(CommandRecord {
                scope,
                at_ns: template.started_ns,
                command: script.command(label, job),
                code: Some(0),
                took_ns: run.took_ns,
                ..CommandRecord::default()
            });
        }
        CellResult {
            cell,
            rows,
            records,
        }
    }

    fn template(&self, index: usize) -> Measurement {
        let run = &self.log.runs[index];
        let words = run.result.tool.title(&run.result);
        let [before, after] = self.log.around(index);
        let letters = |look: Option<&super::Look>| {
            look.map_or_else(String::new, |look| look.letters(&self.log.members))
        };
        let (start, end) = (letters(before.0), letters(after.0));
        let unchanged = self.unchanged(index);
        let known = |state: &str, near: bool| {
            if near || unchanged {
                state.to_owned()
            } else {
                String::new()
            }
        };
        let label = |run: &Run| run.result.tool.label(&run.result);
        let same = self.log.runs[..index]
            .iter()
            .filter(|before| label(before) == label(run));
        let job = crate::numbered(&label(run).unwrap_or_default(), same.count());
        let mut row = Measurement {
            suite: self.suite.clone(),
            host: self.scope.host.clone(),
            subject: self.scope.subject.clone(),
            filesystem: self.filesystem.clone(),
            sequence: u32::try_from(index).unwrap_or(u32::MAX),
            job,
            job_title: words.title,
            class: words.class,
            queue_depth: words.queue_depth,
            streams: words.streams,
            started_ns: self.log.started_ns(index),
            array_state_start: known(&start, before.1),
            // The next look after a job may be an hour later.
            array_state_end: known(&end, false),
            sync_percent_start: before.0.filter(|_| before.1).and_then(|look| look.percent),
            ..Measurement::blank(crate::BENCH)
        };
        if let (true, Some(job)) = (self.log.is_2015(), &run.job) {
            row.sequence = job.sequence;
            row.job.clone_from(&job.name);
            row.job_title.clone_from(&job.title);
            row.class.clone_from(&job.class);
            row.queue_depth = job.queue_depth();
            row.streams = u32::try_from(job.streams.len()).unwrap_or(1);
        }
        row
    }

    /// Whether the looks before and after a run show the same array state.
    fn unchanged(&self, index: usize) -> bool {
        let [(before, _), (after, _)] = self.log.around(index);
        before.zip(after).is_some_and(|(before, after)| {
            before.in_sync == after.in_sync && before.activity == after.activity
        })
    }

    /// Adds the options that the script gave to fio.
    fn job_facts(&self, run: &Run, scope: &Scope, all: &mut Vec<Observation>) {
        let (Some(script), Some(job)) = (self.script, &run.job) else {
            return;
        };
        let source = format!("geomflash/geomflash on GitHub: {}", script.script);
        let mut add = |name: &str, value: &str, unit: &str| {
            if !all.iter().any(|known| known.name == name) {
                all.push(Observation::new(scope, name, value, unit, &source));
            }
        };
        for (name, value) in script.options(job) {
            add(&fact::fio_option(&name), &value, "");
        }
        let runtime = job
            .option("runtime")
            .and_then(|time| parse_duration(time).ok());
        if let Some(runtime) = runtime {
            add(fact::JOB_ASKED_RUNTIME_NS, &runtime.0.to_string(), "ns");
        }
        if let Some(bytes) = job.size_bytes() {
            add(fact::JOB_ASKED_SIZE_BYTES, &bytes.to_string(), "bytes");
        }
        if let Some(bytes) = job.region_bytes() {
            add(fact::JOB_WORKING_SET_BYTES, &bytes.to_string(), "bytes");
        }
        add(
            fact::JOB_OFFSET_BYTES,
            &job.offset_bytes().to_string(),
            "bytes",
        );
    }

    /// Adds what the looks show about the array during the run.
    fn state_facts(&self, index: usize, scope: &Scope, cell: &Cell, all: &mut Vec<Observation>) {
        let mut add = |name: &str, value: &str, unit: &str, source: &str| {
            all.push(Observation::new(scope, name, value, unit, source));
        };
        let [(before, near), _] = self.log.around(index);
        let unchanged = self.unchanged(index);
        if let Some(look) = before.filter(|_| near || unchanged) {
            add(fact::SYNC_ACTIVE_START, look.activity(), "", look.system);
            if unchanged {
                add(fact::SYNC_ACTIVE_END, look.activity(), "", look.system);
            }
        }
        if let Some(percent) = self.written_percent(cell.sequence) {
            let source = "zfs get, and what the jobs before wrote in order";
            add(
                fact::WRITTEN_PERCENT,
                &format!("{percent:.0}"),
                "percent",
                source,
            );
        }
    }

    /// The share of a volume that earlier jobs filled in order, percent; `None` where its
    /// size is unknown.
    fn written_percent(&self, sequence: u32) -> Option<f64> {
        let mut properties = self.log.machine.properties.iter();
        let size = &properties.find(|one| one.name == "volsize")?.value;
        let size = raidlab_units::parse_bytes(size).ok()?.0;
        let written = self
            .log
            .runs
            .iter()
            .filter_map(|run| run.job.as_ref())
            .filter(|job| job.sequence < sequence && job.option("rw") == Some("write"))
            .filter_map(crate::suite::Job::size_bytes)
            .fold(0_u64, u64::saturating_add);
        (size > 0).then(|| (written as f64 / size as f64 * 100.0).min(100.0))
    }
}
