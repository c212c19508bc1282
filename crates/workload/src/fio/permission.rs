//! The user's permission for what the files of a run may ask of fio.
//!
//! A suite or a job file may come from anywhere, and fio runs as root. So a file may only shape the
//! load ([`Class::Load`](super::Class::Load)). Any other option is refused by name, unless the user
//! allows it on the command line of this run.

use super::class::Class;
use super::error::OptionError;
use super::table::{canonical_name, class, is_program_option, nearest, rule};
use std::collections::BTreeMap;
use thiserror::Error;

/// The permission for options beyond shaping the load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permission {
    /// The options that files may use, by fio's own names.
    options: Vec<String>,
    /// The values of variables, `${NAME}`.
    variables: BTreeMap<String, String>,
}

/// The reason why something cannot be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PermissionError {
    /// fio has no option of this name.
    #[error("fio has no option `{option}`{}", .nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?")))]
    Unknown {
        /// The name as given.
        option: String,
        /// The option with the most similar name, if any is near.
        nearest: Option<&'static str>,
    },
    /// A variable that has no value.
    #[error("`${{{name}}}` has no value: it is not in the environment")]
    Unset {
        /// The variable's name.
        name: String,
    },
}

impl Permission {
    /// Adds a permission: an option by any of its names, `include`, or a variable as `${NAME}` or
    /// `${NAME}=VALUE`. Without a value a variable has that of `environment`.
    ///
    /// # Errors
    /// When there is no such option or the variable has no value.
    pub fn allow(
        &mut self,
        text: &str,
        environment: impl FnOnce(&str) -> Option<String>,
    ) -> Result<(), PermissionError> {
        if let Some((name, rest)) = text
            .strip_prefix("${")
            .and_then(|rest| rest.split_once('}'))
        {
            let value = match rest.strip_prefix('=') {
                Some(value) => Some(value.to_owned()),
                None => environment(name),
            };
            let name = name.to_owned();
            let value = value.ok_or_else(|| PermissionError::Unset { name: name.clone() })?;
            self.variables.insert(name, value);
            return Ok(());
        }
        let option = canonical_name(text);
        if option != INCLUDE && rule(&option).is_none() {
            return Err(PermissionError::Unknown {
                option: text.to_owned(),
                nearest: nearest(text),
            });
        }
        self.options.push(option);
        Ok(())
    }

    /// Whether an option, by fio's own name, is allowed.
    #[must_use]
    pub fn allows(&self, option: &str) -> bool {
        self.options.iter().any(|allowed| allowed == option)
    }

    /// Whether the lines of another file may be included.
    #[must_use]
    pub fn allows_include(&self) -> bool {
        self.allows(INCLUDE)
    }

    /// The text with each `${NAME}` replaced that has a value here. The error is the first one
    /// without a value.
    pub(super) fn replace_variables(&self, text: &str) -> Result<String, String> {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            let end = from.find('}').ok_or_else(|| from.to_owned())?;
            let value = self.variables.get(&from[2..end]);
            replaced.push_str(before);
            replaced.push_str(value.ok_or_else(|| from[..=end].to_owned())?);
            rest = &from[end + 1..];
        }
        replaced.push_str(rest);
        match machine_word(&replaced) {
            None => Ok(replaced),
            Some(word) => Err(word.to_owned()),
        }
    }
}

/// fio's word that includes another file.
const INCLUDE: &str = "include";

/// The first of the words that fio replaces by a number of the machine.
fn machine_word(text: &str) -> Option<&'static str> {
    let words = ["$ncpus", "$pagesize", "$mb_memory"];
    words.into_iter().find(|word| text.contains(word))
}

/// Refuses an unknown option, and one that a file may not give without permission. `value` is as
/// written, with raidlab's placeholders.
pub(super) fn judge(
    name: &str,
    value: Option<&str>,
    permission: &Permission,
) -> Result<(), OptionError> {
    if is_program_option(name) {
        return Err(OptionError::Program);
    }
    if rule(name).is_none() {
        return Err(OptionError::Unknown {
            nearest: nearest(name),
        });
    }
    if let Some(letter) = value.and_then(|value| value.chars().find(|one| one.is_control())) {
        return Err(OptionError::ControlLetter { letter });
    }
    let canonical = canonical_name(name);
    let class = class(name, value);
    if class == Class::Load || permission.allows(&canonical) {
        return Ok(());
    }
    Err(OptionError::NotAllowed {
        class,
        option: canonical,
    })
}

#[cfg(test)]
mod tests {
    use super::{Permission, PermissionError};

    #[test]
    fn variables_have_the_value_that_was_asked_for() {
        let mut permission = Permission::default();
        let environment = |name: &str| (name == "BS").then(|| "4k".to_owned());
        permission.allow("${BS}", environment).expect("it is set");
        permission
            .allow("${RW}=read", environment)
            .expect("it has a value");
        let unset = permission.allow("${OTHER}", environment).unwrap_err();
        assert_eq!(
            unset,
            PermissionError::Unset {
                name: "OTHER".to_owned()
            }
        );
        let cases = [
            ("${BS},${RW}", Ok("4k,read")),
            ("/dev/${OTHER}1", Err("${OTHER}")),
            ("${open", Err("${open")),
            ("$ncpus", Err("$ncpus")),
            ("$jobname.$jobnum", Ok("$jobname.$jobnum")),
        ];
        for (text, expected) in cases {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(permission.replace_variables(text), expected, "{text}");
        }
    }

    #[test]
    fn an_option_is_allowed_by_any_of_its_names_and_no_other() {
        let mut permission = Permission::default();
        permission
            .allow("mem", |_| None)
            .expect("an option of fio's");
        assert!(permission.allows("iomem"));
        assert!(!permission.allows("exec_prerun"));
        let error = permission.allow("exec_prerum", |_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "fio has no option `exec_prerum`; did you mean `exec_prerun`?"
        );
    }
}
