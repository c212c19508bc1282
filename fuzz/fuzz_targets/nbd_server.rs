//! See `raidlab_fuzz::nbd_server`.
#![cfg_attr(fuzzing, no_main)]

raidlab_fuzz::target!(nbd_server);
