//! Presets: disk models as data, every number with its source.
//!
//! A preset is a TOML file. `[parameters]` holds the numbers that all parameter sets
//! share; each `[set.NAME.parameters]` adds or replaces numbers, so that one model
//! can be shipped in several equally good fits. Each parameter is a table
//! `{ value = 0.9, basis = "fitted", source = "..." }`; its name carries its unit,
//! and its [`Basis`] tells how well it is known. The rate curve is separate, a list
//! of `[place, kibibytes_per_second]`.

use crate::medium::Medium;
use crate::medium::parameters::{DiskParameters, OPTIONAL, ParameterError};
use crate::surface::RatePoint;
use raidlab_units::{line_of, plain_words, suggestion};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;
use toml::Spanned;

/// A disk model in one or more parameter sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// The short name, which is that of the file.
    pub name: String,
    /// The model in words.
    pub title: String,
    /// The model number that the disk reports.
    pub model: String,
    /// Remarks for people, which the model does not read.
    pub description: String,
    /// The parameter sets, of which the first is the default.
    sets: Vec<Set>,
}

#[derive(Debug, Clone, PartialEq)]
struct Set {
    name: String,
    description: String,
    parameters: DiskParameters,
    provenance: Vec<Provenance>,
}

/// The basis on which a number of a preset is known, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Fitted: searched, or chosen among a few values, so that the model comes nearest to
    /// measurements of this very disk.
    Fitted,
    /// Measured: read from a measurement of this very disk.
    Measured,
    /// Rated: stated by the maker, or computed from such a statement.
    Rated,
    /// Borrowed: taken from another disk, or from a model of this one by others,
    /// unchanged or scaled.
    Borrowed,
    /// Assumed: not known; a usual or harmless value.
    Assumed,
}

impl Basis {
    /// The word by which preset files name the basis.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::Measured => "measured",
            Self::Rated => "rated",
            Self::Borrowed => "borrowed",
            Self::Assumed => "assumed",
        }
    }
}

/// One number and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The parameter's name, unit included.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// The basis on which the value is known.
    pub basis: Basis,
    /// The source of the value, in words.
    pub source: String,
}

/// The reason why a preset cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PresetError {
    /// The file has an error, or one of its sets lacks a number.
    #[error("{file}:{line}: {problem}")]
    Wrong {
        /// The name of the preset file.
        file: String,
        /// The line of the error, or the first line of the set, from 1.
        line: usize,
        /// The problem in words.
        problem: String,
        /// The reason why a set is no valid disk, if that is the problem.
        #[source]
        source: Option<ParameterError>,
    },
    /// There is no parameter set, or not the requested one.
    #[error("{preset} has no parameter set `{set}`; it has: {known}")]
    NoSet {
        /// The preset; with the line where its own default is wrong.
        preset: String,
        /// The requested set.
        set: String,
        /// The names of the parameter sets that the preset has, for people.
        known: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u32>,
    name: String,
    title: String,
    model: String,
    description: String,
    rate_curve: Curve,
    parameters: BTreeMap<String, Spanned<Value>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<FileSet>>,
    default_set: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Curve {
    #[serde(default = "unsaid")]
    basis: Basis,
    source: String,
    points: Spanned<Vec<(f64, f64)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSet {
    description: String,
    #[serde(default)]
    parameters: BTreeMap<String, Spanned<Value>>,
}

#[derive(Deserialize, Clone)]
#[serde(
    deny_unknown_fields,
    expecting = "a number with its source, as { value = 0.9, source = \"our own\" }"
)]
struct Value {
    value: f64,
    #[serde(default = "unsaid")]
    basis: Basis,
    source: String,
}

/// The basis of a number whose file does not name it.
const fn unsaid() -> Basis {
    Basis::Assumed
}

/// The largest value of any parameter: 2^53, up to which floating-point numbers are exact.
const LARGEST: f64 = 9_007_199_254_740_992.0;

