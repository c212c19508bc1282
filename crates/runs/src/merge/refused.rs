//! Reasons why a file is not merged with others.

use raidlab_store::Shard;
use raidlab_store::text::visible_path;
use raidlab_units::count;
use std::path::PathBuf;

/// The reason why a file cannot be merged with the others.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{} is not a shard: `raidlab run --shard` makes one", visible_path(.0))]
    NoShard(PathBuf),
    #[error("{} is damaged: it does not have the rows that were written as shard {}", visible_path(.0), .1)]
    Damaged(PathBuf, Shard),
    #[error("{} is of another plan than {}", visible_path(.0), visible_path(.1))]
    OtherPlan(PathBuf, PathBuf),
    #[error("{} is of raidlab {}, {} of raidlab {}", visible_path(.0), .1, visible_path(.2), .3)]
    OtherVersion(PathBuf, String, PathBuf, String),
    #[error("{} is shard {}, {} is shard {}", visible_path(.0), .1, visible_path(.2), .3)]
    OtherCount(PathBuf, Shard, PathBuf, Shard),
    #[error("{} has {} `{}`, {} has `{}`", visible_path(.0), .1, .2, visible_path(.3), .4)]
    OtherKernel(PathBuf, String, String, PathBuf, String),
    #[error("{} and {} are both shard {}, and differ in their {}", visible_path(.0), visible_path(.1), .2, .3)]
    Doubled(PathBuf, PathBuf, Shard, &'static str),
    #[error("shard {} in {} was stopped before its end", .1, visible_path(.0))]
    Unfinished(PathBuf, Shard),
    #[error("of {} shards there is no whole file of {}", .0, .1)]
    Missing(u32, String),
    #[error("there is no shard in {}", visible_path(.0))]
    NoShards(PathBuf),
    #[error("none of the shards in {} is whole: {}", visible_path(.0), count(*.1, "shard is only begun", "shards are only begun"))]
    OnlyBegun(PathBuf, usize),
    #[error("{} is not there: the shard is only begun, in {}", visible_path(.0), visible_path(.1))]
    Begun(PathBuf, PathBuf),
    #[error("there is no file and no folder {}", visible_path(.0))]
    Nothing(PathBuf),
}
