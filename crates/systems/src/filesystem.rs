//! File systems made on an array's device.
//!
//! File systems that are arrays themselves are not handled here: btrfs over several devices is an
//! [`crate::ArraySpec`], and ZFS data sets belong to their pool.
//!
//! Each program's exit code is checked by the caller that runs the commands: `mke2fs` ends with 1
//! on an unknown extended option and makes nothing (e2fsprogs 1.47), as `mkfs.xfs` does.
//!
//! ext3 and ext4 are made with `lazy_itable_init=0,lazy_journal_init=0`. The
//! default leaves their inode tables to be zeroed in the background after the
//! first mount, which would go on for minutes under a measurement.

use crate::array::steps::{Reader, wipe};
use crate::array::{Need, OperatingSystem, ReadBack, Result, SystemError};
use crate::mounts::{Mount, check_options, parse_mounts, parse_mounts_freebsd};
use crate::named::named;
use crate::words::{RefusedWord, check_mount_options};
use options::{ANY_MOUNT, BTRFS, BTRFS_MOUNT, EXT, EXT_MOUNT, UFS, UFS_MOUNT, XFS, XFS_MOUNT};
use raidlab_shell::{Command, Target};
use raidlab_units::Bytes;
use serde::Deserialize;

/// A file system with its options, as in a suite's file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystemSpec {
    /// The type of file system: ext4 or another.
    #[serde(rename = "type")]
    pub kind: FileSystemKind,
    /// The name in rows; by default that of the type.
    pub name: Option<String>,
    /// The options of the program that makes it, word by word: `["-b", "4096"]`.
    #[serde(default)]
    pub options: Vec<String>,
    /// The array's stripe, where the program should not read it from the device itself (md and LVM
    /// report it); ext3, ext4 and XFS only.
    pub stripe: Option<StripeGeometry>,
    /// Options of the mount, one by one: `noatime`.
    #[serde(default)]
    pub mount_options: Vec<String>,
}

/// The geometry of the array that a file system is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripeGeometry {
    /// The chunk: consecutive bytes on one member, as text (`64k`); a multiple of 4 KiB.
    #[serde(deserialize_with = "crate::array::spec::chunk")]
    pub chunk: Bytes,
    /// The number of members that hold data in each stripe: 3 in a `raid5` of four.
    pub data_members: u32,
}

named! {
    /// A type of file system.
    pub enum FileSystemKind {
        /// ext3 of Linux.
        Ext3 = "ext3",
        /// ext4 of Linux.
        Ext4 = "ext4",
        /// XFS of Linux.
        Xfs = "xfs",
        /// btrfs on one device.
        Btrfs = "btrfs",
        /// FreeBSD's UFS, with soft updates.
        Ufs = "ufs",
    }
}

/// The options of ext3 and ext4 that are used unless their own options say otherwise.
const AT_ONCE: &str = "lazy_itable_init=0,lazy_journal_init=0";
/// The block of ext3 and ext4 in which a stripe is counted, bytes.
const EXT_BLOCK: u64 = 4096;

