//! See `raidlab_fuzz::bitmap`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(bitmap);
