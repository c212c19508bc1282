//! A shard of a run: one of several parts, done on several machines or one after the other.

use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// One of so many shards of a run. The planner decides which experiments belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    index: u32,
    count: NonZero<u32>,
}

/// The reason why a word is no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// The word is not two numbers with a slash between them.
    #[error("a shard is its number and how many there are: 0/8 is the first of eight")]
    Form,
    /// The number is too large for this count of shards.
    #[error("shards count from 0: the last of {0} is {last}/{0}", last = .0.get() - 1)]
    Behind(NonZero<u32>),
    /// The count is above the largest one.
    #[error("{0} shards are more than {most}", most = Shard::MOST)]
    Many(NonZero<u32>),
}

impl Shard {
    /// The largest number of shards of a run: they are listed at some points.
    pub const MOST: u32 = 1_000_000;

    /// Shard number `index`, from 0, of `count`. `None` where `index` is not below `count`, and
    /// where `count` is beyond [`Self::MOST`].
    #[must_use]
    pub fn new(index: u32, count: NonZero<u32>) -> Option<Self> {
        (index < count.get() && count.get() <= Self::MOST).then_some(Self { index, count })
    }

    /// The shard's number, from 0.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The number of shards of the run.
    #[must_use]
    pub const fn count(self) -> NonZero<u32> {
        self.count
    }

    /// The default name of the shard's file, `shard-03-of-64.db`, so that a list of the files
    /// is in order.
    #[must_use]
    pub fn file_name(self) -> String {
        let digits = (self.count.get() - 1).to_string().len();
        format!("shard-{:0digits$}-of-{}.db", self.index, self.count)
    }

    /// The path at which the shard that will be `file` is kept until it is whole.
    #[must_use]
    pub fn part_of(file: &Path) -> PathBuf {
        let mut name = file.as_os_str().to_owned();
        name.push(".part");
        name.into()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError::Form)?;
        let index = index.parse().map_err(|_| ShardError::Form)?;
        let count: NonZero<u32> = count.parse().map_err(|_| ShardError::Form)?;
        if count.get() > Self::MOST {
            return Err(ShardError::Many(count));
        }
        Self::new(index, count).ok_or(ShardError::Behind(count))
    }
}

#[cfg(test)]
mod tests {
    use super::{Shard, ShardError};

    #[test]
    fn a_shard_is_read_and_named() {
        let shard: Shard = "3/64".parse().expect("a shard");
        assert_eq!((shard.index(), shard.count().get()), (3, 64));
        assert_eq!(shard.to_string(), "3/64");
        assert_eq!(shard.file_name(), "shard-03-of-64.db");
        let one: Shard = "0/1".parse().expect("a shard");
        assert_eq!(one.file_name(), "shard-0-of-1.db");
        for text in ["", "3", "3/", "/8", "-1/8", "0/0", "a/b", "1/2/3", "0.5/2"] {
            assert_eq!(text.parse::<Shard>(), Err(ShardError::Form), "{text}");
        }
        let behind = "8/8".parse::<Shard>().expect_err("the ninth of eight");
        assert_eq!(
            behind.to_string(),
            "shards count from 0: the last of 8 is 7/8"
        );
        let many = "0/4000000000".parse::<Shard>().expect_err("too many");
        assert_eq!(many.to_string(), "4000000000 shards are more than 1000000");
    }
}
