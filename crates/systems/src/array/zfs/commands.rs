//! The commands that build a pool, change it and take it down.

use super::status::{Section, parse_status};
use super::{PATIENCE, Role, Topology, ZfsSpec};
use crate::array::blank::blank_ends;
use crate::array::steps::{kernel_name, member, wipe};
use crate::array::{Built, ChangeMembers, Described, Member, Result};
use raidlab_shell::{Command, Target};
use raidlab_units::Bytes;

/// The words of a command that is being built.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn new(words: &[&str]) -> Self {
        Self(words.iter().map(|&word| word.to_owned()).collect())
    }

    fn add(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    fn option(&mut self, name: &str, value: &str) -> &mut Self {
        self.add(&["-o", &format!("{name}={value}")])
    }

    fn devices(&mut self, members: &[Member]) -> &mut Self {
        self.0.extend(members.iter().map(|m| m.device.clone()));
        self
    }
}

/// The command that clears a member's labels; it ends with 1 where there are none, and where
/// the disk belongs to an active pool, which `create` then refuses too. For a name without
/// `/dev/`, a whole disk's label is searched where ZFS on Linux puts it, on the first
/// partition (zpool_main.c, `zpool_do_labelclear`).
fn clear_label(member: &Member) -> Command {
    let device = kernel_name(&member.device);
    Command::destroys("zpool", ["labelclear", "-f", device]).success(&[0, 1])
}

impl ZfsSpec {
    /// The error that this pool cannot do something, with the reason.
    pub(super) fn create_commands(&self, array: &Built) -> Vec<Command> {
        let mut commands: Vec<Command> = array.members.iter().map(clear_label).collect();
        commands.push(self.create_pool(array));
        commands.push(self.create_dataset(array));
        commands
    }

    fn create_pool(&self, array: &Built) -> Command {
        let mut words = Words::new(&["create", "-f"]);
        if let Some(ashift) = self.ashift {
            words.option("ashift", &ashift.to_string());
        }
        for (name, value) in &self.pool_options {
            words.option(name, value);
        }
        // The pool's own data set is not used, so it is not mounted.
        words.add(&["-m", "none", &array.name]);
        let (data, rest) = array.members.split_at(self.data_count(array.members.len()));
        match self.topology {
            Topology::Single | Topology::Stripe => {
                words.devices(data);
            }
            Topology::StripedMirrors => {
                for mirror in data.chunks(self.copies()) {
                    words.add(&["mirror"]).devices(mirror);
                }
            }
            Topology::Mirror | Topology::Raidz1 | Topology::Raidz2 | Topology::Raidz3 => {
                words.add(&[self.topology.name()]).devices(data);
            }
        }
        let (log, cache) = rest.split_at(self.log);
        if !log.is_empty() {
            words.add(&["log"]);
            if self.log_mirror {
                words.add(&["mirror"]);
            }
            words.devices(log);
        }
        if !cache.is_empty() {
            words.add(&["cache"]).devices(cache);
        }
        Command::destroys("zpool", words.0)
    }

    fn create_dataset(&self, array: &Built) -> Command {
        let mut words = Words::new(&["create"]);
        match &self.volume {
            Some(volume) => {
                if volume.sparse {
                    words.add(&["-s"]);
                }
                let size = self.volume_size(volume, &array.members);
                words.add(&["-V", &size.0.to_string()]);
                if let Some(block) = volume.volblocksize {
                    words.add(&["-b", &block.0.to_string()]);
                }
            }
            None => {
                words.option("mountpoint", &array.folder);
            }
        }
        for (name, value) in self.asked() {
            words.option(name, &value);
        }
        words.add(&[&self.dataset(array)]);
        Command::changes("zfs", words.0)
    }

    /// The other members that have a copy of a slot's data, or of the log.
    fn partners<'a>(&self, array: &'a Built, slot: usize) -> Vec<&'a Member> {
        let count = array.members.len();
        let data = self.data_count(count);
        let range = match (self.role(count, slot), self.topology) {
            (Role::Data, Topology::Mirror) => 0..data,
            (Role::Data, Topology::StripedMirrors) => {
                let first = slot / self.copies() * self.copies();
                first..first + self.copies()
            }
            (Role::Log, _) if self.log_mirror => data..data + self.log,
            _ => return Vec::new(),
        };
        range
            .filter(|other| *other != slot)
            .filter_map(|other| array.members.get(other))
            .collect()
    }

    /// Refuses where the pool cannot work without a data member.
    pub(super) fn redundant(&self, array: &Built, slot: usize, what: &str) -> Result<()> {
        let data = self.role(array.members.len(), slot) == Role::Data;
        let alone = self.partners(array, slot).is_empty() && self.topology.parity().is_none();
        if data && alone {
            return Err(self.lacks(what, "the pool has no second copy of its data"));
        }
        Ok(())
    }
}

