//! The common parts of FreeBSD's GEOM classes: the text of `list` and `status`, and arrays that are
//! identified by a class and a name.
//!
//! `gmirror list` and the like print, for each array, a line `Geom name: m0`, then the array's
//! own `Key: value` lines, then `Providers:` and `Consumers:`, each followed by parts that begin
//! with `1. Name: ...` and continue with indented `Key: value` lines. An empty line ends the
//! array. Several keys may share a line, separated by two blanks or more (gflash). Source:
//! FreeBSD sbin/geom/core/geom.c, `list_one_geom`.

use super::blank::blank_ends;
use super::steps::{cannot_build, kernel_name, member, printed, smallest};
use super::{
    ArrayStatus, Built, Health, Member, MemberState, ReadBack, Result, SyncKind, SyncStatus,
    SystemError,
};
use raidlab_shell::{Command, Target};
use raidlab_units::{Bytes, columns};

pub(super) mod array;
#[cfg(test)]
pub(super) mod fixtures;
#[cfg(test)]
mod tests;

/// The bytes that a class keeps for itself at the end of each member: one
/// sector of at most 4 KiB.
pub(super) const METADATA_BYTES: u64 = 4096;

/// `Key: value` pairs in the order they were printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// The value of a key, matched exactly; of several the first.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    /// The number in a value, without what may follow it: `3.6T` in brackets, `%`.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        let text = self.get(key)?;
        let digits = text.find(|c: char| !c.is_ascii_digit());
        text[..digits.unwrap_or(text.len())].parse().ok()
    }
}

/// A provider (a device that an array offers) or a consumer (a member that it uses).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// The name below `/dev`: `mirror/m0`, `ada2`; empty where a member is gone.
    pub name: String,
    /// The other lines that `list` prints of the part, by their names.
    pub fields: Fields,
}

/// One array (or disk) of a GEOM class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Geom {
    /// The array's name: `m0`.
    pub name: String,
    /// The lines that `list` prints of the array as a whole, by their names.
    pub fields: Fields,
    /// The devices that the array offers; none where it is broken.
    pub providers: Vec<Part>,
    /// The members that the array uses.
    pub consumers: Vec<Part>,
}

/// Reads the output of `geom CLASS list`, `gmirror list` and so on;
/// `source_name` is for errors.
///
/// # Errors
/// When a line has none of the forms above, or comes before any `Geom name:`.
pub fn parse_list(source_name: &str, text: &str) -> Result<Vec<Geom>> {
    let mut geoms: Vec<Geom> = Vec::new();
    let mut consumers = false;
    for (index, line) in text.lines().enumerate() {
        let unreadable = |problem: &str| {
            SystemError::unreadable(
                source_name,
                index + 1,
                format!("{problem}: `{}`", line.trim()),
            )
        };
        let trimmed = line.trim();
        if trimmed.is_empty() {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix("Geom name:") {
            geoms.push(Geom {
                name: name.trim().to_owned(),
                ..Geom::default()
            });
            continue;
        }
        let Some(geom) = geoms.last_mut() else {
            return Err(unreadable("nothing can come before `Geom name:`"));
        };
        if matches!(trimmed, "Providers:" | "Consumers:") {
            consumers = trimmed == "Consumers:";
            continue;
        }
        let (parts, fields) = if consumers {
            (&mut geom.consumers, &mut geom.fields)
        } else {
            (&mut geom.providers, &mut geom.fields)
        };
        if let Some(start) = numbered(trimmed) {
            let name = start.strip_prefix("Name:").map_or("", str::trim);
            parts.push(Part {
                name: name.to_owned(),
                fields: Fields::default(),
            });
        } else {
            let indented = line.starts_with([' ', '\t']);
            let owner = match parts.last_mut() {
                Some(part) if indented => &mut part.fields,
                _ => fields,
            };
            if !add_fields(trimmed, owner) {
                return Err(unreadable("no `Key: value`"));
            }
        }
    }
    Ok(geoms)
}

/// The text after a number such as `12. `.
fn numbered(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". ")?;
    let digits = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    digits.then_some(rest.trim())
}

