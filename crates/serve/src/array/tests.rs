//! The driver over real files.

mod file;
