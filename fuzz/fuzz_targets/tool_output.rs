//! See `raidlab_fuzz::tool_output`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(tool_output);