/// Adds the pairs of a line; returns false where it does not begin with a key. Pieces between two
/// blanks or more that are no pair belong to the value before.
fn add_fields(line: &str, fields: &mut Fields) -> bool {
    let before = fields.0.len();
    for piece in columns(line) {
        let pair = match piece.split_once(": ") {
            Some((key, value)) => Some((key, value.trim())),
            None => piece.strip_suffix(':').map(|key| (key, "")),
        };
        match (pair, fields.0.len() > before) {
            (Some((key, value)), _) => fields.0.push((key.to_owned(), value.to_owned())),
            (None, true) => {
                if let Some((_, value)) = fields.0.last_mut() {
                    if !value.is_empty() {
                        value.push(' ');
                    }
                    value.push_str(piece);
                }
            }
            (None, false) => return false,
        }
    }
    true
}

/// A class of GEOM with its tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// The name of the class's tool: `gmirror`.
    pub tool: &'static str,
    /// The folder of the class's devices: `mirror` for `/dev/mirror`.
    pub folder: &'static str,
    /// The kernel module that the class needs.
    pub module: &'static str,
}

impl Class {
    /// A command of the class's tool.
    pub fn reads(self, arguments: &[&str]) -> Command {
        Command::reads(self.tool, arguments.iter().copied())
    }

    /// A command of the class's tool that changes something.
    pub fn changes(self, arguments: &[&str]) -> Command {
        Command::changes(self.tool, arguments.iter().copied())
    }

    /// A command of the class's tool by which data are lost.
    pub fn destroys(self, arguments: &[&str]) -> Command {
        Command::destroys(self.tool, arguments.iter().copied())
    }

    /// The commands before every `label`: they blank the members and load the module, which `-n`
    /// allows to be loaded already.
    pub fn prepare(self, members: &[Member]) -> Vec<Command> {
        let mut commands: Vec<Command> = members.iter().flat_map(blank_ends).collect();
        commands.push(Command::changes("kldload", ["-n", self.module]));
        commands
    }

    /// The commands after an array is taken down: they clear its metadata and blank the members.
    /// `clear` ends with 1 where nothing is left.
    pub fn clear(self, members: &[Member]) -> Vec<Command> {
        let each = |member: &Member| {
            let clear = self.destroys(&["clear", kernel_name(&member.device)]);
            [vec![clear.success(&[0, 1])], blank_ends(member)].concat()
        };
        members.iter().flat_map(each).collect()
    }

    /// The array in the contents of its sources. `list` ends with 0 and prints nothing where there
    /// is no such array.
    pub fn find_in(self, name: &str, contents: &[Option<String>]) -> Result<Geom> {
        let text = contents.first().and_then(Option::as_deref).unwrap_or("");
        let source = format!("{} list", self.tool);
        let mut geoms = parse_list(&source, text)?.into_iter();
        geoms
            .find(|geom| geom.name == name)
            .ok_or_else(|| SystemError::no_array(name))
    }

    /// Asks the machine for the state of the array of this name.
    pub fn read(self, target: &dyn Target, name: &str) -> Result<Geom> {
        let output = target.run(&self.reads(&["list", name]))?;
        self.find_in(name, &[Some(output.stdout)])
    }

    /// Every array of the class whose name begins with `prefix`, broken ones
    /// too (`-a`), without the helper that gmirror and graid3 keep beside each
    /// (`m0.sync`). Without the tool or its module there are none.
    pub fn find(self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        let text = printed(target, &self.reads(&["list", "-a"]))?;
        let source = format!("{} list -a", self.tool);
        let geoms = parse_list(&source, &text)?;
        let ours = geoms
            .into_iter()
            .filter(|geom| geom.name.starts_with(prefix) && !geom.name.ends_with(".sync"));
        Ok(ours.map(built).collect())
    }

    /// The settings of the class as a whole: `kern.geom.mirror.sync_requests`.
    pub fn tunables(self, target: &dyn Target) -> Result<Vec<ReadBack>> {
        let tree = format!("kern.geom.{}", self.folder);
        let output = target.output(&Command::reads("sysctl", [tree.clone()]))?;
        // A class without tunables does not have this tree.
        if output.code != Some(0) {
            return Ok(Vec::new());
        }
        let lines = output.stdout.lines();
        let pairs = lines.filter_map(|line| line.split_once(": "));
        Ok(pairs
            .map(|(name, value)| {
                ReadBack::new(name, None::<&str>, value, &format!("sysctl {tree}"))
            })
            .collect())
    }

