//! The evidence, indexed for quick look-ups.
//!
//! Facts are looked up from the row: the most exact scope that covers it wins.
//! Facts are kept by name and scope; a look-up asks for the row's own scope
//! with each set of parts left empty that occurs in the evidence, so its cost
//! does not grow with the number of rows.

use crate::Evidence;
use raidlab_store::fact;
use raidlab_store::{CommandRecord, Measurement, Observation, Operation, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of a scope that are filled: one bit each.
type Shape = u8;

/// A scope's parts: machine, subject, file system, sequence, repetition.
type Parts<'a> = (&'a str, &'a str, &'a str, Option<u32>, Option<u32>);

/// The facts of one name, by the scopes that they hold for.
#[derive(Default)]
struct Named<'a> {
    by_scope: BTreeMap<Parts<'a>, &'a Observation>,
    /// The shapes of the facts' scopes, most exact first.
    shapes: Vec<Shape>,
}

/// The evidence with its indices.
pub(crate) struct Case<'a> {
    pub(crate) evidence: Evidence<'a>,
    facts: BTreeMap<&'a str, Named<'a>>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(evidence: Evidence<'a>) -> Self {
        let mut facts: BTreeMap<&str, Named<'_>> = BTreeMap::new();
        for observation in evidence.observations {
            let named = facts.entry(&observation.name).or_default();
            let shape = shape(&observation.scope);
            if !named.shapes.contains(&shape) {
                named.shapes.push(shape);
            }
            let parts = parts(&observation.scope);
            named.by_scope.insert(parts, observation);
        }
        for named in facts.values_mut() {
            let exact = |shape: &Shape| std::cmp::Reverse((shape.count_ones(), *shape));
            named.shapes.sort_by_key(exact);
        }
        Self { evidence, facts }
    }

    /// The fact of this name that is most exact for the row.
    pub(crate) fn observation(&self, row: &Measurement, name: &str) -> Option<&'a Observation> {
        let named = self.facts.get(name)?;
        let mut shapes = named.shapes.iter();
        shapes.find_map(|&shape| named.by_scope.get(&shaped(row, shape)).copied())
    }

    /// The value of a fact of this row as text, if it is known.
    pub(crate) fn text(&self, row: &Measurement, name: &str) -> Option<&'a str> {
        Some(self.observation(row, name)?.value.trim())
    }

    /// The value of a fact of this row as a finite number.
    pub(crate) fn number(&self, row: &Measurement, name: &str) -> Option<f64> {
        let number: f64 = self.text(row, name)?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    /// The value of a fact of this row as yes or no; fio writes 1 and 0.
    pub(crate) fn flag(&self, row: &Measurement, name: &str) -> Option<bool> {
        match self.text(row, name)? {
            fact::TRUE | "1" | "" => Some(true),
            fact::FALSE | "0" => Some(false),
            _ => None,
        }
    }

    /// The facts whose names begin with `begin`, in the order of names and scopes.
    pub(crate) fn named<'s>(
        &'s self,
        begin: &'s str,
    ) -> impl Iterator<Item = &'a Observation> + 's {
        self.facts
            .range(begin..)
            .take_while(move |(name, _)| name.starts_with(begin))
            .flat_map(|(_, named)| named.by_scope.values().copied())
    }

    /// Commands that cover the row, in their order.
    pub(crate) fn commands<'s>(
        &'s self,
        row: &'s Measurement,
    ) -> impl Iterator<Item = &'a CommandRecord> + 's {
        let commands = self.evidence.commands.iter();
        commands.filter(|command| command.scope.covers(row))
    }

    /// Whether something of these kinds happened on the row's subject before
    /// the row's job ended.
    pub(crate) fn happened(&self, row: &Measurement, kinds: &[&str]) -> bool {
        let end = row.started_ns.saturating_add(row.runtime_ns);
        self.evidence.events.iter().any(|event| {
            let covers = covers_before(&event.scope, row);
            covers && event.at_ns <= end && kinds.contains(&event.kind.as_str())
        })
    }

    /// The values of a series while the row's job ran: all values of a series of its cell; of a
    /// series of the whole experiment, those within the job's time.
    fn series(&self, row: &Measurement, name: &str) -> Option<Vec<f64>> {
        let cell = Scope::of(row);
        let end = row.started_ns.saturating_add(row.runtime_ns);
        let named = self.evidence.series.iter();
        let mut values = Vec::new();
        for series in named.filter(|series| series.name == name && series.scope.covers(row)) {
            let own = series.scope == cell;
            let points = series.points.iter();
            let within = points.filter(|(at, _)| own || (row.started_ns..=end).contains(at));
            values.extend(
                within
                    .map(|(_, value)| *value)
                    .filter(|value| value.is_finite()),
            );
        }
        (!values.is_empty()).then_some(values)
    }

    /// The series of the row's own rate: reads or writes in bytes, else in
    /// operations.
    pub(crate) fn rate_series(&self, row: &Measurement) -> Option<Vec<f64>> {
        let names = if row.op.only_writes() {
            [
                fact::series::WRITE_BYTES_PER_SECOND,
                fact::series::WRITE_IOPS,
            ]
        } else {
            [fact::series::READ_BYTES_PER_SECOND, fact::series::READ_IOPS]
        };
        names.iter().find_map(|name| self.series(row, name))
    }

    /// Rows that are compared with one another: the same job, operation, part
    /// and repetition on different subjects, file systems or machines.
    pub(crate) fn compared(&self) -> Vec<Vec<&'a Measurement>> {
        let mut groups: BTreeMap<(u32, Operation, &str, u32, &str), Vec<&Measurement>> =
            BTreeMap::new();
        for row in self.evidence.rows {
            let key = (
                row.sequence,
                row.op,
                row.part.as_str(),
                row.repetition,
                row.fit.as_str(),
            );
            groups.entry(key).or_default().push(row);
        }
        groups.into_values().filter(|rows| rows.len() > 1).collect()
    }

    /// Repetitions of the same thing, in their order; two or more each.
    pub(crate) fn repeated(&self) -> Vec<Vec<&'a Measurement>> {
        let mut groups: BTreeMap<_, Vec<&Measurement>> = BTreeMap::new();
        for row in self.evidence.rows {
            let scope = Scope {
                repetition: None,
                ..Scope::of(row)
            };
            let key = (scope, row.op, row.part.as_str(), row.fit.as_str());
            groups.entry(key).or_default().push(row);
        }
        let mut groups: Vec<_> = groups.into_values().filter(|rows| rows.len() > 1).collect();
        for rows in &mut groups {
            rows.sort_by_key(|row| row.repetition);
        }
        groups
    }

    /// One row of each subject, the first.
    pub(crate) fn subjects(&self) -> Vec<&'a Measurement> {
        let mut seen = BTreeSet::new();
        let rows = self.evidence.rows.iter();
        rows.filter(|row| seen.insert((&row.host, &row.subject)))
            .collect()
    }
}

