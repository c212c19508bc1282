//! The findings of a rule, gathered while it goes over the evidence.

use crate::{Audit, Rule, Unjudged};
use raidlab_store::{Finding, Measurement, Operation, Scope, Severity};
use std::collections::BTreeSet;

/// A rule's findings and whether it had anything to judge by.
pub(crate) struct Ruling {
    rule: &'static Rule,
    findings: Vec<Finding>,
    /// The faults that were found already: one of a subject is met at each of the subject's rows.
    seen: BTreeSet<(Scope, Option<Operation>, String, String)>,
    judged: bool,
    missing: Option<String>,
}

impl Ruling {
    pub(crate) const fn new(rule: &'static Rule) -> Self {
        Self {
            rule,
            findings: Vec::new(),
            seen: BTreeSet::new(),
            judged: false,
            missing: None,
        }
    }

    /// Notes that the rule had what it needs to judge.
    pub(crate) const fn judged(&mut self) {
        self.judged = true;
    }

    /// Returns a fact as it is, and notes its name as missing where it is `None`.
    pub(crate) fn need<T>(&mut self, value: Option<T>, fact: &str) -> Option<T> {
        if value.is_none() && self.missing.is_none() {
            self.missing = Some(fact.to_owned());
        }
        value
    }

    /// Returns what the evidence says, and notes the fact as missing that would have said it.
    pub(crate) fn decided<T>(&mut self, value: Result<T, String>) -> Option<T> {
        value.map_err(|fact| self.need(None::<()>, &fact)).ok()
    }

    /// Adds a finding about one row.
    pub(crate) fn row(&mut self, severity: Severity, row: &Measurement, evidence: String) {
        let op = Some(row.op);
        self.add(severity, Scope::of(row), op, &row.part, evidence);
    }

    /// Adds a finding about all rows of a scope.
    pub(crate) fn scope(&mut self, severity: Severity, scope: Scope, evidence: String) {
        self.add(severity, scope, None, "", evidence);
    }

    /// Adds a finding about everything on a row's subject.
    pub(crate) fn subject(&mut self, severity: Severity, row: &Measurement, evidence: String) {
        self.scope(severity, subject_scope(row), evidence);
    }

    /// Adds a finding about a job on every subject.
    pub(crate) fn job(&mut self, severity: Severity, row: &Measurement, evidence: String) {
        let scope = Scope {
            sequence: Some(row.sequence),
            ..Scope::default()
        };
        self.add(severity, scope, Some(row.op), &row.part, evidence);
    }

    fn add(
        &mut self,
        severity: Severity,
        scope: Scope,
        op: Option<Operation>,
        part: &str,
        evidence: String,
    ) {
        self.judged();
        let key = (scope.clone(), op, part.to_owned(), evidence.clone());
        if !self.seen.insert(key) {
            return;
        }
        self.findings.push(Finding {
            rule: self.rule.id.to_owned(),
            title: self.rule.title.to_owned(),
            severity,
            scope,
            op,
            part: part.to_owned(),
            evidence,
            effect: self.rule.effect.to_owned(),
            remedy: self.rule.remedy.to_owned(),
        });
    }

    pub(crate) fn close(self, audit: &mut Audit) {
        audit.findings.extend(self.findings);
        if self.judged {
            audit.coverage.judged.push(self.rule.id);
        } else {
            audit.coverage.unjudged.push(Unjudged {
                rule: self.rule.id,
                missing: self.missing.unwrap_or_default(),
            });
        }
    }
}

/// The scope of everything on a row's subject.
pub(crate) fn subject_scope(row: &Measurement) -> Scope {
    Scope {
        host: row.host.clone(),
        subject: row.subject.clone(),
        ..Scope::default()
    }
}
