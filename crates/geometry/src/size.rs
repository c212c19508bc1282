//! The size of an array.

use crate::copies::CopyMap;
use crate::shape::{Shape, ShapeError, round_down};
use raidlab_units::Sectors;

impl Shape {
    /// Sectors that the array offers, as md counts them.
    ///
    /// # Errors
    /// When there can be no such array.
    pub fn array_size(&self) -> Result<Sectors, ShapeError> {
        if self.level.parity_count() == 0 {
            return CopyMap::new(self).map(|map| map.array_size());
        }
        self.check()?;
        let data = self.member_sizes.len() - self.level.parity_count();
        let size = round_down(self.used_size, self.chunk).0 * data as u64;
        if size == 0 {
            return Err(ShapeError::NoSize);
        }
        Ok(Sectors(size))
    }
}
