//! The bench, from suites to rows.

mod audited_suites;
mod depths;
mod discards;
mod kernel_bench_host;
mod md_levels;
mod mirror_2015;
mod processor;
mod re_add;
mod rebuild_time;
mod rows;
mod stream_leaps;
mod waits;
mod zfs_leaps;
