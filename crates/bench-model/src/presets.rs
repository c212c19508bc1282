//! The presets of disks and processors: built in, or read from a file.

use raidlab_disk::{Preset, PresetError};
use raidlab_lab::catalogue::{is_path, nearby, read_file};
use raidlab_lab::files::built_in;
use raidlab_lab::{FileKind, Files, LoadError, check_file};
use raidlab_sim::ProcessorError;
pub use raidlab_sim::{ProcessorNumbers, ProcessorPreset};
use raidlab_store::Setting;
use raidlab_units::PathError;
use std::path::Path;
use thiserror::Error;

/// The reason why a preset cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadPresetError {
    /// No built-in preset has this name.
    #[error(
        "{what} `{name}` is not known{}", nearby(.name, .known)
    )]
    Unknown {
        /// The kind of preset that it should be: `disk preset`, `processor`.
        what: &'static str,
        /// The name as it was given.
        name: String,
        /// The names of all presets that there are.
        known: Vec<String>,
    },
    /// The file cannot be read, is of another kind, or has a value that no file may have.
    #[error(transparent)]
    File(#[from] Box<LoadError>),
    /// The same of a file that should be a processor's.
    #[error(transparent)]
    ProcessorFile(Box<LoadError>),
    /// The file is no preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// The file is no processor's.
    #[error(transparent)]
    Processor(#[from] ProcessorError),
}

impl From<PathError> for LoadPresetError {
    fn from(error: PathError) -> Self {
        Self::File(Box::new(error.into()))
    }
}

/// A folder of the repository with built-in presets of one kind.
struct Folder {
    name: &'static str,
    what: &'static str,
    kind: FileKind,
}

const DISKS: Folder = Folder {
    name: "disks",
    what: "disk preset",
    kind: FileKind::Disk,
};

const PROCESSORS: Folder = Folder {
    name: "processors",
    what: "processor",
    kind: FileKind::Processor,
};

impl Folder {
    /// The names of the folder's files, in order.
    fn names(&self) -> Vec<&'static str> {
        let entries = raidlab_data::entries(self.name).iter();
        entries.map(|entry| entry.name).collect()
    }

    /// The name that errors give a preset's file, and its text: from `files` where a plan has
    /// brought it, and else noted there, so that a run can be repeated.
    fn file(&self, files: &Files, name: &str) -> Result<(String, String), LoadPresetError> {
        let (known_as, file) = if is_path(name) {
            (name.to_owned(), name.to_owned())
        } else {
            (
                built_in(self.name, name),
                format!("{}/{name}.toml", self.name),
            )
        };
        let text = files.text(&known_as, || self.text(name))?;
        check_file(self.kind, &file, &text).map_err(|error| Box::new(error.into()))?;
        Ok((file, text))
    }

    fn text(&self, name: &str) -> Result<String, LoadPresetError> {
        if is_path(name) {
            return Ok(read_file(Path::new(name)).map_err(Box::new)?);
        }
        let text = raidlab_data::text(self.name, name).map(str::to_owned);
        text.ok_or_else(|| LoadPresetError::Unknown {
            what: self.what,
            name: name.to_owned(),
            known: self.names().into_iter().map(str::to_owned).collect(),
        })
    }
}

/// Names of the built-in disk presets, in order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    DISKS.names()
}

/// Loads a disk preset by name, or from a file if `name` is a path.
///
/// # Errors
/// When there is none of that name, or its file is wrong.
pub fn load(name: &str) -> Result<Preset, LoadPresetError> {
    load_from(&Files::default(), name)
}

/// Loads a disk preset by name or path as [`load`] does, from these files.
///
/// # Errors
/// As [`load`].
pub fn load_from(files: &Files, name: &str) -> Result<Preset, LoadPresetError> {
    let (file, text) = DISKS.file(files, name)?;
    Ok(Preset::parse(&file, &text)?)
}

/// The text of a disk preset's file, comments included.
///
/// # Errors
/// When there is none, or its file cannot be read.
pub fn text(name: &str) -> Result<String, LoadPresetError> {
    DISKS.text(name)
}

/// Names of the built-in processors, in order.
#[must_use]
pub fn processor_names() -> Vec<&'static str> {
    PROCESSORS.names()
}

