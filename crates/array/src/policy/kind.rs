//! Read policies by name.
//!
//! A policy describes itself by a [`Rule`]: its name, its parameter if it has one, and its
//! constructor. Names are looked up in a list of rules: those that arrays with data offer
//! ([`ReadPolicyKind::OWN`]), or a longer one of models.

use super::{ReadPolicy, least_pending, md_6_9, md_raid10, round_robin};
use raidlab_units::{ParseUnitError, SECTOR_BYTES, Sectors, parse_bytes};
use std::fmt;
use std::str::FromStr;

/// The description of a read policy.
#[derive(Debug)]
pub struct Rule {
    /// The name without a parameter.
    pub name: &'static str,
    /// The parameter that may follow the name.
    pub parameter: Parameter,
    /// Builds the policy for a number of members and this parameter (sectors, or a
    /// slot), without history.
    pub build: fn(usize, u64) -> Box<dyn ReadPolicy>,
}

/// The parameter that may follow a policy's name, behind a colon.
#[derive(Debug)]
pub enum Parameter {
    /// The policy has no parameter.
    None,
    /// A size in whole sectors.
    Size {
        /// The size where the name has no parameter.
        usual: Sectors,
        /// The smallest size that the policy accepts.
        least: Sectors,
    },
    /// The number of a slot of the array; 0 where none is given.
    Slot,
}

/// A read policy and its parameter.
#[derive(Debug, Clone, Copy)]
pub struct ReadPolicyKind {
    rule: &'static Rule,
    parameter: u64,
}

/// A read policy that does not exist or cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadPolicyError {
    /// No policy has this name.
    #[error("`{name}` is not a read policy; known are {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The known names, in a list.
        known: String,
    },
    /// A parameter for a policy that has none.
    #[error("the read policy `{name}` takes no parameter")]
    NoParameter {
        /// The name of the policy.
        name: &'static str,
    },
    /// A size that cannot be read.
    #[error("the parameter of the read policy `{name}` is not a size")]
    Size {
        /// The name of the policy.
        name: &'static str,
        /// The reason why the size cannot be read.
        #[source]
        source: ParseUnitError,
    },
    /// A size that is not whole sectors, or zero where that is invalid.
    #[error("the parameter of the read policy `{name}` must be {expected}")]
    Parameter {
        /// The name of the policy.
        name: &'static str,
        /// The valid parameters, in words.
        expected: &'static str,
    },
    /// A device that the array does not have.
    #[error("the read policy names slot {slot}, but the array has {members} members")]
    NoSuchSlot {
        /// The slot that was asked for.
        slot: u64,
        /// The number of members of the array.
        members: usize,
    },
}

impl Rule {
    /// The policy with its usual parameter.
    #[must_use]
    pub const fn usual(&'static self) -> ReadPolicyKind {
        let parameter = match self.parameter {
            Parameter::Size { usual, .. } => usual.0,
            Parameter::None | Parameter::Slot => 0,
        };
        ReadPolicyKind {
            rule: self,
            parameter,
        }
    }

    fn read_parameter(&self, text: &str) -> Result<u64, ReadPolicyError> {
        let name = self.name;
        let wrong = |expected| Err(ReadPolicyError::Parameter { name, expected });
        let least = match self.parameter {
            Parameter::None => return Err(ReadPolicyError::NoParameter { name }),
            Parameter::Slot => {
                let slot = text.parse::<u16>();
                return slot.map_or_else(|_| wrong("a slot number"), |slot| Ok(slot.into()));
            }
            Parameter::Size { least, .. } => least,
        };
        let bytes = parse_bytes(text).map_err(|source| ReadPolicyError::Size { name, source })?;
        if !bytes.0.is_multiple_of(SECTOR_BYTES) {
            return wrong("whole sectors of 512 bytes");
        }
        match bytes.to_sectors() {
            sectors if sectors < least => wrong("at least one sector"),
            sectors => Ok(sectors.0),
        }
    }
}

impl ReadPolicyKind {
    /// The policies of arrays with data, with their usual parameters.
    pub const OWN: [Self; 4] = [
        Self::MD_6_9,
        md_raid10::RULE.usual(),
        Self::LEAST_PENDING,
        round_robin::RULE.usual(),
    ];

    /// md's rule for mirrors since Linux 6.9.
    pub const MD_6_9: Self = md_6_9::RULE.usual();

    /// The policy of the member with the fewest commands outstanding.
    pub const LEAST_PENDING: Self = least_pending::RULE.usual();

    /// Parses `name` or `name:parameter` as one of these policies: a size as fio writes it
    /// (`round-robin:64k`, `md-6.9:128k` for the optimal I/O size), or a slot.
    ///
    /// # Errors
    /// When none of these policies has this name, or its parameter is invalid.
    pub fn among(text: &str, known: &[Self]) -> Result<Self, ReadPolicyError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let found = known.iter().find(|kind| kind.name() == name);
        let mut kind = *found.ok_or_else(|| {
            let names: Vec<_> = known.iter().map(Self::name).collect();
            ReadPolicyError::Unknown {
                name: name.to_owned(),
                known: names.join(", "),
            }
        })?;
        if let Some(parameter) = parameter {
            kind.parameter = kind.rule.read_parameter(parameter)?;
        }
        Ok(kind)
    }

    /// Returns the name without parameters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.rule.name
    }

    /// Checks the parameter for an array of `members`.
    pub(crate) fn check(&self, members: usize) -> Result<(), ReadPolicyError> {
        match self.rule.parameter {
            Parameter::Slot if self.parameter >= members as u64 => {
                let slot = self.parameter;
                Err(ReadPolicyError::NoSuchSlot { slot, members })
            }
            _ => Ok(()),
        }
    }

    /// Builds the policy for an array of `members`, without history.
    #[must_use]
    pub fn build(&self, members: usize) -> Box<dyn ReadPolicy> {
        (self.rule.build)(members, self.parameter)
    }
}

impl PartialEq for ReadPolicyKind {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.parameter) == (other.name(), other.parameter)
    }
}

impl Eq for ReadPolicyKind {}

impl FromStr for ReadPolicyKind {
    type Err = ReadPolicyError;

    /// Parses the text by [`Self::among`] for the policies in [`Self::OWN`].
    fn from_str(text: &str) -> Result<Self, ReadPolicyError> {
        Self::among(text, &Self::OWN)
    }
}

impl fmt::Display for ReadPolicyKind {
    /// Writes the name, and the parameter where it is not the usual one, in the form
    /// that [`ReadPolicyKind::among`] reads.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        match self.rule.parameter {
            _ if *self == self.rule.usual() => Ok(()),
            Parameter::Size { .. } => {
                write!(formatter, ":{}", Sectors(self.parameter).to_bytes().0)
            }
            Parameter::None | Parameter::Slot => write!(formatter, ":{}", self.parameter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReadPolicyKind;

    #[test]
    fn every_name_is_read_back() {
        for kind in ReadPolicyKind::OWN {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string(), kind.name());
        }
        for text in ["round-robin:1048576", "md-6.9:131072"] {
            let kind: ReadPolicyKind = text.parse().expect(text);
            assert_eq!(kind.to_string(), text);
        }
        assert_eq!(
            "round-robin:1m".parse::<ReadPolicyKind>(),
            "round-robin:1048576".parse()
        );
    }

    #[test]
    fn what_models_alone_have_is_refused_with_the_names_that_there_are() {
        let error = "gmirror-load".parse::<ReadPolicyKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`gmirror-load` is not a read policy; known are md-6.9, md-raid10-5.4, \
             least-pending, round-robin"
        );
    }
}
