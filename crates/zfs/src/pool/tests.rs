//! Rules by hand, any order of completions, and the pool over modelled disks.

mod bench;
mod comparison;
mod resilver;
mod rules;
mod shuffled;
