//! See `raidlab_fuzz::calendar_guest`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(calendar_guest);