    /// The error that an array cannot be built, with the reason.
    pub fn cannot(self, reason: impl Into<String>) -> SystemError {
        cannot_build(self.tool, reason)
    }

    /// GEOM's name of the member in a slot: `ada2`.
    pub fn provider(self, array: &Built, slot: usize) -> Result<&str> {
        Ok(kernel_name(
            &member(self.tool, &array.members, slot)?.device,
        ))
    }

    /// The error that a member can only be added as a new one after it was away.
    pub(crate) fn cannot_re_add(self) -> SystemError {
        let reason = "it keeps no record of what a member missed; add copies everything";
        self.lacks("re-add a member", reason)
    }

    /// The error that the class lacks a verb, with the reason.
    pub fn lacks(self, what: &str, reason: &str) -> SystemError {
        SystemError::unsupported(self.tool, what, reason)
    }
}

/// An array found on the machine.
fn built(geom: Geom) -> Built {
    let members = geom.consumers.iter().filter(|part| !part.name.is_empty());
    let members = members
        .map(|part| {
            Member::found(
                format!("/dev/{}", part.name),
                Bytes(part.fields.number("Mediasize").unwrap_or(0)),
            )
        })
        .collect();
    Built::found(geom.name, members)
}

/// The size of a sector of the array's own device, where it has one.
pub(super) fn sector_size(geom: &Geom, source: &str) -> Option<ReadBack> {
    let size = geom.providers.first()?.fields.get("Sectorsize")?;
    Some(ReadBack::new("sector_size", None::<&str>, size, source))
}

/// The state of a mirror or RAID3, slot by slot, where `state` gives that of one consumer.
///
/// The array's own `State:` is not trusted: a gmirror whose member was removed says COMPLETE with
/// one component (the log of 2015). It is failed where fewer members than `needed` are in sync or
/// it offers no device.
pub(super) fn redundant_status(
    geom: &Geom,
    array: &Built,
    needed: usize,
    state: impl Fn(&Part) -> MemberState,
) -> ArrayStatus {
    let find = |member: &Member| {
        let mut parts = geom.consumers.iter();
        parts.find(|part| part.name == kernel_name(&member.device))
    };
    let members = array.members.iter();
    let members: Vec<MemberState> = members
        .map(|member| find(member).map_or(MemberState::Missing, &state))
        .collect();
    let good = members
        .iter()
        .filter(|state| **state == MemberState::InSync);
    let good = good.count();
    let health = if good == members.len() {
        Health::Optimal
    } else if good >= needed && !geom.providers.is_empty() {
        Health::Degraded
    } else {
        Health::Failed
    };
    let recovering = array
        .members
        .iter()
        .filter_map(find)
        .find(|part| state(part) == MemberState::Recovering);
    ArrayStatus {
        health,
        members,
        sync: recovering.map(|part| SyncStatus::of(SyncKind::Recovery, percent(part))),
    }
}

/// The progress of a member's synchronization, 0 to 100 percent. GEOM prints whole percents;
/// gmirror of FreeBSD 10 and later also prints the bytes copied, which refine it as long as both
/// agree: after a restart the bytes count from there only.
fn percent(part: &Part) -> Option<f64> {
    let whole = part.fields.number("Synchronized")? as f64;
    let copied = part.fields.number("BytesSynced");
    let size = part.fields.number("Mediasize").filter(|size| *size > 0);
    let exact = copied.zip(size).map(|(c, s)| 100.0 * c as f64 / s as f64);
    Some(match exact {
        Some(exact) if exact.floor() == whole => exact,
        _ => whole.min(100.0),
    })
}

/// The size of the smallest member without the class's metadata.
pub(super) fn usable(members: &[Member]) -> u64 {
    smallest(members).0.saturating_sub(METADATA_BYTES)
}
