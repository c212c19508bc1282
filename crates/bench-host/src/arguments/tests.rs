use super::*;
use proptest::prelude::*;
use raidlab_lab::{Choices, Experiment, HostChoice, QueueStyle, Suite};
use raidlab_workload::{FioJobs, Permission};
use std::path::Path;

/// The jobs of a suite of one step on a machine that queues in this way.
fn experiment(step: &str, queue: QueueStyle) -> Experiment {
    let text = format!(
        "schema = 1\nname = \"t\"\ntitle = \"t\"\ndescription = \"t\"\nsource = \"t\"\n\
         disks = [\"wd4000fyyz\", \"wd4000fyyz\"]\nsubjects = [\"md-raid1\"]\n\n\
         [[step]]\njob = \"j\"\ntitle = \"t\"\nclass = \"c\"\n{step}\n"
    );
    let suite = Suite::parse("t.toml", &text, Path::new(".")).unwrap();
    let choices = Choices {
        hosts: vec![HostChoice {
            name: "store1".to_owned(),
            queue,
            disks: vec!["/dev/sdb".to_owned(), "/dev/sdc".to_owned()],
        }],
        ..Choices::default()
    };
    let mut all = suite.experiments(&suite.subjects, &choices);
    all.remove(0)
}

fn line(step: &str, queue: QueueStyle, place: &Place) -> Result<String, String> {
    let experiment = experiment(step, queue);
    let job = experiment.jobs().next().unwrap();
    planned(job, place, 8 << 30)
        .map(|invocation| invocation.command.to_string())
        .map_err(|error| error.to_string())
}

fn place(path: &str, is_folder: bool) -> Place {
    Place {
        path: path.to_owned(),
        is_folder,
        capacity_bytes: 1 << 30,
    }
}

fn device() -> Place {
    place("/dev/md100", false)
}

fn folder() -> Place {
    place("/run/raidlab/raidlab0", true)
}

#[test]
fn fio_s_options_pass_through_word_by_word() {
    let step = "fio = \"--rw=randread --bs=4k --size=1m --direct=1 --norandommap --percentile_list=50:99\"";
    assert_eq!(
        line(step, QueueStyle::Libaio, &device()).unwrap(),
        "fio --output-format=json+ --eta=never --name=global --allow_file_create=0 --filename=/dev/md100 \
         --group_reporting=1 --name=job1 --rw=randread --bs=4k --size=1m --direct=1 \
         --norandommap=1 --percentile_list=50:99 --ioengine=libaio --iodepth=1 --numjobs=1"
    );
}

#[test]
fn a_depth_is_reached_as_the_host_does_it() {
    let step = "fio = \"--rw=randread --size=1m --iodepth=8 --numjobs=2\"";
    let libaio = line(step, QueueStyle::Libaio, &folder()).unwrap();
    assert!(
        libaio.ends_with("--ioengine=libaio --iodepth=8 --numjobs=2"),
        "{libaio}"
    );
    let threads = line(step, QueueStyle::Threads, &folder()).unwrap();
    assert!(
        threads.ends_with("--ioengine=psync --iodepth=1 --numjobs=16 --thread=1"),
        "{threads}"
    );
}

#[test]
fn a_seed_is_heeded_by_every_fio() {
    let options = |more: &str| {
        let step = format!("fio = \"--rw=randread --size=1m {more}\"");
        line(&step, QueueStyle::Libaio, &device()).unwrap()
    };
    assert!(options("--randseed=7").ends_with(" --randrepeat=0"));
    assert!(!options("").contains("randrepeat"));
    let own = options("--randseed=7 --randrepeat=1");
    assert!(!own.contains("--randrepeat=0"), "{own}");
}

#[test]
fn a_colon_in_a_path_is_no_list_of_files() {
    let place = place("/dev/disk/by-path/pci-0000:02", false);
    let line = line("fio = \"--rw=read --size=1m\"", QueueStyle::Libaio, &place).unwrap();
    assert!(
        line.contains(r"'--filename=/dev/disk/by-path/pci-0000\:02'"),
        "{line}"
    );
}

#[test]
fn jobs_that_run_together_are_told_apart() {
    let step = "fio = [\"--rw=read --size=1m\", \"--rw=write --size=1m\"]";
    let line = line(step, QueueStyle::Libaio, &device()).unwrap();
    assert!(!line.contains("group_reporting"), "{line}");
    assert!(line.contains("--name=job1 --rw=read"), "{line}");
    assert!(line.contains("--name=job2 --rw=write"), "{line}");
}