impl Preset {
    /// Reads a preset from the text of `file` (used in errors).
    ///
    /// # Errors
    /// Names file, line and field of the first error.
    pub fn parse(file: &str, text: &str) -> Result<Self, PresetError> {
        let wrong = |byte: usize, problem: String| PresetError::Wrong {
            file: file.to_owned(),
            line: line_of(text, byte),
            problem,
            source: None,
        };
        let raw: File = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let place = text.get(span.clone()).unwrap_or_default();
            wrong(span.start, plain_words(error.message(), place))
        })?;
        let schema = raw.schema.get_ref();
        if *schema != 1 {
            let problem = format!("`schema` is {schema}, but must be 1, the only version there is");
            return Err(wrong(raw.schema.span().start, problem));
        }
        let mut sets = Vec::new();
        for (name, set) in &raw.set {
            let reader = Reader {
                file,
                text,
                set: name,
                line: line_of(text, set.span().start),
            };
            sets.push(reader.read(&raw, set.get_ref())?);
        }
        // The default comes first; the others stay in the order of their names.
        let default = sets
            .iter()
            .position(|set| set.name == *raw.default_set.get_ref());
        let Some(default) = default else {
            return Err(PresetError::NoSet {
                preset: format!("{file}:{}", line_of(text, raw.default_set.span().start)),
                set: raw.default_set.into_inner(),
                known: names(sets.iter().map(|set| set.name.as_str())),
            });
        };
        let first = sets.remove(default);
        sets.insert(0, first);
        Ok(Self {
            name: raw.name,
            title: raw.title,
            model: raw.model,
            description: raw.description,
            sets,
        })
    }

    /// Names of the parameter sets, the default first.
    #[must_use]
    pub fn set_names(&self) -> Vec<&str> {
        self.sets.iter().map(|set| set.name.as_str()).collect()
    }

    /// The name of the set that this disk uses beside others with the set `fit`: a disk with a
    /// single set uses that one, whatever the others use.
    #[must_use]
    pub fn set_beside<'a>(&'a self, fit: &'a str) -> &'a str {
        match self.sets.as_slice() {
            [only] => &only.name,
            _ => fit,
        }
    }

    /// The parameters of a set.
    ///
    /// # Errors
    /// If there is no set of that name.
    pub fn parameters(&self, set: &str) -> Result<&DiskParameters, PresetError> {
        self.set(set).map(|set| &set.parameters)
    }

    /// The description of a set.
    ///
    /// # Errors
    /// If there is no set of that name.
    pub fn set_description(&self, set: &str) -> Result<&str, PresetError> {
        self.set(set).map(|set| set.description.as_str())
    }

    /// Every number of a set with its source.
    ///
    /// # Errors
    /// If there is no set of that name.
    pub fn provenance(&self, set: &str) -> Result<&[Provenance], PresetError> {
        self.set(set).map(|set| set.provenance.as_slice())
    }

    /// Whether a set was fitted to measurements of this very disk: some of its numbers were, and
    /// none is borrowed from another one. The figures of other sets carry a [band](crate::Bands).
    ///
    /// # Errors
    /// If there is no set of that name.
    pub fn is_fitted(&self, set: &str) -> Result<bool, PresetError> {
        let numbers = self.provenance(set)?;
        let any = |basis| numbers.iter().any(|number| number.basis == basis);
        Ok(any(Basis::Fitted) && !any(Basis::Borrowed))
    }

    fn set(&self, name: &str) -> Result<&Set, PresetError> {
        self.sets
            .iter()
            .find(|set| set.name == name)
            .ok_or_else(|| PresetError::NoSet {
                preset: self.name.clone(),
                set: name.to_owned(),
                known: names(self.set_names().into_iter()),
            })
    }
}

/// Reads one set: its own parameters take precedence over the shared ones.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    set: &'a str,
    /// The line of the file at which the set begins.
    line: usize,
}

