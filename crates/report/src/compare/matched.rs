//! The matching of rows of different runs.

use crate::compute::view::{Row, View};
use raidlab_store::{Measurement, Operation};
use std::collections::{BTreeMap, BTreeSet};

/// The key by which rows of different runs match.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'a> {
    suite: &'a str,
    job: &'a str,
    op: Operation,
    part: &'a str,
    subject: &'a str,
    filesystem: &'a str,
    host: &'a str,
    /// The unit, for a second figure of the same measurements.
    rate: Option<&'static str>,
    /// The title, for jobs that share their name with another one; else empty.
    title: &'a str,
    /// The number among jobs that share the title too.
    number: usize,
}

/// A row's cell in one run.
#[derive(Clone, Copy)]
pub(super) struct Found<'v, 'a> {
    pub row: &'v Row<'a>,
    pub column: usize,
}

/// All rows of all runs, in the order of the first run that has each.
pub(super) fn matched<'v, 'a>(
    views: &'v [View<'a>],
    by_host: bool,
) -> Vec<(Key<'a>, Vec<Option<Found<'v, 'a>>>)> {
    let shared = shared_names(views);
    let mut all: Vec<(Key<'_>, Vec<Option<Found<'_, '_>>>)> = Vec::new();
    let mut places: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    for (run, view) in views.iter().enumerate() {
        let mut before: BTreeMap<Key<'_>, usize> = BTreeMap::new();
        for (column, row, cell) in view.all_cells() {
            let m: &Measurement = cell.m;
            let mut key = Key {
                rate: (!row.is_main()).then_some(row.rate.unit()),
                suite: &m.suite,
                job: &m.job,
                op: m.op,
                part: &m.part,
                subject: &m.subject,
                filesystem: &m.filesystem,
                host: if by_host { &m.host } else { "" },
                title: if shared.contains(&name(m)) {
                    &m.job_title
                } else {
                    ""
                },
                number: 0,
            };
            let known = before.entry(key.clone()).or_insert(0);
            key.number = *known;
            *known += 1;
            let place = *places.entry(key.clone()).or_insert_with(|| {
                all.push((key, vec![None; views.len()]));
                all.len() - 1
            });
            all[place].1[run] = Some(Found { row, column });
        }
    }
    all
}

/// The name of a row in a run.
type Name<'a> = (&'a str, &'a str, Operation, &'a str);

fn name(m: &Measurement) -> Name<'_> {
    (&m.suite, &m.job, m.op, &m.part)
}

/// The names that several jobs of a run have: tools give the same name to unnamed jobs, and an
/// import has jobs of many files.
fn shared_names<'a>(views: &[View<'a>]) -> BTreeSet<Name<'a>> {
    let mut shared = BTreeSet::new();
    for view in views {
        let mut places: BTreeMap<Name<'_>, u32> = BTreeMap::new();
        for row in view.all_rows() {
            let (own, place) = (name(row.head), row.head.sequence);
            if *places.entry(own).or_insert(place) != place {
                shared.insert(own);
            }
        }
    }
    shared
}

/// The name of each row's column, without the parts that are the same everywhere.
pub(super) fn places(keyed: &[(Key<'_>, Vec<Option<Found<'_, '_>>>)]) -> Vec<String> {
    let columns: Vec<_> = keyed
        .iter()
        .map(|(key, _)| crate::compute::column::Column {
            host: key.host,
            subject: key.subject,
            filesystem: key.filesystem,
        })
        .collect();
    crate::compute::column::names(&columns)
}

/// A row's name; with the job's title where another one has the same name.
pub(super) fn label(row: &Row<'_>, key: &Key<'_>) -> String {
    let mut label = row.label.clone();
    if !key.title.is_empty() {
        label.push_str(": ");
        label.push_str(key.title);
    }
    if key.number > 0 {
        label.push_str(&format!(" #{}", key.number + 1));
    }
    label
}
