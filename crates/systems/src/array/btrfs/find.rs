//! What a crash left: file systems whose label has our prefix.

use super::state::parse_show;
use crate::array::{Built, Member, Result};
use crate::mounts::parse_mounts;
use raidlab_shell::{Command, Target};
use raidlab_units::Bytes;

pub(super) fn find(target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
    let show = Command::reads("btrfs", ["filesystem", "show", "--raw"]);
    let shown = parse_show(&target.run(&show)?.stdout)?;
    let mounts = parse_mounts(&target.read("/proc/mounts")?);
    let mut found = Vec::new();
    for shown in shown {
        if !shown.label.starts_with(prefix) {
            continue;
        }
        let members: Vec<Member> = shown
            .devices
            .into_iter()
            .filter(|device| !device.path.is_empty())
            .map(|device| Member::found(device.path, Bytes(device.size)))
            .collect();
        let mount = mounts
            .iter()
            .find(|mount| members.iter().any(|member| member.device == mount.device));
        found.push(Built {
            name: shown.label,
            folder: mount.map_or_else(String::new, |mount| mount.folder.clone()),
            members,
        });
    }
    found.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(found)
}
