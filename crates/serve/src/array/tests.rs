//! The driver over real files.

mod clients;
mod file;
