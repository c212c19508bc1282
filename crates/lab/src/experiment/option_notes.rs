//! Notes for the user on fio's options in the jobs of a run.

use super::Experiment;
use raidlab_units::grouped;
use std::collections::BTreeSet;

/// Notes on options of fio that do not do what their names say in the jobs of these experiments.
/// Each is given once, with its first place. `modelled`: the model runs the jobs, so its treatment
/// of options is noted as well.
#[must_use]
pub fn option_notes(experiments: &[Experiment], modelled: bool) -> Vec<String> {
    let mut known = BTreeSet::new();
    let lists = experiments
        .iter()
        .filter(|one| known.insert(one.steps.as_ptr()));
    let notes = lists
        .flat_map(Experiment::jobs)
        .flat_map(|job| job.work.notes(modelled));
    grouped(notes.map(|note| ((note.option, note.text), note.place)))
        .into_iter()
        .filter_map(|((option, text), places)| {
            let places: BTreeSet<_> = places.into_iter().collect();
            let first = places.first()?;
            Some(match places.len() - 1 {
                0 => format!("{first}: `{option}`: {text}"),
                1 => format!("{first} and 1 more place: `{option}`: {text}"),
                more => format!("{first} and {more} more places: `{option}`: {text}"),
            })
        })
        .collect()
}
