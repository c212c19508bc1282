//! Pitfalls of the array's state during a job: degraded, resyncing, rebuilding.

use crate::bound::random_iops;
use crate::case::Case;
use crate::devices::{
    copies_on_write, is_mirror, is_random, is_redundant, is_settled, is_unsettled, level, members,
    system,
};
use crate::finding::{Ruling, subject_scope};
use crate::rule::Check;
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{CommandRecord, Measurement, fact};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("A1", Check::Rows(background_copying)),
    ("A2", Check::Rows(degraded)),
    ("A3", Check::Rows(bitmap_unknown)),
    ("A4", Check::Rows(partial_copy)),
    ("A5", Check::Rows(fresh_copy_on_write)),
    ("A6", Check::Rows(full_pool)),
    ("A12", Check::Rows(one_member_reads)),
    ("A13", Check::Rows(first_at_the_barrier)),
];

/// The level that an `mdadm --create` command asks for, as written: `5`, `raid5`.
fn created_level(command: &str) -> Option<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let creates = words.iter().any(|word| matches!(*word, "--create" | "-C"));
    if !command.contains("mdadm") || !creates {
        return None;
    }
    words.iter().enumerate().find_map(|(i, word)| {
        match word.strip_prefix("--level=").or(word.strip_prefix("-l")) {
            Some("") => words.get(i + 1).copied(),
            Some(value) => Some(value),
            None if *word == "--level" => words.get(i + 1).copied(),
            None => None,
        }
    })
}

/// Whether md's level keeps its data when a member fails: such arrays have a first resync and may
/// have a bitmap.
fn has_redundancy(level: &str) -> bool {
    matches!(
        level.trim_start_matches("raid"),
        "1" | "4" | "5" | "6" | "10" | "mirror"
    )
}

/// Whether a command builds an array that must copy first, and does not tell it not to.
fn starts_resync(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let md =
        created_level(command).is_some_and(has_redundancy) && !command.contains("--assume-clean");
    let lvm = command.contains("lvcreate")
        && words.iter().any(|word| is_mirrored_segment(word))
        && !command.contains("--nosync");
    md || lvm
}

/// Whether a word of `lvcreate` is a segment type with redundancy: `raid1`, `--type=raid6_zr`.
fn is_mirrored_segment(word: &str) -> bool {
    let kind = word.strip_prefix("--type=").unwrap_or(word);
    let level = kind.split('_').next().unwrap_or_default();
    ["raid1", "raid4", "raid5", "raid6", "raid10"].contains(&level)
}

/// `--wait-clean` only waits for the superblocks.
fn waits_for_resync(command: &str) -> bool {
    let mut words = command.split_whitespace();
    command.contains("mdadm") && words.any(|word| matches!(word, "--wait" | "-W"))
}

/// The command after which an initial resync may still run, where nothing
/// shows that it was waited for.
fn resync_not_awaited<'a>(case: &Case<'a>, row: &Measurement) -> Option<&'a CommandRecord> {
    let subject = subject_scope(row);
    let mut pending = None;
    for command in case.evidence.commands {
        let scope = &command.scope;
        let other = |mine: &str, theirs: &str| !mine.is_empty() && mine != theirs;
        if other(&scope.host, &subject.host) || other(&scope.subject, &subject.subject) {
            continue;
        }
        if starts_resync(&command.command) {
            pending = Some(command);
        } else if waits_for_resync(&command.command) {
            pending = None;
        }
    }
    pending.filter(|_| !case.happened(row, &["sync-end"]))
}

/// Kinds of events after which copying is expected.
const PUT_BACK: [&str; 4] = ["insert", "add", "re-add", "replace"];
/// Kinds of events after which the array may be degraded.
const TAKEN: [&str; 6] = ["fail", "remove", "insert", "add", "re-add", "replace"];

/// Whether the array's state is the subject of the test. Older runs of the model
/// did not write down what their suites did.
fn declared(case: &Case<'_>, row: &Measurement, kinds: &[&str], allowed: &str) -> bool {
    let untold = row.bench == "model" && case.flag(row, allowed).is_none();
    let end = row.started_ns.saturating_add(row.runtime_ns);
    untold
        || is_unsettled(&row.class)
        || case.flag(row, allowed) == Some(true)
        || case.happened(row, kinds)
        || case
            .commands(row)
            .any(|command| command.at_ns <= end && takes_out(&command.command))
}

