//! The tools, and how to have them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A benchmark tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// fio, the flexible I/O tester.
    Fio,
    /// bonnie++.
    #[serde(rename = "bonnie++")]
    Bonnie,
    /// iozone.
    Iozone,
    /// dd, of any system.
    Dd,
}

/// How a tool is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The program to look for.
    pub program: &'static str,
    /// On Debian and its kin.
    pub apt: &'static str,
    /// On FreeBSD.
    pub pkg: &'static str,
}

/// A command that makes a tool say its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionCommand {
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// Whether it may end with an exit code other than 0 all the same: the
    /// version of bonnie++ stands in its complaint about missing arguments,
    /// and BSD's dd has no such option at all.
    pub may_fail: bool,
}

impl Tool {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Fio, Self::Bonnie, Self::Iozone, Self::Dd];

    /// The name of the program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::Bonnie => "bonnie++",
            Self::Iozone => "iozone",
            Self::Dd => "dd",
        }
    }

    /// How to install it.
    #[must_use]
    pub const fn needs(self) -> Needs {
        let (apt, pkg) = match self {
            Self::Fio => ("apt-get install fio", "pkg install fio"),
            Self::Bonnie => ("apt-get install bonnie++", "pkg install bonnie++"),
            // Its licence forbids changed copies: Debian has it in non-free.
            Self::Iozone => (
                "apt-get install iozone3 (component non-free)",
                "pkg install iozone",
            ),
            Self::Dd => ("apt-get install coreutils", "part of the base system"),
        };
        Needs {
            program: self.name(),
            apt,
            pkg,
        }
    }

    /// What makes it say its version, on standard output or standard error.
    #[must_use]
    pub const fn version_command(self) -> VersionCommand {
        let arguments: &[&str] = match self {
            Self::Fio | Self::Dd => &["--version"],
            Self::Bonnie => &[],
            Self::Iozone => &["-v"],
        };
        VersionCommand {
            program: self.name(),
            arguments,
            may_fail: matches!(self, Self::Bonnie | Self::Dd),
        }
    }

    /// The version in what the version command said: `3.33`, `2.00a`,
    /// `3.489`, `coreutils 9.1`, `busybox 1.35.0`. `None` where it says none,
    /// as BSD's dd.
    #[must_use]
    pub fn parse_version(self, text: &str) -> Option<String> {
        text.lines().find_map(|line| self.version_in(line.trim()))
    }

    fn version_in(self, line: &str) -> Option<String> {
        let word_after = |prefix: &str| {
            let (_, rest) = line.split_once(prefix)?;
            let word = rest.split_whitespace().next()?;
            word.starts_with(|first: char| first.is_ascii_digit())
                .then(|| word.trim_end_matches([',', ';']).to_owned())
        };
        match self {
            Self::Fio => word_after("fio-").or_else(|| word_after("fio ")),
            Self::Bonnie => word_after("Version: ").or_else(|| word_after("Version ")),
            Self::Iozone => word_after("$Revision: ").or_else(|| word_after("Version ")),
            Self::Dd => [
                ("(GNU coreutils) ", "coreutils"),
                ("(coreutils) ", "coreutils"),
                ("(uutils coreutils) ", "uutils"),
                ("BusyBox v", "busybox"),
            ]
            .into_iter()
            .find_map(|(prefix, name)| word_after(prefix).map(|word| format!("{name} {word}"))),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// No tool has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no tool; use one of fio, bonnie++, iozone, dd")]
pub struct UnknownTool {
    /// The name as it was written.
    pub name: String,
}

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|tool| tool.name() == name)
            .ok_or_else(|| UnknownTool {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::Tool;

    #[test]
    fn versions_are_found_in_what_the_programs_say() {
        let cases = [
            (Tool::Fio, "fio-3.33\n", Some("3.33")),
            (
                Tool::Fio,
                "fio-3.36-112-gabcdef\n",
                Some("3.36-112-gabcdef"),
            ),
            (
                Tool::Bonnie,
                "You must use the \"-u\" switch when running as root.\nusage:\n      [-D]\n\nVersion: 2.00a\n",
                Some("2.00a"),
            ),
            (
                Tool::Iozone,
                "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.489 $\n",
                Some("3.489"),
            ),
            (
                Tool::Dd,
                "dd (coreutils) 9.1\nCopyright",
                Some("coreutils 9.1"),
            ),
            (
                Tool::Dd,
                "dd (GNU coreutils) 8.32\n",
                Some("coreutils 8.32"),
            ),
            (
                Tool::Dd,
                "BusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1+b1) multi-call binary.\n",
                Some("busybox 1.35.0"),
            ),
            (Tool::Dd, "dd: unknown operand --version\n", None),
            (Tool::Fio, "", None),
        ];
        for (tool, text, version) in cases {
            assert_eq!(
                tool.parse_version(text).as_deref(),
                version,
                "{tool}: {text}"
            );
        }
    }

    #[test]
    fn names_are_read_back() {
        for tool in Tool::ALL {
            assert_eq!(tool.to_string().parse(), Ok(tool));
            assert_eq!(serde_json::to_value(tool).expect("a name"), tool.name());
            assert_eq!(tool.needs().program, tool.name());
        }
    }
}
