//! The common part of the readers of job files and command lines: an option as written becomes one
//! of the list, or is refused.

use super::Note;
use super::class::Class;
use super::error::{JobFileError, OptionError, Place};
use super::options::FioOption;
use super::permission::{Permission, judge};
use super::table;

/// Reads options one by one.
pub(super) struct Reader<'a> {
    permission: &'a Permission,
    pub(super) notes: Vec<Note>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(permission: &'a Permission) -> Self {
        Self {
            permission,
            notes: Vec::new(),
        }
    }

    /// Reads an option, with its variables replaced; `None` for a place that is not the target,
    /// since raidlab's target replaces it.
    pub(super) fn option(
        &mut self,
        name: &str,
        value: Option<&str>,
        place: Place,
    ) -> Result<Option<FioOption>, JobFileError> {
        let error = |cause| JobFileError::Option {
            place: place.clone(),
            option: name.to_owned(),
            cause: Box::new(cause),
        };
        // The text as written is judged too, so that the error shows it.
        let replaced = value
            .map(|text| self.permission.replace_variables(text))
            .transpose();
        let value = match replaced {
            Ok(value) => value,
            Err(variable) => {
                judge(name, value, self.permission).map_err(error)?;
                return Err(error(OptionError::Variable { variable }));
            }
        };
        judge(name, value.as_deref(), self.permission).map_err(error)?;
        if table::class(name, value.as_deref()) == Class::Place && table::is_target(name) {
            self.notes.push(Note {
                place,
                option: name.to_owned(),
                text: "the array takes its place, for all jobs alike",
            });
            return Ok(None);
        }
        Ok(Some(FioOption {
            name: name.to_owned(),
            value,
            place,
        }))
    }
}

/// Splits `option=value` at the first equals sign; an option alone has no value.
pub(super) fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once('=') {
        Some((option, value)) => (option.trim(), Some(value.trim())),
        None => (text, None),
    }
}