impl Reader<'_> {
    fn read(&self, raw: &File, set: &FileSet) -> Result<Set, PresetError> {
        let given = raw.parameters.iter().chain(&set.parameters);
        let medium = Medium::of_names(given.clone().map(|(name, _)| name.as_str()));
        let mut merged: BTreeMap<&str, &Spanned<Value>> = BTreeMap::new();
        for (name, value) in given {
            self.check(medium, name, value)?;
            merged.insert(name, value);
        }
        let mut parameters = DiskParameters::blank(
            medium,
            raw.rate_curve
                .points
                .get_ref()
                .iter()
                .map(|&(place, rate)| RatePoint {
                    place,
                    bytes_per_second: rate * 1024.0,
                })
                .collect(),
        );
        let mut provenance = Vec::new();
        let optional = OPTIONAL.into_iter();
        let given = optional.filter(|name| merged.contains_key(name));
        for name in medium.names().chain(given) {
            let value = merged
                .get(name)
                .ok_or_else(|| {
                    let problem = format!("parameter `{name}` is missing in set `{}`", self.set);
                    self.wrong(self.line, problem, None)
                })?
                .get_ref();
            parameters.set_named(name, value.value);
            provenance.push(Provenance {
                name: name.to_owned(),
                value: value.value.to_string(),
                basis: value.basis,
                source: value.source.clone(),
            });
        }
        let points: Vec<String> = raw
            .rate_curve
            .points
            .get_ref()
            .iter()
            .map(|(place, rate)| format!("{place}: {rate}"))
            .collect();
        provenance.push(Provenance {
            name: "rate_curve_kibibytes_per_second".to_owned(),
            value: points.join(", "),
            basis: raw.rate_curve.basis,
            source: raw.rate_curve.source.clone(),
        });
        parameters.validate().map_err(|source| {
            let problem = format!("set `{}` is not a disk", self.set);
            let given = merged.get(source.field).map(|value| value.span().start);
            let points = raw.rate_curve.points.span().start;
            let of_curve = || (source.field == "rate_curve").then_some(points);
            let line = given
                .or_else(of_curve)
                .map(|start| line_of(self.text, start));
            self.wrong(line.unwrap_or(self.line), problem, Some(source))
        })?;
        Ok(Set {
            name: self.set.to_owned(),
            description: set.description.clone(),
            parameters,
            provenance,
        })
    }

    fn check(&self, medium: Medium, name: &str, value: &Spanned<Value>) -> Result<(), PresetError> {
        let line = line_of(self.text, value.span().start);
        let known: Vec<&str> = medium.names().chain(OPTIONAL).collect();
        if !known.contains(&name) {
            let problem = format!("`{name}` is not a parameter; {}", suggestion(name, &known));
            return Err(self.wrong(line, problem, None));
        }
        let number = value.get_ref().value;
        let range = match number {
            _ if !(0.0..=LARGEST).contains(&number) => "between 0 and 2^53",
            _ if counts(medium, name, number) => "a whole number",
            _ if number > 1.0 && only(medium, name, number) == only(medium, name, 1.0) => "0 or 1",
            _ => return Ok(()),
        };
        let problem = format!("`{name}` is {number:?}, but must be {range}");
        Err(self.wrong(line, problem, None))
    }

    fn wrong(&self, line: usize, problem: String, source: Option<ParameterError>) -> PresetError {
        PresetError::Wrong {
            file: self.file.to_owned(),
            line,
            problem,
            source,
        }
    }
}

/// Endings of the names of times and rates, which may have any fraction.
const FRACTIONS: [&str; 3] = ["_us", "_ms", "_per_second"];

/// Whether a number would lose a fraction by being cut off to an integer, that is, whether the disk
/// would be the same without that fraction.
fn counts(medium: Medium, name: &str, number: f64) -> bool {
    if number.fract() == 0.0 || FRACTIONS.iter().any(|unit| name.ends_with(unit)) {
        return false;
    }
    only(medium, name, number) == only(medium, name, number.trunc())
}

/// A disk for which only this number is set.
fn only(medium: Medium, name: &str, number: f64) -> DiskParameters {
    let mut disk = DiskParameters::blank(medium, Vec::new());
    disk.set_named(name, number);
    disk
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
