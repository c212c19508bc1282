//! The facts that have short names, and the names that facts may have.

use raidlab_inventory::environment::{self, NAMES};
use raidlab_store::fact;
use raidlab_tools::fio::fio_options;
use raidlab_units::{nearest, suggestion, table};
use std::sync::LazyLock;

/// The kind of a fact's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A size, `16GiB` or `4k`, kept as bytes.
    Size,
    /// A time such as `60s`, kept as nanoseconds.
    Time,
    /// A percentage, `80%` or `80`.
    Percent,
    /// A number of 0 or more, kept as it is.
    Number,
    /// A switch: `true`, `yes`, `1` or their opposites.
    Switch,
    /// An array's level, kept in small letters: `raid6`, `6`, `raidz2`.
    Level,
    /// One of the words between bars, each of which may be followed by
    /// other spellings: `none=idle|check`.
    OneOf(&'static str),
    /// A word as it is.
    Text,
}

/// Each kind with its word in the table, and an example value.
const KINDS: [(&str, Kind, &str); 7] = [
    ("size", Kind::Size, "a size such as 16GiB"),
    ("time", Kind::Time, "a time such as 60s"),
    ("percent", Kind::Percent, "a percentage such as 80%"),
    ("number", Kind::Number, "a number"),
    ("switch", Kind::Switch, "yes or no"),
    ("level", Kind::Level, "a level such as raid6"),
    ("text", Kind::Text, "a word"),
];

impl Kind {
    /// The kind with this word in the table; any other word with bars lists the allowed words.
    fn read(word: &'static str) -> Option<Self> {
        let mut kinds = KINDS.iter();
        match kinds.find(|(known, ..)| *known == word) {
            Some((_, kind, _)) => Some(*kind),
            None => word.contains('|').then_some(Self::OneOf(word)),
        }
    }

    /// An example of a value of this kind.
    pub(super) fn example(self) -> String {
        if let Self::OneOf(words) = self {
            let first = |word: &'static str| word.split('=').next().unwrap_or(word);
            let words: Vec<&str> = words.split('|').map(first).collect();
            return format!("one of {}", words.join(", "));
        }
        let found = KINDS.iter().find(|(_, kind, _)| *kind == self);
        found.map_or_else(String::new, |(.., example)| (*example).to_owned())
    }
}

/// A fact with a short name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) short: &'static str,
    pub(super) kind: Kind,
    /// The names that the short name stands for, separated by blanks.
    names: &'static str,
    /// The value in its example.
    pub(super) example: &'static str,
    /// The meaning of the fact, for help texts.
    pub(super) meaning: &'static str,
}

impl Known {
    /// The names that the short name stands for.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split_whitespace()
    }
}

/// The known facts in the order of help.
pub(super) static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let text = include_str!("known.txt");
    table(text, |[short, word, names, example, meaning]| {
        Some(Known {
            short,
            kind: Kind::read(word)?,
            names,
            example,
            meaning,
        })
    })
});

/// Whether somebody may read a fact of this name, which is a long one.
pub(crate) fn is_known(name: &str) -> bool {
    match name.strip_prefix("fio.option.") {
        Some(option) => options().any(|known| known == option),
        None => fact::is_known(name) || environment::known(name).is_some(),
    }
}

/// The names of fio's options, in all their spellings.
fn options() -> impl Iterator<Item = &'static str> {
    fio_options().into_iter().flat_map(|option| option.names)
}

/// What may be meant by a name that no fact has: one near it, long or short, or all short names.
pub(super) fn instead(name: &str) -> String {
    let short: Vec<&str> = KNOWN.iter().map(|known| known.short).collect();
    let mut names = long_names_like(name);
    names.extend(short.iter().map(|&short| short.to_owned()));
    match nearest(name, &names) {
        Some(_) => suggestion(name, &names),
        None => suggestion(name, &short),
    }
}

/// What may be meant by a name that no fact has, where facts have their long names: that of a short
/// one, or one near it.
pub(crate) fn long_instead(name: &str) -> String {
    match KNOWN.iter().find(|known| known.short == name) {
        Some(known) => {
            let names: Vec<&str> = known.names().collect();
            format!("write `{}`", names.join("` or `"))
        }
        None => {
            let names = long_names_like(name);
            match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "docs/reference/import.md names the usual ones".to_owned(),
            }
        }
    }
}

/// The long names of facts of which this one may be a misspelling.
fn long_names_like(name: &str) -> Vec<String> {
    let inventory = NAMES.iter().map(|known| known.name.to_owned());
    let like = fact::like(name).filter(|known| known != name);
    let mut names: Vec<String> = inventory.chain(like).collect();
    if name.starts_with("fio.option.") {
        names.extend(options().map(fact::fio_option));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, is_known};

    #[test]
    fn each_name_of_the_table_is_a_fact_that_somebody_reads() {
        for name in KNOWN.iter().flat_map(super::Known::names) {
            assert!(is_known(name), "{name}");
        }
    }
}
