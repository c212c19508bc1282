//! The server's side.

mod handshake;
mod options;
mod reply;
mod requests;

pub use handshake::{Directory, Handshake, HandshakeEvent, TlsPolicy};
pub use reply::{Head, Session};
pub use requests::{Rejection, Request, RequestEvent, Requests};
