//! The classes of options, by their effects on a machine.

/// The effect that an option can have on the machine, where fio runs as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The option shapes the load: sizes, order, depth, time. A file may give it.
    Load,
    /// The option selects the target of the load, or something to read: files, devices, other
    /// machines. The target is given by raidlab.
    Place,
    /// The option writes or changes something beside the target: logs, memory files, kernel
    /// settings, control groups.
    Elsewhere,
    /// The option runs a program or foreign code, or decides the user as whom fio runs.
    Runs,
}

impl Class {
    /// The class in words that follow "it".
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Load => "shapes the load",
            Self::Place => "says where the load goes or what is read",
            Self::Elsewhere => "writes or changes something beside the target",
            Self::Runs => "runs something, or says as whom",
        }
    }
}
