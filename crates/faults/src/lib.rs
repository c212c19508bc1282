//! x
#![allow(missing_docs)]
pub mod disk;
pub mod oracle;
pub mod pages;
pub mod reader;
pub mod value;
