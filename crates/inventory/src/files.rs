//! Disks made of files: `file:PATH:SIZE` in place of a disk's name.
//!
//! A sparse file becomes a loop device (Linux) or a vnode device of md(4)
//! (FreeBSD). Good for trying a suite out; the rates are those of the file
//! system below.

use crate::System;
use raidlab_shell::Command;
use raidlab_units::{Bytes, ParseUnitError, parse_bytes};

/// A file that is to be used as a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDisk {
    /// Where: an absolute path.
    pub path: String,
    /// The size of the file or device.
    pub size: Bytes,
}

/// A text is no `file:PATH:SIZE`.
#[derive(Debug, thiserror::Error)]
pub enum FileDiskError {
    /// The form is another.
    #[error("`{text}` is not of the form file:/PATH:SIZE, such as file:/srv/a.img:1g")]
    Form {
        /// The text as it was given.
        text: String,
    },
    /// The size cannot be read.
    #[error("the size in `{text}` cannot be read")]
    Size {
        /// The text as it was given.
        text: String,
        /// What is wrong with the size.
        #[source]
        source: ParseUnitError,
    },
}

impl FileDisk {
    /// Reads `file:/PATH:SIZE`; `None` for a name that does not begin so.
    ///
    /// # Errors
    /// When the path is not absolute, or the size is missing or no size.
    pub fn parse(text: &str) -> Option<Result<Self, FileDiskError>> {
        let rest = text.strip_prefix("file:")?;
        let Some((path, size)) = rest
            .rsplit_once(':')
            .filter(|(path, _)| path.starts_with('/'))
        else {
            return Some(Err(FileDiskError::Form {
                text: text.to_owned(),
            }));
        };
        let size = parse_bytes(size).map_err(|source| FileDiskError::Size {
            text: text.to_owned(),
            source,
        });
        Some(size.map(|size| Self {
            path: path.to_owned(),
            size,
        }))
    }

    /// Makes the file. A file that is there already must be refused before:
    /// this would cut it or extend it.
    #[must_use]
    pub fn create(&self) -> Command {
        Command::changes("truncate", ["-s", &self.size.0.to_string(), &self.path])
    }

    /// Attaches it; the device's name is what this prints.
    #[must_use]
    pub fn attach(&self, system: System) -> Command {
        match system {
            System::Linux => Command::changes("losetup", ["--find", "--show", &self.path]),
            System::FreeBsd => {
                Command::changes("mdconfig", ["-a", "-t", "vnode", "-f", &self.path])
            }
        }
    }

    /// The device that [`Self::attach`] printed: `/dev/loop3`, `/dev/md0`.
    #[must_use]
    pub fn device(printed: &str) -> String {
        let name = printed.trim();
        if name.starts_with('/') {
            name.to_owned()
        } else {
            format!("/dev/{name}")
        }
    }

    /// Detaches a device.
    #[must_use]
    pub fn detach(system: System, device: &str) -> Command {
        match system {
            System::Linux => Command::changes("losetup", ["--detach", device]),
            System::FreeBsd => {
                Command::changes("mdconfig", ["-d", "-u", device.trim_start_matches("/dev/")])
            }
        }
    }

    /// Removes the file.
    #[must_use]
    pub fn remove(&self) -> Command {
        Command::destroys("rm", ["-f", "--", &self.path])
    }
}

#[cfg(test)]
mod tests {
    use super::FileDisk;
    use crate::System;

    #[test]
    fn files_are_told_from_disks() {
        assert!(FileDisk::parse("/dev/sdb").is_none());
        let file = FileDisk::parse("file:/srv/a:b.img:2g").unwrap().unwrap();
        assert_eq!((file.path.as_str(), file.size.0), ("/srv/a:b.img", 2 << 30));
        for bad in ["file:", "file:a.img:1g", "file:/a.img", "file:/a.img:big"] {
            assert!(FileDisk::parse(bad).unwrap().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_device_is_what_the_system_prints() {
        assert_eq!(FileDisk::device("/dev/loop3\n"), "/dev/loop3");
        assert_eq!(FileDisk::device("md0\n"), "/dev/md0");
        let detach = FileDisk::detach(System::FreeBsd, "/dev/md0").to_string();
        assert_eq!(detach, "mdconfig -d -u md0");
    }
}
