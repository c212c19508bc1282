//! The audit's findings, arranged for people: one entry per rule with all its cases, the worst
//! first, and short marks for the cells concerned.

use super::view::{Row, View};
use crate::format::list;
use raidlab_store::{AUDIT_NOTE_CLASS, AccuracyNote, Finding, Severity};
use raidlab_units::{distinct, grouped};
use serde::Serialize;
use std::collections::BTreeSet;

/// The number of rows up to which they are listed by name.
const NAMED_ROWS: usize = 6;

/// Findings of one rule.
#[derive(Debug, Serialize)]
pub(crate) struct Group<'a> {
    /// The identifier of the group's element in the page.
    pub anchor: String,
    pub rule: &'a str,
    pub title: &'a str,
    #[serde(skip)]
    pub severity: Severity,
    /// The severity's name: `fatal`, `warning`, `note`.
    pub severity_name: &'static str,
    pub sign: &'static str,
    /// The effects on the numbers, each sentence once.
    pub effects: Vec<&'a str>,
    /// The remedies, each sentence once.
    pub remedies: Vec<&'a str>,
    /// All cells concerned, of all cases together.
    pub cells: String,
    pub cases: Vec<Case<'a>>,
}

/// A case of a rule: the cells concerned, with the evidence.
#[derive(Debug, Serialize)]
pub(crate) struct Case<'a> {
    pub evidence: &'a str,
    pub cells: String,
}

/// A finding's mark beside a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    pub anchor: String,
    pub rule: String,
    pub sign: &'static str,
    pub severity_name: &'static str,
    /// The finding's title, shown when the mark is hovered over.
    pub title: String,
}

impl Mark {
    /// Whether the mark is of a warning, not of a fatal finding.
    pub(crate) fn is_warning(&self) -> bool {
        self.severity_name == Severity::Warning.name()
    }
}

/// A severity's sign, so that colour is never the only difference.
pub(crate) const fn sign(severity: Severity) -> &'static str {
    match severity {
        Severity::Fatal => "✗",
        Severity::Warning => "▲",
        Severity::Note => "·",
    }
}

/// All findings, worst first, then in the order of the audit. Findings with the
/// same evidence are one case.
pub(crate) fn groups<'a>(findings: &'a [Finding], view: &View<'_>) -> Vec<Group<'a>> {
    let mut groups = grouped(findings.iter().map(|finding| (key(finding), finding)));
    groups.sort_by_key(|((severity, ..), _)| std::cmp::Reverse(*severity));
    let groups = groups.into_iter().enumerate();
    groups
        .map(|(position, ((severity, rule, title), own))| {
            let texts = |text: fn(&Finding) -> &String| {
                let texts = own.iter().map(|finding| text(finding).as_str());
                distinct(texts.filter(|text| !text.is_empty()))
            };
            let cases = grouped(own.iter().map(|&one| (one.evidence.as_str(), one)));
            let case = |(evidence, all): (&'a str, Vec<&Finding>)| Case {
                evidence,
                cells: cells(&all, view),
            };
            Group {
                anchor: format!("finding-{position}"),
                rule,
                title,
                severity,
                severity_name: severity.name(),
                sign: sign(severity),
                effects: texts(|finding| &finding.effect),
                remedies: texts(|finding| &finding.remedy),
                cells: cells(&own, view),
                cases: cases.into_iter().map(case).collect(),
            }
        })
        .collect()
}

fn key(finding: &Finding) -> (Severity, &str, &str) {
    (finding.severity, &finding.rule, &finding.title)
}

/// The marks of a cell with the findings at these positions: each rule once, without notes.
pub(crate) fn marks(findings: &[Finding], groups: &[Group<'_>], positions: &[usize]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for finding in positions.iter().map(|position| &findings[*position]) {
        let group = groups
            .iter()
            .find(|group| key(finding) == (group.severity, group.rule, group.title));
        let Some(group) = group.filter(|group| group.severity > Severity::Note) else {
            continue;
        };
        if marks.iter().all(|mark| mark.anchor != group.anchor) {
            marks.push(Mark {
                anchor: group.anchor.clone(),
                rule: group.rule.to_owned(),
                sign: group.sign,
                severity_name: group.severity_name,
                title: group.title.to_owned(),
            });
        }
    }
    marks
}

/// The cells that findings concern, in words.
fn cells(findings: &[&Finding], view: &View<'_>) -> String {
    let covered = |row: usize, column: usize| {
        let mut repetitions = view.rows[row].repetitions[column].iter();
        repetitions.any(|(m, _)| findings.iter().any(|finding| finding.covers(m)))
    };
    let there = |row: usize, column: usize| view.rows[row].cells[column].is_some();
    let all: Vec<usize> = (0..view.rows.len()).collect();
    let columns: Vec<(usize, Vec<usize>)> = (0..view.names.len())
        .map(|column| {
            let rows = all.iter().copied().filter(|row| covered(*row, column));
            (column, rows.collect())
        })
        .filter(|(_, rows): &(_, Vec<usize>)| !rows.is_empty())
        .collect();
    if columns.is_empty() {
        return "no cell of this run".to_owned();
    }
    let whole = |(column, rows): &(usize, Vec<usize>)| {
        all.iter().filter(|row| there(**row, *column)).count() == rows.len()
    };
    let mut words = if columns.len() == view.names.len() && columns.iter().all(whole) {
        "every cell".to_owned()
    } else {
        // Columns with the same rows are named together.
        let together = grouped(columns.iter().map(|entry| {
            let rows = if whole(entry) {
                "all jobs".to_owned()
            } else {
                row_words(view, &entry.1)
            };
            (rows, view.names[entry.0].as_str())
        }));
        let words = together.into_iter().map(|(rows, names)| {
            if names.len() == view.names.len() {
                rows
            } else {
                format!("{rows} on {}", list(&names))
            }
        });
        words.collect::<Vec<_>>().join("; ")
    };
    let repeated = view
        .rows
        .iter()
        .any(|row| row.repetitions.iter().any(|all| all.len() > 1));
    let repetitions: Option<BTreeSet<u32>> = findings
        .iter()
        .map(|finding| finding.scope.repetition)
        .collect();
    if let Some(repetitions) = repetitions.filter(|_| repeated) {
        let noun = if repetitions.len() == 1 {
            "repetition"
        } else {
            "repetitions"
        };
        words.push_str(&format!(" ({noun} {})", list(&ranges(&repetitions))));
    }
    words
}

