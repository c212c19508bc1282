//! Lists of options: edited, printed, included, and the page of all of them.

use super::*;
use crate::shape::Distribution;

/// The job as fio's command line, after an edit of its options.
fn edited(text: &str, edit: impl FnOnce(&mut FioJobs)) -> String {
    let none = |_: &str| Err("no file".to_owned());
    let mut jobs = FioJobs::from_job_file("jobs.fio", text, &permission(), &none).expect("valid");
    edit(&mut jobs);
    jobs.lines().join(" + ")
}

#[test]
fn a_first_look_knows_every_spelling() {
    let cases = [
        ("runtime=60", "--runtime=6"),
        ("timeout=1m", "--timeout=6"),
        ("runtime=90000ms", "--runtime=6"),
        ("runtime=5", "--runtime=5"),
        ("runtime=6s", "--runtime=6s"),
        ("size=1g", "--size=1g"),
    ];
    for (line, expected) in cases {
        let shortened = edited(&format!("[a]\n{line}"), |jobs| {
            jobs.shorten(Nanos::from_secs(6));
        });
        assert_eq!(shortened, expected);
    }
}

#[test]
fn a_depth_is_reached_by_requests_or_by_threads() {
    let text = "[a]\nrw=read\niodepth=8\nnumjobs=2\nioengine=io_uring";
    assert_eq!(
        edited(text, |jobs| jobs.queue_as(true)),
        "--rw=read --ioengine=libaio --iodepth=8 --numjobs=2"
    );
    assert_eq!(
        edited(text, |jobs| jobs.queue_as(false)),
        "--rw=read --ioengine=psync --iodepth=1 --numjobs=16 --thread=1"
    );
}

#[test]
fn an_engine_that_is_replaced_is_noted() {
    let none = |_: &str| Err("no file".to_owned());
    let notes = |engine: &str, asynchronous| {
        let text = format!("[a]\niodepth=8\nioengine={engine}");
        let jobs = FioJobs::from_job_file("jobs.fio", &text, &permission(), &none);
        let mut jobs = jobs.expect("valid");
        jobs.queue_as(asynchronous);
        jobs.notes.len()
    };
    assert_eq!((notes("null", true), notes("null", false)), (1, 1));
    assert_eq!((notes("libaio", true), notes("psync", false)), (0, 0));
}

/// Options of discards, zones, latencies and errors.
const FINER: &str = "\
[global]
bs=4k,8k,64k
[a]
ioengine=io_uring_cmd
rw=randtrim
num_range=8
ignore_error=,EIO
[b]
rw=trimwrite
rate=,1m,2m
latency_target=5ms
latency_window=1s
latency_percentile=99.9
[c]
rw=randwrite
bs=64k
zonemode=zbd
zonesize=1m
max_open_zones=4
offset=2z
size=8z
zone_reset_threshold=0.7
zone_reset_frequency=0.125
ss=iops:10%
ss_dur=30s
[d]
rw=randwrite
bs=4k
sprandom=1
spr_op=0.2
continue_on_error=all
";

#[test]
fn values_for_discards_and_zones_are_the_job_s() {
    let jobs = read(FINER).groups.remove(0).jobs;
    let [trim, both, zoned, pass] = jobs.as_slice() else {
        panic!("four jobs");
    };
    assert_eq!((trim.block_size, trim.ranges), (Bytes(64 << 10), 8));
    assert!(trim.queues_trims && !both.queues_trims);
    assert_eq!(trim.tolerates_errors, [false, true, true]);
    assert_eq!(
        [0, 1, 2].map(|index| both.least(index).0),
        [4096, 8192, 65536]
    );
    let rate = both.rate.expect("a rate");
    assert_eq!(rate.per_second, [0, 1 << 20, 2 << 20]);
    let target = both.latency_target.expect("a latency");
    assert_eq!(
        (target.target, target.share_millionths),
        (Nanos::from_millis(5), 999_000)
    );
    assert_eq!(
        (zoned.offset, zoned.size),
        (Bytes(2 << 20), Some(Bytes(8 << 20)))
    );
    let rules = zoned.zones.expect("zones");
    assert_eq!(rules.reset_threshold_millionths, 700_000);
    assert_eq!(
        zoned.steady_state.expect("an end").duration,
        Nanos::from_secs(30)
    );
    assert_eq!(
        pass.distribution,
        Distribution::Preconditioning {
            over_provisioning_millionths: 200_000,
            regions: 100,
            cache: Bytes(0)
        }
    );
    assert_eq!(pass.tolerates_errors, [true; 3]);
}

