//! Job files and command lines as people write them, good ones and bad ones.

mod any;
mod lists;

use super::{FioJobs, JobFile, JobFileError, Permission};
use crate::job::{Engine, JobGroup, JobSpec, Pattern};
use proptest::prelude::*;
use raidlab_units::{Bytes, Nanos, in_one_line};
use std::fmt::Write;

const GIB: u64 = 1 << 30;

/// Three sequential streams at once, one of them far from the others.
const STREAMS: &str = "\
[global]
bs=128k
rw=read
direct=1
gtod_reduce=1
group_reporting
thread                  ; threads, not processes
filename=/dev/md1
[sr]
offset=8g
size=2g
[sr]
offset=12g
size=2g
[sr]
offset=3030g
size=2g
";

/// Four jobs, one after the other.
const SWEEP: &str = "\
# sequential and random, read and write
[global]
ioengine=libaio
iodepth=4
size=10g
runtime=60

[seq-read]
rw=read
stonewall

[rand-read]
rw=randread
stonewall
norandommap

[seq-write]
rw=write
bs=4k,1m
stonewall

[rand-mix]
name=oltp
rw=randrw
rwmixwrite=33
blocksize=8k
numjobs=4
time_based=1
ramp_time=500ms
thinktime=100
fsync=16
stonewall
";

/// What a user allows who knows that a job file names the disk.
fn permission() -> Permission {
    let mut permission = Permission::default();
    for option in ["filename", "write_bw_log"] {
        permission
            .allow(option, |_| None)
            .expect("an option of fio's");
    }
    permission
}

fn read_job_file(name: &str, text: &str) -> Result<JobFile, JobFileError> {
    let none = |_: &str| Err("no file".to_owned());
    FioJobs::from_job_file(name, text, &permission(), &none)?.model()
}

fn parse_command_line_options<S: AsRef<str>>(
    name: &str,
    arguments: &[S],
) -> Result<JobFile, JobFileError> {
    FioJobs::from_command_line(name, arguments, &permission())?.model()
}

fn read(text: &str) -> JobFile {
    read_job_file("jobs.fio", text).expect("a valid file")
}

#[test]
fn streams_run_together() {
    let stream = |offset| JobSpec {
        name: String::from("sr"),
        block_size: Bytes(128 << 10),
        reduced_clock: true,
        offset: Bytes(offset * GIB),
        size: Some(Bytes(2 * GIB)),
        ..JobSpec::default()
    };
    let mut jobs = [8, 12, 3030].map(stream).to_vec();
    for (process, job) in (1..).zip(&mut jobs) {
        job.first_process = process;
    }
    let group = JobGroup {
        jobs,
        stop_together: false,
    };
    assert_eq!(read(STREAMS).groups, [group]);
}

#[test]
fn stonewalled_jobs_run_one_after_the_other() {
    let base = JobSpec {
        engine: Engine::Libaio,
        io_depth: 4,
        size: Some(Bytes(10 * GIB)),
        runtime: Some(Nanos::from_secs(60)),
        stonewall: true,
        ..JobSpec::default()
    };
    let mut expected = [
        JobSpec {
            name: String::from("seq-read"),
            ..base.clone()
        },
        JobSpec {
            name: String::from("rand-read"),
            pattern: Pattern::RandRead,
            random_map: false,
            ..base.clone()
        },
        JobSpec {
            name: String::from("seq-write"),
            pattern: Pattern::Write,
            block_size: Bytes(1 << 20),
            ..base.clone()
        },
        JobSpec {
            name: String::from("oltp"),
            pattern: Pattern::RandRw,
            read_mix_percent: 67,
            block_size: Bytes(8 << 10),
            num_jobs: 4,
            time_based: true,
            ramp_time: Nanos::from_millis(500),
            think_time: Nanos::from_micros(100),
            fsync_every: 16,
            ..base
        },
    ];
    for (process, job) in (1..).zip(&mut expected) {
        job.first_process = process;
    }
    let groups = read(SWEEP).groups;
    let jobs: Vec<&JobSpec> = groups.iter().flat_map(|group| &group.jobs).collect();
    assert_eq!(groups.len(), 4);
    assert_eq!(jobs, expected.iter().collect::<Vec<_>>());
}