/// mdadm's words for member operations, beside those that other tools have too.
const MEMBER_VERBS: [&str; 6] = [
    "--fail",
    "--set-faulty",
    "--remove",
    "--add",
    "--re-add",
    "--replace",
];

/// Whether a command takes a member out or puts one back. Only whole words count:
/// `--failfast` fails nothing.
fn takes_out(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let of_pool = ["detach", "attach", "offline", "replace"];
    // With an array as its first argument mdadm manages members; in other modes `-f` is `--force`
    // and `-a` is `--auto`.
    let manages = words.windows(2).any(|pair| {
        let array = pair[1].starts_with('/') || pair[1] == "--manage";
        pair[0].ends_with("mdadm") && array
    });
    let short = manages && has(&["-f", "-r", "-a"]);
    let named = ["gmirror", "gflash"].iter().any(|program| {
        let verbs = ["remove", "insert"];
        verbs
            .iter()
            .any(|verb| command.contains(&format!("{program} {verb}")))
    });
    has(&MEMBER_VERBS) || short || has(&of_pool) || named
}

fn background_copying(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let seen = [fact::SYNC_ACTIVE_START, fact::SYNC_ACTIVE_END].map(|name| case.text(row, name));
    let active = seen.iter().flatten().find(|kind| **kind != "none").copied();
    let percent = row.sync_percent_start.or(row.sync_percent_end);
    let observed = seen.iter().any(Option::is_some) || percent.is_some();
    if observed {
        ruling.judged();
        let going_on = active.is_some() || percent.is_some();
        if going_on && !declared(case, row, &PUT_BACK, fact::JOB_ALLOWS_SYNC) {
            let at = percent.map_or_else(String::new, |percent| format!(" at {percent:.1} %"));
            let kind = active.unwrap_or("resync or recovery");
            ruling.row(Fatal, row, format!("{kind}{at} ran during the job"));
        }
        return Some(());
    }
    if !case.evidence.commands.is_empty() {
        ruling.judged();
    }
    let created = ruling.need(resync_not_awaited(case, row), fact::SYNC_ACTIVE_START)?;
    let size = members(case, row)
        .iter()
        .filter_map(|member| member.size_bytes)
        .fold(0.0, f64::max);
    let mut text = format!(
        "`{}` starts a resync, nothing shows a wait",
        created.command
    );
    if size > 0.0 {
        // At the rate of the fastest disks' outer tracks: the resync takes at least this long.
        let hours = size / 300e6 / 3600.0;
        text += &format!("; it takes at least {hours:.1} h");
    }
    ruling.subject(Warning, row, text);
    Some(())
}

fn first_at_the_barrier(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let simulated = matches!(row.bench.as_str(), "model" | "kernel");
    if !simulated || system(case, row) != "md" || level(case, row) != "raid10" {
        return None;
    }
    ruling.judged();
    let told = [fact::SYNC_ACTIVE_START, fact::SYNC_ACTIVE_END].map(|name| case.text(row, name));
    let kind = told.into_iter().flatten().find(|kind| *kind != "none");
    let runs = kind.is_some() || row.sync_percent_start.or(row.sync_percent_end).is_some();
    if runs && row.queue_depth == 1 {
        let kind = kind.unwrap_or("resync or recovery");
        ruling.row(
            Warning,
            row,
            format!("one request at a time beside a {kind}"),
        );
    }
    Some(())
}

fn degraded(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let health = [fact::ARRAY_HEALTH_START, fact::ARRAY_HEALTH_END]
        .map(|name| case.text(row, name).unwrap_or_default());
    let states = [
        row.array_state_start.as_str(),
        row.array_state_end.as_str(),
        health[0],
        health[1],
    ];
    let known = states.iter().any(|state| !state.is_empty()).then_some(());
    ruling.need(known, "the array's state at the job's start")?;
    ruling.judged();
    let bad = states.into_iter().find(|state| {
        let word = state.to_ascii_lowercase();
        let bad = ["_", "degraded", "failed", "faulted"];
        bad.iter().any(|bad| word.contains(bad))
    })?;
    if !declared(case, row, &TAKEN, fact::JOB_ALLOWS_DEGRADED) {
        ruling.row(Fatal, row, format!("the array was {bad}"));
    }
    Some(())
}

