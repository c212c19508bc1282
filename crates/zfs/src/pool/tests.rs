//! Rules by hand, any order of completions, and the pool over modelled disks.

mod bench;
mod comparison;
mod intent_log;
mod openzfs_2_3;
mod resilver;
mod rules;
mod shuffled;
