//! What can be wrong in a suite for real machines.

use super::REAL;

/// Suites with one mistake each.
pub(super) fn broken() -> Vec<(&'static str, String)> {
    let with = |from: &str, to: &str| {
        assert!(REAL.contains(from), "{from}");
        REAL.replacen(from, to, 1)
    };
    let step = |text: &str| format!("{REAL}\n[[step]]\n{text}\n");
    let job = |text: &str| {
        step(&format!(
            "job = \"x\"\ntitle = \"t\"\nclass = \"c\"\n{text}"
        ))
    };
    vec![
        ("file system misspelt", with("\"ext4\"", "\"ext5\"")),
        (
            "file system's option misspelt",
            with("options = [", "option = ["),
        ),
        ("file system twice", with("\"ext4\"", "\"none\"")),
        (
            "no file system",
            with("filesystems = [\"none\"] }", "filesystems = [] }"),
        ),
        ("file system of a number", with("\"ext4\"", "4")),
        ("no repetition", with("repetitions = 3", "repetitions = 0")),
        (
            "subject's field misspelt",
            with("members = [0, 2]", "member = [0, 2]"),
        ),
        (
            "subject's disk unknown",
            with("members = [0, 2]", "members = [0, 4]"),
        ),
        (
            "subject's disk twice",
            with("members = [0, 2]", "members = [2, 2]"),
        ),
        (
            "no disks for a subject",
            with("members = [0, 2]", "members = []"),
        ),
        (
            "two disks for a single one",
            with("members = [2]", "members = [1, 2]"),
        ),
        (
            "removed is no member",
            with("removed = [3]", "removed = [4]"),
        ),
        (
            "removed from what is bare",
            with(
                "\"md-raid6\", title = \"degraded\"",
                "\"md-raid0\", title = \"degraded\"",
            ),
        ),
        (
            "all removed",
            with("removed = [3]", "removed = [3, 2, 1, 0]"),
        ),
        (
            "subject named as another",
            with("\"md-of-two\"", "\"md-raid1\""),
        ),
        (
            "subject unknown",
            with("subject = \"md-raid6\"", "subject = \"md-raid7\""),
        ),
        (
            "event beyond a subject's members",
            step("event = \"remove\"\nmember = 2"),
        ),
        (
            "placeholder unknown",
            with("{capacity*3/4}", "{capcity*3/4}"),
        ),
        (
            "placeholder's arithmetic",
            with("{capacity*3/4}", "{capacity-1}"),
        ),
        (
            "argument's placeholder",
            with("{memory*2/1048576}", "{memory*2/1M}"),
        ),
        (
            "fio's own mistake besides",
            with("--size={capacity*3/4}", "--rate=1m --sise={capacity}"),
        ),
        (
            "tool misspelt",
            with("tool = \"bonnie++\"", "tool = \"bonie++\""),
        ),
        ("tool without arguments", job("tool = \"dd\"")),
        (
            "tool with fio",
            job("tool = \"dd\"\narguments = []\nfio = \"--rw=read\""),
        ),
        (
            "tool with queue",
            job("tool = \"dd\"\narguments = []\nqueue = \"fio\""),
        ),
        (
            "arguments of fio",
            job("arguments = []\nfio = \"--rw=read\""),
        ),
        (
            "dd onto a disk",
            job("tool = \"dd\"\narguments = [\"if=/dev/zero\", \"of=/dev/sda\"]"),
        ),
        ("matrix key", with("{ rw = [", "{ RW = [")),
        (
            "matrix of a placeholder",
            job("matrix = { memory = [1] }\nfio = \"--rw=read\""),
        ),
        ("matrix empty", job("matrix = {}\nfio = \"--rw=read\"")),
        (
            "matrix without values",
            job("matrix = { n = [] }\nfio = \"--rw=read\""),
        ),
        (
            "matrix of tables",
            job("matrix = { n = [{}] }\nfio = \"--rw=read\""),
        ),
        (
            "matrix not in the name",
            job("matrix = { n = [1, 2] }\nfio = \"--rw=read\""),
        ),
        (
            "matrix too large",
            job(&format!(
                "matrix = {{ a = [{0}], b = [{0}] }}\nfio = \"--rw=read\"",
                "1,".repeat(101)
            )),
        ),
        (
            "rounds without table",
            with("[rounds.cells]", "[rounds.sells]"),
        ),
        (
            "rounds of nobody",
            with(
                "[rounds.cells]",
                "[rounds.other]\nat_most = 5\ntrack = \"x\"\n[rounds.cells]",
            ),
        ),
        ("rounds too few", with("at_most = 25", "at_most = 4")),
        (
            "rounds' job unknown",
            with("track = \"write-4k\"", "track = \"write-8k\""),
        ),
        (
            "rounds in two pieces",
            job("round = \"cells\"\nfio = \"--rw=read\""),
        ),
        (
            "rounds with event",
            with(
                "job = \"both\"",
                "events = [{ at = 1, event = \"fail\", member = 0 }]\njob = \"both\"",
            ),
        ),
        (
            "rounds with an event",
            with(
                "job = \"both\"",
                "events = [{ at = \"1s\", event = \"fail\", member = 0 }]\njob = \"both\"",
            ),
        ),
        ("round of a wait", step("wait = \"1s\"\nround = \"cells\"")),
        ("event without a time", with("at = \"10s\", ", "")),
        (
            "event with two times",
            with("at = \"10s\",", "at = \"10s\", sync_percent = 4,"),
        ),
        ("event too early", with("at = \"20s\"", "at = \"5s\"")),
        (
            "event's percent",
            with("sync_percent = 45.5", "sync_percent = 145.5"),
        ),
        (
            "event's member",
            with(
                "event = \"fail\", member = 0",
                "event = \"fail\", member = 2",
            ),
        ),
        (
            "event out of order",
            with("event = \"re-add\"", "event = \"remove\""),
        ),
        ("wait for what", with("wait = \"idle\"", "wait = \"idel\"")),
        ("wait without limit", with("at_most = \"5m\"", "")),
        (
            "wait of a time with limit",
            step("wait = \"5s\"\nat_most = \"5m\""),
        ),
        (
            "wait for no percent",
            with("wait_sync_percent = 50", "wait_sync_percent = 0"),
        ),
        (
            "prepares what",
            with("prepares = true", "prepares = \"yes\""),
        ),
    ]
}
