//! The commonest mistakes, and what is said of each: what is wrong, where, and what to
//! type instead. The snapshot is to be read by people.

use crate::lab::Lab;
use raidlab_store::Store;
use std::fmt::Write;

/// What is typed after `raidlab`, with what it stands for.
const MISTAKES: &[(&str, &str)] = &[
    ("a suite misspelt", "run miror-2015"),
    ("a part of a suite's name", "run mirror"),
    ("a suite's file without ./", "run short"),
    ("a job file without ./ and its ending", "run jobs"),
    ("a file without ./ and an ending", "run notes"),
    ("no name at all", "run ''"),
    ("another ending", "run short.tml"),
    ("a folder", "run ./folder"),
    ("a suite that is not there", "run ./none.toml"),
    ("a job file that is not there", "run none.fio"),
    ("a subject misspelt", "run quick --subject md-riad1"),
    ("a disk misspelt", "run quick --disk wd4000fyzy"),
    ("a disk in capital letters", "run quick --disk WD4000FYYZ"),
    (
        "a subject in capital letters",
        "run quick --subject MD-RAID1",
    ),
    ("a parameter set misspelt", "run short.toml --fit stict"),
    (
        "two disks too few",
        "run md-degraded --disk sp1614n --disk sp1614n",
    ),
    ("a feature misspelt", "run quick --without rop"),
    ("a negative seed", "run quick --seed -1"),
    ("a seed in words", "run quick --seed two"),
    ("no threads", "run quick --threads 0"),
    ("no repetitions", "run quick --repetitions 0"),
    (
        "too many shards",
        "submit slurm plan.json --folder s --shards 4294967296",
    ),
    ("a folder of shards that is not there", "merge nowhere"),
    (
        "the state of a file in place of the folder of its shards",
        "status notes",
    ),
    (
        "a time for parts without a part",
        "simulate --stop-after 2s",
    ),
    (
        "a time for parts without a part, joined",
        "run quick --stop-after=2s",
    ),
    ("a bench misspelt", "run quick --on modle"),
    ("a machine on the model", "run quick --machine root@store1"),
    ("memory on the model", "run quick --memory 1g"),
    (
        "the usual part of disks on the model",
        "run quick --member-size 4g",
    ),
    (
        "a time for parts without a part, beside rows",
        "run quick --stop-after 2s --json",
    ),
    (
        "an ablation on the kernel",
        "run quick --on kernel --without rpo",
    ),
    ("a fit on real disks", "run quick --on host --fit strict"),
    ("a store that is not there", "report --store none.db"),
    ("a store without runs", "report --store empty.db"),
    ("a list of no runs", "report --list --store empty.db"),
    (
        "going on where nothing was begun",
        "resume --store empty.db",
    ),
    ("a part of a run's name", "report quick --store full.db"),
    (
        "a run that is not there",
        "compare latest before --store full.db",
    ),
    ("a store of a newer version", "report --store newer.db"),
    ("a job file as a store", "audit --store jobs.fio"),
    ("a store in no folder", "run short.toml --store none/s.db"),
    ("a folder as a store", "run short.toml --store folder"),
    ("suites misspelt", "suites unequal"),
    ("subjects misspelt", "subjects openzfs"),
    ("a host misspelt", "run quick --model-host linux-3.61"),
    ("disks misspelt", "disks wd4000"),
    ("a field of a preset misspelt", "disks wrong.toml"),
    ("a field of a processor misspelt", "processors wrong.toml"),
    (
        "a field of an article's figures misspelt",
        "import figures.toml",
    ),
    ("claims misspelt", "claims unequal"),
    // What the shell hands over cannot be read as a command at all.
    ("a suite without a command", "quick"),
    ("a command misspelt", "runn quick"),
    ("a command's command misspelt", "kernel biuld"),
    ("help on a command misspelt", "help comapre"),
    ("two suites", "run quick md-levels"),
    ("an option of fio's", "run quick --iodepth 4"),
    ("an option misspelt", "run quick --subjects md"),
    ("an option for the bench", "run quick --bench kernel"),
    ("the beginning of an option", "report --json"),
    ("an option that no command has", "run quick -v"),
    ("an option of another command", "resume latest --seed 3"),
    ("an option without its value", "run quick --seed"),
    (
        "options that exclude each other",
        "simulate --replay 3 --from 3",
    ),
    ("a count in other digits", "simulate --seeds 1e6"),
    ("no seeds at all", "simulate --seeds 0"),
    ("one run to compare", "compare latest"),
    (
        "a file to compare",
        "compare latest jobs.fio --store full.db",
    ),
    ("a level that is none", "simulate --level raid7"),
    ("an array of nothing", "create --level raid1"),
    ("a member that is not there", "examine none.img"),
    ("a suite on the web", "run http://example.com/x.toml"),
    ("a real disk on the model", "run quick --disk /dev/none"),
    ("an import of notes", "import notes"),
    ("an import of a folder", "import folder"),
    (
        "a list with an option of imports",
        "import --list --store other.db",
    ),
    ("a fact without a value", "import notes --fact ram"),
    ("a fact misspelt", "import notes --fact rom=16GiB"),
    (
        "a fact misspelt in a file",
        "import notes --facts facts.toml",
    ),
    (
        "a fact given twice",
        "import gmirror-md-2010 --fact ram=16GiB --fact ram=8GiB",
    ),
    (
        "figures named twice",
        "import gmirror-md-2010 gmirror-md-2010",
    ),
    ("a subject without a name", "import notes --subject ''"),
    ("a folder of facts", "import notes --facts folder"),
    ("a device of facts", "import notes --facts /dev/none"),
    (
        "a fact of a disk misspelt",
        "import notes --fact disk.sdb.modle=WD40EFAX",
    ),
    ("claims that are not there", "claims ./none.toml"),
    (
        "machines that are not there",
        "run quick --on host --machine-file none.toml",
    ),
    (
        "a host that is not there",
        "run quick --model-host ./none.toml",
    ),
    ("a folder of a simulation's parts", "simulate --merge parts"),
    ("a folder without parts", "simulate --merge folder"),
    ("a device as a part", "simulate --merge /dev/null"),
    ("a folder without shards", "merge folder"),
    ("a folder as a suite without ./", "run parts"),
    ("a folder as a disk", "run quick --disk ./own"),
    ("a folder as a processor", "run quick --processor ./folder"),
    ("a suite as a disk", "run quick --disk ./short.toml"),
    ("a job file as a disk", "run quick --disk ./jobs.fio"),
    (
        "machines as a subject",
        "run quick --subject ./own/machines.toml",
    ),
    ("a disk as a suite", "run ./own/disk.toml"),
    (
        "a disk as machines",
        "run quick --on host --machine-file ./own/disk.toml",
    ),
    ("a suite as an output to import", "import short.toml"),
    ("a store as a run of it", "report full.db"),
    ("a subject as a suite", "run md"),
    ("a disk as a subject", "run quick --subject wd4000fyyz"),
    (
        "two disks in one word",
        "run quick --disk wd4000fyyz,wd4000fyyz",
    ),
    ("a plan of another name", "run quick --plan-only plan.txt"),
    ("a page on standard output", "run quick --report -"),
    (
        "trial disks of no size",
        "run quick --on host --subject btrfs-raid1 --trial-size 0",
    ),
    ("figures misspelt", "import gmirror-md-2011"),
    (
        "a store as a run of another",
        "audit empty.db --store full.db",
    ),
];