#[test]
fn small_rules_of_the_format() {
    let job = |text: &str| {
        let file = read(text);
        file.groups[0].jobs[0].clone()
    };
    // Sizes before `kb_base` mean it too, and a job takes it from `[global]`.
    assert_eq!(
        job("[a]\nsize=4m\nkb_base=1000").size,
        Some(Bytes(4_000_000))
    );
    assert_eq!(
        job("[global]\nkb_base=1000\n[a]\nsize=4m").size,
        Some(Bytes(4_000_000))
    );
    // What `[global]` said before that stays as it is.
    assert_eq!(
        job("[global]\nsize=4m\n[a]\nkb_base=1000").size,
        Some(Bytes(4 << 20))
    );
    // Only the `[global]` above a job counts.
    assert_eq!(job("[a]\n[global]\niodepth=8\n[b]\n").io_depth, 1);
    // `lfsr` visits each block once, map or not.
    assert!(job("[a]\nrandom_generator=lfsr\nnorandommap").random_map);
    assert_eq!(job("[a]\nsize=100%").size, None);
    assert_eq!(job("[ a b ]\r\n bs = 1k \r\n").name, "a b");
    assert_eq!(job("[a]\nbs=,16k\nrw=write").block_size, Bytes(16 << 10));
    assert_eq!(job("[a]\nbs=16k,\nrw=write").block_size, Bytes(4 << 10));
    assert_eq!(job("[a]\nbsrange=16k-16k").block_size, Bytes(16 << 10));
    assert!(job("[a]\nsync=dsync").sync_writes);
    assert!(job("[a]\nfsync_on_close=1\nend_fsync=0").end_fsync);
    assert!(read("[a]\n[b]\nexitall").groups[0].stop_together);
    // Refused options may say what fio does anyway.
    assert_eq!(
        job("[a]\nnrfiles=1\nstats=1\nverify=0\nrandom_distribution=random").name,
        "a"
    );
}

#[test]
fn errors_name_place_option_and_cause() {
    let texts = [
        "",
        "bs=4k",
        "[global]\nbs=4k",
        "[a\nbs=4k",
        "[]",
        "[a]\n\nrwmixraed=10",
        "[a]\nqqqq",
        "[a]\nbs=4q",
        "[a]\nbs",
        "[a]\nsize=120%",
        "[a]\nsize=3z",
        "[a]\nfilesize=1m-2m",
        "[a]\nsize=1.5g",
        "[a]\nbs=4ki",
        "[a]\nruntime=1.5h",
        "[a]\nruntime=60sec",
        "[a]\nruntime=1y",
        "[a]\nruntime=40000d",
        "[a]\nloops=1000000000",
        "[a]\nsize=-1",
        "[a]\nruntime=1--time_based=1",
        "[a]\ntime_based=1--runtime=1",
        "[a]\niodepth=0",
        "[a]\nrwmixread=101",
        "[a]\nrw=reed",
        "[a]\nrw=randread:0",
        "[a]\nrw=randtrimread",
        "[a]\nrw=randtrim\nnum_range=4",
        "[a]\nioengine=io_uring_cmd\nrw=trimwrite\nnum_range=4",
        "[a]\nbs=4k,4k,4k,4k",
        "[a]\nignore_error=,Eio",
        "[a]\nreadfua=1",
        "[a]\nzonemode=zbd",
        "[a]\nzonemode=zbd\nsize=8z",
        "[a]\nzonemode=zbd\nzonesize=1m\nrw=trim\nbs=4k",
        "[a]\nzonemode=zbd\nzonesize=1m\nrw=write\nverify=crc32c",
        "[a]\nzone_reset_threshold=1.5",
        "[a]\nzonesize=1m\nzoneskip=1m",
        "[a]\nstats=0",
        "[a]\nrate=1m\nrate_iops=100",
        "[a]\nrate_iops=100\nrate_iops_min=200",
        "[a]\nsteadystate=iops",
        "[a]\nss=lat:5%\nss_dur=5\nss_interval=2",
        "[a]\nioengine=cpuio",
        "[a]\nioengine=libiao",
        "[a]\nsprandom=1",
        "[a]\nwait_for=b",
        "[a]\nrandom_distribution=zipf:1",
        "[a]\nbssplit=4k/50:8k/20",
        "[a]\nverify=none",
        "[a]\nrandom_distribution=gauss:5",
        "[a]\nrwmixcycle=10",
        "[a]\nmax_latency=5ms",
        "[a]\ndirectory=/srv",
        "[a]\nexec_prerun=reboot",
        "[a]\nioengine=external:x.so",
        "[../../etc/cron.d/a]",
        "[a]\nname=../../dev/sda",
        "[a]\noutput=x",
        "[a]\nfilename=${DISK}",
        "[a]\nnumjobs=$ncpus",
        "[a]\ninclude other.fio",
        "[a]\nbs=64k\nsize=4k",
    ];
    let mut report = String::new();
    for text in texts {
        let error = read_job_file("jobs.fio", text).expect_err(text);
        writeln!(report, "{text:?}\n    {}", in_one_line(&error)).expect("a string takes all");
    }
    insta::assert_snapshot!(report);
}

