//! The audit as a whole: silent on a clean suite, in order, and never at a
//! loss.

use super::lab::{Lab, member, random, row};
use crate::{Evidence, audit};
use proptest::prelude::*;
use raidlab_store::Operation::{self, Read, Write};
use raidlab_store::fact::{self, disk, disk_property as property};
use raidlab_store::{Latency, Measurement, Observation, Records, Scope, Severity};

/// A suite as it should be: two mirrors, three jobs, three repetitions, with
/// everything that the host bench writes down.
fn clean_suite() -> Lab {
    let mut rows = Vec::new();
    for repetition in 0..3 {
        for subject in ["md", "lvm"] {
            for (sequence, (job, measured)) in [
                ("fill", row(Write)),
                ("stream", row(Read)),
                ("random", random(Read, 175.0)),
            ]
            .into_iter()
            .enumerate()
            {
                // Half a percent apart: nothing is quite the same twice.
                let factor = 1.0 + f64::from(repetition) * 0.005;
                let mut measured = complete(Measurement {
                    subject: subject.to_owned(),
                    sequence: sequence as u32,
                    job: job.to_owned(),
                    repetition,
                    iops: measured.iops * factor,
                    bytes_per_second: measured.bytes_per_second * factor,
                    started_ns: 60_000_000_000 * sequence as u64,
                    ..measured
                });
                measured.latency.mean_ns += rows.len() as f64 * 3_217.25;
                rows.push(measured);
            }
        }
    }
    let mut lab = machine(Lab::mirror(rows));
    for index in 0..lab.rows.len() {
        lab = cell(lab, index);
    }
    lab.command(
        "mdadm --create /dev/md0 --level=1 --assume-clean --bitmap=none --run /dev/sdb /dev/sdc",
        0,
        "",
    )
    .command("fio --direct=1 --name=job", 0, "")
}

fn complete(measured: Measurement) -> Measurement {
    let (read, write) = if measured.op == Write {
        (0, measured.total_bytes)
    } else {
        (measured.total_bytes / 2, 0)
    };
    Measurement {
        latency: Latency {
            mean_ns: 5e6,
            p50_ns: 5_000_000,
            p90_ns: 9_000_000,
            p99_ns: 15_000_000,
            p999_ns: 40_000_000,
            max_ns: 120_000_000,
            histogram: Vec::new(),
        },
        members: vec![member(read, write), member(read, write)],
        ..measured
    }
}

fn machine(lab: Lab) -> Lab {
    let mut lab = lab
        .fact(fact::MEMORY_TOTAL_BYTES, "17179869184")
        .fact(fact::OS_KERNEL, "Linux")
        .fact(fact::OS_RELEASE, "6.12.0")
        .fact(fact::CPU_GOVERNOR, "performance")
        .fact(fact::ARRAY_LEVEL, "raid1")
        .fact(fact::ARRAY_BITMAP, "none")
        .fact("setting.bitmap.asked", "none")
        .fact("setting.bitmap.found", "none")
        .fact("setting.bitmap.applied", "true");
    for device in ["sdb", "sdc"] {
        for (name, value) in [
            (property::PHYSICAL_SECTOR_BYTES, "4096"),
            (property::START_SECTOR, "0"),
            (property::WRITE_CACHE, "write back"),
            (property::SCHEDULER, "mq-deadline"),
            (property::READ_AHEAD_BYTES, "131072"),
            (property::PENDING_SECTORS, "0"),
            (property::STALE_SIGNATURES, "none"),
        ] {
            lab = lab.fact(&disk(device, name), value);
        }
    }
    lab
}

