//! The client's side.

mod handshake;
mod replies;
mod window;

pub use handshake::{Handshake, HandshakeEvent, Purpose, Session, Wishes};
pub use replies::{Replies, ReplyEvent};
pub use window::{Refusal, Window};
