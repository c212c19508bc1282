//! The properties of an export that the two sides exchange.

/// Transmission flags: what an export can do. `NBD_FLAG_HAS_FLAGS` is always set on the wire,
/// `NBD_FLAG_SEND_DF` exactly with structured replies, whatever this value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransmissionFlags(pub u16);

impl TransmissionFlags {
    /// The other flags are meaningful; a server always sets it.
    pub const HAS_FLAGS: Self = Self(1);
    /// The export takes no writes (`NBD_FLAG_READ_ONLY`).
    pub const READ_ONLY: Self = Self(1 << 1);
    /// The server accepts flushes (`NBD_CMD_FLUSH`).
    pub const SEND_FLUSH: Self = Self(1 << 2);
    /// The server accepts the flag force-unit-access (`NBD_CMD_FLAG_FUA`).
    pub const SEND_FUA: Self = Self(1 << 3);
    /// Seeks cost time, as on a turning disk (`NBD_FLAG_ROTATIONAL`).
    pub const ROTATIONAL: Self = Self(1 << 4);
    /// The server accepts trims (`NBD_CMD_TRIM`).
    pub const SEND_TRIM: Self = Self(1 << 5);
    /// The server accepts requests for zeroes (`NBD_CMD_WRITE_ZEROES`).
    pub const SEND_WRITE_ZEROES: Self = Self(1 << 6);
    /// The server accepts the flag that forbids a reply in fragments (`NBD_CMD_FLAG_DF`).
    pub const SEND_DF: Self = Self(1 << 7);
    /// A flush covers all connections.
    pub const CAN_MULTI_CONN: Self = Self(1 << 8);
    /// The server accepts cache requests (`NBD_CMD_CACHE`).
    pub const SEND_CACHE: Self = Self(1 << 10);
    /// The server accepts the flag that zeroes are wanted only if they
    /// are fast (`NBD_CMD_FLAG_FAST_ZERO`).
    pub const SEND_FAST_ZERO: Self = Self(1 << 11);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags, and those of `other` if `condition` holds.
    #[must_use]
    pub const fn with_if(self, condition: bool, other: Self) -> Self {
        if condition {
            Self(self.0 | other.0)
        } else {
            self
        }
    }

    /// The flags as they go over the wire.
    #[must_use]
    pub const fn on_wire(self, structured: bool) -> u16 {
        Self(self.0 & !Self::SEND_DF.0)
            .with_if(true, Self::HAS_FLAGS)
            .with_if(structured, Self::SEND_DF)
            .0
    }
}

/// Constraints on requests, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// The unit of offsets and lengths in bytes: a power of two up to 64 KiB.
    pub minimum: u32,
    /// The unit that performs best, in bytes; a power of two, at least `minimum` and 512.
    pub preferred: u32,
    /// The longest read or write in bytes, a multiple of `minimum`.
    pub maximum: u32,
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self {
            minimum: 1,
            preferred: 4096,
            maximum: crate::wire::MAXIMUM_PAYLOAD_BYTES,
        }
    }
}

/// An export as a server announces it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportInfo {
    /// The name by which the server itself knows the export.
    pub name: String,
    /// A description for a human reader; empty if there is none.
    pub description: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The features of the export, as they are announced to clients.
    pub flags: TransmissionFlags,
    /// Constraints on requests.
    pub block_sizes: BlockSizes,
    /// Names of the metadata contexts; a context's number on the wire is its index here plus one.
    pub contexts: Vec<String>,
}

/// A metadata context that the client has chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedContext {
    /// The context's number in block status replies.
    pub id: u32,
    /// The context's name, such as `base:allocation`.
    pub name: String,
}

/// A run of bytes with the same state in a metadata context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The number of bytes; never 0.
    pub length: u32,
    /// The state; for `base:allocation` bit 0 is a hole, bit 1 zeroes.
    pub flags: u32,
}
