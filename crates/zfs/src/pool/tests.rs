//! Rules by hand, any order of completions, and the pool over modelled disks.

mod bench;
mod comparison;
mod rules;
mod shuffled;
