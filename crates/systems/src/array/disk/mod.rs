//! A single disk or partition, with which arrays are compared.

use super::blank::blank_ends;
use super::described::Described;
use super::fixed::Fixed;
use super::steps::{cannot_build, devices, kernel_name, smallest, wipe};
use super::{
    Access, ArrayStatus, ArraySystem, Built, Health, Member, MemberState, Need, OperatingSystem,
    ReadBack, ReadState, Result,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;
use serde::Deserialize;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = "{}";

/// A single disk or partition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// The operating system whose tools wipe the disk: `linux` (the default) or `freebsd`.
    #[serde(default = "linux")]
    pub operating_system: OperatingSystem,
}

fn linux() -> OperatingSystem {
    OperatingSystem::Linux
}

const TITLE: &str = "disk";

impl DiskSpec {
    fn blank(&self, member: &Member) -> Vec<Command> {
        match self.operating_system {
            OperatingSystem::Linux => vec![wipe(&[&member.device])],
            OperatingSystem::FreeBsd => blank_ends(member),
        }
    }
}

impl Described for DiskSpec {
    fn title(&self) -> String {
        TITLE.to_owned()
    }

    fn level(&self) -> Option<&'static str> {
        Some("single")
    }

    fn member_bytes_per_byte(&self, _count: usize) -> Option<f64> {
        Some(1.0)
    }
}

impl ArraySystem for DiskSpec {
    fn runs_on(&self) -> &'static [OperatingSystem] {
        match self.operating_system {
            OperatingSystem::Linux => &[OperatingSystem::Linux],
            OperatingSystem::FreeBsd => &[OperatingSystem::FreeBsd],
        }
    }

    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    fn check(&self, members: &[Member]) -> Result<()> {
        match members.len() {
            1 => Ok(()),
            count => Err(cannot_build(
                TITLE,
                format!("it is one disk and there are {count}"),
            )),
        }
    }

    fn capacity(&self, members: &[Member]) -> Bytes {
        smallest(members)
    }

    /// Nothing is built, but the disk's contents are lost, as jobs write on it.
    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        Ok(self.destroy(array))
    }

    fn access(&self, array: &Built) -> Access {
        Access::Device(
            array
                .members
                .first()
                .map(|member| member.device.clone())
                .unwrap_or_default(),
        )
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        array
            .members
            .iter()
            .flat_map(|member| self.blank(member))
            .collect()
    }
}

impl Fixed for DiskSpec {
    const WHY: &str = "there is no second copy of its data";
}

impl ReadState for DiskSpec {
    /// The disk's size, which can be read as long as the disk exists.
    fn sources(&self, array: &Built) -> Vec<Watched> {
        devices(&array.members)
            .into_iter()
            .map(|device| match self.operating_system {
                OperatingSystem::Linux => {
                    Watched::File(format!("/sys/class/block/{}/size", kernel_name(device)))
                }
                OperatingSystem::FreeBsd => Watched::Command(Command::reads("diskinfo", [device])),
            })
            .collect()
    }

    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        let there = contents.first().is_some_and(Option::is_some);
        let (health, state) = if there {
            (Health::Optimal, MemberState::InSync)
        } else {
            (Health::Failed, MemberState::Missing)
        };
        Ok(ArrayStatus {
            health,
            members: vec![state; array.members.len()],
            sync: None,
        })
    }

    fn settings(&self, _: &dyn Target, _: &Built) -> Result<Vec<ReadBack>> {
        Ok(Vec::new())
    }

    /// A disk carries no name, but the file system on it does, as its label. btrfs is found as an
    /// array. On FreeBSD none is found.
    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        if self.operating_system == OperatingSystem::FreeBsd {
            return Ok(Vec::new());
        }
        let tags = "--cache-file /dev/null --match-tag LABEL --match-tag TYPE --output export";
        // It ends with 2 where no device has any of these tags.
        let labels = Command::reads("blkid", tags.split(' ')).success(&[0, 2]);
        let told = target.run(&labels)?.stdout;
        Ok(labelled(&told, prefix))
    }
}

/// The devices with labels of this prefix in the output of `blkid --output export`, which has a
/// block of lines for each device.
fn labelled(blocks: &str, prefix: &str) -> Vec<Built> {
    let found = blocks.split("\n\n").filter_map(|block| {
        let value = |tag: &str| block.lines().find_map(|line| line.strip_prefix(tag));
        let label = value("LABEL=").filter(|label| label.starts_with(prefix))?;
        let device = value("DEVNAME=").filter(|_| value("TYPE=") != Some("btrfs"))?;
        Some(Built::found(label, vec![Member::found(device, Bytes(0))]))
    });
    found.collect()
}

#[cfg(test)]
mod tests;
