//! See `raidlab_fuzz::calendar_messages`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(calendar_messages);
