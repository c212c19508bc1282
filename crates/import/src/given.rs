//! Facts that the user knows and the imported files do not have: `--fact ram=16GiB`, or a
//! file of them.
//!
//! The facts that decide rules have short names here, with the kind of value that
//! each takes; every other fact of the store's vocabulary has its own dotted name.

mod known;

use known::{KNOWN, Kind, instead};
pub(crate) use known::{is_known, long_instead};
use raidlab_store::{Observation, Scope, fact};
use raidlab_tools::fio::canonical_name;
use raidlab_units::{line_of, parse_bytes, parse_duration, plain_words, suggestion};
use toml::de::{DeTable, DeValue};

/// A fact that the user gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The subject that the fact is about; `None` for all that is imported.
    pub subject: Option<String>,
    /// The fact's names in the store's vocabulary.
    names: Vec<String>,
    value: String,
    unit: &'static str,
    source: String,
}

/// The reason why a fact cannot be taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FactError {
    /// The text has no `=` in it.
    #[error("`{text}` is no fact: write NAME=VALUE, such as ram=16GiB")]
    NoValue {
        /// The text as it was written.
        text: String,
    },
    /// No fact has this name, so no reader would use it.
    #[error("there is no fact `{name}`; {}", instead(.name))]
    Unknown {
        /// The name as it was written.
        name: String,
    },
    /// The value is not of the fact's kind.
    #[error("the fact `{name}` cannot be `{value}`: write {wanted}")]
    Value {
        /// The name as given.
        name: String,
        /// The value as given.
        value: String,
        /// The form of a value of that kind.
        wanted: String,
    },
    /// A file of facts is not TOML.
    #[error("{0}")]
    File(String),
    /// The error is at this place of a file of facts, as `facts.toml:3`.
    #[error("{place}: {error}")]
    At {
        /// The file and the line.
        place: String,
        /// What is wrong at that place.
        error: Box<Self>,
    },
    /// The fact is about a subject of which nothing is imported.
    #[error("there are facts of `{name}`, and no such subject is imported; {}", suggestion(.name, .known))]
    NoSubject {
        /// The name as it was written.
        name: String,
        /// The subjects that are imported.
        known: Vec<String>,
    },
    /// The same fact is given in two places.
    #[error("the fact `{name}` is given twice, by {first}{}", also(.first, .second))]
    Twice {
        /// The fact's name in the store's vocabulary.
        name: String,
        /// The place where it was given first.
        first: String,
        /// The place where it is given again.
        second: String,
    },
    /// A name with dots has no quotation marks.
    #[error("a name with dots stands in quotation marks: write `\"{name}\" = ...`")]
    Dotted {
        /// The whole name, dots included.
        name: String,
    },
    /// The value is no text, number or switch.
    #[error("the fact `{name}` must be a text, a number or a switch")]
    Shape {
        /// The name as given.
        name: String,
    },
}

/// The second of two places in the end of a sentence, where it is another one.
fn also(first: &str, second: &str) -> String {
    match first == second {
        true => String::new(),
        false => format!(" and by {second}"),
    }
}

impl FactError {
    /// The same error at a place of a file.
    pub(crate) fn at(self, place: String) -> Self {
        let error = Box::new(self);
        Self::At { place, error }
    }
}

/// The facts that can be given by a short name: the name with a value, and its meaning.
pub fn short_facts() -> impl Iterator<Item = (String, &'static str)> {
    KNOWN
        .iter()
        .map(|known| (format!("{}={}", known.short, known.example), known.meaning))
}

/// The short form of a fact of the store's vocabulary: `ram=16GiB`; `None` where it has
/// no short name.
#[must_use]
pub fn how_to_give(name: &str) -> Option<String> {
    let known = KNOWN
        .iter()
        .find(|known| known.names().any(|one| one == name))?;
    Some(format!("{}={}", known.short, known.example))
}

