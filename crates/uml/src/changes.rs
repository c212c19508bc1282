//! The digest of raidlab's changes to a kernel, in one number, by which a kernel in the cache that
//! was made by another set of edits or settings is known.
//!
//! The digest is FNV-1a of 64 bits over every edit's file, place, replacement and
//! whether it may be left out, then over the wanted settings; with OpenZFS its
//! edits, settings and menu entry follow. Each text ends with a byte that is in
//! none of them, so that no two sets run together. The source's version and the
//! compiler do not count: they are not raidlab's.

use crate::cache::Kernel;
use crate::configuration::{FOR_ZFS, WITH_ZFS, lines};
use crate::edits::{CHARGES, Edit, KERNEL, OPENZFS, SHARED_MEMORY};
use crate::source::TREE;
use crate::zfs;
use raidlab_units::{FNV_BASIS, fnv1a};

/// The set of changes that a kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// The changes that this raidlab makes.
    Current,
    /// The kernel has other changes: an older raidlab has built it.
    Older,
    /// The kernel was built before its changes were written down.
    Unknown,
}

impl Changes {
    /// The program that has made the kernel, in a few words.
    #[must_use]
    pub const fn made_by(self) -> &'static str {
        match self {
            Self::Current => "this raidlab",
            Self::Older => "an older raidlab",
            Self::Unknown => "unknown",
        }
    }
}

impl Kernel {
    /// Whether it has the changes that a build would make now.
    #[must_use]
    pub fn made_with(&self) -> Changes {
        match &self.changes {
            None => Changes::Unknown,
            Some(known) if *known == digest(self.zfs.is_some()) => Changes::Current,
            Some(_) => Changes::Older,
        }
    }

    /// The warning of a kernel that another raidlab has made, with the remedy.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.made_with() != Changes::Older {
            return None;
        }
        let version = || self.name.strip_suffix("-zfs").unwrap_or(&self.name);
        let source = self.source.strip_prefix(TREE).unwrap_or_else(version);
        let zfs = if self.zfs.is_some() { " --zfs" } else { "" };
        Some(format!(
            "kernel {} was made by an older raidlab: `raidlab kernel build --source {source}{zfs} \
             --again`",
            self.name
        ))
    }
}

/// The digest of a build's changes, in hexadecimal digits.
pub(crate) fn digest(with_zfs: bool) -> String {
    if with_zfs {
        of(
            &[&KERNEL, &SHARED_MEMORY, &CHARGES, &OPENZFS],
            &[&lines(FOR_ZFS), &lines(WITH_ZFS), zfs::KCONFIG],
        )
    } else {
        of(&[&KERNEL, &SHARED_MEMORY, &CHARGES], &[&lines("")])
    }
}

fn of(edits: &[&[Edit]], settings: &[&str]) -> String {
    /// A byte that is in no text that is UTF-8.
    const END: u8 = 0xff;
    let edits = edits.iter().flat_map(|edits| edits.iter());
    let edits = edits.flat_map(|edit| edit.texts().into_iter());
    let bytes = edits
        .chain(settings.iter().copied())
        .flat_map(|text| text.bytes().chain([END]));
    format!("{:016x}", fnv1a(FNV_BASIS, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn kernel(name: &str, changes: Option<String>, zfs: bool) -> Kernel {
        Kernel {
            name: name.to_owned(),
            release: "6.12.117".to_owned(),
            source: "a test".to_owned(),
            zfs: zfs.then(|| "2.3.2".to_owned()),
            shared_memory: true,
            seccomp: false,
            changes,
            program: PathBuf::new(),
        }
    }

    #[test]
    fn every_edit_and_every_setting_counts() {
        let edits = [&KERNEL[..], &SHARED_MEMORY, &CHARGES];
        let whole = of(&edits, &[&lines("")]);
        assert_eq!(whole, digest(false));
        assert_eq!(whole.len(), 16);
        assert_ne!(
            of(&[&KERNEL[1..], &SHARED_MEMORY, &CHARGES], &[&lines("")]),
            whole
        );
        assert_ne!(of(&[&KERNEL], &[&lines("")]), whole);
        assert_ne!(of(&edits, &[&lines(FOR_ZFS)]), whole);
        // Where one text ends and the next begins counts too.
        assert_ne!(of(&[], &["ab", "c"]), of(&[], &["a", "bc"]));
        assert_ne!(digest(true), digest(false));
    }

    #[test]
    fn a_kernel_of_other_changes_is_told_with_the_remedy() {
        let current = kernel("6.12", Some(digest(false)), false);
        assert_eq!(current.made_with(), Changes::Current);
        assert_eq!(current.warning(), None);
        let unknown = kernel("6.12", None, false);
        assert_eq!(unknown.made_with(), Changes::Unknown);
        assert_eq!(unknown.warning(), None);
        // The changes of a kernel without OpenZFS are not those of one with it.
        let other = kernel("6.12-zfs", Some(digest(false)), true);
        assert_eq!(other.made_with(), Changes::Older);
        let warning = other.warning().expect("a warning");
        let remedy = "raidlab kernel build --source 6.12 --zfs --again";
        assert!(warning.contains(remedy), "{warning}");
        let mut of_tree = kernel("6.12.1", Some(String::new()), false);
        of_tree.source = "the tree /usr/src/linux".to_owned();
        let warning = of_tree.warning().expect("a warning");
        assert!(
            warning.contains("--source /usr/src/linux --again"),
            "{warning}"
        );
    }
}
