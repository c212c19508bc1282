//! The NBD protocol without I/O: both sides' messages, parsed and written.