/// Loads a processor by name, or from a file if `name` is a path, of these files.
///
/// # Errors
/// When there is none of that name, or its file is wrong.
pub fn processor(files: &Files, name: &str) -> Result<ProcessorPreset, LoadPresetError> {
    let (file, text) = PROCESSORS.file(files, name).map_err(of_processor)?;
    Ok(ProcessorPreset::parse(&file, &text)?)
}

/// A processor's numbers with their sources, for the record of a run.
#[must_use]
pub fn processor_settings(preset: &ProcessorPreset) -> Vec<Setting> {
    let scope = format!("processor {}", preset.name);
    let numbers = preset.sources.iter().map(|number| {
        let source = format!("{}: {}", number.basis, number.source);
        Setting::new(&scope, &number.name, &number.value, source)
    });
    numbers.collect()
}

/// The text of a processor's file, comments included.
///
/// # Errors
/// When there is none, or its file cannot be read.
pub fn processor_text(name: &str) -> Result<String, LoadPresetError> {
    PROCESSORS.text(name).map_err(of_processor)
}

fn of_processor(error: LoadPresetError) -> LoadPresetError {
    match error {
        LoadPresetError::File(error) => LoadPresetError::ProcessorFile(error),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{load, names, processor, processor_names};
    use raidlab_disk::Basis;
    use raidlab_lab::{Files, catalogue};

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

    /// The sum that data/subjects/hosts.toml names as the source of `turnaround_with_flash`.
    #[test]
    fn a_host_with_flash_takes_what_its_processor_charges() {
        let files = Files::default();
        let cost = processor(&files, "desktop-2015").expect("built in").numbers;
        let request = cost.user_ns + cost.call_ns + cost.dispatch_ns;
        let answer = cost.interrupt_ns + cost.complete_ns + cost.wake_call_ns + cost.switch_ns;
        for name in ["linux-3.16", "linux-5.10", "linux-6.9", "linux-6.12-2g"] {
            let host = catalogue::host(&files, name).expect("built in");
            let own = host.turnaround_with_flash.0 as f64;
            assert!((own - request - answer).abs() < 1.0, "{name}: {own} ns");
        }
    }

    #[test]
    fn disks_that_store_4_kib_say_so() {
        for name in ["st12000vn0007", "st6000vn001", "st4000dm004", "wd15ears"] {
            let preset = load(name).expect(name);
            let disk = preset.parameters("rated").expect("its set");
            assert_eq!(disk.physical_sectors(), 8, "{name}");
        }
    }

    /// The basis of a number is what the words of its source say.
    #[test]
    fn basis_and_source_of_a_number_agree() {
        let mut judged = 0;
        for name in names() {
            let preset = load(name).expect(name);
            let sets = preset.set_names();
            for number in sets
                .iter()
                .flat_map(|set| preset.provenance(set).expect(set))
            {
                let source = &number.source;
                // A number that was chosen is known as what it was chosen for is.
                let origin = source.rsplit(" of: ").next().unwrap_or(source);
                let others = [
                    "as fitted to",
                    "github.com/lumir-sliva",
                    "nvmevirt",
                    "as in wd4",
                ];
                let basis = if origin.starts_with("assumed") || origin.starts_with("reported") {
                    Basis::Assumed
                } else if origin.starts_with("measured") {
                    Basis::Measured
                } else if origin.starts_with("the maker") {
                    Basis::Rated
                } else if others.iter().any(|words| origin.contains(words)) {
                    match number.name.as_str() {
                        "flash_channels" if origin.ends_with("are assumed") => Basis::Assumed,
                        _ => Basis::Borrowed,
                    }
                } else {
                    continue;
                };
                assert_eq!(number.basis, basis, "{name}, {}: {source}", number.name);
                judged += 1;
            }
        }
        assert!(judged > 400, "{judged}");
    }

    #[test]
    fn every_built_in_processor_is_valid() {
        for name in processor_names() {
            let preset = processor(&Files::default(), name).expect(name);
            assert_eq!(preset.name, name);
            assert!(preset.sources.iter().all(|one| !one.source.is_empty()));
        }
        let error = processor(&Files::default(), "desktop").expect_err("no such one");
        assert!(error.to_string().contains("desktop-2015"), "{error}");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = load("st4000").expect_err("no such preset").to_string();
        assert!(error.contains("st4000dm004"), "{error}");
    }
}
