//! Arrays and modelled disks on real files, served over NBD.

pub mod array;
pub mod control;
pub mod disk;
pub mod export;
pub mod member;
pub mod server;
pub mod ublk;
mod unix_socket;
