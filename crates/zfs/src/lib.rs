//! A simple model of a ZFS mirror pool with one zvol, above its member disks.
//!
//! A state machine like the array core, with the same vocabulary: requests,
//! member completions, ticks and an administrator's verbs go in, member
//! commands, finished requests and events come out. No payload, no clock.
//!
//! What is modelled, each with its rules and sources at the head of its file:
//! - `leaf_queue`: the I/O scheduler's classes, limits, order and merging; above it
//!   the array core's policies choose the child of the mirror that serves a read;
//! - `pool`: the path of a request: indirect blocks first, then the 8 KiB
//!   block, for a partial overwrite the old block as well;
//! - `cache`: indirect blocks and data in memory;
//! - `map`: copy-on-write allocation and where everything lies;
//! - `prefetch`: sequential streams are read ahead;
//! - `txg`: dirty data, the write throttle, transaction groups and their sync;
//! - `scan`: the resilver in block-tree order.
//!
//! Not modelled: checksums and compression of data, the intent log
//! (every write is asynchronous; a flush waits for the current transaction
//! group), level 3 and above of the block tree, fragmentation, snapshots.
//! No constant is fitted on a throughput figure of the comparison of 2015;
//! two choices were made by looking at its results and say so where they
//! stand (what outlasts hours of resilver, in `scan`; the syncing thread's
//! time, in `config`). Declared accuracy: random reads and partial overwrites
//! within 30 %, sequential writes within 10 %, gathered random writes and
//! single sequential reads within 25 %, the resilver's own speed a factor of
//! two, orderings of all of them.

mod cache;
mod config;
mod leaf_queue;
mod map;
mod pool;
mod prefetch;
mod slab;

pub use config::{
    ChildSelection, ClassLimits, ConfigError, HostTime, MemberConfig, PoolConfig, PrefetchConfig,
    QueueConfig, ResilverConfig,
};
pub use pool::{Pool, SyncStatus};
