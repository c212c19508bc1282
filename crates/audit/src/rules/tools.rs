//! What bonnie++, iozone and dd mean by what they print.

use crate::case::Case;
use crate::devices::{dd_operand, is_flushed, operand, tool};
use crate::finding::Ruling;
use crate::rule::{Check, Family, Rule};
use raidlab_store::Severity::{Fatal, Note, Warning};
use raidlab_store::{Measurement, Operation, fact};
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "T12",
        family: Family::Tools,
        title: "bonnie++ gave no value",
        explanation: "bonnie++ prints `+++++` where a test took less than half a second: there \
            is no value, and none that is very large.",
        effect: "A missing number.",
        remedy: "Raise `-n` or `-s`; treat it as missing.",
        source: "bonnie++, bon_time.cpp, MinTime",
        check: Check::Whole(not_timed),
    },
    Rule {
        id: "T13",
        family: Family::Tools,
        title: "different versions of bonnie++",
        explanation: "Subjects that are compared were measured with different versions of \
            bonnie++. Bytes one by one are made otherwise since 2.00, file ends are flushed \
            since 1.90, seekers differ in number.",
        effect: "Per-character rates differ by orders of magnitude, others by how much is \
            flushed.",
        remedy: "Use one version; leave per-character rates out of every ranking.",
        source: "169 against 22183 KB/s in mdadm against gmirror, 2010; bonnie++ readme of 2.00",
        check: Check::Whole(bonnie_versions),
    },
    Rule {
        id: "T14",
        family: Family::Tools,
        title: "bonnie++ counts files in units of 1024",
        explanation: "The number given to `-n` stands for 1024 times as many files.",
        effect: "\"100 files\" are 102400: another working set, another time.",
        remedy: "Write the number of files.",
        source: "bonnie++(8); mdadm against gmirror, 2010",
        check: Check::Rows(files_in_thousands),
    },
    Rule {
        id: "T15",
        family: Family::Tools,
        title: "iozone did not time the flush",
        explanation: "iozone wrote without counting the flush (`-e`) or the close (`-c`) and \
            without direct I/O (`-I`).",
        effect: "Small files are written at the speed of memory.",
        remedy: "Use `-e -c`, or `-I`, and files larger than memory.",
        source: "iozone(1)",
        check: Check::Rows(iozone_unflushed),
    },
    Rule {
        id: "T16",
        family: Family::Tools,
        title: "iozone did not run this",
        explanation: "A rate of 0 in iozone's tables is no rate: in auto mode small records are \
            left out for files of 32 MB and more unless `-z` is given.",
        effect: "Zeros drag means down.",
        remedy: "Use `-z`; treat 0 as missing.",
        source: "iozone(1), -a and -z",
        check: Check::Rows(iozone_zero),
    },
    Rule {
        id: "T17",
        family: Family::Tools,
        title: "dd did not copy what it should",
        explanation: "dd moved no bytes or fewer than block size times count, or its input was \
            /dev/null, which ends at once: `if` and `of` were swapped, and the file that should \
            have been read is now empty.",
        effect: "The number means nothing; what reads the file afterwards is wrong too.",
        remedy: "Check the bytes copied and the file's size after each run.",
        source: "`dd of=testfile if=/dev/null` in mdadm against gmirror, 2010",
        check: Check::Whole(dd_copied_nothing),
    },
    Rule {
        id: "T18",
        family: Family::Tools,
        title: "dd without flush, or with short records",
        explanation: "dd wrote a file without `conv=fsync`, `conv=fdatasync` or `oflag=direct`; \
            or it counted partial records, as large blocks are read in pieces. A note where the \
            file is at least four times main memory.",
        effect: "What is in memory counts as written; with partial records fewer bytes were \
            moved than block size times count.",
        remedy: "Use `conv=fsync` and `iflag=fullblock`.",
        source: "dd(1)",
        check: Check::Rows(dd_unflushed),
    },
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
    if tool(row) != "bonnie++" {
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
    let writes = row.op.only_writes() || matches!(row.op, Operation::Rewrite | Operation::Frewrite);
    if tool(row) != "iozone" || !writes {
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
