//! The program that fuzzes what a client of NBD says, as `raidlab_fuzz::nbd_server` says.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(nbd_server);