impl Given {
    /// Parses a fact as on a command line: `ram=16GiB`.
    ///
    /// # Errors
    /// When it has no value, is unknown, or its value is not of its kind.
    pub fn parse(text: &str) -> Result<Self, FactError> {
        let (name, value) = text.split_once('=').ok_or_else(|| FactError::NoValue {
            text: text.to_owned(),
        })?;
        Self::new(None, name.trim(), value.trim(), "--fact")
    }

    fn new(
        subject: Option<String>,
        name: &str,
        value: &str,
        source: &str,
    ) -> Result<Self, FactError> {
        let wrong = |kind: Kind| FactError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            wanted: kind.example(),
        };
        let known = KNOWN
            .iter()
            .find(|known| known.short == name || known.names().any(|one| one == name));
        let (names, kind) = match known {
            Some(known) => (known.names().map(str::to_owned).collect(), known.kind),
            None if is_known(name) => {
                let option = name.strip_prefix("fio.option.").map(canonical_name);
                let name = option.map_or_else(|| name.to_owned(), |own| fact::fio_option(&own));
                (vec![name], Kind::Text)
            }
            None => {
                return Err(FactError::Unknown {
                    name: name.to_owned(),
                });
            }
        };
        let (value, unit) = convert(value, kind).ok_or_else(|| wrong(kind))?;
        Ok(Self {
            subject,
            names,
            value,
            unit,
            source: source.to_owned(),
        })
    }

    /// The place at which the fact was given: `--fact`, or a file with the line.
    pub(crate) fn place(&self) -> &str {
        &self.source
    }

    /// The observations that the fact stands for.
    pub(crate) fn observations(&self, host: &str) -> Vec<Observation> {
        let scope = Scope {
            host: host.to_owned(),
            subject: self.subject.clone().unwrap_or_default(),
            ..Scope::default()
        };
        let one =
            |name: &String| Observation::new(&scope, name, &self.value, self.unit, &self.source);
        self.names.iter().map(one).collect()
    }
}

/// The value in the form of the vocabulary, with its unit; `None` where it is not of the kind.
fn convert(value: &str, kind: Kind) -> Option<(String, &'static str)> {
    let number = |text: &str| -> Option<f64> {
        let number: f64 = text.trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    Some(match kind {
        // `16GiB` is fio's `16g`. A plain 16 has no unit, and so is no size.
        Kind::Size => {
            let bytes = parse_bytes(value).ok()?.0;
            if bytes < 512 {
                return None;
            }
            (bytes.to_string(), "bytes")
        }
        Kind::Time => (parse_duration(value).ok()?.0.to_string(), "ns"),
        Kind::Percent => {
            let percent = number(value.trim_end_matches('%'))?;
            if percent > 100.0 {
                return None;
            }
            (percent.to_string(), "percent")
        }
        Kind::Number => (number(value.trim_end_matches('x'))?.to_string(), ""),
        Kind::Switch => match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => (fact::TRUE.to_owned(), ""),
            "false" | "no" | "off" | "0" => (fact::FALSE.to_owned(), ""),
            _ => return None,
        },
        Kind::Text | Kind::Level if value.is_empty() => return None,
        Kind::Level => {
            let level = value.to_ascii_lowercase();
            let is_number = level.bytes().all(|byte| byte.is_ascii_digit());
            (
                if is_number {
                    format!("raid{level}")
                } else {
                    level
                },
                "",
            )
        }
        Kind::OneOf(words) => {
            let value = value.to_ascii_lowercase();
            let has = |word: &&str| word.split('=').any(|spelling| spelling == value);
            let word = words.split('|').find(has)?;
            (word.split('=').next()?.to_owned(), "")
        }
        Kind::Text => (value.to_owned(), ""),
    })
}