/// Repetitions in words, counted from 1: `1`, `3 to 7`.
fn ranges(repetitions: &BTreeSet<u32>) -> Vec<String> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for number in repetitions.iter().map(|repetition| repetition + 1) {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => all.push((number, number)),
        }
    }
    let words = all
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first} to {last}")],
        });
    words.collect()
}

/// Rows in words: a job's name alone where all its rows are meant, and with its title where another
/// job has the same name.
fn row_words(view: &View<'_>, rows: &[usize]) -> String {
    let of_job = |sequence: u32| {
        let all = view.rows.iter().enumerate();
        all.filter(move |(_, row)| row.head.sequence == sequence)
    };
    let mut told: BTreeSet<u32> = BTreeSet::new();
    let mut labels: Vec<String> = Vec::new();
    for row in rows.iter().map(|&row| &view.rows[row]) {
        let head = row.head;
        let is_whole = of_job(head.sequence).all(|(own, _)| rows.contains(&own));
        if is_whole && !told.insert(head.sequence) {
            continue;
        }
        let name = if is_whole { &head.job } else { &row.label };
        let namesake =
            |other: &Row<'_>| other.head.sequence != head.sequence && other.head.job == head.job;
        labels.push(if view.rows.iter().any(namesake) {
            format!("{name} ({})", head.job_title)
        } else {
            name.clone()
        });
    }
    let noun = if labels.len() == 1 { "job" } else { "jobs" };
    if labels.len() > NAMED_ROWS {
        let (named, rest) = labels.split_at(NAMED_ROWS - 1);
        format!("{noun} {} and {} more", named.join(", "), rest.len())
    } else {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        format!("{noun} {}", list(&labels))
    }
}

/// The audit's notes on its own coverage.
pub(crate) fn audit_notes(notes: &[AccuracyNote]) -> Vec<&str> {
    let own = notes.iter().filter(|note| note.class == AUDIT_NOTE_CLASS);
    own.map(|note| note.statement.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::{groups, marks};
    use crate::compute::view::View;
    use crate::sample;
    use std::fmt::Write;

    #[test]
    fn findings_of_the_bench() {
        let data = sample::bench();
        let view = View::new(&data);
        let mut text = String::new();
        for group in groups(&data.findings, &view) {
            let _ = writeln!(text, "{} {} {}", group.sign, group.rule, group.title);
            for case in &group.cases {
                let _ = writeln!(text, "  {}: {}", case.cells, case.evidence);
            }
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn findings_with_the_same_evidence_are_one_case() {
        let mut data = sample::bench();
        let first = data.findings.remove(2);
        let second = |repetition, sequence| {
            let mut finding = first.clone();
            finding.scope.repetition = Some(repetition);
            finding.scope.sequence = Some(sequence);
            finding
        };
        data.findings = vec![second(0, 1), second(2, 1), second(0, 3)];
        let view = View::new(&data);
        let groups = groups(&data.findings, &view);
        assert_eq!(groups[0].cases.len(), 1);
        assert_eq!(
            groups[0].cases[0].cells,
            "jobs seqwrite and rr-4 on md-raid1/ext4@alpha (repetitions 1 and 3)"
        );
    }

    #[test]
    fn a_job_is_named_once_and_told_from_its_namesakes() {
        let mut data = sample::data();
        let named = |data: &crate::RunData| {
            let view = View::new(data);
            groups(&data.findings, &view).remove(0).cells
        };
        let mut finding = sample::bench().findings.remove(2);
        finding.op = None;
        finding.scope = raidlab_store::Scope {
            // Reads and writes together.
            sequence: Some(15),
            ..raidlab_store::Scope::default()
        };
        data.findings = vec![finding];
        let text = named(&data);
        assert!(
            text.starts_with("job 16") && !text.contains("read"),
            "{text}"
        );
        for row in &mut data.measurements {
            "same".clone_into(&mut row.job);
        }
        let text = named(&data);
        assert!(text.starts_with("job same ("), "{text}");
    }

    #[test]
    fn repetitions_in_a_row_are_told_by_their_ends() {
        let words = |all: &[u32]| super::ranges(&all.iter().copied().collect()).join(" ");
        assert_eq!(words(&[0, 1]), "1 2");
        assert_eq!(words(&[1, 3, 4, 5, 9, 48, 49]), "2 4 to 6 10 49 50");
        assert_eq!(words(&(0..50).collect::<Vec<_>>()), "1 to 50");
    }

    #[test]
    fn a_cell_is_marked_by_each_rule_once_and_not_by_notes() {
        let data = sample::bench();
        let view = View::new(&data);
        let groups = groups(&data.findings, &view);
        let all: Vec<usize> = (0..data.findings.len()).collect();
        let marks = marks(&data.findings, &groups, &all);
        let rules: Vec<_> = marks
            .iter()
            .map(|mark| (mark.sign, mark.rule.as_str()))
            .collect();
        assert_eq!(rules, [("✗", "C1"), ("✗", "A9"), ("▲", "C12")]);
    }
}
