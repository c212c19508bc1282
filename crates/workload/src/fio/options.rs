//! Jobs as fio's options: the one form in which a job is read, edited, shown,
//! modelled and run.
//!
//! A job is an ordered list of options, each with its value and the place where
//! somebody wrote it; what a `[global]` section says is in the list of each job
//! after it. Everything that is done to a job is done to this list: values of
//! the machine are put in, the way of queueing is chosen, a first look is cut
//! short. The model computes its own view from the list
//! ([`FioJobs::model`]), and real benches print it ([`FioJobs::arguments`]), so
//! that both run the same job.

use super::Note;
use super::error::Place;
use super::table::canonical_name;
use super::value;
use raidlab_units::Nanos;

/// One option as somebody wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioOption {
    /// The name of the option as it is written, without dashes.
    pub name: String,
    /// `None` where there is none, as in a bare `time_based`.
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

    /// The option as one word of a command line. A bare switch gets its value:
    /// fio takes the word behind a bare `--end_fsync` for its value, and reports
    /// no bare switch back.
    fn word(&self) -> String {
        let value = self.value.as_deref().unwrap_or("1");
        format!("--{}={value}", self.name)
    }
}

/// One job: all that holds for it, in fio's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioJob {
    /// The section's name in a job file.
    pub section: Option<String>,
    /// Where its section or its `--name` begins.
    pub place: Place,
    /// What holds for all jobs comes first; of the same option the last one
    /// counts.
    pub options: Vec<FioOption>,
}

impl FioJob {
    /// The value of fio's option `name` that counts, in any of its spellings.
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

    /// What the job is called, if it has a name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.value("name").or(self.section.as_deref())
    }

    /// What limits how much a clone does, or how fast. A job with a time limit takes `size`
    /// for where it works.
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

    /// Puts `value` in the place of all that was said of `name`.
    fn replace(&mut self, name: &str, value: String) {
        self.options.retain(|option| !option.is(name));
        self.options.push(FioOption {
            name: name.to_owned(),
            value: Some(value),
            place: self.place.clone(),
        });
    }

    /// Whether it goes past the page cache.
    fn is_direct(&self) -> bool {
        let mut last = self.options.iter().rev();
        last.find(|option| option.is("direct") || option.is("buffered"))
            .is_some_and(|option| (option.value.as_deref() != Some("0")) == option.is("direct"))
    }

    /// Whether it waits for all jobs before it.
    fn begins_a_group(&self) -> bool {
        let mut last = self.options.iter().rev();
        last.find(|option| option.is("stonewall"))
            .is_some_and(|option| option.value.as_deref() != Some("0"))
    }
}

/// Jobs of one command line or job file, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FioJobs {
    /// What errors and notes call the source, and jobs without a name.
    pub name: String,
    /// The jobs in their order, at least one.
    pub jobs: Vec<FioJob>,
    /// What the user should know of the reading.
    pub notes: Vec<Note>,
}

/// What the jobs work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// A block device or one file, for all jobs. It is there already.
    File(&'a str),
    /// A folder in which fio makes a file for each clone.
    Folder(&'a str),
}

impl FioJobs {
    /// Whether all of them go past the page cache: `direct=1` or `buffered=0`, which fio does
    /// not do unless it is told to.
    #[must_use]
    pub fn are_direct(&self) -> bool {
        self.jobs.iter().all(FioJob::is_direct)
    }

    /// The jobs of each group that runs together: a job with `stonewall` begins
    /// a new one.
    #[must_use]
    pub fn groups(&self) -> Vec<Self> {
        let groups = self.jobs.chunk_by(|_, next| !next.begins_a_group());
        let group = |jobs: &[FioJob]| Self {
            name: self.name.clone(),
            jobs: jobs.to_vec(),
            notes: self.notes.clone(),
        };
        groups.map(group).collect()
    }

    /// Whether they were read from lines of a job file.
    #[must_use]
    pub fn is_from_job_file(&self) -> bool {
        let mut jobs = self.jobs.iter();
        jobs.any(|job| matches!(job.place, Place::Line { .. }))
    }

    /// The jobs with every value as `expanded` has it. A colon that comes into a list of
    /// files so is part of a name.
    ///
    /// # Errors
    /// The first that `expanded` gives.
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
    /// by as many synchronous threads. A limit counts for each thread then, which is noted.
    pub fn queue_as(&mut self, asynchronous: bool) {
        for job in &mut self.jobs {
            // Words in braces are numbers only on a machine.
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
            job.replace("ioengine", engine.to_owned());
            job.replace("iodepth", depth);
            job.replace("numjobs", clones);
            if !asynchronous {
                job.replace("thread", "1".to_owned());
            }
        }
    }

    /// Lets no job that ends by time run longer than `most`, whole seconds.
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
            // In the place of a device that has gone fio would make a file, and measure the
            // memory that `/dev` is in.
            arguments.push("--allow_file_create=0".to_owned());
        }
        let names_a_place = |job: &FioJob| job.has("filename") || job.has("directory");
        // Even before a file's absolute path fio puts a folder that was given.
        let everywhere = !self.jobs.iter().any(names_a_place);
        if everywhere {
            arguments.push(on.clone());
        }
        // fio reports a group of different jobs under the first one's name with
        // the last one's options; clones of one job are the same.
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
            // Before fio 3.35 the offsets' generator looks at a seed only
            // together with `randrepeat=0` (axboe/fio issue 1502, mended in
            // commit 95282650); with it all versions do, and the run is
            // repeatable still.
            if job.has("randseed") && !job.has("randrepeat") {
                arguments.push("--randrepeat=0".to_owned());
            }
        }
        arguments
    }
}

/// fio takes a colon for the end of one name in a list of files, and names
/// under `/dev/disk/by-path` are full of them.
fn list_item(path: &str) -> String {
    path.replace(':', r"\:")
}