fn cell(lab: Lab, index: usize) -> Lab {
    let repetition = lab.rows[index].repetition;
    let facts = [
        ("fio.option.direct", "1".to_owned()),
        ("fio.option.norandommap", "1".to_owned()),
        ("fio.option.time_based", "1".to_owned()),
        ("fio.option.randseed", format!("{}", 1000 + repetition)),
        ("fio.iodepth_level.1", "100.0".to_owned()),
        (fact::FIO_JOBS, "1".to_owned()),
        (fact::FIO_ERROR, "0".to_owned()),
        (fact::FIO_SHORT_IOS, "0".to_owned()),
        (fact::FIO_DROPPED_IOS, "0".to_owned()),
        (fact::JOB_ASKED_RUNTIME_NS, "60000000000".to_owned()),
        (fact::JOB_WORKING_SET_BYTES, "3298534883328".to_owned()),
        (fact::JOB_OFFSET_BYTES, "0".to_owned()),
        (fact::JOB_DATA_PATTERN, "random".to_owned()),
        (fact::WRITTEN_PERCENT, "100".to_owned()),
        (fact::SYNC_ACTIVE_START, "none".to_owned()),
        (fact::SYNC_ACTIVE_END, "none".to_owned()),
        ("memory.after.dirty_bytes", "40960".to_owned()),
        (fact::CPU_STEAL_PERCENT, "0.0".to_owned()),
        (fact::CLOCK_STEP_NS, "1200".to_owned()),
        (fact::FIRST_IO_NS, "9000000".to_owned()),
        (fact::IDLE_WRITTEN_BYTES, "0".to_owned()),
    ];
    let add = |lab: Lab, (name, value): (&str, String)| lab.cell_fact(index, name, &value, "");
    facts.into_iter().fold(lab, add)
}

/// Rows of a parameter set that only widens the band of a figure are no ground to strike it out.
#[test]
fn what_is_not_shown_strikes_nothing_out() {
    let mut lab = clean_suite();
    for row in &mut lab.rows {
        "strict".clone_into(&mut row.fit);
    }
    let mut others = lab.rows.clone();
    for row in &mut others {
        "joint".clone_into(&mut row.fit);
        row.iops *= 1000.0;
        row.bytes_per_second *= 1000.0;
    }
    let alone = lab.audit();
    lab.rows.splice(0..0, others);
    assert_eq!(lab.audit(), alone);
    for row in &mut lab.rows {
        row.fit.retain(|letter| letter != 's');
    }
    assert!(
        lab.audit().findings.iter().any(|one| one.rule == "B1"),
        "without it the first is shown"
    );
}

#[test]
fn a_clean_suite_raises_no_alarm() {
    let audit = clean_suite().audit();
    let alarms: Vec<_> = audit
        .findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note)
        .collect();
    assert!(alarms.is_empty(), "{alarms:#?}");
    let judged = audit.coverage.judged.len();
    assert!(
        judged >= 35,
        "only {judged} rules were judged: {:?}",
        audit.coverage.judged
    );
}

#[test]
fn one_fault_in_a_clean_suite_is_found_in_its_cell_only() {
    let mut lab = clean_suite();
    lab.rows[4].array_state_start = "[U_]".to_owned();
    let cell = Scope::of(&lab.rows[4]);
    let audit = lab.audit();
    let alarms: Vec<_> = audit
        .findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note)
        .map(|finding| (finding.rule.as_str(), &finding.scope))
        .collect();
    assert_eq!(alarms, [("A2", &cell)]);
}

#[test]
fn a_rule_without_evidence_says_which_fact_it_lacks() {
    let audit = Lab::of([row(Read)]).audit();
    let lacks = |rule: &str| {
        let unjudged = audit.coverage.unjudged.iter();
        unjudged
            .filter(|lacking| lacking.rule == rule)
            .map(|lacking| lacking.missing.as_str())
            .next()
    };
    assert_eq!(lacks("T1"), Some(fact::JOB_ASKED_RUNTIME_NS));
    assert_eq!(lacks("H10"), Some(fact::FIRST_IO_NS));
    assert_eq!(lacks("T17"), Some(""), "there is no dd");
    assert_eq!(lacks("T23"), Some("a second subject"));
    let nothing = audit_nothing();
    assert!(nothing.findings.is_empty());
    assert!(nothing.coverage.judged.is_empty());
}

