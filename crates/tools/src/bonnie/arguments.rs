//! bonnie++'s arguments.

use raidlab_units::Bytes;
use thiserror::Error;

/// The test that makes, looks at and deletes files (`-n`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTest {
    /// Files in units of 1024: 100 makes 102 400 files.
    pub thousands: u32,
    /// Bytes of the largest.
    pub max_size: Bytes,
    /// Bytes of the smallest.
    pub min_size: Bytes,
    /// Folders over which they are spread; at least 1.
    pub folders: u32,
}

/// One run of bonnie++.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// The folder to work in (`-d`).
    pub folder: &'a str,
    /// What the results call the machine (`-m`).
    pub name: &'a str,
    /// Bytes to write and read, whole mebibytes (`-s`); `None`: no such test.
    pub size: Option<Bytes>,
    /// Bytes of one call (`-s size:chunk`); `None`: 8 KiB.
    pub chunk: Option<Bytes>,
    /// The memory that the size must exceed twice (`-r`), whole mebibytes;
    /// `None`: what bonnie++ finds.
    pub memory: Option<Bytes>,
    /// The test of files; `None`: none (`-n 0`).
    pub files: Option<FileTest>,
    /// The user to run as (`-u`); bonnie++ refuses to run as root without.
    pub user: Option<&'a str>,
    /// Leave out the tests of single bytes (`-f`).
    pub skip_characters: bool,
    /// Flush after each write (`-b`).
    pub unbuffered: bool,
    /// Runs, one after the other (`-x`); at least 1.
    pub runs: u32,
}

/// Why there are no arguments.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// No test is left.
    #[error("bonnie++ has nothing to do: neither a size nor files")]
    NothingToDo,
    /// bonnie++ counts in mebibytes.
    #[error("`{option}` is {given}, but bonnie++ counts whole mebibytes")]
    NotMebibytes {
        /// The option.
        option: &'static str,
        /// The size that was asked for.
        given: Bytes,
    },
    /// A count that must be at least 1 is 0.
    #[error("`{option}` must be at least 1")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// The CSV has no quotes: such a name would look like further fields.
    #[error("the name `{name}` has a comma or a line's end in it, which breaks bonnie++'s CSV")]
    Name {
        /// The name as it was written.
        name: String,
    },
    /// bonnie++ refuses to measure its own cache.
    #[error("the size {size} is less than twice the memory {memory}: bonnie++ refuses that")]
    SmallerThanMemory {
        /// The size that was asked for.
        size: Bytes,
        /// The memory that was said to be there.
        memory: Bytes,
    },
}

impl Invocation<'_> {
    /// bonnie++'s arguments, without the program's name. Its CSV goes to
    /// standard output, everything else to standard error (`-q`).
    ///
    /// # Errors
    /// Where bonnie++ would refuse, or its output could not be read.
    pub fn arguments(&self) -> Result<Vec<String>, ArgumentError> {
        if self.size.is_none() && self.files.is_none() {
            return Err(ArgumentError::NothingToDo);
        }
        if self.name.contains([',', '\n', '\r']) {
            return Err(ArgumentError::Name {
                name: self.name.to_owned(),
            });
        }
        if let (Some(size), Some(memory)) = (self.size, self.memory)
            && size.0 < memory.0.saturating_mul(2)
        {
            return Err(ArgumentError::SmallerThanMemory { size, memory });
        }
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| {
            arguments.push(option.to_owned());
            arguments.push(value);
        };
        add("-d", self.folder.to_owned());
        add("-m", self.name.to_owned());
        let size = self.size.map_or(Ok(0), |size| mebibytes("-s", size))?;
        match self.chunk {
            Some(chunk) if size > 0 => add("-s", format!("{size}:{}", chunk.0)),
            _ => add("-s", size.to_string()),
        }
        if let Some(memory) = self.memory {
            add("-r", mebibytes("-r", memory)?.to_string());
        }
        add("-n", self.file_test()?);
        if let Some(user) = self.user {
            add("-u", user.to_owned());
        }
        if self.runs == 0 {
            return Err(ArgumentError::Zero { option: "-x" });
        }
        if self.runs > 1 {
            add("-x", self.runs.to_string());
        }
        for (option, is_on) in [("-f", self.skip_characters), ("-b", self.unbuffered)] {
            if is_on {
                arguments.push(option.to_owned());
            }
        }
        arguments.push(String::from("-q"));
        Ok(arguments)
    }

    fn file_test(&self) -> Result<String, ArgumentError> {
        let Some(files) = self.files else {
            return Ok(String::from("0"));
        };
        if files.thousands == 0 || files.folders == 0 {
            return Err(ArgumentError::Zero { option: "-n" });
        }
        Ok(format!(
            "{}:{}:{}:{}",
            files.thousands, files.max_size.0, files.min_size.0, files.folders
        ))
    }
}

fn mebibytes(option: &'static str, size: Bytes) -> Result<u64, ArgumentError> {
    const MEBIBYTE: u64 = 1 << 20;
    if size.0 == 0 || !size.0.is_multiple_of(MEBIBYTE) {
        return Err(ArgumentError::NotMebibytes {
            option,
            given: size,
        });
    }
    Ok(size.0 / MEBIBYTE)
}