/// Checks that each fact is given once for each subject, on the command line and in a file together.
///
/// # Errors
/// When a fact is given in two places, of which one would count in silence.
pub fn check_once(given: &[Given]) -> Result<(), FactError> {
    for (place, one) in given.iter().enumerate() {
        let is_same = |first: &&Given| first.subject == one.subject && first.names == one.names;
        if let Some(first) = given[..place].iter().find(is_same) {
            return Err(FactError::Twice {
                name: one.names.join("` and `"),
                first: first.source.clone(),
                second: one.source.clone(),
            });
        }
    }
    Ok(())
}

/// Reads a file of facts: `ram = "16GiB"`, and facts of one subject in a table with
/// its name.
///
/// # Errors
/// With file and line, when the text is no TOML, or a fact in it cannot be taken.
pub fn read_facts(file: &str, text: &str) -> Result<Vec<Given>, FactError> {
    let at = |byte: usize| format!("{file}:{}", line_of(text, byte));
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let place = text.get(span.clone()).unwrap_or_default();
        let error = FactError::File(plain_words(error.message(), place));
        error.at(at(span.start))
    })?;
    let mut given = Vec::new();
    for (name, value) in table.get_ref() {
        let of_subject = value.get_ref().as_table().map(|own| (name.get_ref(), own));
        let facts = match of_subject {
            None => vec![(None, name, value)],
            Some((subject, own)) => {
                let of_subject = |(name, value)| (Some(subject.to_string()), name, value);
                own.iter().map(of_subject).collect()
            }
        };
        for (subject, name, value) in facts {
            let place = at(name.span().start);
            let read = || {
                let value = plain(subject.as_deref(), name.get_ref(), value.get_ref())?;
                Given::new(subject.clone(), name.get_ref(), &value, &place)
            };
            given.push(read().map_err(|error| error.at(place.clone()))?);
        }
    }
    Ok(given)
}

