//! The waiting states of an array with metadata, in words.

use super::PersistentArray;

impl PersistentArray {
    /// Returns what is held back at this moment and why: a line for each cause, the metadata's
    /// first, then the engine's.
    #[must_use]
    pub fn waits(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(first) = self.held.front() {
            let cause = if !self.started {
                "the first superblocks"
            } else if !self.disk_dirty {
                "the superblocks that call the array dirty"
            } else {
                "their bits in the bitmap"
            };
            lines.push(format!(
                "{} writes wait for {cause}, the first at sector {}",
                self.held.len(),
                first.start.0
            ));
        }
        if !self.held_finished.is_empty() {
            lines.push(format!(
                "{} answers wait for a failure or for bad blocks to be recorded",
                self.held_finished.len()
            ));
        }
        let held = self.replacements.held_answers();
        if held > 0 {
            lines.push(format!(
                "{held} answers of members wait until the superblocks leave out a device of a \
                 replacement that has failed"
            ));
        }
        if let Some(pass) = &self.pass {
            lines.push(pass.waits());
        }
        lines.extend(self.engine.waits());
        lines
    }
}
