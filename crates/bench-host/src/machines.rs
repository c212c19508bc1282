//! Machines with their disks, read from a file with `[[machine]]` tables.

use crate::error::HostError;
use crate::machine::Machine;
use raidlab_lab::catalogue::read_text;
use raidlab_lab::{FileKind, Files, LoadError, check_file};
use raidlab_shell::SshOptions;
use raidlab_store::text::visible_path;
use raidlab_units::{line_of, plain_words};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::path::Path;
use toml::Spanned;

/// This machine's name among destinations.
pub const LOCALHOST: &str = "localhost";

/// The contents of a file of machines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    machine: Vec<Spanned<MachineEntry>>,
}

/// One machine of a file of machines.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineEntry {
    /// The destination: [`LOCALHOST`], or what ssh takes, as `root@store1`.
    pub destination: String,
    /// The machine's name in rows and on pages, if not its destination: two machines behind one
    /// address, at two ports, have one destination.
    #[serde(default)]
    pub name: Option<String>,
    /// The machine's disks in the order of members.
    pub disks: Vec<String>,
    /// More arguments for ssh: `["-p", "2222"]`.
    #[serde(default)]
    pub ssh: Vec<String>,
    /// Words before every command: `["sudo", "-n"]`.
    #[serde(default)]
    pub elevate: Vec<String>,
}

/// The reason why a file of machines, or another of a site's own files, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MachineFileError {
    /// The file cannot be read, or has values that no file may have.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The file can be read, but is no file of machines.
    #[error("{file}:{line}: {what}")]
    Wrong {
        /// The file of machines, as it was named.
        file: String,
        /// The line of the error, from 1.
        line: usize,
        /// The error in words.
        what: String,
    },
    /// Two machines have one name, under which a run keeps their rows.
    #[error("{file}:{line}: machine[{number}]: another machine is called `{name}` as well")]
    Twice {
        /// The file of machines, as it was named.
        file: String,
        /// The line at which the second machine begins, from 1.
        line: usize,
        /// The position of the second machine in the file, from 1.
        number: usize,
        /// The name that both machines have.
        name: String,
    },
}

/// Reads a file of machines.
///
/// # Errors
/// When the file cannot be read, has anything else in it, or gives two machines one name.
pub fn read_machines(files: &Files, path: &Path) -> Result<Vec<MachineEntry>, MachineFileError> {
    let machines = read_toml::<MachineFile>(files, FileKind::Machines, path)?.machine;
    let mut names = BTreeSet::new();
    let mut is_local_named = false;
    for (number, machine) in (1..).zip(&machines) {
        let line = || Ok::<_, LoadError>(line_of(&read_text(files, path)?, machine.span().start));
        let entry = machine.get_ref();
        if !names.insert(entry.name()) {
            return Err(MachineFileError::Twice {
                file: visible_path(path),
                line: line()?,
                number,
                name: entry.name().to_owned(),
            });
        }
        // Under a second name it would wait for a lock that this very run holds.
        let is_local = entry.destination == LOCALHOST;
        if is_local && std::mem::replace(&mut is_local_named, true) {
            return Err(MachineFileError::Wrong {
                file: visible_path(path),
                line: line()?,
                what: format!("machine[{number}].destination: {LOCALHOST} is given twice"),
            });
        }
        if let Some(field) = entry.idle() {
            return Err(MachineFileError::Wrong {
                file: visible_path(path),
                line: line()?,
                what: format!("machine[{number}].{field}: it does nothing on {LOCALHOST}"),
            });
        }
    }
    Ok(machines.into_iter().map(Spanned::into_inner).collect())
}

/// Reads a TOML file of a kind, in which only fields of `T` are allowed.
///
/// # Errors
/// When it cannot be read, or has anything else in it; with the line.
pub fn read_toml<T: DeserializeOwned>(
    files: &Files,
    kind: FileKind,
    path: &Path,
) -> Result<T, MachineFileError> {
    let file = visible_path(path);
    let text = read_text(files, path)?;
    check_file(kind, &file, &text).map_err(LoadError::from)?;
    toml::from_str(&text).map_err(|error: toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        let line = line_of(&text, span.start);
        let words = text.lines().nth(line - 1).unwrap_or_default().trim();
        let why = plain_words(error.message(), text.get(span).unwrap_or_default());
        MachineFileError::Wrong {
            file,
            line,
            what: format!("`{words}`: {why}"),
        }
    })
}

