//! The program that fuzzes a guest's messages, as `raidlab_fuzz::calendar_messages` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(calendar_messages);