#[test]
fn the_commonest_mistakes_are_answered_with_what_to_type() {
    let lab = Lab::new();
    lab.write("notes", "hm\n");
    lab.write("wrong.toml", "schema = 1\nnaem = \"x\"\n");
    lab.write("figures.toml", "kind = \"figures\"\ntitel = \"x\"\n");
    for folder in ["folder", "parts", "own"] {
        std::fs::create_dir(lab.path(folder)).expect("a folder");
    }
    lab.write("parts/simulate-0-of-2.json", "");
    lab.write("parts/simulate-1-of-2.json.part", "");
    lab.write("own/disk.toml", "schema = 1\nrate_curve = []\n");
    lab.write("own/machines.toml", "[[machine]]\n");
    lab.write("facts.toml", "direct = true\nrom = \"16GiB\"\n");
    for (name, version) in [("empty.db", None), ("newer.db", Some(99))] {
        drop(Store::open(lab.path(name)).expect("a store"));
        if let Some(version) = version {
            rusqlite::Connection::open(lab.path(name))
                .and_then(|store| store.pragma_update(None, "user_version", version))
                .expect("it can be written");
        }
    }
    let mut store = Store::open(lab.path("full.db")).expect("a store");
    for name in ["20261121T021000Z-quick", "20261122T021000Z-quick"] {
        let run = raidlab_store::Run {
            name: name.to_owned(),
            started: "2026-11-21T02:10:00Z".to_owned(),
            finished: None,
            bench: "model".to_owned(),
            suite: "quick".to_owned(),
            suite_title: String::new(),
            seed: 2,
            raidlab_version: String::new(),
            command_line: "raidlab run quick".to_owned(),
            plan_hash: String::new(),
        };
        store.begin_run(&run).expect("it can be written");
    }
    drop(store);
    let mut seen = String::new();
    for (what, arguments) in MISTAKES {
        let ran = lab.run(arguments);
        assert_eq!(ran.stdout, "", "{what}");
        assert!(
            (2..=4).contains(&ran.code),
            "{what}: {} {}",
            ran.code,
            ran.stderr
        );
        for bare in [
            "os error 2)\n\n",
            "Error code",
            "non-zero type",
            "invalid digit",
        ] {
            assert!(!ran.stderr.contains(bare), "{what}: {}", ran.stderr);
        }
        let _ = writeln!(
            seen,
            "# {what}\n$ raidlab {}\n{}=> {}\n",
            arguments, ran.stderr, ran.code
        );
    }
    insta::assert_snapshot!(seen);
}

