//! The commands that build a volume and change it.

use super::{LvmLevel, LvmSpec};
use crate::array::steps::{devices, member, wipe};
use crate::array::{Built, ChangeMembers, Described, Result};
use raidlab_shell::{Command, Effect};

/// The volume's name in its group.
pub(super) const VOLUME: &str = "volume";

/// The option `--devices` with these members; and the option by which LVM makes the volume's device
/// node itself where there is no udev.
fn only(devices: &[&str]) -> [String; 4] {
    [
        "--config".to_owned(),
        "activation/verify_udev_operations=1".to_owned(),
        "--devices".to_owned(),
        devices.join(","),
    ]
}

fn lvm(program: &str, seen: &[&str], words: &[impl ToString]) -> Command {
    let words = words.iter().map(ToString::to_string);
    Command::changes(program, only(seen).into_iter().chain(words))
}

/// A command of LVM that destroys data on the members.
pub(super) fn destroying(program: &str, seen: &[&str], words: &[impl ToString]) -> Command {
    Command {
        effect: Effect::Destroys,
        ..lvm(program, seen, words)
    }
}

pub(super) fn volume(array: &Built) -> String {
    format!("{}/{VOLUME}", array.name)
}

pub(super) fn create(spec: &LvmSpec, array: &Built) -> Vec<Command> {
    let all = devices(&array.members);
    let data = spec.data_count(all.len());
    let with_devices = |program: &str, words: &[&str], devices: &[&str]| {
        destroying(program, &all, &[words, devices].concat())
    };
    let mut words: Vec<String> = [
        "--yes",
        "--wipesignatures",
        "y",
        "--name",
        VOLUME,
        "--type",
        spec.level.name(),
        "--extents",
        "100%FREE",
    ]
    .map(str::to_owned)
    .into();
    words.extend(level_words(spec, data));
    words.push(array.name.clone());
    let mut commands = vec![
        wipe(&all),
        with_devices("pvcreate", &["--yes"], &all),
        with_devices("vgcreate", &["--yes", &array.name], &all[..data]),
        destroying("lvcreate", &all, &words),
    ];
    if let Some(cache) = &spec.cache {
        commands.extend(cache.attach(array, data));
    }
    commands
}

fn level_words(spec: &LvmSpec, members: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mirrors = match spec.level {
        LvmLevel::Raid1 | LvmLevel::Mirror => Some(members - 1),
        LvmLevel::Raid10 => Some(1),
        _ => None,
    };
    if let Some(mirrors) = mirrors {
        words.extend(["--mirrors".to_owned(), mirrors.to_string()]);
    }
    if spec.level == LvmLevel::Mirror {
        // A log on disk would need a member of its own.
        words.extend(["--mirrorlog".to_owned(), "core".to_owned()]);
    }
    if spec.level.striped() {
        let stripes = spec.level.stripes(members);
        words.extend(["--stripes".to_owned(), stripes.to_string()]);
    }
    if let Some(size) = spec.stripe_size {
        words.extend(["--stripesize".to_owned(), format!("{}k", size.0 / 1024)]);
    }
    if let Some(size) = spec.region_size {
        words.extend(["--regionsize".to_owned(), format!("{}k", size.0 / 1024)]);
    }
    if spec.nosync {
        words.push("--nosync".to_owned());
    }
    words
}

fn redundant(spec: &LvmSpec) -> Result<()> {
    let refuse = |reason: &str| Err(spec.lacks("change its members", reason));
    if spec.cache.is_some() {
        return refuse("LVM would repair the cache in front of them: measure that without a cache");
    }
    match spec.level {
        LvmLevel::Mirror => refuse("the old mirror target drops a lost member for good: use raid1"),
        level if !level.redundant() => refuse("it has no redundancy"),
        _ => Ok(()),
    }
}

fn switch(array: &Built, seen: &[&str], on: bool) -> Command {
    let name = volume(array);
    if on {
        let words = ["--activate", "y", "--activationmode", "degraded", &name];
        lvm("lvchange", seen, &words)
    } else {
        lvm("lvchange", seen, &["--activate", "n", &name])
    }
}

/// The devices of the members that are present, with or without that of a slot. LVM takes back any
/// member of its own that it sees.
fn there(array: &Built, slot: usize, own: bool) -> Vec<&str> {
    let members = array.members.iter().enumerate();
    let there = members.filter(|(index, member)| match *index == slot {
        true => own,
        false => !member.away,
    });
    there.map(|(_, member)| member.device.as_str()).collect()
}

impl ChangeMembers for LvmSpec {
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        redundant(self)?;
        member(&self.title(), &array.members, slot)?;
        Ok(vec![
            switch(array, &there(array, slot, true), false),
            switch(array, &there(array, slot, false), true),
        ])
    }

    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        redundant(self)?;
        let new = member(&self.title(), &array.members, slot)?;
        let all = there(array, slot, true);
        let device = new.device.as_str();
        Ok(vec![
            wipe(&[device]),
            destroying("pvcreate", &all, &["--yes", device]),
            lvm("vgextend", &all, &["--yes", &array.name, device]),
            lvm(
                "lvconvert",
                &all,
                &["--yes", "--repair", &volume(array), device],
            ),
            lvm("vgreduce", &all, &["--yes", "--removemissing", &array.name]),
        ])
    }

    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        redundant(self)?;
        member(&self.title(), &array.members, slot)?;
        let all = there(array, slot, true);
        Ok(vec![switch(array, &all, false), switch(array, &all, true)])
    }
}

pub(super) fn destroy(array: &Built) -> Vec<Command> {
    let devices = devices(&array.members);
    let words = ["--yes", "--force", "--force", &array.name];
    vec![destroying("vgremove", &devices, &words), wipe(&devices)]
}
