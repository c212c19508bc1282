//! Each rule on evidence that has the fault and on evidence that has not.

mod array;
mod articles;
mod cache;
mod cannot_apply;
mod claims;
mod document;
mod fio;
mod hardware;
mod imported;
mod lab;
mod told;
mod tools;
mod whole;

use crate::rules;
use lab::Lab;
use raidlab_store::Severity;
use std::collections::BTreeSet;

/// One rule's pair.
struct Pair {
    rule: &'static str,
    severity: Severity,
    faulty: Lab,
    clean: Lab,
}

/// The rule finds the fault with this severity, and nothing in its absence.
fn pair(rule: &'static str, severity: Severity, faulty: Lab, clean: Lab) -> Pair {
    Pair {
        rule,
        severity,
        faulty,
        clean,
    }
}

fn pairs() -> Vec<Pair> {
    let families = [
        cache::pairs(),
        array::pairs(),
        hardware::pairs(),
        fio::pairs(),
        tools::pairs(),
        claims::pairs(),
        imported::pairs(),
        told::pairs(),
    ];
    families.into_iter().flatten().collect()
}

#[test]
fn every_rule_finds_its_fault_and_is_silent_without_it() {
    for (number, pair) in pairs().into_iter().enumerate() {
        let (rule, place) = (pair.rule, format!("{} (pair {number})", pair.rule));
        let found = pair.faulty.audit();
        let mine: Vec<_> = found.findings.iter().filter(|f| f.rule == rule).collect();
        assert!(!mine.is_empty(), "{place} did not find its fault");
        assert!(
            mine.iter().any(|f| f.severity == pair.severity),
            "{place}: {mine:?}"
        );
        let clean = pair.clean.audit();
        let wrong: Vec<_> = clean.findings.iter().filter(|f| f.rule == rule).collect();
        assert!(
            wrong.is_empty(),
            "{place} found a fault where none is: {wrong:?}"
        );
        assert!(
            clean.coverage.judged.contains(&rule),
            "{place} was not judged in the clean case"
        );
    }
}

#[test]
fn every_rule_has_a_pair_and_an_identifier_of_its_own() {
    let identifiers: Vec<&str> = rules().map(|rule| rule.id).collect();
    let unique: BTreeSet<&str> = identifiers.iter().copied().collect();
    assert_eq!(unique.len(), identifiers.len());
    let tested: BTreeSet<&str> = pairs().iter().map(|pair| pair.rule).collect();
    assert_eq!(tested, unique);
}
