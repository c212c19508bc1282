//! What was written down beside the figures: facts, commands, findings.

use super::{COLUMNS, SECOND, experiment};
use raidlab_store::fact::{self, claim_part, disk_property, outcome};
use raidlab_store::{
    AccuracyNote, CommandRecord, Finding, Observation, Operation, Scope, Severity,
};

/// A fact, with its value, its unit and its source.
fn observation(scope: &Scope, name: impl Into<String>, told: [&str; 3]) -> Observation {
    let [value, unit, source] = told.map(str::to_owned);
    Observation {
        scope: scope.clone(),
        name: name.into(),
        value,
        unit,
        source,
    }
}

/// Facts of the machines, the arrays and some jobs.
pub fn observations() -> Vec<Observation> {
    let mut all = Vec::new();
    for (host, release, memory) in [
        ("alpha", "6.1.0-18-amd64", "8346419200"),
        ("beta", "5.10.0-28-amd64", "4119998464"),
    ] {
        let here = Scope::host(host);
        let cpu = "Intel(R) Xeon(R) E3-1230";
        all.extend([
            observation(&here, fact::OS_RELEASE, [release, "", "uname -r"]),
            observation(&here, fact::OS_NAME, ["Debian", "", "/etc/os-release"]),
            observation(&here, fact::CPU_MODEL, [cpu, "", "/proc/cpuinfo"]),
            observation(
                &here,
                fact::MEMORY_TOTAL_BYTES,
                [memory, "bytes", "/proc/meminfo"],
            ),
            observation(&here, fact::version("fio"), ["3.33", "", "fio --version"]),
            observation(
                &here,
                fact::version("mdadm"),
                ["4.2", "", "mdadm --version"],
            ),
        ]);
        for device in ["sdb", "sdc"] {
            let model = fact::disk(device, disk_property::MODEL);
            let rate = fact::disk(device, disk_property::SEQUENTIAL_BYTES_PER_SECOND);
            all.push(observation(&here, model, ["WD4000FYYZ", "", "/sys/block"]));
            all.push(observation(
                &here,
                rate,
                ["171000000", "bytes/s", "data sheet"],
            ));
        }
    }
    let subject = |column| Scope {
        repetition: None,
        ..experiment(column, 0)
    };
    for column in 0..COLUMNS.len() {
        let here = subject(column);
        all.extend([
            observation(&here, fact::ARRAY_LEVEL, ["raid1", "", "mdadm --detail"]),
            observation(&here, fact::member_device(0), ["sdb", "", "plan"]),
            observation(&here, fact::member_device(1), ["sdc", "", "plan"]),
        ]);
    }
    let pool = subject(2);
    for (setting, asked, found, applied) in [
        ("primarycache", "metadata", "all", fact::FALSE),
        ("recordsize", "128K", "128K", fact::TRUE),
    ] {
        for (what, told) in [
            (outcome::ASKED, [asked, "", "suite file"]),
            (outcome::FOUND, [found, "", "zfs get"]),
            (outcome::APPLIED, [applied, "", ""]),
        ] {
            all.push(observation(&pool, fact::setting(setting, what), told));
        }
    }
    let cell = Scope {
        sequence: Some(2),
        ..experiment(0, 0)
    };
    let claim = fact::claim(Operation::Read, "", claim_part::VALUE);
    all.push(observation(&cell, claim, ["91", "1/s", "made up"]));
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
    let finding = |severity, scope, op, told: [&str; 5]| {
        let [rule, title, evidence, effect, remedy] = told.map(str::to_owned);
        Finding {
            rule,
            title,
            severity,
            scope,
            op,
            part: String::new(),
            evidence,
            effect,
            remedy,
        }
    };
    let bonnie = |host: &str, evidence| {
        let scope = Scope {
            host: host.to_owned(),
            sequence: Some(10),
            ..Scope::default()
        };
        let told = [
            "C1",
            "working set fits in memory",
            evidence,
            "reads came from memory, not from the disks",
            "a file of at least twice the memory, or direct I/O",
        ];
        finding(Severity::Fatal, scope, Some(Operation::Read), told)
    };
    let subject = |name: &str| Scope {
        subject: name.to_owned(),
        ..Scope::default()
    };
    let setting = [
        "C12",
        "setting not applied",
        "primarycache: asked metadata, found all",
        "data were cached where only metadata should be",
        "name the data set: zfs set primarycache=metadata POOL/NAME",
    ];
    let first = [
        "A9",
        "background writes of the file system",
        "31 MB written to the members in the idle second before",
        "the first repetition shared the disks with ext4lazyinit",
        "-E lazy_itable_init=0,lazy_journal_init=0",
    ];
    let cell = Scope {
        sequence: Some(1),
        ..experiment(0, 0)
    };
    let bitmap = [
        "A3",
        "write-intent bitmap in force",
        "bitmap internal",
        "random writes pay for it",
        "say so beside the figures",
    ];
    vec![
        bonnie("alpha", "688 MB/s where two disks do at most 342 MB/s"),
        bonnie("beta", "420 MB/s where two disks do at most 342 MB/s"),
        finding(Severity::Fatal, cell, None, first),
        finding(Severity::Warning, subject("zfs-mirror"), None, setting),
        finding(
            Severity::Note,
            subject("md-raid1"),
            Some(Operation::Write),
            bitmap,
        ),
    ]
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