#[cfg(target_os = "linux")]
#[test]
fn no_output_is_lost_without_a_word() {
    let lab = Lab::new();
    for arguments in [
        "--help",
        "--version",
        "run --help",
        "suites",
        "disks wd4000fyyz --toml",
        "completions bash",
        "run short.toml --dry-run",
        "run short.toml --plan-only -",
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = lab
            .command(arguments)
            .stdout(full.expect("it is there"))
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {said}");
        assert!(said.contains("cannot write standard output"), "{said}");
    }
}

/// A disk or a processor that a suite's file names is told with its line, and without where
/// the command line names another one.
#[test]
fn names_of_presets_are_told_at_their_lines() {
    let lab = Lab::new();
    let suite = crate::lab::SUITE;
    let of = |from: &str, to: &str| suite.replace(from, to);
    let disks = "disks = [\"wd4000fyyz\", \"wd4000fyyz\"]";
    for (text, said) in [
        (
            of(disks, "disks = [\"wd4000fyyz\",\n  \"wd4000fyzy\"]"),
            "own.toml:7: disks[2]: disk preset `wd4000fyzy` is not known; did you mean `wd4000fyyz`?",
        ),
        (
            of(
                disks,
                "disks = [\"wd4000fyyz\", { disk = \"./none.toml\" }]",
            ),
            "own.toml:6: disks[2]: cannot read",
        ),
        (
            of(disks, &format!("{disks}\nprocessor = \"serv-2021\"")),
            "own.toml:7: processor: processor `serv-2021` is not known",
        ),
    ] {
        lab.write("own.toml", &text);
        let error = lab.fails(3, "run ./own.toml --no-report");
        assert!(error.contains(said), "{said}: {error}");
    }
    lab.write(
        "own.toml",
        &of(disks, "disks = [\"wd4000fyzy\", \"wd4000fyyz\"]"),
    );
    let words = "run ./own.toml --dry-run --disk";
    let error = lab.fails(2, &format!("{words} sp1614"));
    assert!(!error.contains("own.toml"), "{error}");
    lab.ok(&format!("{words} wd4000fyyz"));
}

/// What helps with a file that a suite names is said of that file, and not of the suite.
#[test]
fn a_file_that_a_suite_names_has_help_of_its_own() {
    let lab = Lab::new();
    let suite = crate::lab::SUITE;
    lab.write("own-subject.toml", "schema = 1\nnam = \"x\"\n");
    lab.write(
        "own.toml",
        &suite.replace("\"md\"", "\"./own-subject.toml\""),
    );
    let error = lab.fails(3, "run ./own.toml --no-report");
    assert!(error.contains("own-subject.toml:2: nam: "), "{error}");
    assert!(error.contains("help: `raidlab subjects` lists"), "{error}");
    // A misspelt name is one of that kind too.
    lab.write("own.toml", &suite.replace("\"md\"", "\"mdd\""));
    let error = lab.fails(3, "run ./own.toml --no-report");
    assert!(error.contains("subject `mdd` is not known"), "{error}");
    assert!(error.contains("help: `raidlab subjects` lists"), "{error}");
    lab.write(
        "own.toml",
        &suite.replace("schema = 1", "schema = 1\nnam = 2"),
    );
    let error = lab.fails(3, "run ./own.toml --no-report");
    assert!(error.contains("help: `raidlab suites` lists"), "{error}");
}

#[test]
fn a_store_and_a_disk_s_image_are_no_output_of_a_tool() {
    let lab = Lab::new();
    raidlab_store::Store::open(lab.path("full.db")).expect("a store");
    let error = lab.fails(3, "import full.db --store other.db");
    assert!(error.contains("it is a store"), "{error}");
    let image = std::fs::File::create(lab.path("disk.img")).expect("a file");
    image.set_len(1 << 40).expect("a file of holes");
    let error = lab.fails(3, "import disk.img --store other.db");
    assert!(error.contains("more than 1 GiB"), "{error}");
    // A folder that is not there yet is one by its last letter.
    let words = "run ./short.toml --shard 0/3 --store parts/";
    let error = lab.fails(4, words);
    assert!(error.contains("parts/shard-0-of-3.db.part"), "{error}");
}

/// Whoever reads a file that somebody has compressed says so, and what to type.
#[test]
fn what_is_compressed_is_told_by_every_reader() {
    let lab = Lab::new();
    for file in ["x.gz", "x.toml", "x.json"] {
        std::fs::write(lab.path(file), b"\x1f\x8b\x08\0\xed\xc0\x27\x6a").expect("written");
    }
    for words in [
        "import x.gz",
        "import jobs.fio --facts x.gz",
        "run ./x.gz",
        "run ./x.toml",
        "run x.json",
        "run quick --disk ./x.toml",
        "run quick --subject ./x.toml",
        "run quick --processor ./x.toml",
        "simulate --merge x.gz",
    ] {
        let error = lab.fails(3, words);
        let told = error.contains("it is compressed by gzip: `gunzip` makes");
        assert!(told, "{words:?}: {error}");
    }
}
