//! The statements of programs about themselves in their ELF files.

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The files that a program or library needs to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// The path of the loader, such as `/lib64/ld-linux-x86-64.so.2`; `None` in libraries and
    /// in static programs.
    pub interpreter: Option<String>,
    /// The names of the libraries, such as `libc.so.6`.
    pub libraries: Vec<String>,
    /// The folders to look in before all others, in order, as written: they may
    /// begin with `$ORIGIN`.
    pub run_path: Vec<String>,
    /// The processor it is for, as ELF numbers them (`e_machine`).
    pub machine: u16,
}

impl Needs {
    /// Reads the needs of a 64-bit ELF file; `file` is for errors only.
    ///
    /// # Errors
    /// When the bytes are no such file or are damaged.
    pub fn read(file: &Path, bytes: &[u8]) -> Result<Self, ElfError> {
        parse(bytes).map_err(|source| ElfError {
            file: file.to_owned(),
            source,
        })
    }
}

/// Reads the loader's name from the program headers and the rest from the
/// dynamic section.
fn parse(bytes: &[u8]) -> object::Result<Needs> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let mut needs = Needs {
        machine: header.e_machine(endian).0,
        ..Needs::default()
    };
    for segment in header.program_headers(endian, bytes)? {
        if let Some(text) = segment.interpreter(endian, bytes)? {
            needs.interpreter = Some(lossy(text));
        }
    }
    let table = header
        .sections(endian, bytes)?
        .dynamic_table(endian, bytes)?;
    for entry in &table {
        match entry.tag {
            elf::DT_NEEDED => needs.libraries.push(lossy(table.string(entry)?)),
            elf::DT_RUNPATH | elf::DT_RPATH => {
                let folders = lossy(table.string(entry)?);
                needs.run_path.extend(folders.split(':').map(str::to_owned));
            }
            _ => {}
        }
    }
    Ok(needs)
}

/// The processor that a 64-bit ELF file is for; `None` for all other files, and for those that
/// cannot be read.
pub(crate) fn machine(file: &Path) -> Option<u16> {
    let mut bytes = Vec::new();
    let header = size_of::<elf::FileHeader64<Endianness>>() as u64;
    let file = File::open(file).ok()?;
    file.take(header).read_to_end(&mut bytes).ok()?;
    let header = elf::FileHeader64::<Endianness>::parse(bytes.as_slice()).ok()?;
    Some(header.e_machine(header.endian().ok()?).0)
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The error of a file that is no sound ELF file.
#[derive(Debug, thiserror::Error)]
#[error("{} is not a sound 64-bit ELF file", file.display())]
pub struct ElfError {
    file: PathBuf,
    #[source]
    source: object::Error,
}
