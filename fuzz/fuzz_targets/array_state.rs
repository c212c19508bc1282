//! The program that fuzzes the texts of zpool and geom, as `raidlab_fuzz::array_state` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(array_state);
