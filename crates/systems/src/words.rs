//! Words that a file gives to the programs that make and mount file systems and pools.
//!
//! A subject or a suite may come from anywhere, and these programs run as root. So a file may
//! only shape what is made on the array: a word that names another device, file, folder or host,
//! that shares what is made, or that is unknown, is refused by name. The lists hold the options
//! that only shape; any other is refused, so a new option of a program is harmless until its
//! effect has been checked.

use raidlab_units::lists;
use std::collections::BTreeMap;

/// A word that no file may give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` {reason}, which no file may ask for")]
pub struct RefusedWord {
    /// The word as it was written.
    pub word: String,
    /// The effect of the word, in words that follow its name.
    pub reason: String,
}

/// Refuses a word for its effect.
pub(crate) fn refuse<T>(word: &str, reason: impl Into<String>) -> Result<T, RefusedWord> {
    let (word, reason) = (word.to_owned(), reason.into());
    Err(RefusedWord { word, reason })
}

const PANICS: &str = "stops the whole machine at the first error";
const ELSEWHERE: &str = "names another place than the array";

/// Whether a value may be a size, a number, a word or a list of such: no path, no blank.
fn is_plain(value: &str) -> bool {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || "._:=,+-^@%".contains(letter);
    value.len() <= 100 && value.chars().all(letter)
}

/// Checks options of a mount: each is a name, or a name and a plain value.
pub(crate) fn check_mount_options(known: &[&str], options: &[String]) -> Result<(), RefusedWord> {
    for option in options {
        // A comma would begin another option.
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if !known.iter().any(|names| lists(names, name)) {
            return refuse(option, "is no option of a mount that only shapes it");
        }
        if !is_plain(value) || value.contains(',') {
            return refuse(option, ELSEWHERE);
        }
        if option == "errors=panic" {
            return refuse(option, PANICS);
        }
    }
    Ok(())
}

/// Checks properties of a pool, a volume or a data set.
pub(crate) fn check_properties(
    known: &str,
    properties: &BTreeMap<String, String>,
) -> Result<(), RefusedWord> {
    for (name, value) in properties {
        let is_feature = name.strip_prefix("feature@").is_some_and(is_plain);
        let is_off = name == "cachefile" && value == "none";
        if !(lists(known, name) || is_feature || is_off) {
            return refuse(name, "is no property that only shapes the pool");
        }
        check_value(value)?;
    }
    Ok(())
}

/// Checks the value of a property: one plain word.
pub(crate) fn check_value(value: &str) -> Result<(), RefusedWord> {
    if is_plain(value) && !value.starts_with('-') {
        return Ok(());
    }
    refuse(value, ELSEWHERE)
}

/// The options of a program that makes file systems.
pub(crate) struct Maker {
    /// The options of one letter without a value.
    pub(crate) flags: &'static str,
    /// The options of one letter with a value, in the same word or as the next one.
    pub(crate) valued: &'static str,
    /// Parts of values, before `=`, that name other devices or files.
    pub(crate) places: &'static str,
    /// The long options, whose values follow `=`.
    pub(crate) long: &'static str,
}

