//! Requests past the page cache that no disk takes.
//!
//! A disk takes whole blocks. Linux answers a direct request that begins or ends within one with
//! `EINVAL` (`blkdev_direct_IO` of block/fops.c), and fio then ends the job at its first request.

use super::error::{JobFileError, OptionError};
use super::options::{FioJob, FioJobs};
use crate::job::{Engine, JobSpec};
use crate::shape::Sizes;

/// The smallest logical block that disks have, in bytes.
const BLOCK: u64 = 512;

impl FioJobs {
    /// The first option of a job with direct I/O by which requests would begin or end within a block
    /// of a disk. Jobs whose options cannot be read yet have none.
    #[must_use]
    pub fn unaligned(&self) -> Option<JobFileError> {
        let mut direct = self.jobs.iter().filter(|job| job.is_direct());
        direct.find_map(|job| {
            let alone = Self {
                jobs: vec![job.clone()],
                ..Self::default()
            };
            let (file, _) = alone.partly_model().ok()?;
            unaligned(job, file.groups.first()?.jobs.first()?)
        })
    }
}

/// The first such option of one job.
fn unaligned(job: &FioJob, spec: &JobSpec) -> Option<JobFileError> {
    // A mapped file is read and written page by page, whatever the sizes.
    if spec.engine == Engine::Null || job.value("ioengine") == Some("mmap") {
        return None;
    }
    let sizes = spec.sizes.iter().flatten().zip(spec.pattern.directions());
    let sizes = sizes.filter(|&(_, used)| used);
    let sizes = sizes.flat_map(|(sizes, _)| match sizes {
        Sizes::One(size) => vec![size.0],
        Sizes::Range { least, .. } if spec.unaligned_sizes => vec![least.0, 1],
        Sizes::Range { least, most } => vec![least.0, most.0],
        Sizes::Split(sizes) => sizes.iter().map(|(size, _)| size.0).collect(),
    });
    let sizes: Vec<u64> = match spec.sizes {
        Some(_) => sizes.collect(),
        None => vec![spec.block_size.0],
    };
    let aligned = spec.alignment.iter().flatten().map(|size| size.0);
    let strides = spec.strides.iter();
    let strides = strides.flat_map(|zone| [zone.length.0, zone.skip.0]);
    let all = [
        (&["bs", "bsrange", "bssplit", "bs_unaligned"][..], sizes),
        (&["ba"], aligned.collect()),
        (&["offset"], vec![spec.offset.0]),
        (&["offset_increment"], vec![spec.offset_increment.0]),
        (&["rw"], vec![spec.step.unsigned_abs()]),
        (&["zonesize", "zonerange", "zoneskip"], strides.collect()),
    ];
    let broken = |bytes: &u64| !bytes.is_multiple_of(BLOCK);
    let (names, _) = all
        .into_iter()
        .find(|(_, bytes)| bytes.iter().any(broken))?;
    let mut given = job.options.iter();
    let option = given.rfind(|option| names.iter().any(|name| option.is(name)))?;
    Some(JobFileError::Option {
        place: option.place.clone(),
        option: option.name.clone(),
        cause: Box::new(OptionError::Needs {
            what: "multiples of 512 bytes where `direct=1` reaches a disk: disks take whole blocks, \
                   and fio ends with `Invalid argument` at the first other request",
        }),
    })
}

#[cfg(test)]
mod tests {
    use crate::{FioJobs, JobFileError, Permission};

    #[test]
    fn direct_requests_that_no_disk_takes_are_refused() {
        let cases = [
            ("--bs=5000 --direct=1", Some("bs")),
            ("--bs=5000 --buffered=0", Some("bs")),
            ("--bs=5000", None),
            ("--bs=5000 --direct=1 --direct=0", None),
            ("--bs=5000 --direct=1 --ioengine=null", None),
            ("--bs=5000 --direct=1 --ioengine=mmap", None),
            ("--bs=512 --direct=1", None),
            ("--bs=4k,5000 --direct=1", None),
            ("--rw=rw --bs=4k,5000 --direct=1", Some("bs")),
            ("--blocksize=100 --direct=1", Some("blocksize")),
            ("--bs=5000 --bsrange=4k-8k --direct=1", None),
            ("--bsrange=4k-5000 --direct=1", Some("bsrange")),
            (
                "--bsrange=4k-8k --bs_unaligned=1 --direct=1",
                Some("bs_unaligned"),
            ),
            ("--bssplit=4k/50:5000/50 --direct=1", Some("bssplit")),
            ("--rw=randread --ba=100 --direct=1", Some("ba")),
            ("--offset=1000 --direct=1", Some("offset")),
            (
                "--numjobs=2 --offset_increment=1000 --direct=1",
                Some("offset_increment"),
            ),
            ("--rw=read:1000 --direct=1", Some("rw")),
            ("--size=10000 --direct=1", None),
            ("--bs={bs} --direct=1", None),
        ];
        for (options, expected) in cases {
            let words: Vec<&str> = options.split(' ').collect();
            let jobs = FioJobs::from_command_line("x", &words, &Permission::default());
            let found = match jobs.expect(options).unaligned() {
                Some(JobFileError::Option { option, .. }) => Some(option),
                _ => None,
            };
            assert_eq!(found.as_deref(), expected, "{options}");
        }
    }
}
