//! What was written down beside the figures: facts, commands, findings.

use super::{COLUMNS, SECOND, experiment};
use raidlab_store::fact::{self, claim_part, disk_property, outcome};
use raidlab_store::{
    AccuracyNote, CommandRecord, Finding, Observation, Operation, Scope, Severity,
};

/// Facts of the machines, the arrays and some jobs.
pub fn observations() -> Vec<Observation> {
    let mut all = Vec::new();
    let mut add = |scope: Scope, name: String, value: &str, unit: &str, source: &str| {
        all.push(Observation {
            scope,
            name,
            value: value.to_owned(),
            unit: unit.to_owned(),
            source: source.to_owned(),
        });
    };
    for (host, release, memory) in [
        ("alpha", "6.1.0-18-amd64", "8346419200"),
        ("beta", "5.10.0-28-amd64", "4119998464"),
    ] {
        let here = || Scope::host(host);
        add(here(), fact::OS_RELEASE.to_owned(), release, "", "uname -r");
        add(
            here(),
            fact::OS_NAME.to_owned(),
            "Debian",
            "",
            "/etc/os-release",
        );
        add(
            here(),
            fact::CPU_MODEL.to_owned(),
            "Intel(R) Xeon(R) E3-1230",
            "",
            "/proc/cpuinfo",
        );
        add(
            here(),
            fact::MEMORY_TOTAL_BYTES.to_owned(),
            memory,
            "bytes",
            "/proc/meminfo",
        );
        add(here(), fact::version("fio"), "3.33", "", "fio --version");
        add(here(), fact::version("mdadm"), "4.2", "", "mdadm --version");
        for device in ["sdb", "sdc"] {
            let disk = |property| fact::disk(device, property);
            add(
                here(),
                disk(disk_property::MODEL),
                "WD4000FYYZ",
                "",
                "/sys/block",
            );
            add(
                here(),
                disk(disk_property::SEQUENTIAL_BYTES_PER_SECOND),
                "171000000",
                "bytes/s",
                "data sheet",
            );
        }
    }
    for column in 0..COLUMNS.len() {
        let here = || Scope {
            repetition: None,
            ..experiment(column, 0)
        };
        add(
            here(),
            fact::ARRAY_LEVEL.to_owned(),
            "raid1",
            "",
            "mdadm --detail",
        );
        add(here(), fact::member_device(0), "sdb", "", "plan");
        add(here(), fact::member_device(1), "sdc", "", "plan");
    }
    let pool = || Scope {
        repetition: None,
        ..experiment(2, 0)
    };
    let applied = |name, what| fact::setting(name, what);
    add(
        pool(),
        applied("primarycache", outcome::ASKED),
        "metadata",
        "",
        "suite file",
    );
    add(
        pool(),
        applied("primarycache", outcome::FOUND),
        "all",
        "",
        "zfs get",
    );
    add(
        pool(),
        applied("primarycache", outcome::APPLIED),
        fact::FALSE,
        "",
        "",
    );
    add(
        pool(),
        applied("recordsize", outcome::ASKED),
        "128K",
        "",
        "suite file",
    );
    add(
        pool(),
        applied("recordsize", outcome::FOUND),
        "128K",
        "",
        "zfs get",
    );
    add(
        pool(),
        applied("recordsize", outcome::APPLIED),
        fact::TRUE,
        "",
        "",
    );
    let cell = Scope {
        sequence: Some(2),
        ..experiment(0, 0)
    };
    add(
        cell,
        fact::claim(Operation::Read, "", claim_part::VALUE),
        "91",
        "1/s",
        "made up",
    );
    all
}

/// Commands that ran, one of them in vain.
pub fn commands() -> Vec<CommandRecord> {
    let mut all = Vec::new();
    for column in 0..COLUMNS.len() {
        let mut add = |at: u64, command: &str, code: Option<i32>, stdout: String, stderr: &str| {
            all.push(CommandRecord {
                scope: experiment(column, 0),
                at_ns: at * SECOND,
                command: command.to_owned(),
                code,
                took_ns: 120_000_000,
                stdout,
                stderr: stderr.to_owned(),
            });
        };
        add(
            1,
            "mdadm --create /dev/md0 --level=1 --raid-devices=2 --bitmap=internal --run /dev/sdb /dev/sdc",
            Some(0),
            "mdadm: array /dev/md0 started.\n".to_owned(),
            "",
        );
        add(
            2,
            "zfs set primarycache=metadata",
            Some(2),
            String::new(),
            "missing dataset argument(s)\n",
        );
        add(
            3,
            "fio --output-format=json+ seqread.fio",
            Some(0),
            "{ \"fio version\": \"fio-3.33\" }\n".repeat(400),
            "",
        );
        add(4, "iostat 1", None, "sdb <&> sdc\n".to_owned(), "");
    }
    all
}

/// What an audit found: one of each severity, and one on a single repetition.
pub fn findings() -> Vec<Finding> {
    let finding = |rule: &str, title: &str, severity, scope, op| Finding {
        rule: rule.to_owned(),
        title: title.to_owned(),
        severity,
        scope,
        op,
        part: String::new(),
        evidence: String::new(),
        effect: String::new(),
        remedy: String::new(),
    };
    let bonnie = |host: &str| Scope {
        host: host.to_owned(),
        sequence: Some(10),
        ..Scope::default()
    };
    let mut cache = finding(
        "C1",
        "working set fits in memory",
        Severity::Fatal,
        bonnie("alpha"),
        Some(Operation::Read),
    );
    "688 MB/s where two disks do at most 342 MB/s".clone_into(&mut cache.evidence);
    "reads came from memory, not from the disks".clone_into(&mut cache.effect);
    "a file of at least twice the memory, or direct I/O".clone_into(&mut cache.remedy);
    let mut bound = cache.clone();
    bound.scope.host = "beta".to_owned();
    "420 MB/s where two disks do at most 342 MB/s".clone_into(&mut bound.evidence);
    let mut setting = finding(
        "C12",
        "setting not applied",
        Severity::Warning,
        Scope {
            subject: "zfs-mirror".to_owned(),
            ..Scope::default()
        },
        None,
    );
    "primarycache: asked metadata, found all".clone_into(&mut setting.evidence);
    "data were cached where only metadata should be".clone_into(&mut setting.effect);
    "name the data set: zfs set primarycache=metadata POOL/NAME".clone_into(&mut setting.remedy);
    let mut first = finding(
        "A9",
        "background writes of the file system",
        Severity::Fatal,
        Scope {
            sequence: Some(1),
            repetition: Some(0),
            ..experiment(0, 0)
        },
        None,
    );
    "31 MB written to the members in the idle second before".clone_into(&mut first.evidence);
    "the first repetition shared the disks with ext4lazyinit".clone_into(&mut first.effect);
    "-E lazy_itable_init=0,lazy_journal_init=0".clone_into(&mut first.remedy);
    let mut note = finding(
        "A3",
        "write-intent bitmap in force",
        Severity::Note,
        Scope {
            subject: "md-raid1".to_owned(),
            ..Scope::default()
        },
        Some(Operation::Write),
    );
    "bitmap internal".clone_into(&mut note.evidence);
    "random writes pay for it".clone_into(&mut note.effect);
    "say so beside the figures".clone_into(&mut note.remedy);
    vec![cache, bound, first, setting, note]
}

/// What the audit could judge.
pub fn notes() -> Vec<AccuracyNote> {
    vec![AccuracyNote {
        class: "audit".to_owned(),
        title: "Audit".to_owned(),
        statement: "41 rules judged, 22 lacked evidence.".to_owned(),
        ..AccuracyNote::default()
    }]
}
