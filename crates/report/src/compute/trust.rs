//! Sentences on what was run, and how far its figures can be trusted.

use super::accuracy::accuracy;
use super::column::Column;
use super::doubt::unfitted;
use super::view::View;
use crate::data::RunData;
use crate::format::{list, list_of_many};
use raidlab_store::fact::{self, disk_property as property};
use raidlab_store::{Measurement, Operation, Role};
use raidlab_units::{count, distinct};
use std::collections::BTreeSet;

/// The bench whose figures have no chance in them: the same seed gives the
/// same figures.
pub(crate) const MODEL_BENCH: &str = "model";

/// A sentence on what was run.
pub(crate) fn what_ran(data: &RunData, view: &View<'_>) -> String {
    if view.all_rows().next().is_none() {
        return format!("Nothing was measured on the {} bench.", data.run.bench);
    }
    let mut jobs: Vec<u32> = view.rows.iter().map(|row| row.head.sequence).collect();
    jobs.dedup();
    let unfinished = if data.run.finished.is_some() {
        ""
    } else {
        " The run was not finished: what follows is what there is."
    };
    format!(
        "{} on {}, {} bench.{unfinished}",
        count(jobs.len(), "job", "jobs"),
        what_columns_are(view),
        data.run.bench
    )
}

/// The columns in words, `2 subjects (md and zfs)`; with file systems, hosts and repetitions where
/// there are several.
fn what_columns_are(view: &View<'_>) -> String {
    let different = |part: fn(&Column<'_>) -> String| distinct(view.columns.iter().map(part));
    let named = |all: &[String], one: &str, many: &str| {
        format!("{} ({})", count(all.len(), one, many), list_of_many(all))
    };
    let subjects = different(|column| column.subject.to_owned());
    let mut words = named(&subjects, "subject", "subjects");
    let filesystems = different(|column| match column.filesystem {
        "" => "raw".to_owned(),
        label => label.to_owned(),
    });
    if filesystems.len() > 1 {
        words.push_str(" with ");
        words.push_str(&named(&filesystems, "file system", "file systems"));
    }
    let hosts = different(|column| column.host.to_owned());
    if hosts.len() > 1 {
        words.push_str(" on ");
        words.push_str(&named(&hosts, "host", "hosts"));
    }
    let repetitions = view
        .rows
        .iter()
        .flat_map(|row| row.repetitions.iter().map(Vec::len));
    match repetitions.max() {
        Some(most) if most > 1 => format!("{words}, each up to {most} times"),
        _ => words,
    }
}

/// The number of measured figures among all, and the kind of time where all are of
/// the kernel bench.
fn origin(measured: usize, all: usize, all_in_a_kernel: bool) -> String {
    if measured == all {
        "Every figure was measured.".to_owned()
    } else if measured == 0 && all_in_a_kernel {
        "Every figure was measured in virtual time: the kernel and the tools are the real ones, \
         the disks are models."
            .to_owned()
    } else if measured == 0 {
        "Every figure comes from a model, none was measured.".to_owned()
    } else {
        let of = count(all, "figure", "figures");
        format!("{measured} of {of} were measured, the others modelled.")
    }
}

/// What the band of figures of jobs is, where disks were not fitted.
const BAND_OF_JOBS: &str = "Figures of such disks have a band: for nine disks of ten the figure of \
    the real disk lies in it, as the errors of other disks show, which were predicted from their \
    data sheets alone. Two subjects on the same disks can be compared more exactly than that. Where \
    it is uncertain all the same which one is faster, the verdict is \"cannot tell\".";

/// Why syncs have no such band.
const NO_BAND: &str = "Times and rates of what the arrays did in the background have no band. A \
    sync crosses the whole disk, and of such disks only random requests and streams at the edge \
    were measured. They are ranked as they are.";

/// Why discards have none either.
const NO_BAND_OF_DISCARDS: &str = "Rates of discards have no band. No maker says how long one \
    takes, so the model assumes it of every disk that comes with raidlab. They are ranked as they \
    are.";

/// The disks without a fit by the facts of a run that has no figures of jobs, in words; empty where
/// there are none.
fn unfitted_by_facts(data: &RunData) -> String {
    let facts = data.observations.iter();
    let unfitted = facts
        .filter(|one| one.value == fact::FALSE)
        .filter_map(|one| {
            let device = one.name.strip_prefix("disk.")?;
            let device = device.strip_suffix(property::FITTED)?.strip_suffix('.')?;
            let model = fact::disk(device, property::MODEL);
            let mut facts = data.observations.iter();
            let model = facts.find(|other| other.name == model && other.scope == one.scope)?;
            Some(model.value.clone())
        });
    let models: BTreeSet<String> = unfitted.collect();
    list(&models.into_iter().collect::<Vec<_>>())
}

/// Sentences on how far the figures can be trusted.
pub(crate) fn trust(data: &RunData, view: &View<'_>) -> Vec<String> {
    // Without figures of jobs, background work is all that there is.
    let has_jobs = view.cells().next().is_some();
    let cells = || {
        let all = view.all_cells();
        all.filter(move |(_, row, _)| row.is_of_job() == has_jobs)
            .map(|(_, _, cell)| cell)
    };
    let roles: Vec<Role> = cells().map(|cell| cell.m.role).collect();
    let with = |role| roles.iter().filter(|own| **own == role).count();
    let (measured, fitted) = (with(Role::Measured), with(Role::Fitted));
    let all_in_a_kernel = cells().all(|cell| cell.m.bench == "kernel");
    let mut sentences = vec![origin(measured, roles.len(), all_in_a_kernel)];
    let disks = match has_jobs {
        true => unfitted(cells().map(|cell| cell.m)),
        false => unfitted_by_facts(data),
    };
    if !disks.is_empty() {
        sentences.push(format!("Nobody fitted the model to {disks}."));
        sentences.extend(has_jobs.then(|| BAND_OF_JOBS.to_owned()));
        let has_background = !view.background.is_empty();
        sentences.extend(has_background.then(|| NO_BAND.to_owned()));
    }
    let discards = |m: &Measurement| m.op == Operation::Trim && m.bench == MODEL_BENCH;
    let has_discards = cells().any(|cell| discards(cell.m) && cell.m.disk_band.is_none());
    sentences.extend(has_discards.then(|| NO_BAND_OF_DISCARDS.to_owned()));
    let struck = cells().filter(|cell| cell.fatal).count();
    if struck > 0 {
        let what = if struck == 1 {
            "which does not say what it seems to, and counts"
        } else {
            "which do not say what they seem to, and count"
        };
        let (struck, all) = (count(struck, "figure", "figures"), roles.len());
        sentences.push(format!(
            "The audit struck out {struck} of {all}, {what} in no comparison."
        ));
    }
    sentences.extend(against_published(view, fitted));
    sentences
}

/// Sentences on the errors against published figures. `fitted`: the number of figures to which the
/// model was fitted.
fn against_published(view: &View<'_>, fitted: usize) -> Vec<String> {
    let mut sentences = Vec::new();
    let against = accuracy(view, |_, _| true);
    let compared = !view.compared().is_empty();
    if let Some(errors) = against.predicted.as_ref().filter(|_| compared) {
        sentences.push(format!(
            "Against {} that played no part in fitting, the error is {:.1}\u{a0}% on average; \
             the worst is {} ({}, job {}).",
            count(errors.cells, "published figure", "published figures"),
            errors.mean_absolute_percent,
            crate::format::signed_percent(errors.worst_percent),
            view.names[errors.worst_subject],
            errors.worst_label
        ));
    } else {
        sentences.push("There are no independent published figures to compare with.".to_owned());
    }
    if fitted > 0 {
        let cells = count(fitted, "cell was", "cells were");
        sentences.push(format!(
            "{cells} among the facts the model was fitted on (marked †) and prove nothing."
        ));
    }
    if against.disputed > 0 {
        let figures = count(
            against.disputed,
            "published figure is",
            "published figures are",
        );
        sentences.push(format!(
            "{figures} disputed (marked ‡) and left out of every error."
        ));
    }
    sentences
}
