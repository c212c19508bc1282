//! The server's side of the NBD protocol without I/O: messages parsed and written.
//!
//! The crate follows doc/proto.md of the NetworkBlockDevice project: fixed newstyle handshake, TLS
//! upgrade, structured replies, metadata contexts. It is a pair of state machines, one for the
//! handshake and one for transmission. Each takes the bytes that have arrived and returns how many
//! it consumed, what happened, and bytes to send. Payloads never pass through them: after an event
//! that announces a payload, the caller moves the bytes itself (straight from the socket into its
//! buffer, if it likes) and reports only their number. Nothing is allocated on the client's word:
//! every length is checked against a bound first, and memory grows with the bytes that really came.

mod error_code;
mod export;
mod protocol_error;
pub mod server;
mod strings;
pub mod wire;

pub use error_code::ErrorCode;
pub use export::{BlockSizes, ExportInfo, Extent, SelectedContext, TransmissionFlags};
pub use protocol_error::ProtocolError;
