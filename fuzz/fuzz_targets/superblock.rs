//! See `raidlab_fuzz::superblock`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(superblock);
