//! Pitfalls of how the array and its file system were made.

use crate::case::Case;
use crate::devices::{copies_on_write, has_auxiliary, is_random, level, member_bytes, members};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, Operation, fact, fact::disk_property};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("A7", Check::Rows(record_too_large)),
    ("A8", Check::Rows(partial_stripe)),
    ("A9", Check::Whole(unfinished_filesystem)),
    ("A10", Check::Rows(stripe_unknown)),
    ("A11", Check::Rows(old_signatures)),
];

fn record_too_large(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !row.op.only_writes() || row.block_size_bytes == 0 {
        return None;
    }
    let record = case.number(row, fact::ARRAY_RECORD_BYTES);
    let record = ruling.need(record, fact::ARRAY_RECORD_BYTES)?;
    ruling.judged();
    if !is_random(row) || record <= row.block_size_bytes as f64 {
        return Some(());
    }
    let text = format!(
        "blocks of {} bytes, records of {record:.0}",
        row.block_size_bytes
    );
    match read_share(case, row).filter(|share| *share > 0.05) {
        Some(share) => {
            let share = share * 100.0;
            ruling.row(
                Warning,
                row,
                format!("{text}; the members also read {share:.0} % of it"),
            );
        }
        None => ruling.row(Note, row, text),
    }
    Some(())
}

/// Bytes that the members read per byte that they were written, resync left out; `None` where the
/// job reads too, as the members' counters do not tell its reads from those of its writes.
fn read_share(case: &Case<'_>, row: &Measurement) -> Option<f64> {
    let cell = row.cell();
    let reads = case.evidence.rows.iter().any(|other| {
        // The cheap condition first: this runs for all pairs of rows.
        other.sequence == row.sequence
            && !other.op.only_writes()
            && other.op != Operation::Sync
            && other.cell() == cell
    });
    if reads {
        return None;
    }
    let (read, written) = member_bytes(row)?;
    let seen = row.sync_percent_start.or(row.sync_percent_end).is_some();
    let mut members = row.members.iter();
    let sync = members.any(|member| member.sync_bytes.map_or(seen, |bytes| bytes > 0));
    (written > 0 && !sync).then(|| read as f64 / written as f64)
}

fn partial_stripe(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if !row.op.only_writes() || row.block_size_bytes == 0 {
        return None;
    }
    let level = level(case, row);
    ruling.need((!level.is_empty()).then_some(()), fact::ARRAY_LEVEL)?;
    let parity = ["raid4", "raid5", "raid6"]
        .iter()
        .any(|known| level.starts_with(known));
    if !parity || copies_on_write(case, row) {
        return None;
    }
    let stripe = case.number(row, fact::ARRAY_STRIPE_BYTES);
    let stripe = ruling.need(stripe, fact::ARRAY_STRIPE_BYTES)?;
    ruling.judged();
    let whole = stripe > 0.0 && row.block_size_bytes as f64 % stripe == 0.0;
    if is_random(row) && !whole {
        let read = read_share(case, row).map_or_else(String::new, |share| {
            format!(
                "; the members also read {:.0} % of what was written",
                share * 100.0
            )
        });
        let block = row.block_size_bytes;
        ruling.row(
            Note,
            row,
            format!("blocks of {block} bytes, stripes of {stripe:.0}{read}"),
        );
    }
    Some(())
}

/// Programs that make file systems.
fn makes_filesystem(command: &str) -> bool {
    ["mkfs", "mke2fs", "newfs"]
        .iter()
        .any(|program| command.contains(program))
}

fn unfinished_filesystem(case: &Case<'_>, ruling: &mut Ruling) {
    let commands = case.evidence.commands.iter();
    for command in commands.filter(|command| makes_filesystem(&command.command)) {
        ruling.judged();
        let scope = command.scope.clone();
        if command.code != Some(0) {
            let code = command
                .code
                .map_or("a signal".to_owned(), |code| code.to_string());
            ruling.scope(
                Fatal,
                scope,
                format!("`{}` ended with {code}", command.command),
            );
        } else if command.command.contains("lazy_table_init") {
            let text = format!("`{}`: ext4 has no lazy_table_init", command.command);
            ruling.scope(Warning, scope, text);
        }
    }
    for row in case.evidence.rows {
        if let Some(lazy) =
            ruling.need(case.flag(row, fact::FILESYSTEM_LAZY), fact::FILESYSTEM_LAZY)
        {
            ruling.judged();
            if lazy {
                ruling.row(
                    Warning,
                    row,
                    "tables or journal were still written".to_owned(),
                );
            }
        }
        // A cache on disks of its own is emptied in the background by design.
        let made = !row.filesystem.is_empty() && !has_auxiliary(case, row);
        if let Some(bytes) = case.number(row, fact::IDLE_WRITTEN_BYTES).filter(|_| made) {
            ruling.judged();
            if bytes > IDLE_LIMIT_BYTES {
                let text =
                    format!("{bytes:.0} bytes were written in an idle second before the job");
                ruling.row(Warning, row, text);
            }
        }
    }
}

/// Bytes per second below which writes may be a journal's commits and superblock updates.
const IDLE_LIMIT_BYTES: f64 = 1_048_576.0;

fn stripe_unknown(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let kind = case
        .text(row, fact::FILESYSTEM_TYPE)
        .unwrap_or(&row.filesystem);
    if !(kind.starts_with("ext") || kind.starts_with("xfs")) {
        return None;
    }
    let stripe = case.number(row, fact::ARRAY_STRIPE_BYTES);
    let stripe = ruling.need(stripe, fact::ARRAY_STRIPE_BYTES)?;
    let known = case.number(row, fact::FILESYSTEM_STRIPE_BYTES);
    let known = ruling.need(known, fact::FILESYSTEM_STRIPE_BYTES)?;
    ruling.judged();
    let striped = members(case, row).len() != 1 && !level(case, row).contains("raid1");
    if (striped || level(case, row) == "raid10") && stripe > 0.0 && known != stripe {
        let text = format!("stripes of {stripe:.0} bytes, the file system knows {known:.0}");
        ruling.subject(Note, row, text);
    }
    Some(())
}

fn old_signatures(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    let members = members(case, row);
    ruling.need(members.first(), "member.0.device")?;
    for member in members {
        let name = fact::disk(&member.device, disk_property::STALE_SIGNATURES);
        let Some(found) = ruling.need(case.text(row, &name), "disk.<device>.stale_signatures")
        else {
            continue;
        };
        ruling.judged();
        if !found.is_empty() && found != "none" {
            ruling.subject(Warning, row, format!("{}: {found}", member.name()));
        }
    }
    Some(())
}
