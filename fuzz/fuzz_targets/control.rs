//! The program that fuzzes the control socket, as `raidlab_fuzz::control` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(control);
