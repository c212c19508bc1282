//! The program that fuzzes job files and command lines of fio, as `raidlab_fuzz::job_file` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(job_file);
