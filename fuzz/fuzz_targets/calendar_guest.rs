//! The program that fuzzes a guest that says and holds anything, as `raidlab_fuzz::calendar_guest` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(calendar_guest);
