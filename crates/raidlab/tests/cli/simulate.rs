//! `raidlab simulate` in parts: what many machines count together is what one would have.

use crate::lab::Lab;
use raidlab_units::{FNV_BASIS, fnv1a};

#[test]
fn parts_of_a_simulation_count_what_one_machine_counts() {
    let lab = Lab::new();
    let seeds = "simulate --seeds 120 --from 7 --level raid1";
    // The time that it took stands at the end.
    let without_time = |text: &str| {
        let end = text.rfind(';').expect("the time");
        text[..end].to_owned()
    };
    let whole = without_time(&lab.ok(&format!("{seeds} --reach")));
    let part = |which: &str, more: &str| lab.run(&format!("{seeds} --shard {which} {more}"));
    for index in 0..2 {
        let which = format!("{index}/2");
        let stopped = part(&which, "--stop-after 1ms");
        assert_eq!(stopped.code, 75, "{}", stopped.stderr);
        let said = stopped.stderr;
        assert!(said.contains("start it again"), "{said}");
        assert!(
            lab.path(&format!("simulate-{index}-of-2.json.part"))
                .exists()
        );
        let done = part(&which, "");
        assert_eq!(done.code, 0, "{}", done.stderr);
        let said = done.stderr;
        assert!(said.contains("is whole, 0 of 60 seeds"), "{said}");
    }
    // One that was killed before it removed what it had kept until then.
    std::fs::write(lab.path("simulate-1-of-2.json.part"), "{}").expect("it can be written");
    assert!(part("1/2", "").stderr.contains("is whole already"));
    let files = lab.files();
    let parts: Vec<_> = files
        .iter()
        .filter(|name| name.contains("simulate"))
        .collect();
    assert_eq!(parts, ["simulate-0-of-2.json", "simulate-1-of-2.json"]);
    let merge = "simulate --reach --merge";
    let [one, zero] = ["simulate-1-of-2.json", "simulate-0-of-2.json"];
    let merged = lab.ok(&format!("{merge} {one} {zero}"));
    assert_eq!(merged.trim_end(), whole);
    // The last seeds that there are.
    let last = u64::MAX - 5;
    let ran = lab.ok(&format!("simulate --from {last} --seeds 5 --level raid1"));
    assert!(ran.contains("0 of 5 seeds"), "{ran}");
    // What does not belong together.
    let gap = lab.fails(3, &format!("{merge} {one}"));
    assert!(gap.contains("no whole one of 0/2"), "{gap}");
    let error = lab.fails(3, "simulate --merge short.toml");
    assert!(error.contains("short.toml is not a part"), "{error}");
    // A number that is another one.
    let part = std::fs::read_to_string(lab.path(zero)).expect("a part");
    let other = part.replacen("\"commands\": ", "\"commands\": 1", 1);
    lab.write(zero, &other);
    let error = lab.fails(3, &format!("{merge} {one} {zero}"));
    assert!(error.contains("simulate-0-of-2.json is damaged"), "{error}");
    lab.write(zero, &part);
    let error = lab.fails(3, "simulate --seeds 9 --shard 1/2");
    assert!(
        error.contains("is another part, of another simulation"),
        "{error}"
    );
}

/// A part that is whole ends well, so that the others go on, but nobody who looks at the
/// end of its log takes it for one that has found nothing.
#[test]
fn a_part_with_broken_promises_says_so_last() {
    let lab = Lab::new();
    let seeds = "simulate --seeds 20 --level raid1";
    let part = format!("{seeds} --shard 0/2");
    assert_eq!(lab.run(&part).stderr.matches("warning").count(), 0);
    let path = lab.path("simulate-0-of-2.json");
    let text = std::fs::read_to_string(&path).expect("a part");
    let (body, _) = text.split_once(",\n  \"fnv1a\"").expect("a digest");
    for (broken, words) in [
        ("[3, \"x\"]", "1 seed broke a promise: 3;"),
        (
            "[0, \"x\"], [1, \"x\"], [2, \"x\"], [3, \"x\"], [5, \"x\"], [6, \"x\"]",
            "6 seeds broke a promise: 0, 1, 2, 3, 5 ...;",
        ),
    ] {
        let body = body.replace("\"broken\": []", &format!("\"broken\": [{broken}]"));
        let digest = fnv1a(FNV_BASIS, body.bytes());
        let sealed = format!("{body},\n  \"fnv1a\": \"{digest:016x}\"\n}}\n");
        lab.write("simulate-0-of-2.json", &sealed);
        let ran = lab.run(&part);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let last = ran.stderr.lines().last().expect("a line");
        let first = if broken.starts_with("[0") { 0 } else { 3 };
        let again = format!("`raidlab simulate --level raid1 --replay {first}` shows one");
        assert_eq!(last, format!("warning: {words} {again}"));
    }
}
