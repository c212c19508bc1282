//! Rules by hand, any order of completions, and the pool over modelled disks.

mod bench;
mod comparison;
mod openzfs_2_3;
mod resilver;
mod rules;
mod shuffled;
