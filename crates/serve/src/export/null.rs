//! An export without a medium, to measure the server itself.

use super::{Export, Features, Operation, Request};

/// An export that discards every write; a read returns the bytes that its buffer had before, which
/// were zero or another request's payload.
#[derive(Debug, Clone)]
pub struct NullExport {
    size_bytes: u64,
}

impl NullExport {
    /// An export of `size_bytes`.
    #[must_use]
    pub fn new(size_bytes: u64) -> Self {
        Self { size_bytes }
    }
}

impl Export for NullExport {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn description(&self) -> String {
        "nothing: writes are forgotten".to_owned()
    }

    fn features(&self) -> Features {
        Features {
            flush: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            cache: true,
            multiple_connections: true,
            ..Features::default()
        }
    }

    fn submit(&self, request: Request) {
        debug_assert!(
            !matches!(request.operation, Operation::Read | Operation::Write)
                || request.buffer.len() == request.length as usize
        );
        request.complete(Ok(()));
    }
}