impl MachineEntry {
    /// The machine's name in rows and on pages.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.destination)
    }

    /// A field that says how this machine is reached behind ssh, where it is not.
    fn idle(&self) -> Option<&'static str> {
        let fields = [("ssh", &self.ssh), ("elevate", &self.elevate)];
        let is_local = self.destination == LOCALHOST;
        let said = |(field, words): (_, &Vec<String>)| (!words.is_empty()).then_some(field);
        fields.into_iter().filter(|_| is_local).find_map(said)
    }

    /// Connects to the machine.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn connect(&self) -> Result<Machine, HostError> {
        if self.destination == LOCALHOST {
            return Ok(Machine::local()?.called(self.name()));
        }
        let options = SshOptions {
            arguments: self.ssh.clone(),
            elevate: self.elevate.clone(),
            ..SshOptions::default()
        };
        Ok(Machine::ssh(&self.destination, options)?.called(self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::read_machines;
    use raidlab_lab::Files;
    use std::fs;

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machines.toml");
        let good = "[[machine]]\ndestination = \"localhost\"\n";
        for (more, line, what) in [
            ("disk = []\n", 3, "no field `disk`; did you mean `disks`?"),
            ("", 1, "the field `disks` is missing"),
            (
                "disks = 3\n",
                3,
                "the number `3` cannot stand here; write a list",
            ),
            ("disks = [\n", 3, "unclosed array"),
        ] {
            fs::write(&path, format!("{good}{more}")).expect("a file");
            let error = read_machines(&Files::default(), &path).expect_err(more);
            let told = error.to_string();
            let place = format!("machines.toml:{line}: `");
            assert!(told.contains(&place) && told.contains(what), "{told}");
            assert!(!told.contains('\n'), "{told}");
        }
    }

    /// Nobody thinks that commands run as root which do not.
    #[test]
    fn what_is_for_ssh_is_refused_on_this_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machines.toml");
        let entry = |destination: &str| {
            format!(
                "\n[[machine]]\ndestination = \"{destination}\"\ndisks = []\n\
                 elevate = [\"sudo\", \"-n\"]\n"
            )
        };
        fs::write(&path, entry("store1")).expect("a file");
        read_machines(&Files::default(), &path).expect("behind ssh");
        fs::write(&path, entry("localhost")).expect("a file");
        let error = read_machines(&Files::default(), &path).expect_err("here");
        let told = "machines.toml:2: machine[1].elevate: it does nothing on localhost";
        assert!(error.to_string().ends_with(told), "{error}");
    }

    /// One run at a time uses a machine, also under two names.
    #[test]
    fn this_machine_is_given_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machines.toml");
        let one = "[[machine]]\ndestination = \"localhost\"\ndisks = []\n";
        fs::write(&path, format!("{one}{one}name = \"other\"\n")).expect("a file");
        let error = read_machines(&Files::default(), &path).expect_err("twice");
        let told = "machines.toml:4: machine[2].destination: localhost is given twice";
        assert!(error.to_string().ends_with(told), "{error}");
    }

    /// Behind one address two machines need names; without a name a machine has its
    /// destination for one.
    #[test]
    fn two_machines_of_one_name_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machines.toml");
        let read = |text: &str| {
            fs::write(&path, text).expect("a file");
            read_machines(&Files::default(), &path)
        };
        let one = "[[machine]]\ndestination = \"root@127.0.0.1\"\ndisks = []\n";
        let named = format!("{one}name = \"store1\"\n");
        let machines = read(&format!("{one}{named}")).expect("two names");
        let names: Vec<&str> = machines.iter().map(|machine| machine.name()).collect();
        assert_eq!(names, ["root@127.0.0.1", "store1"]);
        for twice in [
            format!("{one}{one}"),
            format!("{one}{}", named.replace("store1", "root@127.0.0.1")),
        ] {
            let error = read(&twice).expect_err("one name").to_string();
            let expected =
                "machines.toml:4: machine[2]: another machine is called `root@127.0.0.1` as well";
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
