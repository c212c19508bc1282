//! A simple model of a ZFS mirror pool with one zvol, above its member disks.
//!
//! A state machine like the array core, with the same vocabulary: requests,
//! member completions, ticks and an administrator's verbs go in, member
//! commands, finished requests and events come out. No payload, no clock.
//!
//! Modelled are, each with its rules and sources at the head of its file:
//! - `leaf_queue`: the I/O scheduler's classes, limits, order and merging; above it
//!   the array core's policies choose the child of the mirror that serves a read;
//! - `pool`: the path of a request: indirect blocks first, then the 8 KiB
//!   block, for a partial overwrite the old block as well;
//! - `cache`: indirect blocks and data in memory;
//! - `map`: copy-on-write allocation and the places of all blocks;
//! - `prefetch`: sequential streams are read ahead;
//! - `log`: the intent log, which makes writes durable before their group is on disk;
//! - `txg`: dirty data, the write throttle, transaction groups and their sync;
//! - `scan`: the resilver, in the order of the block tree or sorted by address.
//!
//! The processor time of the pool is charged by `sim`, by the commands and requests that it sees;
//! the pool then has no host time of its own (`PoolConfig::charged`).
//!
//! Not modelled: what data compresses to (each block takes what the configuration says),
//! log devices, level 3 and above of the block tree, fragmentation, snapshots.
//!
//! Releases differ in constants and in rules: the queue's, prefetch, whether each data block
//! chooses its child, and by which of its properties (`config::ChildSelection`, `DataReads`), how
//! many blocks a sync has in flight (`config::releases`, `leaf_queue`, `prefetch`, `pool::ahead`,
//! `pool::data`, `pool::txg::place`), and the order of the resilver (`pool::scan`).
//!
//! Numbers that are not from the sources or from sizes:
//! - fitted: the syncing thread's time for a block on job 1 of the comparison
//!   of 2015, the resilver thread's on its first hour (8.39 %), both in
//!   `config`;
//! - read off the commands that OpenZFS 2.3 sends to modelled disks: the amount of pool metadata of
//!   a group, and the compressed size of an indirect block;
//! - read off facts of the log that are not rates (`iostat` totals, fio's `cpu`
//!   and `ctx`): pointers and compressed size of indirect blocks, the host's
//!   times, that prefetch is on;
//! - chosen by looking at results: that nothing in the cache outlasts hours of resilver (`scan`;
//!   the first fall of random reads under a resilver is therefore not a pure prediction), that
//!   indirect blocks lie right after their data (`txg`; it decides the single reads of job 6), and
//!   that data leaves the cache before metadata, which it holds (`cache`).
//!
//! - also chosen so: the 330 bytes of header that a cached buffer counts as
//!   metadata (`config`; it keeps the limit off an edge that jobs 24 and 26
//!   met), how many needed blocks eviction passes over (`cache`), and the
//!   sample length of a leap (found by trying).
//!
//! Declared accuracy: random reads within 30 % where threads find blocks of earlier jobs in memory,
//! else within 45 %; sequential writes and single sequential reads within 10 %; several streams
//! within a factor of two and a half; random reads under a resilver within 25 %, its own speed
//! within 15 %.

mod cache;
mod config;
mod leaf_queue;
mod map;
mod pool;
mod prefetch;
mod slab;

pub use config::{
    ChildSelection, ClassLimits, ConfigError, Courtesy, DataReads, HostTime, IntentLog,
    MemberConfig, PoolConfig, PoolMetadata, PrefetchConfig, QueueConfig, ResilverConfig, ScanOrder,
};
pub use pool::{Pool, SyncStatus};