/// Each group is a run of its own. fio takes the whole file.
#[test]
fn a_group_does_not_wait_for_a_job_that_has_ended() {
    let text = "[global]\nrw=read\nsize=1m\n[a]\n[b]\nstonewall\nwait_for=a\n[c]\nwait_for=b\n";
    let none = |_: &str| Err("no file".to_owned());
    let file = FioJobs::from_job_file("jobs.fio", text, &permission(), &none).expect("valid");
    let groups = file.groups();
    let waits = |job: &JobSpec| job.wait_for.clone();
    let of_group = |jobs: &FioJobs| {
        let file = jobs.model().expect("a run by itself");
        file.groups[0].jobs.iter().map(waits).collect::<Vec<_>>()
    };
    let found: Vec<_> = groups.iter().map(of_group).collect();
    assert_eq!(found, [vec![None], vec![None, Some("b".to_owned())]]);
}

#[test]
fn notes_tell_what_is_left_out() {
    let text = "[global]\ndirect=0\nfilename=/dev/md0\ngroup_reporting\n[a]\nioengine=io_uring\n\
                iodepth=8\nhipri\n[b]\nioengine=psync\niodepth=32\nrandrepeat=0\ntime_based\n";
    let notes: Vec<String> = read(text).notes.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(notes.join("\n"));
}

/// The wait for a place counts in the model; without a rate no request is due at a time.
#[test]
fn an_open_loop_is_noted_to_count_the_wait_for_a_place() {
    for (rate, is_noted) in [("rate_iops=100", true), ("rate=1m", true), ("bs=4k", false)] {
        let text = format!("[a]\nrw=randread\nioengine=libaio\nio_submit_mode=offload\n{rate}\n");
        let notes: Vec<String> = read(&text).notes.iter().map(ToString::to_string).collect();
        let words = "jobs.fio, line 4: `io_submit_mode`: a latency counts in the model from when";
        let said = notes.iter().any(|note| note.starts_with(words));
        assert_eq!(said, is_noted, "{rate}: {notes:?}");
    }
}

/// In a group of jobs that run together, not in a file.
#[test]
fn more_clones_than_fio_has_are_refused() {
    for (text, words) in [
        ("[a]\nnumjobs=4096\n[b]\nstonewall\nnumjobs=4096", None),
        (
            "[a]\nnumjobs=100000",
            Some("line 1: job `a`: 100000 clones that run together: more than 4096"),
        ),
        (
            "[a]\nnumjobs=4000\n[b]\nnumjobs=97",
            Some("line 3: job `b`: 4097 clones that run together: more than 4096"),
        ),
        (
            "[a]\nioengine=libaio\niodepth=65537",
            Some("line 1: job `a`: 65537 requests in flight: more than 65536"),
        ),
    ] {
        let said = read_job_file("jobs.fio", text).map_err(|error| in_one_line(&error));
        match words {
            None => assert!(said.is_ok(), "{said:?}"),
            Some(words) => assert_eq!(said.expect_err(text), format!("jobs.fio, {words}")),
        }
    }
}

#[test]
fn unlike_sizes_in_one_row_are_noted() {
    let notes = |text: &str| {
        let notes: Vec<String> = read(text).notes.iter().map(ToString::to_string).collect();
        notes
    };
    let noted = |between: &str| {
        notes(&format!(
            "[a]\nrw=randread\nbs=4k\n[b]\nrw=read\nbs=1m\n{between}"
        ))
    };
    let said = noted("");
    assert_eq!(said.len(), 1);
    assert!(
        said[0].starts_with("jobs.fio, line 6: `bs`: another size than"),
        "{}",
        said[0]
    );
    // On no bench does a `new_group` divide a row.
    assert_eq!(noted("new_group").len(), 2);
    assert!(noted("stonewall").is_empty() && noted("bs=4k").is_empty());
    // Reads and writes have rows of their own, and a job between does not hide the first one.
    let beside = "[a]\nrw=read\nbs=4k\n[b]\nrw=write\nbs=1m\n";
    assert!(notes(beside).is_empty());
    assert_eq!(notes(&format!("{beside}[c]\nrw=read\nbs=1m")).len(), 1);
}

