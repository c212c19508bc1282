//! dd's operands.
//!
//! A mebibyte is `1M` for GNU, uutils and busybox and `1m` for BSD; sizes here
//! are plain bytes, which all of them take. `conv=fsync`, `iflag` and `oflag`
//! differ, and what a dialect lacks is refused, not left out: a dd without
//! `conv=fsync` measures memory.

use raidlab_units::Bytes;
use thiserror::Error;

/// The implementation of dd, which decides the operands that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// GNU coreutils, 7.0 and later.
    Gnu,
    /// uutils coreutils.
    Uutils,
    /// FreeBSD's since it has flags for all of this (`C_FSYNC`, `C_FDATASYNC`,
    /// `C_OFSYNC`, `C_IFULLBLOCK`, `C_IDIRECT`, `C_ODIRECT` in its dd.h).
    FreeBsd,
    /// BSD's of before, which has no `iflag`, no `oflag` and no `conv=fsync`.
    OldBsd,
    /// busybox with all its features (usage of 1.35): no `fdatasync`, no
    /// `oflag=sync`.
    Busybox,
}

impl Dialect {
    /// Whether it has no such operand.
    fn lacks(self, operand: &str) -> bool {
        match self {
            Self::Gnu | Self::Uutils | Self::FreeBsd => false,
            Self::OldBsd => operand != "conv=notrunc",
            Self::Busybox => matches!(operand, "conv=fdatasync" | "oflag=sync"),
        }
    }
}

/// What happens to the data before dd ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum End {
    /// They may still be in memory.
    #[default]
    None,
    /// The file is flushed (`conv=fsync`).
    Fsync,
    /// The file's data are flushed (`conv=fdatasync`).
    Fdatasync,
}

/// How files are opened and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags {
    /// Input without the page cache (`iflag=direct`).
    pub direct_input: bool,
    /// Output without the page cache (`oflag=direct`).
    pub direct_output: bool,
    /// Each write is durable before the next (`oflag=sync`).
    pub synchronous_output: bool,
    /// A short read is filled up (`iflag=fullblock`); without it a block of
    /// 1 GiB may be read in part, and counts as a partial record.
    pub full_blocks: bool,
    /// The output keeps its length (`conv=notrunc`).
    pub keep_length: bool,
}

/// One run of dd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// The implementation that is called.
    pub dialect: Dialect,
    /// Read from here.
    pub input: &'a str,
    /// Written to there.
    pub output: &'a str,
    /// Bytes of a block, at least 1.
    pub block_size: Bytes,
    /// Blocks to copy; `None`: to the end of the input.
    pub count: Option<u64>,
    /// Blocks of the input to leave out.
    pub skip: u64,
    /// Blocks of the output to leave out.
    pub seek: u64,
    /// What happens at the end.
    pub end: End,
    /// How files are opened and read.
    pub flags: Flags,
}

/// Why there are no operands.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OperandError {
    /// A block without bytes.
    #[error("dd's block size must be at least 1 byte")]
    NoBlock,
    /// The files are taken for each other, or nothing would be read: with
    /// `/dev/null` as input the output is truncated and nothing is measured.
    #[error("dd would read nothing from `{input}`; are input and output swapped?")]
    NothingToRead {
        /// The input.
        input: String,
    },
    /// A file without an end, and no count.
    #[error("dd would never end: `{input}` has no end, and there is no count")]
    NoEnd {
        /// The input.
        input: String,
    },
    /// The dialect has no such operand.
    #[error("this dd ({dialect:?}) has no `{operand}`")]
    Lacking {
        /// The implementation that is called.
        dialect: Dialect,
        /// The operand.
        operand: &'static str,
    },
}

impl Invocation<'_> {
    /// dd's operands, without the program's name.
    ///
    /// # Errors
    /// Where dd would measure nothing, would never end, or cannot do it.
    pub fn operands(&self) -> Result<Vec<String>, OperandError> {
        if self.block_size == Bytes(0) {
            return Err(OperandError::NoBlock);
        }
        if self.input == "/dev/null" {
            return Err(OperandError::NothingToRead {
                input: self.input.to_owned(),
            });
        }
        let endless = ["/dev/zero", "/dev/urandom", "/dev/random"];
        if self.count.is_none() && endless.contains(&self.input) {
            return Err(OperandError::NoEnd {
                input: self.input.to_owned(),
            });
        }
        if let Some((operand, _)) = self
            .lists()
            .into_iter()
            .find(|(operand, is_on)| *is_on && self.dialect.lacks(operand))
        {
            return Err(OperandError::Lacking {
                dialect: self.dialect,
                operand,
            });
        }
        let mut operands = vec![
            format!("if={}", self.input),
            format!("of={}", self.output),
            format!("bs={}", self.block_size.0),
        ];
        if let Some(count) = self.count {
            operands.push(format!("count={count}"));
        }
        for (name, blocks) in [("skip", self.skip), ("seek", self.seek)] {
            if blocks > 0 {
                operands.push(format!("{name}={blocks}"));
            }
        }
        for name in ["conv", "iflag", "oflag"] {
            let wanted: Vec<&str> = self
                .lists()
                .into_iter()
                .filter(|(_, is_on)| *is_on)
                .filter_map(|(operand, _)| {
                    let (list, word) = operand.split_once('=')?;
                    (list == name).then_some(word)
                })
                .collect();
            if !wanted.is_empty() {
                operands.push(format!("{name}={}", wanted.join(",")));
            }
        }
        Ok(operands)
    }

    /// Every word of the three lists, and whether it is wanted.
    const fn lists(&self) -> [(&'static str, bool); 7] {
        [
            ("conv=notrunc", self.flags.keep_length),
            ("conv=fsync", matches!(self.end, End::Fsync)),
            ("conv=fdatasync", matches!(self.end, End::Fdatasync)),
            ("iflag=direct", self.flags.direct_input),
            ("iflag=fullblock", self.flags.full_blocks),
            ("oflag=direct", self.flags.direct_output),
            ("oflag=sync", self.flags.synchronous_output),
        ]
    }
}
