//! The terms that a client and the server agree on in the handshake, and its outcome.

use crate::{ExportInfo, SelectedContext};

/// Whether the connection may or must be upgraded to TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPolicy {
    /// The server does not offer TLS.
    Off,
    /// The server offers TLS, and the client may do without.
    Offered,
    /// The server requires TLS: it accepts no export before the upgrade.
    Required,
}

/// The exports that a server has.
pub trait Directory {
    /// Returns names and descriptions, in the order of `NBD_OPT_LIST`.
    fn list(&self) -> Vec<(String, String)>;

    /// Returns the export of a name; the empty name stands for the default one.
    fn find(&self, name: &str) -> Option<ExportInfo>;

    /// Whether the server is going away and takes no new sessions.
    fn is_shutting_down(&self) -> bool {
        false
    }
}

/// The event that ends the handshake, or its part before TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeEvent {
    /// Send what was written, then do the TLS handshake and call
    /// [`secured`](crate::server::Handshake::secured). All further bytes, those already received
    /// included, belong to TLS.
    StartTls,
    /// The client gives up: send what was written and close.
    Aborted,
    /// The client has chosen an export, and requests may come.
    Ready(Box<Session>),
}

/// The terms agreed on so far.
#[derive(Debug, Default)]
pub(super) struct Agreed {
    pub fixed: bool,
    pub no_zeroes: bool,
    pub structured: bool,
    pub secured: bool,
    /// The chosen metadata contexts, and the export that they were chosen for.
    pub contexts: Option<(String, Vec<SelectedContext>)>,
}

/// The outcome of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The export that is served.
    pub export: ExportInfo,
    /// Whether replies to reads come in chunks.
    pub structured: bool,
    /// The contexts that block status replies report.
    pub contexts: Vec<SelectedContext>,
}
