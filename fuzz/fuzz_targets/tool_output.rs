//! The program that fuzzes tools' outputs, as `raidlab_fuzz::tool_output` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(tool_output);
