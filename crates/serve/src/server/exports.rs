//! The exports of a server, by name.

use crate::export::{BASE_ALLOCATION, Export, Features};
use raidlab_nbd::{ExportInfo, TransmissionFlags, server::Directory};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The reason why an export cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportsError {
    /// A name that the protocol forbids, or an empty one, which stands for the default.
    #[error("{0:?} is no name for an export: 1 to 4096 bytes without NUL")]
    Name(String),
    /// Two exports of one name.
    #[error("there are two exports {0:?}")]
    Twice(String),
}

/// Checks that an export may have this name.
///
/// # Errors
///
/// It breaks the protocol's rules.
pub fn check_export_name(name: &str) -> Result<(), ExportsError> {
    if name.is_empty() || name.len() > 4096 || name.contains('\0') {
        return Err(ExportsError::Name(name.to_owned()));
    }
    Ok(())
}

/// Exports in the order of the list. The first one is the default: it is
/// served to clients that give no name.
#[derive(Default)]
pub struct Exports {
    list: Vec<(String, Arc<dyn Export>)>,
    shutting_down: AtomicBool,
}

impl Exports {
    /// A server that exports nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an export.
    ///
    /// # Errors
    ///
    /// The name is taken or breaks the protocol's rules.
    pub fn add(&mut self, name: &str, export: Arc<dyn Export>) -> Result<(), ExportsError> {
        check_export_name(name)?;
        if self.list.iter().any(|(known, _)| known == name) {
            return Err(ExportsError::Twice(name.to_owned()));
        }
        self.list.push((name.to_owned(), export));
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<&(String, Arc<dyn Export>)> {
        if name.is_empty() {
            return self.list.first();
        }
        self.list.iter().find(|(known, _)| known == name)
    }

    pub(super) fn shut_down(&self) {
        self.shutting_down.store(true, Ordering::Relaxed);
    }
}

impl Directory for Exports {
    fn list(&self) -> Vec<(String, String)> {
        self.list
            .iter()
            .map(|(name, export)| (name.clone(), export.description()))
            .collect()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        let (name, export) = self.get(name)?;
        let base = [BASE_ALLOCATION].into_iter();
        Some(ExportInfo {
            name: name.clone(),
            description: export.description(),
            size_bytes: export.size_bytes(),
            flags: flags(export.features()),
            block_sizes: export.block_sizes(),
            contexts: base
                .chain(export.contexts().iter().copied())
                .map(str::to_owned)
                .collect(),
        })
    }

    fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Relaxed)
    }
}

fn flags(features: Features) -> TransmissionFlags {
    use TransmissionFlags as Flag;
    let writable = !features.read_only;
    let zeroes = features.write_zeroes && writable;
    Flag::default()
        .with_if(features.read_only, Flag::READ_ONLY)
        .with_if(features.flush, Flag::SEND_FLUSH)
        .with_if(features.flush && writable, Flag::SEND_FUA)
        .with_if(features.rotational, Flag::ROTATIONAL)
        .with_if(features.trim && writable, Flag::SEND_TRIM)
        .with_if(zeroes, Flag::SEND_WRITE_ZEROES)
        .with_if(zeroes && features.fast_zero, Flag::SEND_FAST_ZERO)
        .with_if(features.multiple_connections, Flag::CAN_MULTI_CONN)
        .with_if(features.cache, Flag::SEND_CACHE)
}
