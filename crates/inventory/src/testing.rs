//! A machine for tests, which replays the answers of a real one.

use raidlab_shell::{Command, Frames, Output, Running, Target, TargetError, Watched};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

/// The answers of a machine, with changes that a test makes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Machine {
    name: String,
    files: Mutex<BTreeMap<String, String>>,
    folders: BTreeMap<String, Vec<String>>,
    links: BTreeMap<String, String>,
    commands: BTreeMap<String, Said>,
    /// A command that never ends.
    #[serde(skip)]
    endless: Option<String>,
    #[serde(skip)]
    pub written: Mutex<Vec<(String, String)>>,
}

#[derive(Debug, Deserialize)]
struct Said {
    code: i32,
    stdout: String,
    #[serde(default)]
    stderr: String,
}

impl Machine {
    /// A Linux 6.18 virtual machine with Debian 12, util-linux 2.38.1, and
    /// 256 MiB loop devices: loop0 ext4 and mounted, loop1 and loop2 a mounted
    /// btrfs mirror, loop3 an ext4 that is not mounted, loop4 blank, loop5
    /// with an MS-DOS partition table, loop6 swap in use; vda holds the root.
    pub fn loops() -> Self {
        serde_json::from_str(include_str!("testing/data/loops.json")).unwrap()
    }

    pub fn file(self, path: &str, text: &str) -> Self {
        self.replace(path, text);
        self
    }

    pub fn replace(&self, path: &str, text: &str) {
        self.files
            .lock()
            .unwrap()
            .insert(path.to_owned(), text.to_owned());
    }

    pub fn folder(mut self, path: &str, names: &[&str]) -> Self {
        self.folders.insert(
            path.to_owned(),
            names.iter().map(|&name| name.to_owned()).collect(),
        );
        self
    }

    pub fn link(mut self, path: &str, to: &str) -> Self {
        self.links.insert(path.to_owned(), to.to_owned());
        self
    }

    pub fn command(mut self, line: &str, code: i32, stdout: &str) -> Self {
        let said = Said {
            code,
            stdout: stdout.to_owned(),
            stderr: String::new(),
        };
        self.commands.insert(line.to_owned(), said);
        self
    }

    pub fn endless(mut self, line: &str) -> Self {
        self.endless = Some(line.to_owned());
        self
    }

    pub(crate) fn edit_command(mut self, begins: &str, from: &str, to: &str) -> Self {
        let (_, said) = self
            .commands
            .iter_mut()
            .find(|(line, _)| line.starts_with(begins))
            .unwrap();
        assert!(said.stdout.contains(from), "{begins} says no {from}");
        said.stdout = said.stdout.replace(from, to);
        self
    }

    fn missing(&self, action: String) -> TargetError {
        TargetError::Io {
            machine: self.name.clone(),
            action,
            source: io::ErrorKind::NotFound.into(),
        }
    }
}

impl Target for Machine {
    fn name(&self) -> &str {
        &self.name
    }

    fn output(&self, command: &Command) -> Result<Output, TargetError> {
        let line = command.to_string();
        if self.endless.as_ref() == Some(&line) {
            return Err(TargetError::Timeout {
                machine: self.name.clone(),
                limit: command.timeout.expect("else it is waited for for ever"),
                command: line,
            });
        }
        if let Some(said) = self.commands.get(&line) {
            return Ok(Output {
                code: Some(said.code),
                stdout: said.stdout.clone(),
                stderr: said.stderr.clone(),
                ..Output::default()
            });
        }
        let begins = format!("{} ", command.program);
        if self.commands.keys().any(|known| known.starts_with(&begins)) {
            return Err(TargetError::NotRecorded {
                machine: self.name.clone(),
                request: line,
            });
        }
        Err(TargetError::NoProgram {
            machine: self.name.clone(),
            program: command.program.clone(),
        })
    }

    fn start(&self, command: &Command) -> Result<Box<dyn Running>, TargetError> {
        Err(self.missing(format!("start {command}")))
    }

    fn read(&self, path: &str) -> Result<String, TargetError> {
        self.files
            .lock()
            .unwrap()
            .get(path)
            .cloned()
            .ok_or_else(|| self.missing(format!("read {path}")))
    }

    fn write(&self, path: &str, text: &str) -> Result<(), TargetError> {
        self.written
            .lock()
            .unwrap()
            .push((path.to_owned(), text.to_owned()));
        Ok(())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, TargetError> {
        Ok(self.folders.get(folder).cloned().unwrap_or_default())
    }

    fn resolve(&self, path: &str) -> Result<String, TargetError> {
        self.links
            .get(path)
            .cloned()
            .ok_or_else(|| self.missing(format!("resolve {path}")))
    }

    fn watch(&self, _: Vec<Watched>, _: Duration) -> Result<Box<dyn Frames>, TargetError> {
        Err(self.missing("watch".to_owned()))
    }
}