impl ChangeMembers for ZfsSpec {
    fn fail(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let device = &member(&self.title(), &array.members, slot)?.device;
        if self.role(array.members.len(), slot) == Role::Cache {
            return Err(self.lacks("fail a cache device", "remove it instead"));
        }
        self.redundant(array, slot, "fail a member")?;
        Ok(vec![Command::changes(
            "zpool",
            ["offline", "-f", &array.name, device],
        )])
    }

    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        member(&self.title(), &array.members, slot)?;
        self.redundant(array, slot, "remove a member")?;
        let verb = if !self.partners(array, slot).is_empty() {
            "detach"
        } else if self.role(array.members.len(), slot) == Role::Data {
            "offline"
        } else {
            "remove"
        };
        let device = array.members[slot].device.as_str();
        Ok(vec![Command::changes(
            "zpool",
            [verb, array.name.as_str(), device],
        )])
    }

    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        member(&self.title(), &array.members, slot)?;
        self.redundant(array, slot, "add a member")?;
        let member = &array.members[slot];
        let (pool, device) = (array.name.as_str(), member.device.as_str());
        if let Some(partner) = self.partners(array, slot).first() {
            let mut words = Words::new(&["attach", "-f"]);
            if self.sequential && self.role(array.members.len(), slot) == Role::Data {
                words.add(&["-s"]);
            }
            words.add(&[pool, &partner.device, device]);
            return Ok(vec![
                clear_label(member),
                Command::destroys("zpool", words.0),
            ]);
        }
        let class = match self.role(array.members.len(), slot) {
            Role::Data => {
                // By its label the pool would recognize its own member and refuse to take it for
                // a new one.
                let mut commands = vec![clear_label(member)];
                commands.extend(blank_ends(member));
                commands.push(Command::destroys("zpool", ["replace", "-f", pool, device]));
                return Ok(commands);
            }
            Role::Log => "log",
            Role::Cache => "cache",
        };
        let add = Command::destroys("zpool", ["add", "-f", pool, class, device]);
        Ok(vec![clear_label(member), add])
    }

    /// `online` brings back a member that is offline, and ends with 1 for one that was faulted,
    /// which `clear` brings back.
    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let device = &member(&self.title(), &array.members, slot)?.device;
        if self.role(array.members.len(), slot) == Role::Cache {
            return self.add(array, slot);
        }
        Ok(vec![
            Command::changes("zpool", ["online", &array.name, device]).success(&[0, 1]),
            Command::changes("zpool", ["clear", &array.name, device]),
        ])
    }
}

/// The commands that destroy the pool, then its traces on the members: the labels, and the
/// partition table that ZFS makes on Linux. Both refuse a disk that is still in use, should the
/// pool not be destroyed. FreeBSD has no `wipefs`, and no table to wipe: that command fails there,
/// and the rest are run nevertheless.
pub(super) fn destroy(array: &Built) -> Vec<Command> {
    let pool = Command::destroys("zpool", ["destroy", "-f", &array.name]).timeout(PATIENCE);
    let mut commands = vec![pool];
    for member in &array.members {
        commands.push(clear_label(member));
        commands.push(wipe(&[&member.device]));
    }
    commands
}

/// A pool found on the machine, with its members of any kind, whose sizes are not known.
pub(super) fn find_one(target: &dyn Target, name: &str) -> Result<Built> {
    let status = Command::reads("zpool", ["status", name]).timeout(PATIENCE);
    let output = target.run(&status)?;
    let pools = parse_status(&output.stdout)?;
    let vdevs = pools.first().map_or(&[][..], |pool| &pool.vdevs);
    let mut members = Vec::new();
    for (index, vdev) in vdevs.iter().enumerate() {
        let inner = vdevs
            .get(index + 1)
            .is_some_and(|next| next.depth > vdev.depth && next.section == vdev.section);
        let outer = vdev.depth == 0 && vdev.section == Section::Data;
        if inner || outer {
            continue;
        }
        members.push(Member::found(device_of(target, &vdev.name), Bytes(0)));
    }
    Ok(Built::found(name, members))
}

/// The node of a device that ZFS names without its folder.
fn device_of(target: &dyn Target, name: &str) -> String {
    const FOLDERS: [&str; 4] = ["", "disk/by-id/", "disk/by-path/", "disk/by-partuuid/"];
    if name.starts_with('/') {
        return name.to_owned();
    }
    let nodes = FOLDERS.map(|folder| format!("/dev/{folder}{name}"));
    let there = nodes.iter().find(|node| target.resolve(node).is_ok());
    there.unwrap_or(&nodes[0]).clone()
}
