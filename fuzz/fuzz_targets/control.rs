//! See `raidlab_fuzz::control`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(control);