/// Whether an event with this scope came before or with the row: the cell parts of a scope say when
/// it happened, not what it changed.
fn covers_before(scope: &Scope, row: &Measurement) -> bool {
    let whole = Scope {
        sequence: None,
        ..scope.clone()
    };
    whole.covers(row)
        && scope
            .sequence
            .is_none_or(|sequence| sequence <= row.sequence)
}

fn shape(scope: &Scope) -> Shape {
    let parts = [
        !scope.host.is_empty(),
        !scope.subject.is_empty(),
        !scope.filesystem.is_empty(),
        scope.sequence.is_some(),
        scope.repetition.is_some(),
    ];
    let bits = parts.iter().enumerate();
    bits.fold(0, |shape, (bit, &there)| {
        shape | (Shape::from(there) << bit)
    })
}

fn parts(scope: &Scope) -> Parts<'_> {
    (
        &scope.host,
        &scope.subject,
        &scope.filesystem,
        scope.sequence,
        scope.repetition,
    )
}

/// The row's parts, with those left empty that are not in the shape.
fn shaped(row: &Measurement, shape: Shape) -> Parts<'_> {
    let has = |bit: u8| shape >> bit & 1 == 1;
    (
        if has(0) { &row.host } else { "" },
        if has(1) { &row.subject } else { "" },
        if has(2) { &row.filesystem } else { "" },
        has(3).then_some(row.sequence),
        has(4).then_some(row.repetition),
    )
}
