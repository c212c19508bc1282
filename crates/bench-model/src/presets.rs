//! The disk presets: built in, or read from a file.

use raidlab_disk::{Preset, PresetError};
use raidlab_lab::catalogue::{is_path, nearby, read_file};
use raidlab_lab::files::built_in;
use raidlab_lab::{Files, LoadError, check_values};
use std::path::Path;
use thiserror::Error;

/// Why a preset cannot be had.
#[derive(Debug, Error)]
pub enum LoadPresetError {
    /// No built-in preset has this name.
    #[error(
        "disk preset `{name}` is not known{}", nearby(.name, .known)
    )]
    Unknown {
        /// The name as it was given.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The file cannot be read, or has a value that no file may have.
    #[error(transparent)]
    File(#[from] Box<LoadError>),
    /// The file is no preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
}

/// Names of the built-in presets, in order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let entries = raidlab_data::entries(FOLDER).iter();
    entries.map(|entry| entry.name).collect()
}

/// The folder of the repository that has the built-in presets.
const FOLDER: &str = "disks";

/// A preset by name, or from a file if `name` is a path.
///
/// # Errors
/// When there is none of that name, or its file is wrong.
pub fn load(name: &str) -> Result<Preset, LoadPresetError> {
    load_from(&Files::default(), name)
}

/// A preset by name or path as [`load`] gives it. Its text is taken from `files` where a
/// plan has brought it, and else noted there, so that a run can be repeated.
///
/// # Errors
/// As [`load`].
pub fn load_from(files: &Files, name: &str) -> Result<Preset, LoadPresetError> {
    let (known_as, file) = if is_path(name) {
        (name.to_owned(), name.to_owned())
    } else {
        (built_in(FOLDER, name), format!("{FOLDER}/{name}.toml"))
    };
    let lacking = |source| {
        let path = known_as.clone().into();
        LoadPresetError::from(Box::new(LoadError::Read { path, source }))
    };
    let text = files.text(&known_as, || text(name), lacking)?;
    check_values(&file, &text).map_err(|error| Box::new(error.into()))?;
    Ok(Preset::parse(&file, &text)?)
}

/// The text of a preset's file, comments included.
///
/// # Errors
/// When there is none of that name, or its file cannot be read.
pub fn text(name: &str) -> Result<String, LoadPresetError> {
    if is_path(name) {
        return Ok(read_file(Path::new(name)).map_err(Box::new)?);
    }
    raidlab_data::text(FOLDER, name).map_or_else(
        || {
            Err(LoadPresetError::Unknown {
                name: name.to_owned(),
                known: names().into_iter().map(str::to_owned).collect(),
            })
        },
        |text| Ok(text.to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::{load, names};

    #[test]
    fn every_built_in_preset_is_valid() {
        for name in names() {
            let preset = load(name).expect(name);
            assert_eq!(preset.name, name);
            for set in preset.set_names() {
                let provenance = preset.provenance(set).expect(set);
                assert!(provenance.iter().all(|number| !number.source.is_empty()));
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = load("st4000").expect_err("no such preset").to_string();
        assert!(error.contains("st4000dm004"), "{error}");
    }
}
