//! The server's side: handshake, options, requests and replies.

mod agreed;
mod handshake;
mod options;
mod reply;
mod requests;

pub use agreed::{Directory, HandshakeEvent, Session, TlsPolicy};
pub use handshake::Handshake;
pub use reply::Head;
pub use requests::{Rejection, Request, RequestEvent, Requests};
