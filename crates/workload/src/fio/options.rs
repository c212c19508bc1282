//! Jobs as fio's options: the form in which a job is read, edited, shown, modelled and run.
//!
//! A job is an ordered list of options, each with its value and the place where it is written; the
//! options of a `[global]` section are in the list of each job after it. All edits of a job are
//! edits of this list: inserting values of the machine, choosing the way of queueing, shortening a
//! first look. The model computes its own view from the list ([`FioJobs::model`]), and real benches
//! print it ([`FioJobs::arguments`]), so that both run the same job.

use super::Note;
use super::error::{JobFileError, OptionError, Place};
use super::table::canonical_name;
use super::value;
use raidlab_units::Nanos;

/// One option as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioOption {
    /// The name as written, without dashes.
    pub name: String,
    /// The value; `None` where there is none, as in a bare `time_based`.
    pub value: Option<String>,
    /// The place at which the option was written.
    pub place: Place,
}

impl FioOption {
    /// Whether this is fio's option `name`, in any of its spellings.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name == name || canonical_name(&self.name) == name
    }

    /// The option as one word of a command line. A bare switch gets its value: fio takes the word
    /// after a bare `--end_fsync` for its value, and does not report bare switches.
    fn word(&self) -> String {
        let value = self.value.as_deref().unwrap_or("1");
        format!("--{}={value}", self.name)
    }
}

/// One job: all options that apply to it, in fio's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioJob {
    /// The section's name in a job file.
    pub section: Option<String>,
    /// The place of its section or its `--name`.
    pub place: Place,
    /// The options; those for all jobs come first, and the last one of a name counts.
    pub options: Vec<FioOption>,
}

impl FioJob {
    /// The value of fio's option `name` that applies, in any of its spellings.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut last = self.options.iter().rev();
        last.find(|option| option.is(name))?.value.as_deref()
    }

    /// Whether fio's option `name` is given, in any of its spellings.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.is(name))
    }

    /// The job's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.value("name").or(self.section.as_deref())
    }

    /// The options that limit a clone's amount or rate. In a job with a time limit `size` only
    /// gives the region.
    fn limits(&self) -> impl Iterator<Item = &FioOption> {
        let size = if self.has("runtime") {
            None
        } else {
            Some("size")
        };
        let limits = ["io_size", "number_ios", "rate", "rate_iops"];
        let last = |name: &str| self.options.iter().rfind(|option| option.is(name));
        limits.into_iter().chain(size).filter_map(last)
    }

    /// Replaces all values of `name` by `value`.
    fn replace(&mut self, name: &str, value: String) {
        self.options.retain(|option| !option.is(name));
        self.options.push(FioOption {
            name: name.to_owned(),
            value: Some(value),
            place: self.place.clone(),
        });
    }

    /// Whether it bypasses the page cache.
    pub(super) fn is_direct(&self) -> bool {
        let mut last = self.options.iter().rev();
        last.find(|option| option.is("direct") || option.is("buffered"))
            .is_some_and(|option| (option.value.as_deref() != Some("0")) == option.is("direct"))
    }

    /// The number of its clones; one where only a machine says it.
    fn clones(&self) -> u32 {
        let clones = self.value("numjobs").map(str::trim);
        clones.and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    /// The option by which its end ends the others, if it has that.
    fn exits_all(&self) -> Option<&FioOption> {
        let last = self.options.iter().rfind(|option| option.is("exitall"));
        last.filter(|option| option.value.as_deref() != Some("0"))
    }

    /// Whether it waits for all jobs before it, and so begins a group.
    fn begins_a_group(&self) -> bool {
        let mut last = self.options.iter().rev();
        last.find(|option| option.is("stonewall"))
            .is_some_and(|option| option.value.as_deref() != Some("0"))
    }
}

/// Jobs of one command line or job file, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FioJobs {
    /// The name of the source in errors and notes, and of jobs without a name.
    pub name: String,
    /// The jobs in their order, at least one.
    pub jobs: Vec<FioJob>,
    /// Notes for the user on the reading.
    pub notes: Vec<Note>,
    /// The number of processes of earlier groups of the same file. fio counts them on, and a
    /// `randseed` gives each process numbers of its own.
    pub processes_before: u32,
}

