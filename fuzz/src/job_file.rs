//! Any text is read as a fio job file or command line, or refused; and what is
//! read makes requests that lie on the device.

use crate::text;
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{Direction, FioJobs, JobFile, JobSpec, Permission, Sizes, StopClock};

const DEVICE: Bytes = Bytes(4_000_787_030_016);

/// Reads the text that these bytes begin with.
pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    let permission = Permission::default();
    let none = |_: &str| Err(String::new());
    let read = FioJobs::from_job_file("job file", text, &permission, &none);
    if let Ok(file) = read.and_then(|jobs| jobs.model()) {
        draw_from_all(&file);
    }
    let arguments: Vec<&str> = text.split_whitespace().collect();
    let read = FioJobs::from_command_line("command line", &arguments, &permission);
    if let Ok(file) = read.and_then(|jobs| jobs.model()) {
        draw_from_all(&file);
    }
}

fn draw_from_all(file: &JobFile) {
    for job in file.groups.iter().flat_map(|group| &group.jobs) {
        assert_eq!(job.validate(), Ok(()));
        for clone in [0, job.num_jobs - 1] {
            draw(job, clone);
        }
    }
}

fn draw(job: &JobSpec, clone: u32) {
    let Ok(mut stream) = job.request_stream(clone, DEVICE, Stream::new(1)) else {
        return;
    };
    let mut clock = StopClock::new(job, Nanos::ZERO);
    for _ in 0..100 {
        clock.may_issue(Nanos::SECOND);
        let Some(unit) = stream.next_unit() else {
            return;
        };
        if unit.direction != Direction::Flush {
            let may_be = |sizes: &Sizes| (sizes.least()..=sizes.most()).contains(&unit.length);
            let fits = match &job.sizes {
                None => unit.length == job.block_size,
                Some(sizes) => sizes.iter().any(may_be),
            };
            assert!(fits && unit.length <= DEVICE);
            assert!(unit.offset <= DEVICE - unit.length);
        }
    }
    stream.skip_sequential(Bytes(1 << 30));
}
