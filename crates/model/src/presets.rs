//! The disk presets: built in, or read from a file.

use raidlab_disk::{Preset, PresetError};
use std::borrow::Cow;
use thiserror::Error;

/// Every built-in preset: its name and the text of its file.
const BUILT_IN: [(&str, &str); 9] = [
    ("wd4000fyyz", include_str!("../../../disks/wd4000fyyz.toml")),
    ("sp1614n", include_str!("../../../disks/sp1614n.toml")),
    (
        "st12000vn0007",
        include_str!("../../../disks/st12000vn0007.toml"),
    ),
    ("st3160215a", include_str!("../../../disks/st3160215a.toml")),
    ("st340015a", include_str!("../../../disks/st340015a.toml")),
    (
        "st4000dm004",
        include_str!("../../../disks/st4000dm004.toml"),
    ),
    (
        "st6000vn001",
        include_str!("../../../disks/st6000vn001.toml"),
    ),
    ("ssd950pro", include_str!("../../../disks/ssd950pro.toml")),
    ("wd15ears", include_str!("../../../disks/wd15ears.toml")),
];

/// Why a preset cannot be had.
#[derive(Debug, Error)]
pub enum LoadPresetError {
    /// No built-in preset has this name.
    #[error(
        "there is no disk preset `{name}`; built in are: {known} (a path to a file needs a `/` or ends in .toml)"
    )]
    Unknown {
        /// As given.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
}

/// Names of the built-in presets, in order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|entry| entry.0).collect()
}

/// A preset by name, or from a file if `name` is a path.
///
/// # Errors
/// When there is none of that name, or its file is wrong.
pub fn load(name: &str) -> Result<Preset, LoadPresetError> {
    let text = text(name)?;
    Ok(match text {
        Cow::Owned(text) => Preset::parse(name, &text)?,
        Cow::Borrowed(text) => Preset::parse(&format!("disks/{name}.toml"), text)?,
    })
}

/// The text of a preset's file, comments included.
///
/// # Errors
/// When there is none of that name, or its file cannot be read.
pub fn text(name: &str) -> Result<Cow<'static, str>, LoadPresetError> {
    if raidlab_lab::catalogue::is_path(name) {
        let text = std::fs::read_to_string(name).map_err(|source| LoadPresetError::Read {
            path: name.to_owned(),
            source,
        })?;
        return Ok(text.into());
    }
    let built_in = BUILT_IN.iter().find(|entry| entry.0 == name);
    let text = built_in.map(|(_, text)| Cow::Borrowed(*text));
    text.ok_or_else(|| LoadPresetError::Unknown {
        name: name.to_owned(),
        known: names().join(", "),
    })
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
        assert!(error.contains("wd4000fyyz"), "{error}");
    }
}
