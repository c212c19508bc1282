use super::{BuildError, Plan};
use raidlab_disk::{DiskParameters, Order};
use raidlab_lab::{Choices, Experiment, Files, SubjectKind, Suite, catalogue};
use raidlab_systems::ArraySpec;
use raidlab_units::Nanos;

/// The experiments of a suite with these disks.
fn experiments(disks: &str) -> Vec<Experiment> {
    experiments_of(r#""md", "md-raid1""#, disks)
}

/// The experiments of a suite with these subjects and disks.
fn experiments_of(subjects: &str, disks: &str) -> Vec<Experiment> {
    let text = r#"schema = 1
name = "mixed"
title = "mixed"
description = "a disk of flash beside one with platters"
source = "this test"
disks = [DISKS]
subjects = [SUBJECTS]

[[step]]
job = "read"
title = "reads"
class = "random-read"
queue = "fio"
fio = "--rw=randread --bs=4k --ioengine=libaio --direct=1 --runtime=1"
"#
    .replace("DISKS", disks)
    .replace("SUBJECTS", subjects);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mixed.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    suite.experiments(&suite.subjects, &choices)
}

/// A suite's scheduler is that of all members, NVMe drives among them; what the model does not
/// have, and what the host's system has not, is refused by its name.
#[test]
fn a_suite_says_which_scheduler_members_have() {
    let mut all = experiments(r#""pm9a3", "pm883""#);
    let experiment = &mut all[0];
    let orders = |experiment: &Experiment| {
        let plan = Plan::new(experiment, &Files::default())?;
        let rules = plan.host()?.queue();
        let orders = plan.parameters.iter().map(|disk| rules.before(disk).order);
        Ok::<Vec<Order>, BuildError>(orders.collect())
    };
    let plain = orders(experiment).expect("a plan");
    assert_eq!(plain, [Order::None, Order::Sweep]);
    for (name, order) in [
        ("kyber", Order::Kyber),
        ("bfq", Order::Bfq),
        ("none", Order::None),
    ] {
        experiment.subject.scheduler = Some(name.to_owned());
        assert_eq!(orders(experiment).expect("a plan"), [order, order]);
    }
    let refused = |experiment: &Experiment| match orders(experiment) {
        Err(error) => error.to_string(),
        Ok(orders) => panic!("{orders:?}"),
    };
    experiment.subject.scheduler = Some("bfq".to_owned());
    experiment.subject.kind = SubjectKind::ZfsMirror;
    let error = refused(experiment);
    assert!(error.contains("no scheduler `bfq` below a pool"), "{error}");
    experiment.subject.kind = SubjectKind::Array;
    experiment.subject.write_throttling = Some(Nanos::from_millis(75));
    let error = refused(experiment);
    assert!(error.contains("no throttling of writes"), "{error}");
    experiment.subject.write_throttling = Some(Nanos::ZERO);
    experiment.subject.scheduler = Some("none".to_owned());
    experiment.subject.host =
        Some(catalogue::host(&Files::default(), "freebsd-10.1").expect("one"));
    let error = refused(experiment);
    assert!(
        error.contains("scheduler `none` of Linux on host `freebsd-10.1`"),
        "{error}"
    );
}

/// The subject `md` is a mirror of the model's own: what a suite says of its [build] would not
/// change its figures.
#[test]
fn what_a_suite_builds_otherwise_is_refused_where_the_model_does_not_read_it() {
    let limited = ["md", "md-raid1"].map(|name| {
        format!("{{ subject = \"{name}\", build = {{ sync_speed_max = \"5000k\" }} }}")
    });
    let all = experiments_of(&limited.join(", "), r#""wd4000fyyz", "wd4000fyyz""#);
    let [mirror, array] = all.as_slice() else {
        panic!("{} experiments", all.len());
    };
    let checked = |experiment: &Experiment| {
        let plan = Plan::new(experiment, &Files::default()).map(drop);
        plan.map_err(|error| error.to_string())
    };
    checked(array).expect("an array of md has such limits");
    let error = checked(mirror).expect_err("the mirror has none");
    assert!(
        error.contains("`build.md.sync_speed_max` of subject `md`"),
        "{error}"
    );
}

#[test]
fn a_member_of_flash_does_not_turn() {
    for experiment in experiments(r#""ssd950pro", "wd4000fyyz""#) {
        let plan = Plan::new(&experiment, &Files::default()).expect("a plan");
        assert_eq!(plan.rotational().collect::<Vec<_>>(), [false, true]);
        let md = plan.md.as_ref().map(super::MdArray::rotational);
        assert!(md.is_none_or(|members| members == [false, true]));
    }
}

#[test]
fn a_suite_says_in_which_state_a_drive_begins() {
    let disks = r#"{ disk = "pm9a3", state = "steady" }, "pm9a3""#;
    let all = experiments(disks);
    let plan = Plan::new(&all[0], &Files::default()).expect("a plan");
    let states: Vec<_> = plan.parameters.iter().map(DiskParameters::state).collect();
    assert_eq!(states, [Some("steady"), Some("filled")]);
    let facts = crate::facts::of_subject(&plan, &all[0]);
    let of = |name: &str| {
        let found = facts.iter().find(|fact| fact.name == name);
        found.map(|fact| fact.value.as_str())
    };
    assert_eq!(of("disk.disk0.state"), Some("steady"));
    // What is protected against the loss of power declares no volatile cache.
    assert_eq!(of("disk.disk0.write_cache"), Some("write through"));
    for (disk, said) in [
        (
            r#"{ disk = "pm9a3", state = "old" }, "pm9a3""#,
            "`old` is no state",
        ),
        (
            r#"{ disk = "wd4000fyyz", state = "fresh" }, "pm9a3""#,
            "this is none",
        ),
    ] {
        let Err(error) = Plan::new(&experiments(disk)[0], &Files::default()) else {
            panic!("{disk} makes no plan");
        };
        let text = raidlab_units::in_one_line(&error);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_suite_says_where_a_partition_begins() {
    let all = experiments(r#"{ disk = "wd15ears", first_sector = 63 }, "wd15ears""#);
    let plan = Plan::new(&all[0], &Files::default()).expect("a plan");
    let sizes = plan.sizes();
    assert_eq!(sizes[1].0 - sizes[0].0, 63 * 512);
    let facts = crate::facts::of_subject(&plan, &all[0]);
    let of = |name: &str| {
        let found = facts.iter().find(|fact| fact.name == name);
        found.map(|fact| fact.value.as_str())
    };
    assert_eq!(of("disk.disk0.start_sector"), Some("63"));
    assert_eq!(of("disk.disk1.start_sector"), Some("0"));
    assert_eq!(of("disk.disk0.physical_sector_bytes"), Some("4096"));
    let all = experiments(r#"{ disk = "pm9a3", first_sector = 63 }, "pm9a3""#);
    let plan = Plan::new(&all[0], &Files::default()).expect("a plan");
    let facts = crate::facts::of_subject(&plan, &all[0]);
    let is_unit = |fact: &&raidlab_store::Observation| {
        fact.name == "disk.disk0.physical_sector_bytes" && fact.value == "4096"
    };
    assert_eq!(facts.iter().filter(is_unit).count(), 1);
}

#[test]
fn a_suite_says_which_bus_drives_share() {
    let one = r#"{ disk = "wd15ears", bus = { name = "pci", bytes_per_second = "100m", half_duplex = true } }"#;
    let all = experiments(&format!("{one}, {one}"));
    let plan = Plan::new(&all[0], &Files::default()).expect("a plan");
    let facts = crate::facts::of_subject(&plan, &all[0]);
    let of = |name: &str| {
        let found = facts.iter().find(|fact| fact.name == name);
        found.map(|fact| fact.value.as_str())
    };
    assert_eq!(of("disk.disk1.channel"), Some("pci"));
    assert_eq!(of("disk.disk1.channel_bytes_per_second"), Some("104857600"));
    let random = crate::wiring::chance(&all[0]);
    let wired = crate::wiring::wire(&all[0].regions, &plan.parameters, &random).expect("fits");
    assert!(
        wired
            .iter()
            .all(|one| one.disk.is_shared() && !one.disk.one_at_a_time())
    );
}

/// What only building finds wrong is found before anything runs.
#[test]
fn what_cannot_be_built_is_refused_by_the_check() {
    let check = |change: &dyn Fn(&mut Experiment)| {
        let mut experiment = experiments(r#""wd4000fyyz", "wd4000fyyz""#).remove(0);
        change(&mut experiment);
        let plan = Plan::new(&experiment, &Files::default())?;
        plan.check(&experiment)
    };
    check(&|_| ()).expect("built in");
    let bogus = |experiment: &mut Experiment| {
        let host = experiment.subject.host.as_mut().expect("modelled");
        host.scheduler = "bogus".to_owned();
    };
    let slot = |experiment: &mut Experiment| {
        experiment.subject = raidlab_lab::Subject::load("md").expect("built in");
        experiment.subject.read_policy = Some("btrfs-devid:9".to_owned());
    };
    for change in [&bogus as &dyn Fn(&mut Experiment), &slot] {
        let error = check(change).expect_err("it cannot be built");
        let all = raidlab_units::in_one_line(&error);
        assert!(all.contains("bogus") || all.contains("slot 9"), "{all}");
    }
}

#[test]
fn a_cache_above_the_memory_of_its_host_is_refused() {
    let suite = Suite::load("zfs-volume").expect("built in");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        ..Choices::default()
    };
    let mut all = suite.experiments(&suite.subjects, &choices);
    let experiment = &mut all[0];
    let refused = |experiment: &Experiment| Plan::new(experiment, &Files::default()).err();
    assert!(refused(experiment).is_none(), "as it is built in");
    let zfs = experiment.subject.zfs.as_mut().expect("a pool");
    zfs.cache.0 = 1 << 32;
    let error = refused(experiment).expect("two GiB are less than four");
    let words = "a cache of 4 GiB is more than the 2 GiB of memory of host `linux-6.12-2g`";
    assert_eq!(error.to_string(), words);
}

/// A slot that is not there was passed over without a word.
#[test]
fn members_that_the_system_would_refuse_are_refused() {
    let mut all = experiments(r#""pm9a3", "pm883""#);
    let of_array = |it: &&mut Experiment| it.subject.kind == SubjectKind::Array;
    let experiment = all.iter_mut().find(of_array).expect("one of md-raid1");
    let Some(ArraySpec::Md(spec)) = &mut experiment.subject.build else {
        panic!("no array of md");
    };
    spec.write_mostly = vec![7];
    let refused = Plan::new(experiment, &Files::default()).map(drop);
    let said = refused.map_err(|error| error.to_string());
    let words = "md raid1 cannot be built: write-mostly slot 7 is not below 2";
    assert_eq!(said, Err(words.to_owned()));
}
