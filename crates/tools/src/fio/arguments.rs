//! fio's argument vector for a group of jobs.
//!
//! Every option is one argument `--name=value`: fio takes the argument behind
//! a bare `--end_fsync` for its value, and does not repeat a bare
//! `--time_based` in its JSON, so that nobody could check it. What holds for
//! all jobs stands before the first `--name`.

use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{Engine, JobGroup, JobSpec};
use thiserror::Error;

/// What the jobs work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// A block device or one file, for all jobs.
    File(&'a str),
    /// A folder in which fio makes a file for each clone.
    Folder(&'a str),
}

/// Logs that fio is to write beside its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRequest<'a> {
    /// What their names begin with: `PREFIX_bw.1.log`, `PREFIX_clat.1.log`.
    pub prefix: &'a str,
    /// Milliseconds that one line stands for; 0: a line for every request.
    pub average_ms: u32,
}

/// One run of fio: a group of jobs that run at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The jobs.
    pub group: &'a JobGroup,
    /// What they work on.
    pub place: Place<'a>,
    /// fio's engine for [`Engine::Libaio`]: `libaio` or `io_uring` on Linux,
    /// `posixaio` on FreeBSD.
    pub asynchronous_engine: &'a str,
    /// fio's engine for [`Engine::Sync`]: `psync`, `sync`.
    pub synchronous_engine: &'a str,
    /// fio's `clocksource`; in a machine with virtual time it must be
    /// `clock_gettime`, since the processor's counter runs on.
    pub clock_source: Option<&'a str>,
    /// Clones and jobs in one report (fio `group_reporting`), or each by
    /// itself, which shows when each ended. Different jobs are then added up
    /// under the first one's name: nobody can tell them apart any more.
    pub report_together: bool,
    /// Logs of rates and latencies.
    pub logs: Option<LogRequest<'a>>,
    /// Further options for all jobs, such as `direct`, in this order.
    pub extra: &'a [(String, String)],
}

/// Why no argument vector can be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// A group without jobs.
    #[error("there is no job to run")]
    NoJob,
    /// A file in a folder has no size of its own.
    #[error("job `{job}` needs a `size`: it works on a file in a folder")]
    NoSize {
        /// The job.
        job: String,
    },
    /// fio takes such a section for options of all jobs.
    #[error("a job cannot be called `{job}`: fio takes names with `global` for no job")]
    GlobalName {
        /// The job.
        job: String,
    },
    /// A further option is one that the job itself or the run decides.
    #[error("`{option}` is given twice: it is part of the job or of the run")]
    Twice {
        /// The option.
        option: String,
    },
    /// A name that is no option's.
    #[error("`{option}` cannot be an option's name: letters, digits, `_` and `-` only")]
    OptionName {
        /// As given.
        option: String,
    },
    /// fio's clock counts microseconds.
    #[error("`{option}` of job `{job}` is no whole number of microseconds")]
    Time {
        /// The job.
        job: String,
        /// fio's name of the option.
        option: &'static str,
    },
}

/// Options that [`Invocation`] writes itself.
const OWN: &[&str] = &[
    "blocksize",
    "bs",
    "clocksource",
    "directory",
    "end_fsync",
    "exitall",
    "fdatasync",
    "filename",
    "fileoffset",
    "filesize",
    "fsync",
    "group_reporting",
    "gtod_reduce",
    "io_limit",
    "io_size",
    "iodepth",
    "ioengine",
    "log_avg_msec",
    "loops",
    "name",
    "norandommap",
    "number_ios",
    "numjobs",
    "offset",
    "offset_increment",
    "output",
    "output_format",
    "ramp_time",
    "randseed",
    "readwrite",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "size",
    "stonewall",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "time_based",
    "timeout",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
];

impl Invocation<'_> {
    /// fio's arguments, without the program's name. The result goes to
    /// standard output as `json+`.
    ///
    /// # Errors
    /// Where fio would not do what is asked.
    pub fn arguments(&self) -> Result<Vec<String>, ArgumentError> {
        if self.group.jobs.is_empty() {
            return Err(ArgumentError::NoJob);
        }
        let mut arguments = Arguments(Vec::new());
        arguments.add("output-format", "json+");
        match self.place {
            Place::File(path) => arguments.add("filename", &path_list_item(path)),
            Place::Folder(path) => arguments.add("directory", &path_list_item(path)),
        }
        if let Some(clock) = self.clock_source {
            arguments.add("clocksource", clock);
        }
        if self.report_together {
            arguments.add("group_reporting", "1");
        }
        if self.group.stop_together {
            arguments.add("exitall", "1");
        }
        if let Some(logs) = self.logs {
            for kind in ["bw", "iops", "lat"] {
                arguments.add(&format!("write_{kind}_log"), logs.prefix);
            }
            if logs.average_ms > 0 {
                arguments.add("log_avg_msec", &logs.average_ms.to_string());
            }
        }
        for (name, value) in self.extra {
            check_extra(name)?;
            arguments.add(name, value);
        }
        for job in &self.group.jobs {
            self.job(job, &mut arguments)?;
        }
        Ok(arguments.0)
    }

    fn job(&self, job: &JobSpec, arguments: &mut Arguments) -> Result<(), ArgumentError> {
        if job.name.starts_with("global") {
            return Err(ArgumentError::GlobalName {
                job: job.name.clone(),
            });
        }
        let in_folder = matches!(self.place, Place::Folder(_));
        if in_folder && job.size.is_none() && job.file_size.is_none() {
            return Err(ArgumentError::NoSize {
                job: job.name.clone(),
            });
        }
        let engine = match job.engine {
            Engine::Libaio => self.asynchronous_engine,
            Engine::Sync => self.synchronous_engine,
        };
        arguments.add("name", &job.name);
        arguments.add("rw", job.pattern.name());
        arguments.add("bs", &job.block_size.0.to_string());
        arguments.add("ioengine", engine);
        arguments.add("iodepth", &job.io_depth.to_string());
        arguments.add("numjobs", &job.num_jobs.to_string());
        arguments.sizes(job);
        arguments.times(job)?;
        arguments.durability(job);
        Ok(())
    }
}

