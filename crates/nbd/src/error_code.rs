//! The error numbers that a reply may carry (doc/proto.md, "Error values").

/// The error of a request, as a number on the wire. The numbers are the protocol's own, whatever
/// the machine's `errno` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ErrorCode {
    /// `NBD_EPERM`: a write to a read-only export.
    #[error("operation not permitted")]
    NotPermitted,
    /// `NBD_EIO`: the medium failed.
    #[error("input/output error")]
    Io,
    /// `NBD_ENOMEM`: no memory for the request.
    #[error("cannot allocate memory")]
    OutOfMemory,
    /// `NBD_EINVAL`: the request breaks a rule, or a number that is not known.
    #[error("invalid argument")]
    Invalid,
    /// `NBD_ENOSPC`: a write beyond the end, or no room in the backing store.
    #[error("no space left on device")]
    NoSpace,
    /// `NBD_EOVERFLOW`: too long to be answered without fragments.
    #[error("value too large")]
    Overflow,
    /// `NBD_ENOTSUP`: zeroes cannot be written fast.
    #[error("operation not supported")]
    NotSupported,
    /// `NBD_ESHUTDOWN`: the server is going away.
    #[error("server is shutting down")]
    Shutdown,
}

impl ErrorCode {
    /// The number on the wire; never 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::NotPermitted => 1,
            Self::Io => 5,
            Self::OutOfMemory => 12,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::Overflow => 75,
            Self::NotSupported => 95,
            Self::Shutdown => 108,
        }
    }
}
