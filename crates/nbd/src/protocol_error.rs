//! Violations after which a connection cannot go on.

use crate::wire;

/// The other side broke the protocol where no reply can mend it; the
/// connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The greeting is not of a newstyle server.
    #[error("the greeting is not that of a newstyle NBD server")]
    Greeting,
    /// The server knows no option replies.
    #[error("the server does not speak fixed newstyle")]
    NotFixed,
    /// A client flag that was not offered.
    #[error("client flags {0:#x} were not offered")]
    ClientFlags(u32),
    /// An option does not begin with its magic.
    #[error("an option begins with {0:#018x}")]
    OptionMagic(u64),
    /// A client without fixed newstyle sent an option besides the export name.
    #[error("option {0} from a client without fixed newstyle")]
    OptionNotAllowed(u32),
    /// The export of `NBD_OPT_EXPORT_NAME` cannot be served.
    #[error("no export {0:?} to begin with")]
    ExportRefused(String),
    /// A string that is too long, not UTF-8 or has a NUL.
    #[error("a name breaks the rules for strings")]
    BadString,
    /// An option reply does not begin with its magic.
    #[error("an option reply begins with {0:#018x}")]
    OptionReplyMagic(u64),
    /// A reply to another option than the one sent.
    #[error("reply to option {got} while option {sent} waits")]
    ReplyToOther {
        /// The option that waits.
        sent: u32,
        /// The option in the reply.
        got: u32,
    },
    /// An option reply that does not fit its option, or is malformed.
    #[error("malformed reply of type {kind:#x} to option {option}")]
    OptionReply {
        /// The option.
        option: u32,
        /// The reply's type.
        kind: u32,
    },
    /// Longer than [`wire::MAXIMUM_OPTION_BYTES`], or too many replies.
    #[error("the answer to option {0} is too long")]
    OptionReplyTooLong(u32),
    /// The server refused an option that is needed.
    #[error("the server refuses option {option}: {reason}{}{message}", if .message.is_empty() { "" } else { ": " })]
    Refused {
        /// The option.
        option: u32,
        /// What the reply's type means.
        reason: &'static str,
        /// The server's words.
        message: String,
    },
    /// A request does not begin with its magic.
    #[error("a request begins with {0:#010x}")]
    RequestMagic(u32),
    /// A reply does not begin with a magic.
    #[error("a reply begins with {0:#010x}")]
    ReplyMagic(u32),
    /// A reply to nothing that waits.
    #[error("a reply to a request that does not wait: cookie {0:#x}")]
    UnknownCookie(u64),
    /// A chunk that its request does not allow, or is malformed.
    #[error("malformed chunk of type {kind:#x} with {length} bytes")]
    Chunk {
        /// The chunk's type.
        kind: u16,
        /// Bytes of its payload.
        length: u32,
    },
    /// A content chunk outside its request or over another one.
    #[error("a content chunk lies outside its request or over another one")]
    ChunkRange,
    /// A read ended as a success without all of its bytes.
    #[error("a read ended without all of its bytes")]
    ShortRead,
}

impl ProtocolError {
    /// What an error type of an option reply means.
    #[must_use]
    pub(crate) const fn reason(kind: u32) -> &'static str {
        match kind {
            wire::reply::ERR_UNSUP => "not supported",
            wire::reply::ERR_POLICY => "forbidden by policy",
            wire::reply::ERR_INVALID => "invalid",
            wire::reply::ERR_TLS_REQD => "TLS is required",
            wire::reply::ERR_UNKNOWN => "no such export",
            wire::reply::ERR_SHUTDOWN => "shutting down",
            wire::reply::ERR_TOO_BIG => "too long",
            _ => "error",
        }
    }
}
