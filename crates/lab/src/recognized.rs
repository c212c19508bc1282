//! The kinds of files that users write, recognized by fields that only one kind has.
//!
//! Whoever names a suite where a disk belongs is told so, and not which of the suite's fields a disk
//! does not have.

use crate::document::{Document, FileError};
use raidlab_units::line_of;
use toml::de::{DeTable, DeValue};

/// A kind of file that users write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A suite, which is run.
    Suite,
    /// A subject, which is measured.
    Subject,
    /// A preset of a modelled disk.
    Disk,
    /// A processor of modelled hosts.
    Processor,
    /// A modelled operating system.
    Host,
    /// Figures that a suite is compared with.
    Published,
    /// Sentences of an article.
    Claims,
    /// Figures of an article, as they are imported.
    Figures,
    /// What was measured on a disk, to fit its preset.
    FitFacts,
    /// A list of real machines.
    Machines,
    /// What is particular about a cluster.
    Profile,
    /// A job file of fio.
    JobFile,
    /// A plan of a run.
    Plan,
}

/// Each kind with its name, the use of such a file, and the fields by which it is recognized: no
/// file of another kind has one of them at its top.
const KINDS: [(FileKind, &str, &str, &str); 13] = {
    use FileKind::{
        Claims, Disk, Figures, FitFacts, Host, JobFile, Machines, Plan, Processor, Profile,
        Published, Subject, Suite,
    };
    [
        (
            Figures,
            "figures of an article",
            "`raidlab import FILE` makes a run of them",
            "kind=figures",
        ),
        (
            Suite,
            "a suite",
            "`raidlab run FILE` runs it",
            "step subjects",
        ),
        (
            Subject,
            "a subject",
            "`raidlab run SUITE --subject FILE` measures it",
            "build read_policy",
        ),
        (
            Disk,
            "a disk preset",
            "`raidlab run SUITE --disk FILE` takes such disks, one `--disk` for each member",
            "rate_curve default_set",
        ),
        (
            Processor,
            "a processor",
            "`raidlab run SUITE --processor FILE` models it",
            "numbers",
        ),
        (
            Host,
            "a host",
            "`raidlab run SUITE --model-host FILE` models it",
            "[[host]]",
        ),
        (
            Published,
            "published figures",
            "a suite names it as `published`",
            "class figures",
        ),
        (
            Claims,
            "claims",
            "`raidlab claims FILE` judges them",
            "claim",
        ),
        (
            FitFacts,
            "facts about a disk",
            "`raidlab fit DISK --facts FILE` fits a preset to them",
            "free prior fact",
        ),
        (
            Machines,
            "a list of real machines",
            "`raidlab run SUITE --on host --machine-file FILE` measures them",
            "machine",
        ),
        (
            Profile,
            "the profile of a cluster",
            "`raidlab submit SCHEDULER PLAN --profile FILE` uses it",
            "sbatch before at_most",
        ),
        (JobFile, "a fio job file", "`raidlab run FILE` runs it", ""),
        (
            Plan,
            "a plan",
            "`raidlab run FILE` runs it, if its name ends in .json",
            "",
        ),
    ]
};

/// The options of fio that most job files have, one of them at least.
const OPTIONS: [&str; 8] = [
    "rw",
    "readwrite",
    "bs",
    "ioengine",
    "filename",
    "size",
    "direct",
    "iodepth",
];

impl FileKind {
    fn entry(self) -> (&'static str, &'static str) {
        let found = KINDS.iter().find(|(kind, ..)| *kind == self);
        found.map_or(("", ""), |(_, name, how, _)| (*name, *how))
    }

    /// The kind of file that a text is, with the use of such a file in words: `it is a suite:
    /// ...`; `None` if it is none that is known.
    #[must_use]
    pub fn in_words(file: &str, text: &str) -> Option<String> {
        let (kind, _) = recognize(text)?;
        let name = kind.entry().0;
        Some(format!("it is {name}: {}", kind.use_of(file)))
    }

    /// The use of such a file in words. A job file is run under any name but a suite's or a plan's.
    fn use_of(self, file: &str) -> String {
        let how = self.entry().1.replace("FILE", file);
        let is_taken = [".toml", ".json"].iter().any(|end| file.ends_with(end));
        match self {
            Self::JobFile if is_taken => {
                format!("{how}, if its name ends in neither .toml nor .json")
            }
            _ => how,
        }
    }
}

