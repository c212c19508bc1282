//! See `raidlab_fuzz::preset`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(preset);
