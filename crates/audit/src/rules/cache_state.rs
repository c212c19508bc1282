//! Pitfalls of the caches' state and of settings that did not take.

use crate::case::Case;
use crate::devices::{copies_on_write, equals, has_auxiliary, is_random};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, fact, fact::disk_property, fact::outcome};
use raidlab_units::parse_bytes;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("C4", Check::Whole(warms_up)),
    ("C5", Check::Rows(not_dropped)),
    ("C6", Check::Rows(auxiliary_idle)),
    ("C10", Check::Rows(write_cache)),
    ("C12", Check::Whole(not_applied)),
];

fn warms_up(case: &Case<'_>, ruling: &mut Ruling) {
    for rows in case.repeated() {
        if !rows[0].op.only_reads() {
            continue;
        }
        ruling.judged();
        if let Some(text) = first_is_slower(&rows) {
            ruling.row(Warning, rows[0], text);
        }
    }
    ruling.need(None::<()>, "repetitions of a read");
}

/// The difference by which the first of some repetitions was slower, in words, if it was.
pub(super) fn first_is_slower(rows: &[&Measurement]) -> Option<String> {
    let (first, later) = rows.split_first()?;
    let slowest = later
        .iter()
        .map(|row| row.value())
        .fold(f64::INFINITY, f64::min);
    let enough = if later.len() == 1 { 1.5 } else { 1.1 };
    let ratio = slowest / first.value();
    (ratio.is_finite() && ratio > enough).then(|| {
        format!(
            "the slowest of {} later repetitions is {ratio:.2} times as fast",
            later.len()
        )
    })
}

fn not_dropped(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let echoed = case.commands(row).find(|command| {
        command.command.contains("drop_caches") && command.stdout.contains("drop_caches")
    });
    if let Some(command) = echoed {
        let text = format!("`{}` printed `{}`", command.command, command.stdout.trim());
        ruling.scope(Warning, command.scope.clone(), text);
    }
    let dropped = ruling.need(case.flag(row, fact::CACHES_DROPPED), fact::CACHES_DROPPED)?;
    if !dropped {
        return None;
    }
    let caches = [
        ("page cache", fact::cached_bytes as fn(&str) -> String),
        ("ARC", fact::arc_size_bytes),
    ];
    for (what, name) in caches {
        let full = name(fact::moment::BEFORE_DROP);
        let full = ruling.need(case.number(row, &full), &full);
        let left = case.number(row, &name(fact::moment::BEFORE));
        let (Some(full), Some(left)) = (full, left) else {
            continue;
        };
        ruling.judged();
        // A small cache holds mostly programs and libraries in use.
        if full > 256.0 * MIB && left > 0.2 * full {
            let (full, left) = (full / MIB, left / MIB);
            let text = format!("{what}: {left:.0} MiB of {full:.0} MiB were still there");
            ruling.row(Warning, row, text);
        }
    }
    Some(())
}

const MIB: f64 = 1_048_576.0;

fn auxiliary_idle(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let devices = ruling.need(case.text(row, fact::ARRAY_AUXILIARY), fact::ARRAY_AUXILIARY)?;
    for (kind, name) in [
        ("cache", fact::CACHE_DEVICE_IOS),
        ("log", fact::LOG_DEVICE_IOS),
    ] {
        if !devices.split_whitespace().any(|word| word == kind) {
            continue;
        }
        let Some(commands) = ruling.need(case.number(row, name), name) else {
            continue;
        };
        ruling.judged();
        if commands <= 0.0 {
            ruling.row(Note, row, format!("no command reached the {kind} device"));
        }
    }
    Some(())
}

/// Writes per second of a 7200 rpm disk without a write cache: at most 120 if each write waits for
/// its sector; commands overlap a little.
const WRITES_PER_SECOND_WITHOUT_CACHE: f64 = 1.3 * 120.0;

