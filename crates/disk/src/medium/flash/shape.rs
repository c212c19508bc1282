//! The numbers of pages and blocks of a flash drive.

/// The value for no page, no place or no block.
pub(super) const NONE: u32 = u32::MAX;

/// The fewest blocks beside those of the logical pages: collecting needs two open and
/// two free ones.
const SPARE_BLOCKS: u32 = 4;

/// The numbers of pages and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of logical pages, at least 1.
    pub pages: u32,
    /// The number of pages in a block, a power of two.
    pub block_pages: u32,
    /// The number of blocks, at least four more than the logical pages fill.
    pub blocks: u32,
}

impl Shape {
    /// Creates a shape of so many logical pages on `over_provisioning` times as many physical ones,
    /// in blocks of `block_pages`, which is rounded up to a power of two.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a physical page has a number of 32 bits: the cast saturates"
    )]
    pub fn new(pages: u32, over_provisioning: f64, block_pages: u32) -> Self {
        let block_pages = block_pages.max(1).next_power_of_two();
        let blocks = f64::from(pages) * over_provisioning / f64::from(block_pages);
        Self {
            pages,
            block_pages,
            blocks: (blocks as u32).max(pages.div_ceil(block_pages) + SPARE_BLOCKS),
        }
    }
}
