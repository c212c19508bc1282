//! See `raidlab_fuzz::suite`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(suite);