/// A vector that grows by whole options.
#[derive(Debug)]
struct Arguments(Vec<String>);

impl Arguments {
    fn add(&mut self, name: &str, value: &str) {
        self.0.push(format!("--{name}={value}"));
    }

    /// Adds an option unless it has fio's default.
    fn add_unless<N: PartialEq + ToString>(&mut self, default: N, name: &str, value: N) {
        if value != default {
            self.add(name, &value.to_string());
        }
    }

    fn add_if(&mut self, is_on: bool, name: &str) {
        if is_on {
            self.add(name, "1");
        }
    }

    /// Which part of the file, how much of it, and in which order.
    fn sizes(&mut self, job: &JobSpec) {
        for (name, size) in [
            ("size", job.size),
            ("io_size", job.io_size),
            ("filesize", job.file_size),
        ] {
            if let Some(Bytes(bytes)) = size {
                self.add(name, &bytes.to_string());
            }
        }
        self.add_unless(0, "offset", job.offset.0);
        self.add_unless(0, "offset_increment", job.offset_increment.0);
        self.add_unless(1, "loops", job.loops);
        if let Some(limit) = job.request_limit {
            self.add("number_ios", &limit.to_string());
        }
        if job.pattern.is_mixed() {
            self.add("rwmixread", &job.read_mix_percent.to_string());
        }
        if let Some(seed) = job.random_seed {
            self.add("randseed", &seed.to_string());
            // Before 3.35 the offsets' generator looks at the seed with this only
            // (axboe/fio issue 1502, commit 95282650).
            self.add("randrepeat", "0");
        }
        self.add_if(!job.random_map, "norandommap");
    }

    fn times(&mut self, job: &JobSpec) -> Result<(), ArgumentError> {
        let wrong = |option| ArgumentError::Time {
            job: job.name.clone(),
            option,
        };
        if let Some(runtime) = job.runtime {
            let time = time(runtime).ok_or_else(|| wrong("runtime"))?;
            self.add("runtime", &time);
        }
        self.add_if(job.time_based, "time_based");
        if job.ramp_time != Nanos::ZERO {
            let time = time(job.ramp_time).ok_or_else(|| wrong("ramp_time"))?;
            self.add("ramp_time", &time);
        }
        if job.think_time != Nanos::ZERO {
            if !job.think_time.0.is_multiple_of(1000) {
                return Err(wrong("thinktime"));
            }
            // A plain number is in microseconds here, in seconds elsewhere.
            self.add("thinktime", &(job.think_time.0 / 1000).to_string());
        }
        self.add_unless(1, "thinktime_blocks", job.think_time_blocks);
        self.add_if(job.reduced_clock, "gtod_reduce");
        self.add_if(job.stonewall, "stonewall");
        Ok(())
    }

    fn durability(&mut self, job: &JobSpec) {
        self.add_unless(0, "fsync", job.fsync_every);
        self.add_unless(0, "fdatasync", job.fdatasync_every);
        self.add_if(job.end_fsync, "end_fsync");
        self.add_if(job.sync_writes, "sync");
    }
}

/// A time in the largest unit that holds it whole: fio 2.1 knows whole seconds
/// only.
fn time(time: Nanos) -> Option<String> {
    let Nanos(nanos) = time;
    [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")]
        .into_iter()
        .find(|(unit, _)| nanos % unit == 0)
        .map(|(unit, name)| match name {
            "s" => (nanos / unit).to_string(),
            _ => format!("{}{name}", nanos / unit),
        })
}

/// fio takes a colon for the end of one name in a list of files, and names
/// under `/dev/disk/by-path` are full of them.
fn path_list_item(path: &str) -> String {
    path.replace(':', r"\:")
}

fn check_extra(name: &str) -> Result<(), ArgumentError> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_letter) {
        return Err(ArgumentError::OptionName {
            option: name.to_owned(),
        });
    }
    if OWN.contains(&name.replace('-', "_").as_str()) {
        return Err(ArgumentError::Twice {
            option: name.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
