//! The program that fuzzes suites, as `raidlab_fuzz::suite` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(suite);
