//! The program that fuzzes disk presets, as `raidlab_fuzz::preset` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(preset);