/// Each group is a run of its own. fio takes the whole file.
#[test]
fn what_counts_for_a_whole_file_reaches_all_groups() {
    let none = |_: &str| Err("no file".to_owned());
    let read = |text: &str| {
        let text = format!("[global]\nrw=randread\nrandseed=7\n{text}");
        FioJobs::from_job_file("jobs.fio", &text, &permission(), &none).expect("valid")
    };
    let jobs = read("[a]\nnumjobs=2\n[b]\n[c]\nstonewall\nexitall\n[d]\n");
    let groups: Vec<JobGroup> = jobs
        .groups()
        .iter()
        .map(|group| group.model().expect("a run by itself").groups[0].clone())
        .collect();
    let processes =
        |group: &JobGroup| -> Vec<u32> { group.jobs.iter().map(|job| job.first_process).collect() };
    let found: Vec<_> = groups.iter().map(processes).collect();
    assert_eq!(found, [[1, 3], [4, 5]]);
    assert!(groups.iter().all(|group| group.stop_together));
    assert!(jobs.check_that_all_run().is_ok());
    for (text, runs) in [
        ("[a]\nexitall\nexit_what=all\n[b]\n", true),
        ("[a]\nexit_what=all\n[b]\nstonewall\n", true),
        ("[a]\nexit_what=all\n[b]\nstonewall\nexitall\n", false),
        ("[a]\n[b]\nstonewall\nexitall\nexit_what=all\n", true),
    ] {
        assert_eq!(read(text).check_that_all_run().is_ok(), runs, "{text}");
    }
}

/// A depth that only the machine says stays what it is.
#[test]
fn a_depth_in_braces_is_kept() {
    let text = "[a]\niodepth={memory/1073741824}";
    assert_eq!(
        edited(text, |jobs| jobs.queue_as(true)),
        "--ioengine=libaio --iodepth={memory/1073741824} --numjobs=1"
    );
    assert_eq!(
        edited(text, |jobs| jobs.queue_as(false)),
        "--ioengine=psync --iodepth=1 --numjobs={memory/1073741824} --thread=1"
    );
}

/// fio takes `/dev/disk/by-path/pci-0000:00` for two files.
#[test]
fn a_colon_of_the_machine_s_is_no_list() {
    let line = ["--filename={target}", "--bs=4k"];
    let jobs = FioJobs::from_command_line("x", &line, &permission()).expect("valid");
    let expanded = |text: &str| Ok::<_, ()>(text.replace("{target}", "/dev/pci-0:1"));
    let jobs = jobs.expand(expanded).expect("no error");
    assert_eq!(jobs.lines(), [r"--filename=/dev/pci-0\:1 --bs=4k"]);
}

#[test]
fn what_is_printed_is_read_as_the_same_jobs() {
    for text in [STREAMS, SWEEP, FINER] {
        let none = |_: &str| Err("no file".to_owned());
        let jobs = FioJobs::from_job_file("jobs.fio", text, &permission(), &none).expect("valid");
        let printed = jobs.arguments(crate::Target::File("{target}"));
        let read = FioJobs::from_command_line("x", &printed, &permission()).expect("valid");
        let view = |jobs: &FioJobs| jobs.model().expect("modelled").groups;
        assert_eq!(view(&read), view(&jobs));
        let names = |jobs: &FioJobs| -> Vec<Option<String>> {
            let jobs = jobs.jobs.iter();
            jobs.map(|job| job.name().map(str::to_owned)).collect()
        };
        assert_eq!(names(&read), names(&jobs));
    }
}

#[test]
fn an_included_file_stands_in_its_line_s_place() {
    let mut permission = permission();
    let text = "[a]\nrw=read\ninclude more.fio\nbs=8k\n";
    let open = |name: &str| match name {
        "more.fio" => Ok("size=1m\n[b]\nrw=write\n".to_owned()),
        "round.fio" => Ok("include round.fio\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let read = |text: &str, permission: &Permission| {
        FioJobs::from_job_file("jobs.fio", text, permission, &open)
    };
    let refused = read(text, &permission).expect_err("nobody allowed it");
    assert!(
        refused
            .to_string()
            .starts_with("jobs.fio, line 3: `include more.fio`")
    );
    permission
        .allow("include", |_| None)
        .expect("it can be allowed");
    let jobs = read(text, &permission).expect("valid");
    assert_eq!(jobs.lines(), ["--rw=read --size=1m", "--rw=write --bs=8k"]);
    for wrong in ["[a]\ninclude round.fio", "[a]\ninclude none.fio"] {
        assert!(read(wrong, &permission).is_err(), "{wrong}");
    }
}

/// The page of all options is made from the table itself. To make it anew:
/// `RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab-workload --lib options_page`.
#[test]
fn the_options_page_is_the_table() {
    let mut page = String::from(
        "# fio's options\n\nThis page lists what each option of fio does, whether a suite or job file \
         may use it, and what the model makes of it. `raidlab suites --fio-options` prints the same. \
         An option that does more than shape the load is refused in a file unless `--allow-fio` names \
         it ([job files](fio-job-files.md)). The page is made from the program's own table by\n\
         `RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab-workload --lib options_page`.\n\n\
         | option | what it does | in the model |\n|---|---|---|\n",
    );
    for option in crate::fio_options() {
        let names: Vec<String> = option
            .names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let model = match option.honoured {
            crate::Honoured::Yes => "honoured".to_owned(),
            crate::Honoured::NoEffect(reason) => format!("no effect: {reason}"),
            crate::Honoured::No(reason) => format!("refused: {reason}"),
        };
        let class = option.class.in_words();
        writeln!(page, "| {} | {class} | {model} |", names.join(", ")).expect("a string takes all");
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/fio-options.md"
    );
    if std::env::var_os("RAIDLAB_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/fio-options.md is not the table's"
    );
}
