//! What options can do to a machine.

/// What an option can do to the machine that fio runs on, as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It shapes the load: sizes, order, depth, time. A file may give it.
    Load,
    /// It says where the load goes, or names something to read: files,
    /// devices, other machines. Where it goes is raidlab's to say.
    Place,
    /// It writes or changes something beside the target: logs, memory files,
    /// kernel settings, control groups.
    Elsewhere,
    /// It runs a program or foreign code, or decides as whom fio runs.
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