impl Maker {
    /// Checks the options as the program's `getopt` will read them: letters may be
    /// joined, and the value of the last may be too.
    pub(crate) fn check(&self, words: &[String]) -> Result<(), RefusedWord> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').unwrap_or((long, ""));
                if !lists(self.long, name) {
                    return refuse(word, "is no option that only shapes the file system");
                }
                self.check_value(word, value)?;
                continue;
            }
            let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                return refuse(word, ELSEWHERE);
            };
            for (at, letter) in letters.char_indices() {
                if self.flags.contains(letter) {
                    continue;
                }
                if !self.valued.contains(letter) {
                    return refuse(word, "is no option that only shapes the file system");
                }
                match &letters[at + letter.len_utf8()..] {
                    "" => match words.next() {
                        Some(value) => self.check_value(value, value)?,
                        None => return refuse(word, "lacks its value"),
                    },
                    joined => self.check_value(word, joined)?,
                }
                break;
            }
        }
        Ok(())
    }

    /// The options of one letter one by one, with their values, as `getopt` reads them:
    /// `-qE`, `discard` are `q`, and `E` with its value.
    pub(crate) fn one_by_one<'a>(&self, words: &'a [String]) -> Vec<(char, Option<&'a str>)> {
        let mut found = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let letters = word.strip_prefix('-').unwrap_or(word);
            for (at, letter) in letters.char_indices() {
                if !self.valued.contains(letter) {
                    found.push((letter, None));
                    continue;
                }
                let value = match &letters[at + letter.len_utf8()..] {
                    "" => words.next().map(String::as_str),
                    joined => Some(joined),
                };
                found.push((letter, value));
                break;
            }
        }
        found
    }

    fn check_value(&self, word: &str, value: &str) -> Result<(), RefusedWord> {
        let names_a_place = value.split(',').any(|part| {
            let name = part.split('=').next().unwrap_or(part);
            lists(self.places, name)
        });
        if names_a_place || !is_plain(value) {
            return refuse(word, ELSEWHERE);
        }
        // mke2fs keeps the value of its option `-e` in the file system.
        if value == "panic" {
            return refuse(word, PANICS);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{ArraySpec, FileSystemSpec};
    use raidlab_units::table;

    fn filesystem(text: &str) -> FileSystemSpec {
        toml::from_str(text).expect(text)
    }

    #[test]
    fn what_shapes_a_file_system_is_taken() {
        for text in [
            "type = \"ext4\"\noptions = [\"-b\", \"4096\", \"-Estride=16,stripe_width=48\", \"-m0\", \"-O\", \"^has_journal\"]",
            "type = \"ext4\"\noptions = [\"-J\", \"size=128\"]\nmount_options = [\"noatime\", \"data=writeback\", \"commit=60\"]",
            "type = \"xfs\"\noptions = [\"-m\", \"crc=1\", \"-d\", \"su=64k,sw=3\", \"-l\", \"size=64m\"]\nmount_options = [\"logbsize=256k\"]",
            "type = \"btrfs\"\noptions = [\"--nodesize=16k\", \"-Km\", \"single\"]\nmount_options = [\"compress=zstd:3\", \"ssd\"]",
            "type = \"ufs\"\noptions = [\"-j\", \"-b\", \"32768\"]\nmount_options = [\"noatime\"]",
        ] {
            let spec = filesystem(text);
            assert_eq!(spec.check_words(), Ok(()), "{text}");
        }
    }

    /// A kind of file system, what is asked of it, and the word that is refused.
    const REFUSED: &str = r#"
ext4   options = ["/dev/sda"]                     /dev/sda
ext4   options = ["sda"]                          sda
ext4   options = ["-J", "device=UUID=1"]          device=UUID=1
ext4   options = ["-d", "etc"]                    -d
ext4   options = ["-qd", "etc"]                   -qd
ext4   options = ["-z", "undo"]                   -z
ext4   options = ["-m"]                           -m
ext4   options = ["-epanic"]                      -epanic
ext4   options = ["-qe", "panic"]                 panic
ext4   mount_options = ["errors=panic"]           errors=panic
xfs    options = ["-l", "logdev=/dev/sda"]        logdev=/dev/sda
xfs    options = ["-drtdev=sda"]                  -drtdev=sda
xfs    options = ["-d", "file,name=x"]            file,name=x
xfs    options = ["-p", "proto"]                  -p
xfs    options = ["-c", "options=x"]              -c
btrfs  options = ["--rootdir=/etc"]               --rootdir=/etc
btrfs  options = ["-r", "etc"]                    -r
ufs    options = ["--help"]                       --help
ext4   mount_options = ["loop"]                   loop
ext4   mount_options = ["noatime,loop"]           noatime,loop
ext4   mount_options = ["data=ordered,loop"]      data=ordered,loop
ext4   mount_options = ["journal_path=/dev/sda"]  journal_path=/dev/sda
ext4   mount_options = ["X-mount.mkdir"]          X-mount.mkdir
xfs    mount_options = ["bind"]                   bind
xfs    mount_options = ["remount"]                remount
xfs    mount_options = ["logdev=/dev/sda"]        logdev=/dev/sda
btrfs  mount_options = ["device=/dev/sda"]        device=/dev/sda
btrfs  mount_options = ["subvol=/.."]             subvol=/..
btrfs  mount_options = ["compress=zstd /dev"]     compress=zstd /dev
ufs    mount_options = ["snapshot"]               snapshot
"#;

    #[test]
    fn what_reaches_further_is_refused_by_name() {
        for [kind, text, word] in table(REFUSED, Some) {
            let text = format!("type = \"{kind}\"\n{text}");
            let refused = filesystem(&text).check_words().expect_err(word);
            assert_eq!(refused.word, word, "{text}");
        }
    }

    /// A system, what is asked of it, and the word that is refused, or `-`.
    const ARRAYS: &str = r#"
zfs    pool_options = { autotrim = "on", cachefile = "none" }  -
zfs    compression = "zstd-3"\noptions = { copies = "2" }  -
zfs    pool_options = { cachefile = "/etc/x" }       cachefile
zfs    pool_options = { altroot = "/" }              altroot
zfs    options = { mountpoint = "/etc" }             mountpoint
zfs    options = { sharenfs = "on" }                 sharenfs
zfs    options = { "org:x" = "1" }                   org:x
zfs    compression = "on mountpoint=/"               on mountpoint=/
zfs    sync = "../x"                                 ../x
btrfs  compression = "zstd:3"                        -
btrfs  compression = "zstd,subvol=x"                 zstd,subvol=x
btrfs  mount_options = ["device=/dev/sda"]           device=/dev/sda
"#;

    #[test]
    fn arrays_are_held_to_the_same() {
        for [system, text, word] in table(ARRAYS, Some) {
            let shape = match system {
                "zfs" => "topology = \"mirror\"",
                _ => "data = \"raid1\"",
            };
            let text = format!("[{system}]\n{shape}\n{}", text.replace("\\n", "\n"));
            let spec: ArraySpec = toml::from_str(&text).expect(word);
            let refused = spec.check_words().err().map(|refused| refused.word);
            assert_eq!(refused.as_deref().unwrap_or("-"), word, "{text}");
        }
    }
}
