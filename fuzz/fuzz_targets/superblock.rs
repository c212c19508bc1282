//! The program that fuzzes superblocks, as `raidlab_fuzz::superblock` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(superblock);
