//! The NBD protocol without I/O: both sides' messages, parsed and written.

mod error_code;

pub use error_code::ErrorCode;
