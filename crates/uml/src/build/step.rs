//! The steps of a build, and the watcher that is told of them.

/// The steps of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Packages are fetched and unpacked: before a build.
    Fetch,
    /// The source is unpacked or copied.
    Unpack,
    /// raidlab's changes to the source are made.
    Change,
    /// The configuration is made.
    Configure,
    /// OpenZFS is prepared and put into the tree.
    Zfs,
    /// The kernel is compiled.
    Compile,
    /// The kernel is put into the cache.
    Install,
    /// The source and its objects are removed.
    Remove,
}

impl Step {
    /// The step's title, where it begins and ends in a build, and its stamp.
    const fn about(self) -> (&'static str, (f64, f64), &'static str) {
        match self {
            Self::Fetch => ("fetching packages", (0.0, 0.0), "fetched"),
            Self::Unpack => ("unpacking the source", (0.0, 0.07), "unpacked"),
            Self::Change => ("changing the source", (0.07, 0.07), "changed"),
            Self::Configure => ("configuring", (0.07, 0.09), "configured"),
            Self::Zfs => ("preparing OpenZFS", (0.09, 0.18), "zfs"),
            Self::Compile => ("compiling", (0.18, 0.95), "compiled"),
            Self::Install => ("putting the kernel in place", (0.95, 0.95), "installed"),
            Self::Remove => ("removing the source", (0.95, 1.0), "removed"),
        }
    }

    /// The step in a few words, as progress names it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.about().0
    }

    /// The place where it begins and ends in a build, from 0 to 1: its share of the 6.5 minutes
    /// that one took on two processors that had not much else to do.
    #[must_use]
    pub const fn part(self) -> (f64, f64) {
        self.about().1
    }

    /// The file in the build's folder that says that it is done.
    pub(super) const fn stamp(self) -> &'static str {
        self.about().2
    }
}

/// A watcher that is told how a build gets on.
pub trait Watcher {
    /// Takes the step that begins.
    fn step(&mut self, step: Step);
    /// Takes the share of the step that is done, from 0 to 1; an estimate.
    fn share(&mut self, share: f64);
    /// Whether the build should be stopped.
    fn cancelled(&self) -> bool;
}

/// All steps, in order.
#[cfg(test)]
pub(super) const ALL: [Step; 7] = [
    Step::Unpack,
    Step::Change,
    Step::Configure,
    Step::Zfs,
    Step::Compile,
    Step::Install,
    Step::Remove,
];

#[cfg(test)]
mod tests {
    use super::{ALL, Step};

    #[test]
    fn the_steps_follow_each_other_without_a_gap() {
        let parts = ALL.map(Step::part);
        assert!(
            parts
                .windows(2)
                .all(|two| two[0].1 <= two[1].0 && two[0].0 <= two[0].1)
        );
        let whole: f64 = parts.iter().map(|(begin, end)| end - begin).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{whole}");
    }
}