/// Evidence at which a rule would say something, or nothing, only because a fact is not there. Each
/// rule is left unjudged then, and names the fact.
#[test]
fn no_rule_is_judged_without_the_fact_that_decides_it() {
    let option = |name: &str, value: &str, lab: Lab| lab.fact(&fact::fio_option(name), value);
    let of_zfs = |lab: Lab| lab.fact(fact::ARRAY_SYSTEM, "zfs");
    let small = || Lab::of([random(Read, 100.0)]).fact(fact::JOB_WORKING_SET_BYTES, "65536");
    let again = |tool: &str| {
        let named = |repetition| Measurement {
            repetition,
            tool: tool.to_owned(),
            ..random(Read, 170.0)
        };
        let lab = Lab::of([named(0), named(1)]).fact(fact::JOB_OFFSET_BYTES, "0");
        option("randseed", "11", option("direct", "0", lab))
    };
    let unnamed = || {
        let mut lab = Lab::of([row(Read)]);
        "array".clone_into(&mut lab.rows[0].subject);
        lab
    };
    let counted = || {
        let written = Measurement {
            members: vec![member(0, 1_000_000), member(0, 1_000_000)],
            ..row(Write)
        };
        of_zfs(Lab::of([written]))
    };
    let imported = |filesystem: &str| {
        let mut lab = Lab::of([row(Read), row(Read)]);
        for (row, subject) in lab.rows.iter_mut().zip(["md", "gmirror"]) {
            "import".clone_into(&mut row.bench);
            subject.clone_into(&mut row.subject);
        }
        filesystem.clone_into(&mut lab.rows[1].filesystem);
        lab
    };
    let turning = || {
        Lab::of([row(Read)])
            .fact(&fact::member_device(0), "sdb")
            .fact(&disk("sdb", property::ROTATIONAL), "true")
    };
    let ashift = || of_zfs(Lab::of([row(Read)])).fact("setting.ashift.found", "9");
    let pool = |version: &str| {
        let lab = option("direct", "1", of_zfs(small()));
        lab.fact(&fact::version("zfs"), version)
    };
    let cases = [
        ("T7", option("direct", "1", of_zfs(small())), "version.zfs"),
        // That is the version of a pool.
        ("T7", pool("28"), "version.zfs"),
        ("T7", option("direct", "1", unnamed()), fact::ARRAY_SYSTEM),
        ("C1", option("direct", "1", of_zfs(small())), "version.zfs"),
        (
            "C1",
            of_zfs(small()).fact(&fact::version("zfs"), "2.3.1"),
            "fio.option.direct",
        ),
        ("H2", unnamed(), fact::ARRAY_SYSTEM),
        ("H2", ashift(), "member.0.device"),
        ("H3", turning(), "disk.<device>.model"),
        (
            "A3",
            Lab::of([row(Write)]).fact(fact::ARRAY_SYSTEM, "md"),
            fact::ARRAY_BITMAP,
        ),
        ("A11", Lab::of([row(Write)]), "member.0.device"),
        ("T4", again("fio"), "the tool's version"),
        ("C11", again("fio"), "the tool's version"),
        (
            "T2",
            Lab::of([row(Read)]).fact(&fact::fio_depth_level("1"), "100.0"),
            "fio.option.iodepth",
        ),
        (
            "T33",
            option("direct", "0", Lab::of([row(Write)])),
            "fio.option.end_fsync",
        ),
        ("C3", counted(), "memory.after.dirty_bytes"),
        ("T24", imported("ext4"), fact::FILESYSTEM_TYPE),
    ];
    let mut problems = Vec::new();
    for (number, (rule, lab, wanted)) in cases.into_iter().enumerate() {
        let audit = lab.audit();
        let found = audit.findings.iter().filter(|one| one.rule == rule);
        problems.extend(found.map(|one| format!("{rule} (case {number}): {}", one.evidence)));
        let mut unjudged = audit.coverage.unjudged.iter();
        let lacks = unjudged.find(|lacking| lacking.rule == rule);
        let lacks = lacks.map(|one| one.missing.as_str());
        if lacks != Some(wanted) {
            problems.push(format!(
                "{rule} (case {number}) wants {lacks:?}, not {wanted}"
            ));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

fn audit_nothing() -> crate::Audit {
    audit(&Evidence::new(&[], &Records::default()))
}

/// The most exact fact counts: of the cell before the subject's before the
/// machine's.
#[test]
fn the_most_exact_fact_counts() {
    let lab = Lab::of([row(Read)])
        .cell_fact(0, fact::FIRST_IO_NS, "5000000000", "")
        .subject_fact("md", fact::FIRST_IO_NS, "1")
        .fact(fact::FIRST_IO_NS, "2");
    let rules: Vec<String> = lab
        .audit()
        .findings
        .into_iter()
        .map(|found| found.rule)
        .collect();
    assert_eq!(rules, ["H10"]);
}

/// A loop device or a hypervisor's disk says that it turns and answers from
/// memory: it has no bound.
#[test]
fn disks_that_are_made_up_have_no_bound() {
    let fast = || {
        Lab::of([Measurement {
            bytes_per_second: 4e9,
            ..row(Read)
        }])
    };
    for (device, model) in [("loop3", ""), ("vda", ""), ("sda", "QEMU HARDDISK")] {
        let lab = fast()
            .fact(&fact::member_device(0), device)
            .fact(&disk(device, property::ROTATIONAL), "true");
        let lab = if model.is_empty() {
            lab
        } else {
            lab.fact(&disk(device, property::MODEL), model)
        };
        assert!(lab.audit().findings.is_empty(), "{device}");
    }
}

/// A series of the whole experiment is cut to the time of the row's job.
#[test]
fn a_job_is_judged_by_its_own_time() {
    let stalled = |second: u64| {
        let mut lab = Lab::of([Measurement {
            started_ns: 100_000_000_000,
            ..row(Read)
        }])
        .fact(&fact::fio_option("direct"), "1");
        lab = lab.sampled(fact::series::READ_BYTES_PER_SECOND, &[]);
        lab.series[0].scope = super::lab::subject_scope("md");
        let rate = |at| if at == second { 0.0 } else { 1e8 };
        lab.series[0].points = (0..300).map(|at| (at * 1_000_000_000, rate(at))).collect();
        lab.audit().findings.iter().any(|found| found.rule == "T10")
    };
    assert!(stalled(130));
    assert!(!stalled(30));
}

/// Names that some rule reads, and some that none does.
fn names() -> Vec<String> {
    let mut names: Vec<String> = super::pairs()
        .into_iter()
        .flat_map(|pair| [pair.faulty, pair.clean])
        .flat_map(|lab| lab.observations)
        .map(|observation| observation.name)
        .collect();
    names.extend(["".to_owned(), "option.".to_owned(), "disk..".to_owned()]);
    names.sort();
    names.dedup();
    names
}

fn observation() -> impl Strategy<Value = Observation> {
    let value = prop_oneof![
        any::<f64>().prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        "[a-z0-9 .%/=,-]{0,12}",
        Just("true".to_owned()),
        Just("0".to_owned()),
        Just("ST4000DM004".to_owned()),
    ];
    let unit = prop_oneof![Just(""), Just("MB/s"), Just("1/s"), Just("s")];
    (proptest::sample::select(names()), value, unit, 0..4_u8).prop_map(
        |(name, value, unit, scope)| Observation {
            scope: match scope {
                0 => Scope::default(),
                1 => Scope::host(super::lab::HOST),
                2 => super::lab::subject_scope("md"),
                _ => Scope::of(&row(Read)),
            },
            name,
            value,
            unit: unit.to_owned(),
            source: String::new(),
        },
    )
}

prop_compose! {
    fn measurement()(
        op in proptest::sample::select(Operation::ALL.to_vec()),
        tool in proptest::sample::select(vec!["fio 3.33", "bonnie++ 1.98", "iozone 3.4", "dd", ""]),
        subject in proptest::sample::select(vec!["md", "zfs", "gmirror"]),
        numbers in proptest::array::uniform6(prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 1..100_000_u64]),
        rates in proptest::array::uniform2(prop_oneof![Just(0.0), Just(f64::NAN), Just(f64::MAX), -1.0..1e10]),
        sequence in 0..3_u32,
        repetition in 0..4_u32,
        random in any::<bool>(),
    ) -> Measurement {
        let used = raidlab_store::MemberUse { read_ticks_ns: numbers[5], ..member(numbers[4], numbers[5]) };
        Measurement {
            op,
            tool: tool.to_owned(),
            subject: subject.to_owned(),
            class: if random { "random-read".to_owned() } else { String::new() },
            total_ios: numbers[0],
            total_bytes: numbers[1],
            runtime_ns: numbers[2],
            started_ns: numbers[3],
            block_size_bytes: numbers[4],
            iops: rates[0],
            bytes_per_second: rates[1],
            latency: Latency { p999_ns: numbers[4], max_ns: numbers[5], ..Latency::default() },
            members: vec![used.clone(), used],
            sequence,
            repetition,
            ..row(op)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_evidence_is_judged_and_alike_each_time(
        rows in proptest::collection::vec(measurement(), 0..8),
        observations in proptest::collection::vec(observation(), 0..60),
        samples in proptest::collection::vec(prop_oneof![any::<f64>(), 0.0..1e9], 0..40),
        commands in proptest::collection::vec("(mdadm|fio|dd|mkfs.ext4) [-a-z=0-9/ ]{0,30}", 0..4),
    ) {
        let mut lab = Lab { rows, observations, ..Lab::default() };
        for command in commands {
            lab = lab.command(&command, 1, "");
        }
        if !lab.rows.is_empty() {
            lab = lab.sampled(fact::series::READ_BYTES_PER_SECOND, &samples);
        }
        let first = lab.audit();
        prop_assert_eq!(&first, &lab.audit());
        let rules = first.coverage.judged.len() + first.coverage.unjudged.len();
        prop_assert_eq!(rules, crate::rules().count());
        for finding in &first.findings {
            prop_assert!(first.coverage.judged.contains(&finding.rule.as_str()));
            prop_assert!(!finding.evidence.is_empty());
        }
    }
}

/// A share of a rate says no more than the rates that it was made from.
#[test]
fn a_share_of_a_struck_rate_is_struck_too() {
    let rated = |sequence: u32, iops| Measurement {
        sequence,
        job: format!("j{sequence}"),
        ..random(Read, iops)
    };
    let kept = Measurement {
        sequence: 9,
        job: "j2".to_owned(),
        part: "j2 read".to_owned(),
        job_title: "job j2, against job j1 without a sync".to_owned(),
        kept_percent: Some(50.0),
        ..row(Operation::Kept)
    };
    for (before, beside, is_struck) in [
        (170.0, 85.0, false),
        (170.0, 90_000.0, true),
        (90_000.0, 85.0, true),
    ] {
        let lab = Lab::mirror([rated(1, before), rated(2, beside), kept.clone()]);
        let found = lab.audit().findings;
        let fatal = found.iter().filter(|one| one.severity == Severity::Fatal);
        let of_kept = fatal.filter(|one| one.covers(&kept)).count();
        assert_eq!(of_kept > 0, is_struck, "{before} {beside}: {found:#?}");
        assert!(found.is_sorted_by_key(|one| crate::rules().position(|rule| rule.id == one.rule)));
    }
}
