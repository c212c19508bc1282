//! The program that fuzzes bitmaps and bad-block logs, as `raidlab_fuzz::bitmap` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(bitmap);
