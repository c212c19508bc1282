//! Grids: suites with more combinations than one run takes.
//!
//! The entries of `subjects` and the steps may have a matrix each. The values in a subject's
//! combination are its *axes*, by which steps choose their subjects: `for`. Where an entry has
//! `draw`, a run takes so many of its matrix's combinations, and where a step has it, each of
//! its subjects takes so many of the step's jobs. The number of the draw decides which: it seeds
//! a stream, of which each entry, and each subject at each step, forks its own by name, so that
//! one more entry does not change what the others draw. Nothing is taken twice, and the grid's
//! order is kept.

use super::matrix::{Combination, RawMatrix};
use super::step::{RawFor, RawStep, ReadStep};
use crate::document::{Document, FileError};
use raidlab_random::Stream;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// The axes of a subject: the values in its combination, by their keys.
type Axes = BTreeMap<String, String>;

/// The subjects' axes, and the draw.
pub(super) struct Grid<'a> {
    document: &'a Document,
    number: u64,
    /// Whether an entry or a step has `draw`.
    draws: Cell<bool>,
    /// All values of every key, also of combinations that were not drawn.
    known: BTreeMap<String, BTreeSet<String>>,
    /// The name and axes of each subject that is taken.
    subjects: Vec<(String, Axes)>,
}

impl<'a> Grid<'a> {
    /// Creates the grid of a suite with the draw of this number.
    pub(super) fn new(document: &'a Document, number: u64) -> Self {
        Self {
            document,
            number,
            draws: Cell::new(false),
            known: BTreeMap::new(),
            subjects: Vec::new(),
        }
    }

    /// The number of the draw; `None` where nothing is drawn.
    pub(super) fn draw(&self) -> Option<u64> {
        self.draws.get().then_some(self.number)
    }

    /// Whether steps can tell its subjects apart.
    pub(super) fn has_axes(&self) -> bool {
        self.subjects.iter().any(|(_, axes)| !axes.is_empty())
    }

    /// The number of subjects that are taken.
    pub(super) fn subjects(&self) -> usize {
        self.subjects.len()
    }

    /// The combinations of an entry of `subjects` that are taken.
    ///
    /// # Errors
    /// When nothing, or more than there is, is drawn.
    pub(super) fn take_combinations(
        &mut self,
        name: &str,
        all: Vec<Combination>,
        matrix: Option<&Spanned<RawMatrix>>,
        draw: Option<&Spanned<u32>>,
    ) -> Result<Vec<Combination>, FileError> {
        for (key, value) in all.iter().flat_map(Combination::values) {
            self.known.entry(key.to_owned()).or_default().insert(value);
        }
        let Some(draw) = draw else { return Ok(all) };
        let count = self.count(draw, matrix, all.len())?;
        Ok(self.choose(&format!("subjects {name}"), all, count))
    }

    /// Adds a subject made by a combination.
    pub(super) fn add(&mut self, name: &str, combination: &Combination) {
        let axes = combination.values();
        let axes = axes.map(|(key, value)| (key.to_owned(), value)).collect();
        self.subjects.push((name.to_owned(), axes));
    }

    /// The subjects, by their positions, that do each job of a step, or its event or wait.
    ///
    /// # Errors
    /// When no subject has a key or a value, or when nothing, or more than there is, is drawn.
    pub(super) fn doers(
        &self,
        raw: &RawStep,
        read: &ReadStep,
    ) -> Result<Vec<BTreeSet<usize>>, FileError> {
        let nothing = [Combination::default()];
        let combinations = match read {
            ReadStep::Jobs { combinations, .. } => combinations,
            ReadStep::Event(..) | ReadStep::Check | ReadStep::Wait(_) => &nothing[..],
        };
        let mut doers = vec![BTreeSet::new(); combinations.len()];
        if let Some(chosen) = &raw.for_subjects {
            self.check_known(chosen.get_ref(), combinations)?;
        }
        let count = raw.draw.as_ref();
        let count = count
            .map(|draw| self.count(draw, raw.matrix.as_ref(), combinations.len()))
            .transpose()?;
        for (place, (name, axes)) in self.subjects.iter().enumerate() {
            let fits = |combination: &Combination| match &raw.for_subjects {
                Some(chosen) => is_for(chosen.get_ref(), combination, axes),
                None => true,
            };
            let mut jobs: Vec<usize> = (0..combinations.len())
                .filter(|&job| fits(&combinations[job]))
                .collect();
            if let Some(count) = count {
                let job = raw.job.as_ref().map_or("", |job| job.get_ref());
                jobs = self.choose(&format!("jobs {job} of {name}"), jobs, count);
            }
            for job in jobs {
                doers[job].insert(place);
            }
        }
        Ok(doers)
    }

    /// Checks that each key is one of the subjects' axes, and that each value occurs for its key.
    fn check_known(&self, chosen: &RawFor, combinations: &[Combination]) -> Result<(), FileError> {
        for (key, values) in chosen {
            let Some(known) = self.known.get(key.get_ref()) else {
                let (what, known) = ("the key of subjects", self.known.keys());
                return Err((self.document).unknown(key.span(), what, key.get_ref(), known));
            };
            let written = values.get_ref().values().iter();
            let applied = written
                .flat_map(|value| combinations.iter().map(|one| one.apply(&value.to_string())));
            for name in applied {
                if !known.contains(&name) {
                    let span = values.span();
                    return Err(self.document.unknown(span, "the value", &name, known));
                }
            }
        }
        Ok(())
    }

    /// The number of `all` combinations to be drawn, at least 1.
    fn count(
        &self,
        draw: &Spanned<u32>,
        matrix: Option<&Spanned<RawMatrix>>,
        all: usize,
    ) -> Result<usize, FileError> {
        let refuse = |what: &str, remedy| Err(self.document.invalid(draw.span(), what, remedy));
        let count = usize::try_from(*draw.get_ref()).unwrap_or(usize::MAX);
        if matrix.is_none() {
            return refuse("there is nothing to draw from", "add a `matrix`");
        }
        if count == 0 {
            return refuse("nothing would be drawn", "write 1 or more");
        }
        if count > all {
            let what = format!("the matrix has {all} combinations only");
            return refuse(&what, "draw at most as many");
        }
        self.draws.set(true);
        Ok(count)
    }

    /// Draws at most so many of these, none twice, in their original order.
    fn choose<T>(&self, who: &str, all: Vec<T>, count: usize) -> Vec<T> {
        let mut stream = Stream::new(self.number).fork(who, 0);
        let mut places: Vec<usize> = (0..all.len()).collect();
        let count = count.min(places.len());
        for place in 0..count {
            let left = stream.below((places.len() - place) as u64);
            places.swap(place, place + usize::try_from(left).unwrap_or(0));
        }
        let taken: BTreeSet<usize> = places[..count].iter().copied().collect();
        let numbered = all.into_iter().enumerate();
        let drawn = numbered.filter(|(place, _)| taken.contains(place));
        drawn.map(|(_, one)| one).collect()
    }
}

/// Whether a subject has one of the values for each key.
fn is_for(chosen: &RawFor, combination: &Combination, axes: &Axes) -> bool {
    chosen.iter().all(|(key, values)| {
        let values = values.get_ref().values();
        axes.get(key.get_ref()).is_some_and(|own| {
            let mut values = values.iter();
            values.any(|value| combination.apply(&value.to_string()) == *own)
        })
    })
}
