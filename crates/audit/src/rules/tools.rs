//! Pitfalls of what bonnie++, iozone and dd print.

use crate::case::Case;
use crate::devices::{dd_operand, is_flushed, only_writes, operand, tool};
use crate::finding::Ruling;
use crate::rule::Check;
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, Operation, fact};
use std::collections::BTreeSet;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("T12", Check::Whole(not_timed)),
    ("T13", Check::Whole(bonnie_versions)),
    ("T14", Check::Rows(files_in_thousands)),
    ("T15", Check::Rows(iozone_unflushed)),
    ("T16", Check::Rows(iozone_zero)),
    ("T17", Check::Whole(dd_copied_nothing)),
    ("T18", Check::Rows(dd_unflushed)),
];

fn not_timed(case: &Case<'_>, ruling: &mut Ruling) {
    for &op in Operation::ALL {
        let name = fact::bonnie_not_timed(op);
        for found in case.named(&name).filter(|found| found.name == name) {
            ruling.judged();
            if found.value == fact::TRUE {
                ruling.scope(
                    Note,
                    found.scope.clone(),
                    format!("{op} was too short to time"),
                );
            }
        }
    }
    if case.evidence.rows.iter().any(|row| tool(row) == "bonnie++") {
        ruling.judged();
    }
}

fn bonnie_versions(case: &Case<'_>, ruling: &mut Ruling) {
    for rows in case.compared() {
        let versions: BTreeSet<&str> = rows
            .iter()
            .filter(|row| tool(row) == "bonnie++")
            .map(|row| row.tool.as_str())
            .collect();
        if versions.is_empty() {
            continue;
        }
        ruling.judged();
        if versions.len() > 1 {
            let list: Vec<&str> = versions.into_iter().collect();
            ruling.job(Warning, rows[0], list.join(" and "));
        }
    }
}

fn files_in_thousands(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "bonnie++" || !row.op.handles_files() {
        return None;
    }
    let asked = case.number(row, fact::BONNIE_FILES_ASKED);
    let asked = ruling.need(asked, fact::BONNIE_FILES_ASKED)?;
    let files = ruling.need(case.number(row, fact::BONNIE_FILES), fact::BONNIE_FILES)?;
    ruling.judged();
    if files != asked {
        ruling.row(Note, row, format!("-n {asked:.0} made {files:.0} files"));
    }
    Some(())
}

fn iozone_unflushed(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "iozone" || !only_writes(row) {
        return None;
    }
    let flags = [
        fact::IOZONE_INCLUDES_FSYNC,
        fact::IOZONE_INCLUDES_CLOSE,
        fact::IOZONE_DIRECT,
    ]
    .map(|name| case.flag(row, name));
    let known = flags.iter().any(Option::is_some).then_some(());
    ruling.need(known, fact::IOZONE_INCLUDES_FSYNC)?;
    ruling.judged();
    let [flush, _, direct] = flags.map(|flag| flag == Some(true));
    if !flush && !direct {
        ruling.row(Warning, row, "neither -e nor -I was given".to_owned());
    }
    Some(())
}

fn iozone_zero(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "iozone" {
        return None;
    }
    ruling.judged();
    if row.bytes_per_second <= 0.0 && row.iops <= 0.0 {
        ruling.row(Fatal, row, "0 stands for not run".to_owned());
    }
    let left_out = case.number(row, fact::IOZONE_NOT_RUN)?;
    if left_out > 0.0 {
        let scope = raidlab_store::Scope::of(row);
        ruling.scope(
            Note,
            scope,
            format!("{left_out:.0} cells of the table were not run"),
        );
    }
    Some(())
}

fn dd_copied_nothing(case: &Case<'_>, ruling: &mut Ruling) {
    for command in case.evidence.commands {
        let mut words = command.command.split_whitespace();
        if !words.any(|word| word == "dd" || word.ends_with("/dd")) {
            continue;
        }
        ruling.judged();
        if operand(&command.command, "if") == Some("/dev/null") {
            let to = operand(&command.command, "of").unwrap_or("its output");
            let text = format!("`{}`: nothing is read, {to} is emptied", command.command);
            ruling.scope(Fatal, command.scope.clone(), text);
        }
    }
    for row in case.evidence.rows.iter().filter(|row| tool(row) == "dd") {
        ruling.judged();
        if dd_operand(case, row, "if") == Some("/dev/null") {
            ruling.row(Fatal, row, "if=/dev/null: nothing is read".to_owned());
        }
        let asked = case.number(row, fact::JOB_ASKED_SIZE_BYTES);
        let told = row.bytes_per_second > 0.0 && row.total_bytes == 0;
        if let Some(asked) = asked
            && (row.total_bytes as f64) < asked
            && !told
        {
            let text = format!("{} of {asked:.0} bytes were copied", row.total_bytes);
            ruling.row(Fatal, row, text);
        } else if row.total_bytes == 0 && row.bytes_per_second <= 0.0 {
            ruling.row(Fatal, row, "0 bytes were copied".to_owned());
        }
    }
}

fn dd_unflushed(case: &Case<'_>, row: &Measurement, ruling: &mut Ruling) -> Option<()> {
    if tool(row) != "dd" {
        return None;
    }
    let partial = [fact::DD_RECORDS_IN_PARTIAL, fact::DD_RECORDS_OUT_PARTIAL];
    let partial = partial.map(|name| ruling.need(case.number(row, name), name));
    if partial.iter().any(Option::is_some) {
        ruling.judged();
    }
    if let Some(count) = partial.into_iter().flatten().find(|count| *count > 0.0) {
        ruling.row(Warning, row, format!("{count:.0} partial records"));
    }
    let of = dd_operand(case, row, "of");
    let of = ruling.need(of, "dd.operand.of")?;
    ruling.judged();
    let writes = row.op.only_writes() && !of.starts_with("/dev/null");
    if writes && is_flushed(case, row) == Some(false) {
        let memory = case.number(row, fact::MEMORY_TOTAL_BYTES);
        let large = memory.is_some_and(|memory| row.total_bytes as f64 >= 4.0 * memory);
        let severity = if large { Note } else { Warning };
        ruling.row(
            severity,
            row,
            "neither conv=fsync nor oflag=direct was given".to_owned(),
        );
    }
    Some(())
}