impl FileSystemSpec {
    /// The operating systems on which it exists.
    #[must_use]
    pub const fn runs_on(&self) -> &'static [OperatingSystem] {
        match self.kind {
            FileSystemKind::Ufs => &[OperatingSystem::FreeBsd],
            _ => &[OperatingSystem::Linux],
        }
    }

    /// The programs and modules that are needed to make it.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        let (name, apt, module) = match self.kind {
            FileSystemKind::Ext3 => ("mkfs.ext3", "apt-get install e2fsprogs", Some("ext4")),
            FileSystemKind::Ext4 => ("mkfs.ext4", "apt-get install e2fsprogs", Some("ext4")),
            FileSystemKind::Xfs => ("mkfs.xfs", "apt-get install xfsprogs", Some("xfs")),
            FileSystemKind::Btrfs => ("mkfs.btrfs", "apt-get install btrfs-progs", Some("btrfs")),
            FileSystemKind::Ufs => ("newfs", "", None),
        };
        let program = Need::program(name, apt);
        let module = module.map(Need::Module);
        std::iter::once(program).chain(module).collect()
    }

    /// Checks that its options are consistent.
    ///
    /// # Errors
    /// A stripe for a file system without support for one, or one that is no multiple of 4 KiB, or
    /// a second option on what the stripe decides.
    pub fn check(&self) -> Result<()> {
        let Some(stripe) = self.stripe else {
            return Ok(());
        };
        let refuse =
            |reason: String| Err(SystemError::unsupported(&self.label(), "be made", reason));
        let ext = matches!(self.kind, FileSystemKind::Ext3 | FileSystemKind::Ext4);
        if !ext && self.kind != FileSystemKind::Xfs {
            return refuse("it cannot be told of stripes".to_owned());
        }
        if stripe.chunk.0 == 0 || !stripe.chunk.0.is_multiple_of(EXT_BLOCK) {
            return refuse(format!("chunk {} is no multiple of 4 KiB", stripe.chunk));
        }
        if stripe.data_members == 0 {
            return refuse("a stripe needs a member for data".to_owned());
        }
        let own = EXT.one_by_one(&self.options);
        if ext && own.iter().any(|(letter, _)| *letter == 'b') {
            return refuse("`stripe` counts in blocks of 4 KiB: leave `-b` out".to_owned());
        }
        Ok(())
    }

    /// Checks the words that a file gives to the programs that make and mount it.
    ///
    /// # Errors
    /// The first word that does more than shape the file system.
    pub fn check_words(&self) -> Result<(), RefusedWord> {
        let (maker, mount) = match self.kind {
            FileSystemKind::Ext3 | FileSystemKind::Ext4 => (&EXT, EXT_MOUNT),
            FileSystemKind::Xfs => (&XFS, XFS_MOUNT),
            FileSystemKind::Btrfs => (&BTRFS, BTRFS_MOUNT),
            FileSystemKind::Ufs => (&UFS, UFS_MOUNT),
        };
        maker.check(&self.options)?;
        check_mount_options(&[ANY_MOUNT, mount], &self.mount_options)
    }

    /// The commands that make the file system on a device, blank or not; with this label, unless
    /// its options give it another one.
    ///
    /// # Errors
    /// As [`FileSystemSpec::check`].
    pub fn make(&self, device: &str, label: Option<&str>) -> Result<Vec<Command>> {
        self.check()?;
        let own = self.options.iter().cloned();
        let mut commands = Vec::new();
        if self.kind != FileSystemKind::Ufs {
            commands.push(wipe(&[device]));
        }
        let (program, mut words): (&str, Vec<String>) = match self.kind {
            FileSystemKind::Ext3 => ("mkfs.ext3", self.ext_words()),
            FileSystemKind::Ext4 => ("mkfs.ext4", self.ext_words()),
            FileSystemKind::Xfs => {
                let stripe = self.stripe.map(|stripe| {
                    let unit = stripe.chunk.0 / 1024;
                    [
                        "-d".to_owned(),
                        format!("su={unit}k,sw={}", stripe.data_members),
                    ]
                });
                let words = ["-f".to_owned(), "-q".to_owned()].into_iter();
                let stripe = stripe.into_iter().flatten();
                ("mkfs.xfs", words.chain(stripe).chain(own).collect())
            }
            FileSystemKind::Btrfs => {
                let words = ["--force".to_owned(), "--quiet".to_owned()].into_iter();
                ("mkfs.btrfs", words.chain(own).collect())
            }
            FileSystemKind::Ufs => (
                "newfs",
                std::iter::once("-U".to_owned()).chain(own).collect(),
            ),
        };
        let has_label = |word: &String| word.starts_with("-L") || word.starts_with("--label");
        if let Some(label) = label.filter(|_| !self.options.iter().any(has_label)) {
            words.splice(0..0, ["-L".to_owned(), label.to_owned()]);
        }
        words.push(device.to_owned());
        commands.push(Command::destroys(program, words));
        Ok(commands)
    }

    /// The extended options of mke2fs, which takes them as one word: ours, the stripe's and the
    /// file's, which come last and win.
    fn ext_words(&self) -> Vec<String> {
        let mut words = vec!["-F".to_owned(), "-q".to_owned()];
        let mut extended = vec![AT_ONCE.to_owned()];
        if let Some(stripe) = self.stripe {
            words.extend(["-b".to_owned(), EXT_BLOCK.to_string()]);
            let stride = stripe.chunk.0 / EXT_BLOCK;
            let width = stride * u64::from(stripe.data_members);
            extended.push(format!("stride={stride},stripe_width={width}"));
        }
        let mut rest = Vec::new();
        for (letter, value) in EXT.one_by_one(&self.options) {
            let value = value.map(str::to_owned);
            if letter == 'E' {
                extended.extend(value);
            } else {
                rest.push(format!("-{letter}"));
                rest.extend(value);
            }
        }
        words.extend(["-E".to_owned(), extended.join(",")]);
        words.extend(rest);
        words
    }

    /// The commands that mount it on a folder, which is created if needed.
    #[must_use]
    pub fn mount(&self, device: &str, folder: &str) -> Vec<Command> {
        let mut words = vec!["-t", self.kind.name()];
        let options = self.mount_options.join(",");
        if !options.is_empty() {
            words.extend(["-o", &options]);
        }
        words.extend([device, folder]);
        vec![
            Command::changes("mkdir", ["-p", folder]),
            Command::changes("mount", words),
        ]
    }

    /// The command that unmounts the file system.
    #[must_use]
    pub fn unmount(&self, folder: &str) -> Command {
        Command::changes("umount", [folder])
    }

    /// Reads every setting of a mounted file system that matters to a measurement, as it
    /// is in force.
    ///
    /// # Errors
    /// When a setting cannot be read, or nothing is mounted there.
    pub fn settings(
        &self,
        target: &dyn Target,
        device: &str,
        folder: &str,
    ) -> Result<Vec<ReadBack>> {
        let mut reader = Reader::new(target);
        let mount = self.mounted(target, folder)?;
        reader.found("type", Some(self.kind), &mount.kind, mount.source);
        check_options(&mut reader, &self.mount_options, &mount);
        match self.kind {
            FileSystemKind::Ext3 | FileSystemKind::Ext4 => {
                settings::ext(self, &mut reader, target, device)?;
            }
            FileSystemKind::Xfs => settings::xfs(self, &mut reader, target, folder)?,
            FileSystemKind::Ufs => settings::ufs(&mut reader, target, device)?,
            FileSystemKind::Btrfs => {}
        }
        Ok(reader.done())
    }

    fn mounted(&self, target: &dyn Target, folder: &str) -> Result<Mount> {
        let mounts = match self.kind {
            FileSystemKind::Ufs => {
                let list = Command::reads("mount", ["-p"]);
                parse_mounts_freebsd(&target.run(&list)?.stdout)
            }
            _ => parse_mounts(&target.read("/proc/mounts")?),
        };
        mounts
            .into_iter()
            .rev()
            .find(|mount| mount.folder == folder)
            .ok_or_else(|| SystemError::no_array(folder))
    }

    /// The name by which rows and tables call the file system.
    #[must_use]
    pub fn label(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| self.kind.name().to_owned())
    }
}

pub(crate) mod options;
mod settings;

#[cfg(test)]
mod tests;
