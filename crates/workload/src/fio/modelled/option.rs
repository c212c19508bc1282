//! The rows of the tables of options: their names, and the effects of their values on a draft.

use super::super::error::OptionError;
use super::super::value;
use super::{Draft, choice, needed, plain_size};
use raidlab_units::{Bytes, Nanos};

/// The note on a value, if there is one.
pub(super) type Noted = Result<Option<&'static str>, OptionError>;

/// An option that changes a job: fio's name and its aliases, with `|` between them, and the effect
/// of its value.
pub(in super::super) type ModelledOption = (&'static str, Setter);

/// The effect of an option's value. Most are stored in one field of the draft.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Setter {
    /// A switch: nothing or `1` is on, `0` is off.
    Switch(fn(&mut Draft) -> &mut bool),
    /// One of two words, such as `inline, offload`, of which the second one switches on.
    Either(&'static str, fn(&mut Draft) -> &mut bool),
    /// A whole number of at least so much.
    Count(u32, fn(&mut Draft) -> &mut u32),
    /// A time; a plain number is in this unit.
    Time(&'static str, fn(&mut Draft) -> &mut Nanos),
    /// One size in bytes.
    Size(fn(&mut Draft) -> &mut Bytes),
    /// A value that this function applies.
    Own(fn(&mut Draft, Option<&str>) -> Noted),
}

impl Setter {
    /// Applies a value to a draft; returns a note if there is one.
    pub(in super::super) fn apply(self, draft: &mut Draft, value: Option<&str>) -> Noted {
        match self {
            Self::Switch(place) => *place(draft) = value::switch(value)?,
            Self::Either(words, place) => {
                let text = needed(value)?;
                let found = words.split(", ").position(|word| word == text);
                *place(draft) = found.ok_or_else(|| choice(text, words))? == 1;
            }
            Self::Count(least, place) => *place(draft) = value::count(needed(value)?, least)?,
            Self::Time(unit, place) => *place(draft) = value::time(needed(value)?, unit)?,
            Self::Size(place) => *place(draft) = plain_size(draft, value)?,
            Self::Own(set) => return set(draft, value),
        }
        Ok(None)
    }
}

/// An option whose value is read by a function of its own.
pub(super) const fn option(
    names: &'static str,
    set: fn(&mut Draft, Option<&str>) -> Noted,
) -> ModelledOption {
    (names, Setter::Own(set))
}
