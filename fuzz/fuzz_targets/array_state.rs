//! See `raidlab_fuzz::array_state`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(array_state);