fn write_cache(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let members = equals(case, row);
    let caches: BTreeSet<&str> = members
        .iter()
        .filter_map(|member| {
            let name = fact::disk(member.disk(case, row), disk_property::WRITE_CACHE);
            case.text(row, &name)
        })
        .collect();
    if !caches.is_empty() {
        ruling.judged();
    }
    if caches.len() > 1 {
        let list: Vec<&str> = caches.iter().copied().collect();
        ruling.subject(Warning, row, format!("members have {}", list.join(" and ")));
    }
    let rotating = members.iter().all(|member| member.rotational == Some(true));
    let known = (!members.is_empty() && rotating).then_some(());
    ruling.need(known, "disk.<device>.write_cache or what disks they are")?;
    let single = row.op.only_writes() && row.queue_depth == 1 && row.block_size_bytes <= 16 * 1024;
    if single && is_random(row) && !copies_on_write(case, row) && !has_auxiliary(case, row) {
        ruling.judged();
        if row.iops > WRITES_PER_SECOND_WITHOUT_CACHE {
            let text = format!("{:.0} random writes per second, one at a time", row.iops);
            ruling.row(Note, row, text);
        }
    }
    Some(())
}

fn not_applied(case: &Case<'_>, ruling: &mut Ruling) {
    for (begin, severity) in [("setting.", Warning), ("option.", Fatal)] {
        for found in case.named(begin) {
            let Some((name, what)) = found.name.rsplit_once('.') else {
                continue;
            };
            let setting = name.strip_prefix(begin).unwrap_or_default();
            let at = |what: &str| same_scope(case, found, &format!("{name}.{what}"));
            let (asked, in_force) = (at(outcome::ASKED), at(outcome::FOUND));
            let applied = at(outcome::APPLIED);
            let differs = match (what, applied, asked, in_force) {
                (outcome::APPLIED, Some(applied), _, _) => applied == fact::FALSE,
                (outcome::FOUND, None, Some(asked), Some(value)) => !same_value(asked, value),
                _ => continue,
            };
            ruling.judged();
            if differs {
                let text = |value: Option<&str>| value.unwrap_or("nothing").to_owned();
                let evidence =
                    format!("{setting}: asked {}, found {}", text(asked), text(in_force));
                ruling.scope(severity, found.scope.clone(), evidence);
            }
        }
    }
    for command in case.evidence.commands {
        if !command.command.contains("fio") {
            continue;
        }
        ruling.judged();
        for word in command
            .command
            .split_whitespace()
            .filter(|word| is_glued(word))
        {
            let scope = command.scope.clone();
            ruling.scope(Fatal, scope, format!("`{word}` is one argument, not two"));
        }
    }
    ruling.need(None::<()>, "setting.<name>.found");
}

/// The value of a fact with exactly this scope.
fn same_scope<'a>(
    case: &Case<'a>,
    like: &raidlab_store::Observation,
    name: &str,
) -> Option<&'a str> {
    let mut named = case.named(name);
    let found = named.find(|other| other.name == name && other.scope == like.scope);
    found.map(|other| other.value.trim())
}

/// Whether two texts mean the same value: `4k` is 4096, and `on` is 1.
fn same_value(asked: &str, found: &str) -> bool {
    let plain = |text: &str| {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "on" | "yes" | "true" | "enabled" => "1".to_owned(),
            "off" | "no" | "false" | "disabled" | "none" => "0".to_owned(),
            _ => text,
        }
    };
    let (asked, found) = (plain(asked), plain(found));
    let sizes = (parse_bytes(&asked), parse_bytes(&found));
    asked == found || matches!(sizes, (Ok(asked), Ok(found)) if asked == found)
}

/// Whether a word holds a second long option after the first one's value.
fn is_glued(word: &str) -> bool {
    word.starts_with("--")
        && word[2..].split_once('=').is_some_and(|(_, value)| {
            let second = value.split_once("--").map(|(_, second)| second);
            second.is_some_and(|second| second.contains('=') || second == "time_based")
        })
}
