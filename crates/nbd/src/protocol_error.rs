//! Violations after which a connection cannot go on.

/// The other side broke the protocol where no reply can mend it; the
/// connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The client set a flag that was not offered.
    #[error("client flags {0:#x} were not offered")]
    ClientFlags(u32),
    /// An option does not begin with its magic.
    #[error("an option begins with {0:#018x}")]
    OptionMagic(u64),
    /// A client without fixed newstyle sent an option besides the export name.
    #[error("option {0} from a client without fixed newstyle")]
    OptionNotAllowed(u32),
    /// The export that `NBD_OPT_EXPORT_NAME` names cannot be served.
    #[error("no export {0:?} to begin with")]
    ExportRefused(String),
    /// A string that is too long, not UTF-8 or has a NUL.
    #[error("a name breaks the rules for strings")]
    BadString,
    /// A request does not begin with its magic.
    #[error("a request begins with {0:#010x}")]
    RequestMagic(u32),
}
