//! Finds jobs that read what the job before them has just written.
//!
//! Data written a moment ago may still be in memory: the page cache's, ZFS's, the controller's, the
//! drive's. A read of it may measure that memory. So pairs of adjacent steps are checked: a job
//! that writes a region (fio's offsets and sizes, the files that another tool is given), then one
//! that reads part of it. A wait or any other step between them is taken for enough. Random writes
//! for a time are not counted, as it is unknown which few of the region's blocks are fresh.

use super::Work;
use raidlab_tools::Tool;
use raidlab_workload::{FioJobs, JobGroup, JobSpec};

/// The regions that a job reads and writes, as far as its text tells.
#[derive(Debug, Clone, Default)]
pub(super) struct Footprint {
    reads: Vec<Region>,
    writes: Vec<Region>,
}

/// A part of a device or file, from one byte to another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    /// The name of the file; empty for all of fio's jobs without one.
    file: String,
    start: u64,
    end: u64,
}

impl Footprint {
    /// The footprint of a job; `group` is fio's text as read, with examples in the place of values
    /// that depend on the machine.
    pub(super) fn of(work: &Work, group: Option<&JobGroup>) -> Self {
        match work {
            Work::Tool { name, arguments } => {
                let tool: Result<Tool, _> = name.parse();
                let files = tool.map(|tool| tool.files(arguments)).unwrap_or_default();
                let whole = |file: &str| Region {
                    file: file.to_owned(),
                    start: 0,
                    end: u64::MAX,
                };
                let [reads, writes] = files.map(|all| all.into_iter().map(whole).collect());
                Self { reads, writes }
            }
            Work::Fio { jobs, .. } => Self::of_fio(jobs, group),
        }
    }

    fn of_fio(said: &FioJobs, group: Option<&JobGroup>) -> Self {
        let jobs = group.map_or(&[][..], |group| &group.jobs);
        let options = said.jobs.iter().flat_map(|job| &job.options);
        let file = options
            .filter(|option| option.is("filename") || option.is("name"))
            .map(|option| format!("{}={}", option.name, option.value.as_deref().unwrap_or("")))
            .collect::<Vec<_>>()
            .join(" ");
        let region = |job: &JobSpec| {
            let clones = u64::from(job.num_jobs.saturating_sub(1));
            let further = job.offset_increment.0.saturating_mul(clones);
            let length = job.size.map_or(u64::MAX, |size| size.0);
            let last = job.offset.0.saturating_add(length).saturating_add(further);
            Region {
                file: file.clone(),
                start: job.offset.0,
                end: job.file_size.map_or(last, |end| end.0),
            }
        };
        let random_for_a_time = |job: &JobSpec| job.pattern.is_random() && job.runtime.is_some();
        Self {
            reads: jobs
                .iter()
                .filter(|job| job.pattern.reads())
                .map(region)
                .collect(),
            writes: jobs
                .iter()
                .filter(|job| job.pattern.writes() && !random_for_a_time(job))
                .map(region)
                .collect(),
        }
    }

    /// Whether `self` reads some of what `before` wrote.
    pub(super) fn reads_what_was_written_by(&self, before: &Self) -> bool {
        self.reads.iter().any(|read| {
            before.writes.iter().any(|written| {
                read.file == written.file && read.start < written.end && written.start < read.end
            })
        })
    }
}

/// The remark for the user on jobs that read what was just written.
pub(super) fn remark(jobs: &[String]) -> Option<String> {
    let quoted: Vec<String> = jobs.iter().map(|job| format!("`{job}`")).collect();
    let (noun, reads) = match jobs.len() {
        0 => return None,
        1 => ("job", "reads"),
        _ => ("jobs", "read"),
    };
    Some(format!(
        "{noun} {} {reads} what the job before has just written, which some cache may still \
         hold: put a wait or another job between them",
        quoted.join(", ")
    ))
}