#[test]
fn requests_are_handed_over_one_by_one_or_as_many_as_are_told() {
    let told = |options: &str| {
        let file = read(&format!("[a]\nioengine=libaio\niodepth=8\n{options}"));
        assert!(file.notes.is_empty(), "{options}");
        file.groups[0].jobs[0].submit_batch
    };
    for (options, batch) in [
        ("", 1),
        ("iodepth_batch=4", 4),
        ("iodepth_batch_submit=8", 8),
        ("iodepth_batch=0", 8),
        ("iodepth_batch=16", 8),
    ] {
        assert_eq!(told(options), batch, "{options}");
    }
}

#[test]
fn command_lines_share_the_options() {
    let line = "--rw=randread --bs 4k --iodepth=32 -ioengine=libaio --filesize=3t --offset=19m \
                --runtime=60 --gtod_reduce=1 --direct=1 --thread";
    let words: Vec<&str> = line.split_whitespace().collect();
    let file = parse_command_line_options("15_32rr4k", &words).expect("valid options");
    let expected = JobSpec {
        name: String::from("15_32rr4k"),
        pattern: Pattern::RandRead,
        engine: Engine::Libaio,
        io_depth: 32,
        file_size: Some(Bytes(3 << 40)),
        offset: Bytes(19 << 20),
        runtime: Some(Nanos::from_secs(60)),
        reduced_clock: true,
        ..JobSpec::default()
    };
    assert_eq!(file.groups[0].jobs, [expected]);
    assert_eq!(file.notes, []);
}

#[test]
fn each_name_on_a_command_line_starts_a_job() {
    let line = "--size=1g --name=a --rw=write --name=b --stonewall --name=global --bs=8k --name=c";
    let words: Vec<&str> = line.split_whitespace().collect();
    let file = parse_command_line_options("x", &words).expect("valid options");
    let jobs: Vec<(&str, Pattern, u64, Option<Bytes>)> = file
        .groups
        .iter()
        .flat_map(|group| &group.jobs)
        .map(|job| (job.name.as_str(), job.pattern, job.block_size.0, job.size))
        .collect();
    let gib = Some(Bytes(GIB));
    let expected = [
        ("a", Pattern::Write, 4096, gib),
        ("b", Pattern::Read, 4096, gib),
        ("c", Pattern::Read, 8192, gib),
    ];
    assert_eq!(jobs, expected);
    assert_eq!(file.groups.len(), 2);
}

/// fio reads a command line from left to right, and a job file's section by `kb_base`
/// first: the real fio, which gets a command line in any case, runs what was written.
#[test]
fn sizes_are_of_the_kilo_that_fio_takes() {
    let size = |jobs: FioJobs| {
        let printed = jobs.arguments(crate::Target::File("/x"));
        let printed = FioJobs::from_command_line("x", &printed, &permission()).expect("valid");
        let sizes = [jobs, printed].map(|jobs| {
            let file = jobs.model().expect("modelled");
            file.groups[0].jobs[0].size
        });
        assert_eq!(sizes[0], sizes[1]);
        sizes[0]
    };
    let none = |_: &str| Err("no file".to_owned());
    let text = "[a]\nsize=4m\nkb_base=1000";
    let file = FioJobs::from_job_file("jobs.fio", text, &permission(), &none).expect("valid");
    assert_eq!(size(file), Some(Bytes(4_000_000)));
    let line = |words: &[&str]| FioJobs::from_command_line("x", words, &permission());
    let after = line(&["--size=4m", "--kb_base=1000"]).expect("valid");
    assert_eq!(size(after), Some(Bytes(4 << 20)));
    let before = line(&["--kb_base=1000", "--size=4m"]).expect("valid");
    assert_eq!(size(before), Some(Bytes(4_000_000)));
}

#[test]
fn bad_command_lines_name_the_argument() {
    let cases: [(&[&str], &str); 6] = [
        (&["--name=global", "--rw=read"], "x: no job is defined"),
        (
            &["--name=a/b"],
            "x, argument 1: option `name`: it says where the load goes or what is read, which no \
             file may ask for; allow it for this run with `--allow-fio name`",
        ),
        (
            &["--bs=4k", "jobs.fio"],
            "x, argument 2: `jobs.fio` is not an option; write `--option=value`",
        ),
        (
            &["--"],
            "x, argument 1: `--` is not an option; write `--option=value`",
        ),
        (
            &["--bs=4k", "--iodpeth=4"],
            "x, argument 2: option `iodpeth`: fio has no such option; did you mean `iodepth`?",
        ),
        (
            &["--end_fsync=1--time_based=1"],
            "x, argument 1: option `end_fsync`: `1--time_based=1` is none of 0, 1",
        ),
    ];
    for (arguments, message) in cases {
        let error = parse_command_line_options("x", arguments).expect_err(message);
        assert_eq!(in_one_line(&error), message);
    }
}
