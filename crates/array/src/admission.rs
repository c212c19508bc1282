//! The part of an added member that has to be recovered.

use raidlab_units::{Sectors, Span, SpanSet};

/// The extent to which an added member has to be recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Everything from this sector of its data area on; below it the member is current.
    From(Sectors),
    /// Only these ranges (positions as in [`SyncRequest`](crate::SyncRequest)): a re-add by bitmap.
    Ranges(Vec<Span>),
}

impl Admission {
    /// Returns the ranges of a member of `size` sectors to be recovered, in whole blocks
    /// of `block` sectors.
    pub(crate) fn unfilled(&self, size: Sectors, block: u64) -> SpanSet {
        let rest;
        let spans = match self {
            Self::From(start) => {
                rest = [Span::new(start.0, size.0)];
                &rest[..]
            }
            Self::Ranges(spans) => spans,
        };
        blocks_of(Some(spans), size, block)
    }
}

/// Returns the whole blocks of `block` sectors that cover ranges of a member's first `size`
/// sectors; `None` stands for all of them.
#[must_use]
pub fn blocks_of(spans: Option<&[Span]>, size: Sectors, block: u64) -> SpanSet {
    let everything = [Span::new(0, size.0)];
    let spans = spans.unwrap_or(&everything).iter();
    let aligned = spans.map(|span| {
        let end = span.end.0.min(size.0).next_multiple_of(block);
        Span::new(span.start.0 / block * block, end)
    });
    aligned.collect()
}
