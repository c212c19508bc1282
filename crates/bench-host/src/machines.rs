//! Machines with their disks, as a file with `[[machine]]` tables names them.

use crate::error::HostError;
use crate::machine::Machine;
use raidlab_lab::catalogue::read_text;
use raidlab_lab::{Files, LoadError, check_values};
use raidlab_shell::SshOptions;
use raidlab_store::text::visible_path;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// This machine's name among destinations.
pub const LOCALHOST: &str = "localhost";

/// A file of machines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    machine: Vec<MachineEntry>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineEntry {
    /// [`LOCALHOST`], or what ssh takes: `root@store1`.
    pub destination: String,
    /// Its disks in the order of members.
    pub disks: Vec<String>,
    /// More arguments for ssh: `["-p", "2222"]`.
    #[serde(default)]
    pub ssh: Vec<String>,
    /// Words before every command: `["sudo", "-n"]`.
    #[serde(default)]
    pub elevate: Vec<String>,
}

/// A file of machines, or another of a site's own, that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MachineFileError {
    /// It cannot be read, or has values that no file may have.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is something else.
    #[error("{file}, {}", error.to_string().trim_end().replace('\n', " "))]
    Wrong {
        /// The file of machines, as it was named.
        file: String,
        /// What is wrong with it; its words are in the message.
        error: Box<toml::de::Error>,
    },
}

/// Reads a file of machines.
///
/// # Errors
/// When it cannot be read, or says something else.
pub fn read_machines(files: &Files, path: &Path) -> Result<Vec<MachineEntry>, MachineFileError> {
    Ok(read_toml::<MachineFile>(files, path)?.machine)
}

/// Reads a file of TOML in which nothing may stand that `T` does not know.
///
/// # Errors
/// When it cannot be read, or says something else; with the line.
pub fn read_toml<T: DeserializeOwned>(files: &Files, path: &Path) -> Result<T, MachineFileError> {
    let file = visible_path(path);
    let text = read_text(files, path)?;
    check_values(&file, &text).map_err(LoadError::from)?;
    toml::from_str(&text).map_err(|error| MachineFileError::Wrong {
        file,
        error: Box::new(error),
    })
}

impl MachineEntry {
    /// The machine, reached.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn connect(&self) -> Result<Machine, HostError> {
        if self.destination == LOCALHOST {
            return Machine::local();
        }
        let options = SshOptions {
            arguments: self.ssh.clone(),
            elevate: self.elevate.clone(),
            ..SshOptions::default()
        };
        Machine::ssh(&self.destination, options)
    }
}
