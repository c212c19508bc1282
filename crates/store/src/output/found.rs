//! The thing that a path leads to, found out without changing it, and without opening anything but
//! a regular file, as a pipe would wait for its other side.

use super::Format;
use crate::schema::APPLICATION_ID;
use crate::text::visible_path;
use std::fmt;
use std::fs::{self, File, FileType};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The line by which a script is recognized as ours.
pub const SCRIPT: &str = "# written by raidlab submit";

/// The line by which a processor's file is recognized as ours.
pub const PROCESSOR: &str = "# written by raidlab processors --calibrate";

/// The writer's name in the footer of a Parquet table, before the version.
const WRITER: &[u8] = b"raidlab version ";

/// The thing that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// Nothing: the name is free.
    Nothing,
    /// An empty file.
    Empty,
    /// An output that raidlab wrote, in this format.
    Ours(Format),
    /// A symbolic link whose target does not exist.
    DanglingLink(PathBuf),
    /// A folder, in which the output could lie.
    Folder,
    /// A named pipe.
    Pipe,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// A socket of a program.
    Socket,
    /// A database of another program, with the id in its header.
    Database(i32),
    /// A file of some other kind.
    Other,
}

impl Format {
    const ALL: [Self; 13] = [
        Self::Page,
        Self::Markdown,
        Self::Rows,
        Self::MemberRows,
        Self::JsonLines,
        Self::DiskCommands,
        Self::Plan,
        Self::SimulationPart,
        Self::Parquet,
        Self::Script,
        Self::Submission,
        Self::Processor,
        Self::Store,
    ];

    /// The texts that follow each other at the beginning of every such file, the first at
    /// its first byte.
    const fn mark(self) -> &'static [&'static str] {
        match self {
            Self::Page => &[
                "<!doctype html>",
                "<meta name=\"generator\" content=\"raidlab\">",
            ],
            Self::Markdown => &["<!-- written by raidlab -->\n"],
            Self::Rows => &["bench,suite,host,subject,filesystem,fit,sequence,"],
            Self::MemberRows => {
                &["host,subject,filesystem,fit,sequence,repetition,part,job,op,member,"]
            }
            Self::JsonLines => &[
                "{\"bench\":\"",
                ",\"subject\":\"",
                ",\"job\":\"",
                ",\"op\":\"",
                ",\"iops\":",
            ],
            Self::DiskCommands => &["arrived_ns,completed_ns,disk,operation,"],
            Self::Plan => &["{\n  \"schema\": ", "\n  \"asked\": {"],
            Self::SimulationPart => &["{\n  \"simulation_part\": "],
            Self::Parquet => &["PAR1"],
            Self::Script => &["#!/bin/bash\n", SCRIPT],
            Self::Submission => &["{\n  \"engine\": "],
            Self::Processor => &[PROCESSOR],
            Self::Store => &["SQLite format 3\0"],
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Page => "a page of HTML that raidlab wrote",
            Self::Markdown => "Markdown that raidlab wrote",
            Self::Rows => "a table of measurements that raidlab wrote",
            Self::MemberRows => "a table of members that raidlab wrote",
            Self::JsonLines => "measurements as JSON that raidlab wrote",
            Self::DiskCommands => "a table of disk commands that raidlab wrote",
            Self::Plan => "a plan that raidlab wrote",
            Self::SimulationPart => "a part of a simulation that raidlab wrote",
            Self::Parquet => "a table of a run in Parquet that raidlab wrote",
            Self::Script => "a script that raidlab wrote",
            Self::Submission => "the record of a submission that raidlab wrote",
            Self::Processor => "a processor that raidlab measured",
            Self::Store => "a store of raidlab's runs",
        }
    }

    /// Whether a file that begins with `beginning` has this format.
    #[must_use]
    pub fn begins(self, beginning: &[u8]) -> bool {
        let mut from = 0;
        self.mark().iter().enumerate().all(|(index, part)| {
            let rest = &beginning[from..];
            let at = if index == 0 {
                rest.starts_with(part.as_bytes()).then_some(0)
            } else {
                rest.windows(part.len())
                    .position(|bytes| bytes == part.as_bytes())
            };
            from += at.unwrap_or(0) + part.len();
            at.is_some()
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("not there"),
            Self::Empty => formatter.write_str("an empty file"),
            Self::Ours(format) => formatter.write_str(format.in_words()),
            Self::DanglingLink(target) => {
                write!(
                    formatter,
                    "a symbolic link to {}, which is not there",
                    visible_path(target)
                )
            }
            Self::Folder => formatter.write_str("a folder"),
            Self::Pipe => formatter.write_str("a pipe"),
            Self::BlockDevice => formatter.write_str("a block device"),
            Self::CharacterDevice => formatter.write_str("a character device"),
            Self::Socket => formatter.write_str("a socket"),
            Self::Database(id) => write!(
                formatter,
                "an SQLite database of another program (application id {id:#010x})"
            ),
            Self::Other => formatter.write_str("a file that raidlab did not write"),
        }
    }
}

/// Finds out what `path` leads to.
///
/// # Errors
/// When the operating system refuses to tell.
pub fn look(path: &Path) -> io::Result<Found> {
    let link = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound && link.is_symlink() => {
            return fs::read_link(path).map(Found::DanglingLink);
        }
        Err(error) => return Err(error),
    };
    if let Some(special) = special(found.file_type()) {
        return Ok(special);
    }
    if found.len() == 0 {
        return Ok(Found::Empty);
    }
    const ENOUGH: u64 = 4096;
    let mut file = File::open(path)?;
    let mut part = |from| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        (&mut file).take(ENOUGH).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let beginning = part(0)?;
    let ours = Format::ALL.into_iter().find(|one| one.begins(&beginning));
    Ok(match ours {
        Some(Format::Store) => match application_id(&beginning) {
            APPLICATION_ID => Found::Ours(Format::Store),
            id => Found::Database(id),
        },
        // The writer of such a file is named in its last bytes.
        Some(Format::Parquet)
            if !part(found.len().saturating_sub(ENOUGH))?
                .windows(WRITER.len())
                .any(|bytes| bytes == WRITER) =>
        {
            Found::Other
        }
        Some(format) => Found::Ours(format),
        None => Found::Other,
    })
}

/// The kind of a path that is neither a regular file nor a link.
fn special(kind: FileType) -> Option<Found> {
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some(Found::Folder);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some(Found::Pipe);
        }
        if kind.is_block_device() {
            return Some(Found::BlockDevice);
        }
        if kind.is_socket() {
            return Some(Found::Socket);
        }
    }
    Some(Found::CharacterDevice)
}

/// The application id in the header of an `SQLite` file: big-endian, at byte 68
/// (`SQLite`, "Database File Format", 1.3).
fn application_id(header: &[u8]) -> i32 {
    let bytes = header.get(68..72).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, i32::from_be_bytes)
}