/// The kind of a text, and the byte that shows it.
fn recognize(text: &str) -> Option<(FileKind, usize)> {
    let Ok(table) = DeTable::parse(text) else {
        return recognize_other(text);
    };
    let is_list = |value: &DeValue<'_>| matches!(value, DeValue::Array(_));
    KINDS.iter().find_map(|(kind, _, _, fields)| {
        fields.split_whitespace().find_map(|field| {
            let name = field.trim_matches(['[', ']']);
            let (name, wanted) = name.split_once('=').unwrap_or((name, ""));
            let (key, value) = table
                .get_ref()
                .iter()
                .find(|(key, _)| *key.get_ref() == name)?;
            let value = value.get_ref();
            let is_it = match wanted {
                "" => !field.starts_with('[') || is_list(value),
                wanted => value.as_str() == Some(wanted),
            };
            is_it.then_some((*kind, key.span().start))
        })
    })
}

/// The kind of a text that is no TOML.
fn recognize_other(text: &str) -> Option<(FileKind, usize)> {
    if text.starts_with('{') {
        return text.contains("\"asked\"").then_some((FileKind::Plan, 0));
    }
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let value = value.trim_start();
        if OPTIONS.contains(&name.trim()) && !value.is_empty() && !value.starts_with(['"', '\'']) {
            return Some((FileKind::JobFile, place));
        }
        place += line.len();
    }
    None
}

/// Refuses a file that is recognized as one of another kind, and values that no file may have, in
/// files that other crates read.
///
/// # Errors
/// With the file's line and field. A text that is no TOML has no values.
pub fn check_file(wanted: FileKind, file: &str, text: &str) -> Result<(), FileError> {
    let (file, text) = (file.to_owned(), text.to_owned());
    let document = Document { file, text };
    document.check_kind(wanted)?;
    document.check_values()
}

impl Document {
    /// Refuses a file that is recognized as one of another kind.
    pub(crate) fn check_kind(&self, wanted: FileKind) -> Result<(), FileError> {
        match recognize(&self.text) {
            Some((kind, byte)) if kind != wanted => {
                let name = kind.entry().0;
                let what = format!("this is {name}, and not {}", wanted.entry().0);
                Err(FileError {
                    line: line_of(&self.text, byte),
                    field: String::new(),
                    ..self.invalid(byte..byte, what, kind.use_of(&self.file))
                })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FileKind, KINDS, check_file, recognize};
    use raidlab_data::entries;

    /// The built-in files of each kind.
    fn built_in() -> Vec<(FileKind, &'static str, &'static str)> {
        let folders = [
            (FileKind::Suite, "suites"),
            (FileKind::Subject, "subjects"),
            (FileKind::Disk, "disks"),
            (FileKind::Processor, "processors"),
            (FileKind::Published, "published"),
            (FileKind::Claims, "claims"),
        ];
        let all = folders.into_iter().flat_map(|(kind, folder)| {
            let of_kind = move |name, text: &str| match name {
                "hosts" => FileKind::Host,
                _ if text.contains("kind = \"figures\"") => FileKind::Figures,
                _ => kind,
            };
            let entries = entries(folder).iter();
            entries.map(move |one| (of_kind(one.name, one.text), one.name, one.text))
        });
        all.collect()
    }

    #[test]
    fn every_built_in_file_is_recognized_and_no_other_kind_takes_it() {
        let all = built_in();
        assert!(all.len() > 100, "{}", all.len());
        for (kind, name, text) in all {
            assert_eq!(recognize(text).map(|(kind, _)| kind), Some(kind), "{name}");
            for (wanted, ..) in KINDS {
                let refused = check_file(wanted, name, text).err();
                assert_eq!(refused.is_some(), wanted != kind, "{name} as {wanted:?}");
            }
        }
    }

    #[test]
    fn a_file_of_another_kind_is_told_with_its_line_and_its_use() {
        let cases = [
            (
                "schema = 1\n\n[[machine]]\ndisks = []\n",
                "own.toml:3: this is a list of real machines, and not a disk preset; `raidlab run \
                 SUITE --on host --machine-file own.toml` measures them",
            ),
            (
                "[global]\nrw=randread\n",
                "own.toml:2: this is a fio job file, and not a disk preset; `raidlab run own.toml` \
                 runs it, if its name ends in neither .toml nor .json",
            ),
            (
                "{\n  \"schema\": 1,\n  \"asked\": {}\n}\n",
                "own.toml:1: this is a plan, and not a disk preset; `raidlab run own.toml` runs \
                 it, if its name ends in .json",
            ),
        ];
        for (text, words) in cases {
            let error = check_file(FileKind::Disk, "own.toml", text).expect_err(words);
            assert_eq!(error.to_string(), words);
        }
        // What is wrong with these is told by their readers.
        for text in [
            "",
            "rw = \"read\"\n",
            "x = = 1\n",
            "{}",
            "name = \"own\"\n",
            "host = \"x\"\n",
        ] {
            assert_eq!(recognize(text), None, "{text}");
        }
    }
}
