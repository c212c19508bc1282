//! See `raidlab_fuzz::job_file`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(job_file);
