//! Both sides against each other, in memory and in any fragments.

mod handshake;
mod nonsense;
mod transmission;

use crate::{BlockSizes, ExportInfo, TransmissionFlags, server::Directory};

/// A directory of a few exports.
pub(crate) struct Known(pub Vec<ExportInfo>);

impl Directory for Known {
    fn list(&self) -> Vec<(String, String)> {
        self.0
            .iter()
            .map(|export| (export.name.clone(), export.description.clone()))
            .collect()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        self.0
            .iter()
            .find(|export| name.is_empty() || export.name == name)
            .cloned()
    }
}

/// An export that takes everything.
pub(crate) fn export(name: &str, size_bytes: u64) -> ExportInfo {
    ExportInfo {
        name: name.to_owned(),
        description: format!("the export {name}"),
        size_bytes,
        flags: TransmissionFlags(0b1101_0111_1101 & !TransmissionFlags::READ_ONLY.0),
        block_sizes: BlockSizes::default(),
        contexts: vec!["base:allocation".to_owned(), "raidlab:state".to_owned()],
    }
}

/// Cuts bytes into fragments of the given lengths, used round and round.
pub(crate) struct Fragments<'a> {
    pub lengths: &'a [usize],
    pub turn: usize,
}

impl Fragments<'_> {
    pub fn next(&mut self, available: usize) -> usize {
        let length = self.lengths[self.turn % self.lengths.len()];
        self.turn += 1;
        length.min(available)
    }
}