#[test]
fn values_join_their_options_and_switches_get_one() {
    let step = "fio = \"--bs 4k -rw=read --end_fsync --name x\"";
    let line = line(step, QueueStyle::Libaio, &device()).unwrap();
    assert!(
        line.contains("--name=x --bs=4k --rw=read --end_fsync=1 --ioengine"),
        "{line}"
    );
}

#[test]
fn a_job_s_name_comes_before_its_options_and_its_own_file_is_its_only_place() {
    let step = "fio = \"--rw=read --size=1m --name=mine --filename={file}\"";
    let line = line(step, QueueStyle::Libaio, &folder()).unwrap();
    assert!(line.contains("--name=mine --rw=read"), "{line}");
    assert!(!line.contains("--directory"), "{line}");
}

#[test]
fn a_job_file_reaches_fio_with_all_its_options() {
    let step = "fio_job = \"\"\"\n[global]\nsize=1m\ndirect=0\nnice=5\n[a]\nrw=read\n\
                percentage_random=50\n[b]\nrw=write\nbuffer_pattern=0xff\n\"\"\"\nqueue = \"fio\"";
    assert_eq!(
        line(step, QueueStyle::Libaio, &device()).unwrap(),
        "fio --output-format=json+ --eta=never --name=global --allow_file_create=0 --filename=/dev/md100 \
         --name=a --size=1m --direct=0 --nice=5 --rw=read --percentage_random=50 \
         --name=b --size=1m --direct=0 --nice=5 --rw=write --buffer_pattern=0xff"
    );
}

#[test]
fn a_line_break_in_a_disk_s_name_begins_nothing() {
    let place = place("/dev/md\n--exec_prerun=true", false);
    let error = line("fio = \"--rw=read --size=1m\"", QueueStyle::Libaio, &place).unwrap_err();
    assert!(error.contains("control character"), "{error}");
}

#[test]
fn a_tool_that_cannot_run_in_the_place_is_refused_by_the_job_s_name() {
    let step = "tool = \"dd\"\narguments = [\"if=/dev/zero\", \"of=/dev/null\"]";
    let error = line(step, QueueStyle::Libaio, &folder()).unwrap_err();
    assert_eq!(
        error,
        "job `j`: dd neither reads `if={file}` nor writes `of={file}`"
    );
}

#[test]
fn bonnie_and_iozone_work_in_the_folder() {
    let bonnie = "tool = \"bonnie++\"\narguments = [\"-s\", \"1g\"]";
    assert_eq!(
        line(bonnie, QueueStyle::Libaio, &folder()).unwrap(),
        "bonnie++ -s 1g -d /run/raidlab/raidlab0 -u root -q"
    );
    assert_eq!(
        line(bonnie, QueueStyle::Libaio, &device()).unwrap_err(),
        "job `j`: bonnie++ needs a file system; the suite's `filesystems` makes one"
    );
    let iozone = "tool = \"iozone\"\narguments = [\"-a\"]";
    assert_eq!(
        line(iozone, QueueStyle::Libaio, &folder()).unwrap(),
        "iozone -a -f /run/raidlab/raidlab0/raidlab.dat"
    );
    let processes = "tool = \"iozone\"\narguments = [\"-t\", \"2\"]";
    assert_eq!(
        line(processes, QueueStyle::Libaio, &folder()).unwrap(),
        "iozone -t 2 -F /run/raidlab/raidlab0/raidlab.dat.0 /run/raidlab/raidlab0/raidlab.dat.1"
    );
}

proptest! {
    #[test]
    fn no_line_of_options_makes_it_panic(
        text in "(--|-|=|name|filename|iodepth|numjobs|rw|:|[0-9]{1,12}|[a-z{} ]){0,30}",
        threads: bool,
        memory: u64,
        capacity: u64,
    ) {
        let queue = if threads { QueueStyle::Threads } else { QueueStyle::Libaio };
        let words: Vec<&str> = text.split_whitespace().collect();
        let Ok(mut jobs) = FioJobs::from_command_line("j", &words, &Permission::default()) else {
            return Ok(());
        };
        jobs.queue_as(queue == QueueStyle::Libaio);
        let experiment = experiment("fio = \"--rw=read --size=1m\"", queue);
        let mut job = experiment.jobs().next().unwrap().clone();
        if let Work::Fio { jobs: planned, .. } = &mut job.job.work {
            *planned = jobs;
        }
        let place = Place {
            capacity_bytes: capacity,
            ..place("/x", true)
        };
        if let Ok(invocation) = planned(&job, &place, memory) {
            let mut facts = crate::facts::Facts::new(raidlab_store::Scope::default());
            crate::facts::asked(&mut facts, &job, &invocation, &place);
            prop_assert_eq!(invocation.command.program, "fio");
        }
    }
}
