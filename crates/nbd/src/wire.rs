//! The protocol's numbers (doc/proto.md, "Values"), all big-endian on the wire.

/// First word of the server's greeting: `NBDMAGIC`.
pub const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second word of the greeting and first of every option: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// First word of every option reply.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First word of every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First word of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First word of a structured reply chunk.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag: options get replies.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag: no 124 zeroes after `NBD_OPT_EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 2;
/// Reserved bytes that end the answer to `NBD_OPT_EXPORT_NAME`.
pub const RESERVED_BYTES: usize = 124;

/// Options (client to server, handshake).
pub mod option {
    /// The client chooses an export and begins, without an error reply.
    pub const EXPORT_NAME: u32 = 1;
    /// The client gives up, and the connection ends.
    pub const ABORT: u32 = 2;
    /// The client asks for the names of all exports.
    pub const LIST: u32 = 3;
    /// The client asks for an upgrade to TLS.
    pub const STARTTLS: u32 = 5;
    /// The client asks for the properties of an export.
    pub const INFO: u32 = 6;
    /// The client asks for the properties of an export, and begins.
    pub const GO: u32 = 7;
    /// The client asks for replies to reads in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// The client asks for the names of metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// The client chooses the metadata contexts that it will ask about.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of option replies; errors have the highest bit set.
pub mod reply {
    /// The option is accepted, or all its replies were sent.
    pub const ACK: u32 = 1;
    /// The reply names an export that the server has.
    pub const SERVER: u32 = 2;
    /// The reply tells a fact of an export.
    pub const INFO: u32 = 3;
    /// The reply names a metadata context that the export has.
    pub const META_CONTEXT: u32 = 4;
    /// The bit that the types of all error replies have.
    pub const ERROR_BIT: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR_BIT + 1;
    /// The server's policy forbids the option.
    pub const ERR_POLICY: u32 = ERROR_BIT + 2;
    /// The option breaks a rule.
    pub const ERR_INVALID: u32 = ERROR_BIT + 3;
    /// The option is refused until the connection has TLS.
    pub const ERR_TLS_REQD: u32 = ERROR_BIT + 5;
    /// There is no export of the name that was asked for.
    pub const ERR_UNKNOWN: u32 = ERROR_BIT + 6;
    /// The server is going away.
    pub const ERR_SHUTDOWN: u32 = ERROR_BIT + 7;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = ERROR_BIT + 9;
}

/// Types of facts in `NBD_REP_INFO`.
pub mod info {
    /// The size and the transmission flags of the export.
    pub const EXPORT: u16 = 0;
    /// The canonical name of the export.
    pub const NAME: u16 = 1;
    /// A description of the export for people.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum block size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of a request.
pub mod command_flag {
    /// The write is durable before it is answered.
    pub const FUA: u16 = 1;
    /// Zeroes must stay allocated and leave no hole.
    pub const NO_HOLE: u16 = 2;
    /// The reply must have one chunk of content at most.
    pub const DF: u16 = 4;
    /// Block status reports at most one extent per context.
    pub const REQ_ONE: u16 = 8;
    /// Zeroes are wanted only if they are faster than a write.
    pub const FAST_ZERO: u16 = 16;
}

/// Types of structured reply chunks; errors have the highest bit set.
pub mod chunk {
    /// The chunk ends a reply and carries nothing.
    pub const NONE: u16 = 0;
    /// The chunk has an offset and the bytes that lie there.
    pub const OFFSET_DATA: u16 = 1;
    /// The chunk has an offset and a number of zeroes.
    pub const OFFSET_HOLE: u16 = 2;
    /// The chunk lists the extents of a metadata context.
    pub const BLOCK_STATUS: u16 = 5;
    /// The bit that the types of all error chunks have.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// The chunk reports an error of the whole request, with a message.
    pub const ERROR: u16 = ERROR_BIT + 1;
    /// Chunk flag: this is the last chunk of the reply.
    pub const FLAG_DONE: u16 = 1;
}

/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply's header.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of a chunk's header.
pub const CHUNK_BYTES: usize = 20;

/// The longest string that the protocol allows, in bytes.
pub const MAXIMUM_STRING_BYTES: usize = 4096;
/// The longest option or option reply that either side takes, in bytes: room for several names of
/// the greatest length.
pub const MAXIMUM_OPTION_BYTES: usize = 64 << 10;
/// The longest read or write that is ever agreed on, in bytes.
pub const MAXIMUM_PAYLOAD_BYTES: u32 = 32 << 20;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Command {
    /// Returns the bytes of the range.
    Read = 0,
    /// Stores the bytes of the request.
    Write = 1,
    /// The client sends nothing more and expects no answer.
    Disconnect = 2,
    /// Makes all writes that were answered durable.
    Flush = 3,
    /// Discards the content of the range, which is no longer needed.
    Trim = 4,
    /// Reads the range ahead into the server's cache.
    Cache = 5,
    /// Makes the range read as zeroes; the request has no payload.
    WriteZeroes = 6,
    /// Returns the extents of the chosen contexts.
    BlockStatus = 7,
}

impl Command {
    /// Returns the command of a number on the wire.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            _ => return None,
        })
    }

    /// Whether the command changes the export's content.
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes)
    }
}
