//! The commands that build an array and change it.

use super::{Bitmap, ConsistencyPolicy, MdSpec};
use crate::array::steps::{devices, kernel_name, member, set, trailing_number, wipe};
use crate::array::{Built, ChangeMembers, Described, Result};
use raidlab_shell::Command;

/// The array's device node: 100 plus the number the name ends in.
pub(super) fn device(name: &str) -> String {
    format!("/dev/{}", kernel(name))
}

/// The number of our first device: lower ones are other people's.
const FIRST: u32 = 100;

/// The kernel's name of the array, as in `/sys/block`.
pub(super) fn kernel(name: &str) -> String {
    format!("md{}", FIRST + trailing_number(name))
}

/// The number at the end of the name of this device's array; `None` where it cannot be ours.
pub(super) fn number_of(device: &str) -> Option<u32> {
    let number: u32 = device.strip_prefix("/dev/md")?.parse().ok()?;
    number.checked_sub(FIRST)
}

/// The path of a file of the array below `/sys`.
pub(super) fn attribute(name: &str, file: &str) -> String {
    format!("/sys/block/{}/md/{file}", kernel(name))
}

pub(super) fn create(spec: &MdSpec, array: &Built) -> Vec<Command> {
    let mut commands = vec![
        wipe(&devices(&array.members)),
        Command::destroys("mdadm", create_words(spec, array)),
    ];
    commands.extend(tune(spec, array));
    commands
}

fn create_words(spec: &MdSpec, array: &Built) -> Vec<String> {
    let active = spec.active(array.members.len());
    let mut words = vec![
        "--create".to_owned(),
        device(&array.name),
        "--run".to_owned(),
        "--homehost=any".to_owned(),
        format!("--name={}", array.name),
        format!("--metadata={}", spec.metadata.name()),
        format!("--level={}", spec.level.name()),
        format!("--raid-devices={active}"),
    ];
    if active == 1 {
        // mdadm refuses a single member as a probable mistake.
        words.push("--force".to_owned());
    }
    if let Some(chunk) = spec.chunk {
        words.push(format!("--chunk={}K", chunk.0 / 1024));
    }
    if let Some(layout) = &spec.layout {
        words.push(format!("--layout={layout}"));
    }
    if spec.level.redundant() {
        words.extend(bitmap_words(spec));
    }
    if spec.consistency_policy == Some(ConsistencyPolicy::Ppl) {
        words.push("--consistency-policy=ppl".to_owned());
    }
    if spec.assume_clean {
        words.push("--assume-clean".to_owned());
    }
    if spec.spares > 0 {
        words.push(format!("--spare-devices={}", spec.spares));
    }
    let (members, journal) = array
        .members
        .split_at(array.members.len() - spec.journals());
    for device in devices(journal) {
        words.extend(["--write-journal".to_owned(), device.to_owned()]);
    }
    words.extend(devices(members).into_iter().map(str::to_owned));
    words
}

fn bitmap_words(spec: &MdSpec) -> Vec<String> {
    match spec.bitmap() {
        // mdadm accepts no bitmap option beside a journal.
        Bitmap::None if spec.journals() > 0 => Vec::new(),
        Bitmap::None => vec!["--bitmap=none".to_owned()],
        Bitmap::Internal => {
            let chunk = spec.bitmap_chunk;
            let chunk = chunk.map(|chunk| format!("--bitmap-chunk={}K", chunk.0 / 1024));
            let bitmap = "--bitmap=internal".to_owned();
            std::iter::once(bitmap).chain(chunk).collect()
        }
    }
}

/// The settings for which mdadm has no option, or only one for the members after some position.
fn tune(spec: &MdSpec, array: &Built) -> Vec<Command> {
    let file = |name: &str| attribute(&array.name, name);
    let mut commands: Vec<Command> = spec
        .write_mostly
        .iter()
        .filter_map(|slot| array.members.get(*slot))
        .map(|member| read_last(array, &member.device))
        .collect();
    let kib = |bytes: raidlab_units::Bytes| bytes.0 / 1024;
    let tunables = [
        ("sync_speed_min", spec.sync_speed_min.map(kib)),
        ("sync_speed_max", spec.sync_speed_max.map(kib)),
        ("stripe_cache_size", spec.stripe_cache_size.map(u64::from)),
        ("group_thread_cnt", spec.group_thread_count.map(u64::from)),
    ];
    for (name, value) in tunables {
        commands.extend(value.map(|value| set(&file(name), value)));
    }
    if let Some(read_ahead) = spec.read_ahead {
        let path = format!("/sys/block/{}/queue/read_ahead_kb", kernel(&array.name));
        commands.push(set(&path, kib(read_ahead)));
    }
    commands
}

/// The command that makes a member write-mostly.
fn read_last(array: &Built, device: &str) -> Command {
    let name = format!("dev-{}/state", kernel_name(device));
    set(&attribute(&array.name, &name), "writemostly")
}

/// A manage command: `mdadm /dev/md100 <verb> /dev/sdb`.
fn manage(spec: &MdSpec, array: &Built, slot: usize, verb: &[&str]) -> Result<Command> {
    if !spec.level.redundant() {
        return Err(spec.lacks("change its members", "it has no redundancy"));
    }
    let member = member(&spec.title(), &array.members, slot)?;
    let device = device(&array.name);
    let mut words = vec![device.as_str()];
    words.extend(verb);
    words.push(&member.device);
    Ok(Command::changes("mdadm", words))
}

/// The commands that begin a check of the whole array, as `mdadm --action=check` does.
pub(super) fn check_all(spec: &MdSpec, array: &Built) -> Result<Vec<Command>> {
    if !spec.level.redundant() {
        return Err(spec.lacks("begin a check", "it has no redundancy"));
    }
    Ok(vec![set(&attribute(&array.name, "sync_action"), "check")])
}

impl ChangeMembers for MdSpec {
    fn fail(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        Ok(vec![manage(self, array, slot, &["--fail"])?])
    }

    /// `--force` makes mdadm wait up to 5 s for requests in flight to the failed
    /// member, not 50 ms (mdadm 4.2 util.c, `hot_remove_disk`).
    fn remove(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        Ok(vec![
            manage(self, array, slot, &["--fail"])?,
            manage(self, array, slot, &["--remove", "--force"])?,
        ])
    }

    /// The write-mostly flag is kept in the superblock, which is wiped. It is set again once the
    /// member is added: with `--add --write-mostly` mdadm writes a superblock that calls the device
    /// faulty (super1.c, `add_to_super1`). An array with a bitmap believes it (drivers/md/md.c,
    /// `super_1_validate`), and never fills the member.
    fn add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let device = &array.members[slot].device;
        let add = manage(self, array, slot, &["--add"])?;
        let last = self.write_mostly.contains(&slot);
        let last = last.then(|| read_last(array, device));
        Ok([wipe(&[device]), add].into_iter().chain(last).collect())
    }

    fn re_add(&self, array: &Built, slot: usize) -> Result<Vec<Command>> {
        let re_add = manage(self, array, slot, &["--re-add"])?;
        let refuse = |reason: &str| Err(self.lacks("re-add a member", reason));
        if self.bitmap() == Bitmap::None {
            return refuse("without a bitmap it does not know what the member missed: add it");
        }
        if self.spares > 0 {
            return refuse("a spare has taken its place: add it");
        }
        Ok(vec![re_add])
    }
}

pub(super) fn destroy(array: &Built) -> Vec<Command> {
    vec![
        Command::changes("mdadm", ["--stop", &device(&array.name)]),
        wipe(&devices(&array.members)),
    ]
}