/// The target of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// A block device or one existing file, for all jobs.
    File(&'a str),
    /// A folder in which fio makes a file for each clone.
    Folder(&'a str),
}

impl FioJobs {
    /// Whether all jobs bypass the page cache: `direct=1` or `buffered=0`; fio's default does not.
    #[must_use]
    pub fn are_direct(&self) -> bool {
        self.jobs.iter().all(FioJob::is_direct)
    }

    /// The jobs of each group that runs together: a job with `stonewall` begins
    /// a new one. A `wait_for` that names a job of an earlier group is left out: that job has
    /// ended, and a run of this group alone does not know it. An `exitall` anywhere is one switch
    /// for all groups, as in fio.
    #[must_use]
    pub fn groups(&self) -> Vec<Self> {
        let mut groups = Vec::new();
        let mut ended: Vec<&str> = Vec::new();
        let mut processes = 0_u32;
        let exits_all = self.jobs.iter().find_map(FioJob::exits_all);
        for jobs in self.jobs.chunk_by(|_, next| !next.begins_a_group()) {
            let mut group = Self {
                name: self.name.clone(),
                jobs: jobs.to_vec(),
                notes: self.notes.clone(),
                processes_before: processes,
            };
            for job in jobs {
                processes = processes.saturating_add(job.clones());
            }
            if !jobs.iter().any(|job| job.exits_all().is_some()) {
                group.jobs[0].options.extend(exits_all.cloned());
            }
            let is_here = |name: &str| jobs.iter().any(|job| job.name() == Some(name));
            let has_ended = |name: &str| ended.contains(&name) && !is_here(name);
            for job in &mut group.jobs {
                if job.value("wait_for").is_some_and(has_ended) {
                    job.options.retain(|option| !option.is("wait_for"));
                }
            }
            ended.extend(jobs.iter().filter_map(FioJob::name));
            groups.push(group);
        }
        groups
    }

    /// Checks that all groups run. With `exitall` fio runs none behind a job that has
    /// `exit_what=all`, and here each group is a run of its own.
    ///
    /// # Errors
    /// The option of the first job that has such a group behind it.
    pub fn check_that_all_run(&self) -> Result<(), JobFileError> {
        if !self.jobs.iter().any(|job| job.exits_all().is_some()) {
            return Ok(());
        }
        for (index, job) in self.jobs.iter().enumerate() {
            let said = job.options.iter().rfind(|option| option.is("exit_what"));
            let said = said.filter(|option| option.value.as_deref() == Some("all"));
            if let Some(option) = said
                && self.jobs[index + 1..].iter().any(FioJob::begins_a_group)
            {
                return Err(JobFileError::Option {
                    place: option.place.clone(),
                    option: option.name.clone(),
                    cause: Box::new(OptionError::NotModelled {
                        reason: "jobs of later groups that never run",
                    }),
                });
            }
        }
        Ok(())
    }

    /// Whether the jobs were read from lines of a job file.
    #[must_use]
    pub fn is_from_job_file(&self) -> bool {
        let mut jobs = self.jobs.iter();
        jobs.any(|job| matches!(job.place, Place::Line { .. }))
    }

    /// The jobs with every value replaced by `expanded`. A colon that this adds to a list of files
    /// is part of a name.
    ///
    /// # Errors
    /// The first error of `expanded`.
    pub fn expand<E>(&self, expanded: impl Fn(&str) -> Result<String, E>) -> Result<Self, E> {
        let mut jobs = self.clone();
        for option in jobs.jobs.iter_mut().flat_map(|job| &mut job.options) {
            if let Some(value) = &option.value {
                let is_list = option.is("filename") || option.is("directory");
                let new = expanded(value)?;
                option.value = Some(match is_list && !value.contains(':') {
                    true => list_item(&new),
                    false => new,
                });
            }
        }
        Ok(jobs)
    }

    /// Reaches the depth of each job by asynchronous requests of one clone, or
    /// by as many synchronous threads. A limit counts for each thread then, which is noted. So is
    /// an engine that another one replaces.
    pub fn queue_as(&mut self, asynchronous: bool) {
        for job in &mut self.jobs {
            // Words in braces become numbers only on a machine.
            let number = |name: &str| job.value(name).map_or("1", str::trim).to_owned();
            let (depth, clones) = (number("iodepth"), number("numjobs"));
            if !asynchronous && depth != "1" {
                self.notes.extend(job.limits().map(|option| Note {
                    place: option.place.clone(),
                    option: option.name.clone(),
                    text: "counts for each of the threads that make up the depth, as in fio",
                }));
            }
            let (engine, depth, clones) = if asynchronous {
                ("libaio", depth, clones)
            } else {
                let threads = match (depth.parse::<u32>(), clones.parse::<u32>()) {
                    (Ok(depth), Ok(clones)) => clones.saturating_mul(depth).to_string(),
                    (Err(_), Ok(1)) => depth,
                    _ => clones,
                };
                ("psync", "1".to_owned(), threads)
            };
            let said = job.options.iter().rfind(|option| option.is("ioengine"));
            let other = said.filter(|option| option.value.as_deref() != Some(engine));
            self.notes.extend(other.map(|option| Note {
                place: option.place.clone(),
                option: option.name.clone(),
                text: "replaced: the step's `queue` says how its depth is reached; with `queue = \
                       \"fio\"` this engine is kept",
            }));
            job.replace("ioengine", engine.to_owned());
            job.replace("iodepth", depth);
            job.replace("numjobs", clones);
            if !asynchronous {
                job.replace("thread", "1".to_owned());
            }
        }
    }

    /// Shortens jobs that end by time to `most`, in whole seconds.
    pub fn shorten(&mut self, most: Nanos) {
        for option in self.jobs.iter_mut().flat_map(|job| &mut job.options) {
            let time = option.value.as_deref().filter(|_| option.is("runtime"));
            let time = time.and_then(|text| value::time(text, "s").ok());
            if time.is_some_and(|time| time > most) {
                option.value = Some((most.0 / 1_000_000_000).to_string());
            }
        }
    }

    /// The words of each job as on fio's command line, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let word = |option: &FioOption| match &option.value {
            Some(value) => format!("--{}={value}", option.name),
            None => format!("--{}", option.name),
        };
        let line = |job: &FioJob| {
            let words: Vec<String> = job.options.iter().map(word).collect();
            words.join(" ")
        };
        self.jobs.iter().map(line).collect()
    }

    /// fio's arguments for these jobs, run together on `target`.
    #[must_use]
    pub fn arguments(&self, target: Target<'_>) -> Vec<String> {
        let on = match target {
            Target::File(path) => format!("--filename={}", list_item(path)),
            Target::Folder(path) => format!("--directory={}", list_item(path)),
        };
        let mut arguments = vec!["--name=global".to_owned()];
        if matches!(target, Target::File(_)) {
            // If the device is missing, fio would create a file in its place, and measure the
            // memory of `/dev`.
            arguments.push("--allow_file_create=0".to_owned());
        }
        let names_a_place = |job: &FioJob| job.has("filename") || job.has("directory");
        // fio prefixes a given folder even to a file's absolute path.
        let everywhere = !self.jobs.iter().any(names_a_place);
        if everywhere {
            arguments.push(on.clone());
        }
        // fio reports a group of different jobs under the first one's name with the last one's
        // options; clones of one job have the same.
        let alone = self.jobs.len() == 1;
        if alone {
            arguments.push("--group_reporting=1".to_owned());
        }
        for (index, job) in self.jobs.iter().enumerate() {
            let name = job.name().map_or_else(
                || format!("job{}", index + 1),
                |name| name.trim().to_owned(),
            );
            arguments.push(format!("--name={name}"));
            if !everywhere && !names_a_place(job) {
                arguments.push(on.clone());
            }
            let own = job
                .options
                .iter()
                .filter(|option| !option.is("name") && (alone || !option.is("group_reporting")));
            arguments.extend(own.map(FioOption::word));
            // Before fio 3.35 the offsets' generator uses a seed only together with `randrepeat=0`
            // (axboe/fio issue 1502, mended in commit 95282650); with it all versions do, and the
            // run is still repeatable.
            if job.has("randseed") && !job.has("randrepeat") {
                arguments.push("--randrepeat=0".to_owned());
            }
        }
        arguments
    }
}

/// A path as an item in a list of files: fio takes a colon for the end of a name, and names under
/// `/dev/disk/by-path` are full of them.
fn list_item(path: &str) -> String {
    path.replace(':', r"\:")
}