fn bitmap_unknown(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let level = level(case, row);
    let of_md = matches!(system(case, row), "md" | "bcache" | "");
    if !of_md || !(level.is_empty() || has_redundancy(level)) {
        return None;
    }
    if let Some(bitmap) = case.text(row, fact::ARRAY_BITMAP) {
        ruling.judged();
        if bitmap == "default" {
            ruling.subject(Note, row, "the bitmap is whatever mdadm chose".to_owned());
        }
        return Some(());
    }
    let redundant = system(case, row) == "md" && (level.is_empty() || is_redundant(level));
    let created = case.evidence.commands.iter().find(|command| {
        let covers = command.scope.subject == row.subject && command.scope.host == row.host;
        covers && created_level(&command.command).is_some_and(has_redundancy)
    });
    if created.is_some() || redundant {
        ruling.need(created, fact::ARRAY_BITMAP)?;
    }
    let created = created?;
    ruling.judged();
    // A journal or partial parity logs replace the bitmap.
    let says = ["--bitmap", " -b", "--write-journal", "--consistency-policy"];
    if !says.iter().any(|word| created.command.contains(word)) {
        ruling.subject(Note, row, format!("`{}` does not say", created.command));
    }
    Some(())
}

fn partial_copy(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let copied = case.number(row, fact::SYNC_COPIED_BYTES);
    let copied = ruling.need(copied, fact::SYNC_COPIED_BYTES)?;
    let whole = case.number(row, fact::SYNC_MEMBER_BYTES);
    let whole = ruling.need(whole, fact::SYNC_MEMBER_BYTES)?;
    ruling.judged();
    if whole > 0.0 && copied < 0.9 * whole {
        let share = copied / whole * 100.0;
        ruling.subject(Note, row, format!("{share:.1} % of the member were copied"));
    }
    Some(())
}

fn fresh_copy_on_write(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let small = row.block_size_bytes > 0 && row.block_size_bytes <= 16 * 1024;
    if !small || !row.op.only_writes() || !is_random(row) || !copies_on_write(case, row) {
        return None;
    }
    let ceiling = ruling.need(
        random_iops(case, row),
        "member.0.device and what disk it is",
    );
    let written = case.number(row, fact::WRITTEN_PERCENT);
    let mut signs = Vec::new();
    if let Some(ceiling) = ceiling {
        ruling.judged();
        if row.iops > ceiling {
            let iops = row.iops;
            signs.push(format!(
                "{iops:.0} random writes per second, disks do {ceiling:.0} at most"
            ));
        }
    }
    if let Some(written) = written {
        ruling.judged();
        if written < 90.0 {
            signs.push(format!("{written:.0} % of the region were ever written"));
        }
    }
    if !signs.is_empty() {
        ruling.row(Warning, row, signs.join("; "));
    }
    Some(())
}

fn full_pool(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let limits = [
        (fact::FILL_PERCENT, 80.0, "full"),
        (fact::FRAGMENTATION_PERCENT, 50.0, "fragmented"),
    ];
    for (name, limit, word) in limits {
        let Some(percent) = ruling.need(case.number(row, name), name) else {
            continue;
        };
        ruling.judged();
        if percent >= limit {
            let severity = if copies_on_write(case, row) {
                Warning
            } else {
                Note
            };
            ruling.row(severity, row, format!("{percent:.0} % {word}"));
        }
    }
    Some(())
}

fn one_member_reads(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let parallel = row.queue_depth > 1 || row.streams > 1;
    if !row.op.only_reads() || !parallel || row.members.len() < 2 {
        return None;
    }
    let mirror = ruling.need(is_mirror(case, row), fact::ARRAY_LEVEL)?;
    let by_design = members(case, row)
        .iter()
        .any(|member| member.role.is_some());
    if !is_settled(row) || !mirror || by_design {
        return None;
    }
    let reads: Vec<u64> = row.members.iter().map(|member| member.read_ios).collect();
    let sum: u64 = reads
        .iter()
        .fold(0, |sum, reads| sum.saturating_add(*reads));
    if sum < 1000 {
        return None;
    }
    ruling.judged();
    let least = reads.iter().min()?;
    if *least < sum / reads.len() as u64 / 100 {
        let list: Vec<String> = reads.iter().map(u64::to_string).collect();
        ruling.row(Note, row, format!("reads by member: {}", list.join(", ")));
    }
    Some(())
}
