//! The reason why a guest ended early, from its kernel's text on the console.

/// A known reason for an early end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The kernel gave up, with this message.
    Panic(String),
    /// The first file system does not fit into memory.
    MemoryTooSmall,
    /// The kernel ended this program because memory was short.
    OutOfMemory(String),
    /// The console shows no known reason.
    Unknown,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Panic(message) => write!(f, "the kernel panicked: {message}"),
            Self::MemoryTooSmall => f.write_str(
                "the first file system does not fit into the guest's memory: give it more",
            ),
            Self::OutOfMemory(program) => write!(
                f,
                "the guest's memory was short and its kernel ended {program}: give it more"
            ),
            Self::Unknown => f.write_str("nothing on the console says why"),
        }
    }
}

/// Finds the first cause that a console shows: a panic is often the consequence of an archive that
/// could not be unpacked.
#[must_use]
pub fn reason(console: &str) -> Reason {
    let after = |mark: &str| {
        console
            .lines()
            .find_map(|line| Some(line.split_once(mark)?.1.trim().to_owned()))
    };
    if console.contains("Initramfs unpacking failed: write error")
        || console.contains("System is deadlocked on memory")
    {
        return Reason::MemoryTooSmall;
    }
    // An example: "Out of memory: Killed process 96 (fio) total-vm:..."
    if let Some(process) = after("Out of memory: Killed process ") {
        let name = process
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'));
        return Reason::OutOfMemory(name.map_or(process.as_str(), |(name, _)| name).to_owned());
    }
    match after("Kernel panic - not syncing: ") {
        Some(message) => Reason::Panic(message),
        None => Reason::Unknown,
    }
}

/// The lines of a console that people want to see: those around a panic, or the last.
#[must_use]
pub fn excerpt(console: &str) -> String {
    const LINES: usize = 12;
    const BEFORE_PANIC: usize = 4;
    let lines: Vec<_> = console
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let first = match panic {
        Some(at) => at.saturating_sub(BEFORE_PANIC),
        None => lines.len().saturating_sub(LINES),
    };
    let last = lines.len().min(first + LINES);
    lines[first..last].join("\n")
}

#[cfg(test)]
mod tests;
