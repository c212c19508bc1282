//! iozone's arguments.

use raidlab_units::Bytes;
use thiserror::Error;

/// A test, by its number for `-i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// 0: write and rewrite; the others need its file.
    Write = 0,
    /// 1: read and read again.
    Read = 1,
    /// 2: random reads and random writes.
    Random = 2,
    /// 3: from the end to the start.
    Backward = 3,
    /// 4: one record again and again.
    RecordRewrite = 4,
    /// 5: every n-th record.
    Stride = 5,
    /// 6: `fwrite` and again.
    Fwrite = 6,
    /// 7: `fread` and again.
    Fread = 7,
}

/// Which files and records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// One file size and one record size (`-s`, `-r`).
    One {
        /// The file.
        file: Bytes,
        /// The record.
        record: Bytes,
    },
    /// Powers of two between two file sizes, each with all record sizes (`-a
    /// -z -n -g`): without `-z` iozone leaves out small records of files from
    /// 32 MiB on and prints 0 for them.
    Range {
        /// The smallest file.
        least: Bytes,
        /// The largest file.
        most: Bytes,
    },
}

/// One run of iozone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// The files: one, or one for each process (`-t`).
    pub files: &'a [String],
    /// The sizes of files and records that are measured.
    pub sizes: Sizes,
    /// Which tests; empty: all.
    pub tests: &'a [Test],
    /// The time of a flush counts (`-e`).
    pub include_fsync: bool,
    /// The time of closing counts (`-c`).
    pub include_close: bool,
    /// Without the page cache (`-I`).
    pub direct: bool,
    /// Processor time is measured (`-+u`).
    pub processor_time: bool,
    /// Blocks for a spreadsheet too (`-R`).
    pub sheet: bool,
}

/// Why there are no arguments.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// No file to work on.
    #[error("iozone needs a file")]
    NoFile,
    /// iozone counts in kB of 1024 bytes.
    #[error("the {what} size {given} is no whole number of KiB from 1 on")]
    NotKibibytes {
        /// `file` or `record`.
        what: &'static str,
        /// The size that was asked for.
        given: Bytes,
    },
    /// A record that does not fit.
    #[error("the record size {record} is larger than the file size {file}")]
    RecordTooLarge {
        /// The size of the file that was asked for.
        file: Bytes,
        /// The size of the records that was asked for.
        record: Bytes,
    },
    /// A range that is none.
    #[error("the smallest file, {least}, is larger than the largest, {most}")]
    EmptyRange {
        /// The lower end of the range that was asked for.
        least: Bytes,
        /// The upper end of the range that was asked for.
        most: Bytes,
    },
    /// Several processes take one size only.
    #[error("several files, one for each process, need one file size and one record size")]
    RangeOfProcesses,
    /// The tests need the file that test 0 writes.
    #[error("without the test of writes there is no file to read")]
    NoWrite,
}

impl Invocation<'_> {
    /// iozone's arguments, without the program's name.
    ///
    /// # Errors
    /// Where iozone would refuse or do something else.
    pub fn arguments(&self) -> Result<Vec<String>, ArgumentError> {
        if !self.tests.is_empty() && !self.tests.contains(&Test::Write) {
            return Err(ArgumentError::NoWrite);
        }
        let mut arguments = self.size_arguments()?;
        for &test in self.tests {
            arguments.push(String::from("-i"));
            arguments.push((test as u32).to_string());
        }
        for (flag, is_on) in [
            ("-e", self.include_fsync),
            ("-c", self.include_close),
            ("-I", self.direct),
            ("-+u", self.processor_time),
            ("-R", self.sheet),
        ] {
            if is_on {
                arguments.push(flag.to_owned());
            }
        }
        match self.files {
            [] => return Err(ArgumentError::NoFile),
            [file] => arguments.extend([String::from("-f"), file.clone()]),
            files => {
                if matches!(self.sizes, Sizes::Range { .. }) {
                    return Err(ArgumentError::RangeOfProcesses);
                }
                arguments.extend([String::from("-t"), files.len().to_string()]);
                // `-F` takes all that follow: it must be the last.
                arguments.push(String::from("-F"));
                arguments.extend(files.iter().cloned());
            }
        }
        Ok(arguments)
    }

    fn size_arguments(&self) -> Result<Vec<String>, ArgumentError> {
        let words = match self.sizes {
            Sizes::One { file, record } => {
                if record.0 > file.0 {
                    return Err(ArgumentError::RecordTooLarge { file, record });
                }
                let (file, record) = (kibibytes("file", file)?, kibibytes("record", record)?);
                vec![String::from("-s"), file, String::from("-r"), record]
            }
            Sizes::Range { least, most } => {
                if least.0 > most.0 {
                    return Err(ArgumentError::EmptyRange { least, most });
                }
                let (least, most) = (kibibytes("file", least)?, kibibytes("file", most)?);
                ["-a", "-z", "-n", &least, "-g", &most]
                    .map(str::to_owned)
                    .to_vec()
            }
        };
        Ok(words)
    }
}

fn kibibytes(what: &'static str, size: Bytes) -> Result<String, ArgumentError> {
    if size.0 == 0 || !size.0.is_multiple_of(1024) {
        return Err(ArgumentError::NotKibibytes { what, given: size });
    }
    Ok(format!("{}k", size.0 / 1024))
}