/// The text of a fact's value.
fn plain(subject: Option<&str>, name: &str, value: &DeValue<'_>) -> Result<String, FactError> {
    let name = name.to_owned();
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(holds) => Ok(holds.to_string()),
        // A name with dots and without quotation marks makes tables within tables.
        DeValue::Table(table) => {
            let mut whole = format!("{}.{name}", subject.unwrap_or_default());
            let mut inner = Some(table);
            while let Some((key, value)) = inner.and_then(|table| table.iter().next()) {
                whole = format!("{whole}.{}", key.get_ref());
                inner = value.get_ref().as_table();
            }
            Err(FactError::Dotted { name: whole })
        }
        _ => Err(FactError::Shape { name }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, KNOWN, check_once, how_to_give, read_facts};

    fn values(given: &Given) -> Vec<(String, String)> {
        let all = given.observations("").into_iter();
        all.map(|one| (one.name, one.value)).collect()
    }

    #[test]
    fn facts_are_given_in_people_s_words() {
        let one = |text: &str| values(&Given::parse(text).expect("a fact"))[0].clone();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(one("ram=16GiB"), pair("memory.total_bytes", "17179869184"));
        assert_eq!(one("written=0%"), pair("written_percent", "0"));
        assert_eq!(
            one("runtime=2s"),
            pair("job.asked_runtime_ns", "2000000000")
        );
        assert_eq!(
            one("disk.sdb.model=WD40EFAX"),
            pair("disk.sdb.model", "WD40EFAX")
        );
        assert_eq!(one("fio.option.blocksize=4k"), pair("fio.option.bs", "4k"));
        assert_eq!(one("disk.sdb.queue_depth=32").0, "disk.sdb.queue_depth");
        assert_eq!(one("sync.active.end=none").0, "sync.active.end");
        for level in ["level=RAID6", "level=6", "level=raid6"] {
            assert_eq!(one(level), pair("array.level", "raid6"));
        }
        assert_eq!(one("sync=idle"), pair("sync.active.start", "none"));
        assert_eq!(one("health=ONLINE"), pair("array.health.start", "optimal"));
        assert_eq!(values(&Given::parse("direct=no").expect("a fact")).len(), 2);
        for known in KNOWN.iter() {
            let text = format!("{}={}", known.short, known.example);
            assert!(Given::parse(&text).is_ok(), "{text}");
            let first = known.names().next().expect("a name");
            assert_eq!(how_to_give(first).as_deref(), Some(text.as_str()));
        }
    }

    #[test]
    fn what_nobody_would_read_is_refused_by_name() {
        for text in [
            "ram",
            "rom=16GiB",
            "ram=much",
            "ram=16",
            "written=120%",
            "disk.=x",
            "level=",
            "sync=banana",
            "health=bad",
            "data=much",
        ] {
            assert!(Given::parse(text).is_err(), "{text}");
        }
        let other = Given::parse("health=bad").expect_err("no such word");
        assert!(
            other
                .to_string()
                .ends_with("one of optimal, degraded, failed")
        );
        for (text, said) in [
            ("rom=1", "did you mean `ram`?"),
            ("caches.droped=yes", "did you mean `caches.dropped`?"),
            ("memory.total_byte=1", "did you mean `memory.total_bytes`?"),
            (
                "memory.swap_total=1",
                "did you mean `memory.swap_total_bytes`?",
            ),
            ("disk.sdb.modle=x", "did you mean `disk.sdb.model`?"),
            (
                "setting.ashift.fuond=12",
                "did you mean `setting.ashift.found`?",
            ),
            ("fio.option.drect=1", "did you mean `fio.option.direct`?"),
            ("banana=1", "known here: ram, direct"),
        ] {
            let unknown = Given::parse(text).expect_err("no such fact");
            assert!(unknown.to_string().contains(said), "{unknown}");
        }
    }

    #[test]
    fn a_file_has_facts_of_all_and_of_one_subject() {
        let text = "ram = \"16GiB\"\n[md]\nlevel = \"raid6\"\nwritten = 100\n";
        let given = read_facts("facts.toml", text).expect("a file of facts");
        assert_eq!(given.len(), 3);
        let of_md = given
            .iter()
            .filter(|one| one.subject.as_deref() == Some("md"));
        assert_eq!(of_md.count(), 2);
        let places: Vec<&str> = given.iter().map(Given::place).collect();
        assert_eq!(places, ["facts.toml:3", "facts.toml:4", "facts.toml:1"]);
    }

    #[test]
    fn a_fact_is_given_once() {
        let facts = |text| read_facts("f", text).expect("a file of facts");
        let one = Given::parse("ram=16GiB").expect("a fact");
        let mut all = facts("direct = true\n[md]\nram = \"1g\"\n");
        all.push(one);
        assert!(check_once(&all).is_ok(), "another subject's");
        all.extend(facts("\"memory.total_bytes\" = \"2g\"\n"));
        let twice = check_once(&all).expect_err("given twice").to_string();
        let said = "the fact `memory.total_bytes` is given twice, by --fact and by f:1";
        assert_eq!(twice, said);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_with_its_line() {
        for (text, said) in [
            ("direct = true\nram =\n", "f:2: "),
            (
                "direct = true\n\nrom = \"16GiB\"\n",
                "f:3: there is no fact `rom`; did you mean `ram`?",
            ),
            (
                "[md]\nlevel = \"raid6\"\nrom = 1\n",
                "f:3: there is no fact `rom`",
            ),
            (
                "ram = \"much\"\n",
                "f:1: the fact `ram` cannot be `much`: write a size",
            ),
            ("ram = [1]\n", "f:1: the fact `ram` must be a text"),
            (
                "fio.option.direct = 1\n",
                "f:1: a name with dots stands in quotation marks: write `\"fio.option.direct\" = ...`",
            ),
            (
                "ram = \"1g\"\nram = \"2g\"\n",
                "f:2: `ram` is here a second time",
            ),
        ] {
            let error = read_facts("f", text).expect_err(said).to_string();
            assert!(error.starts_with(said), "{said}: {error}");
        }
    }
}
