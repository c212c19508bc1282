//! The knowledge of a subject's members, by facts and by their models' names.
//!
//! Imported results often say no more of a disk than its model. Two properties follow from the
//! model alone: whether the disk rotates, and whether it stores 4096-byte sectors, whatever sector
//! size it reports.

mod models;

use crate::case::Case;
use models::{has_4_kib_sectors, is_rotating_model, is_virtual_model};
use raidlab_store::{Measurement, Operation, fact, fact::disk_property as property};

/// The largest number of member slots looked up for a subject.
const MOST_MEMBERS: usize = 256;

/// A member, with the evidence about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Member {
    /// The kernel's name; empty where not known.
    pub(crate) device: String,
    /// The member's other role, if it has one: `cache`, `write-mostly`.
    pub(crate) role: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) rotational: Option<bool>,
    pub(crate) physical_sector_bytes: Option<f64>,
    /// Whether only the model's name says that its sectors are larger than it reports.
    pub(crate) sector_by_model: bool,
    pub(crate) start_sector: Option<f64>,
    pub(crate) size_bytes: Option<f64>,
    pub(crate) transport: Option<String>,
    pub(crate) channel: Option<String>,
    pub(crate) channel_bytes_per_second: Option<f64>,
    pub(crate) sequential_bytes_per_second: Option<f64>,
}

impl Member {
    /// The whole disk that the member is, or is a partition of.
    pub(crate) fn disk<'a>(&'a self, case: &Case<'a>, row: &Measurement) -> &'a str {
        let parent = case.text(row, &fact::disk(&self.device, property::PARENT));
        parent.unwrap_or_else(|| whole_disk(&self.device))
    }

    /// A number that the drive reports about itself; for a partition, that of its disk.
    pub(crate) fn reading(&self, case: &Case<'_>, row: &Measurement, name: &str) -> Option<f64> {
        let of = |device: &str| case.number(row, &fact::disk(device, name));
        of(&self.device).or_else(|| of(self.disk(case, row)))
    }

    pub(crate) fn is_partition(&self) -> bool {
        self.start_sector.is_some_and(|start| start > 0.0)
            || (!self.device.is_empty() && whole_disk(&self.device) != self.device)
    }

    /// Whether the member differs from the others by design: a cache, a log, a spare.
    pub(crate) fn is_auxiliary(&self) -> bool {
        self.role.as_deref().is_some_and(is_auxiliary_role)
    }

    /// The name by which people know the member.
    pub(crate) fn name(&self) -> String {
        match (&self.model, self.device.as_str()) {
            (Some(model), "") => model.clone(),
            (Some(model), device) => format!("{device} ({model})"),
            (None, device) => device.to_owned(),
        }
    }
}

/// Roles of members that are other disks by design.
pub(crate) fn is_auxiliary_role(role: &str) -> bool {
    matches!(role, "cache" | "log" | "journal" | "spare")
}

/// The members of the row's subject in slot order; empty where not known.
pub(crate) fn members(case: &Case<'_>, row: &Measurement) -> Vec<Member> {
    let devices: Vec<&str> = (0..MOST_MEMBERS)
        .map_while(|slot| case.text(row, &fact::member_device(slot)))
        .collect();
    let named: Vec<Member> = devices
        .iter()
        .enumerate()
        .map(|(slot, device)| Member {
            role: role(case, row, slot, devices.len()).map(str::to_owned),
            ..by_device(case, row, device)
        })
        .collect();
    if !named.is_empty() {
        return named;
    }
    let seen = row.members.iter();
    seen.map(|member| {
        let model = (!member.model.is_empty()).then(|| member.model.clone());
        described(Member {
            model,
            ..Member::default()
        })
    })
    .collect()
}

/// The role that the member in a slot has beside being one of so many members. bcache's last member
/// is its cache, whether the evidence says so or not.
pub(crate) fn role<'a>(
    case: &Case<'a>,
    row: &Measurement,
    slot: usize,
    count: usize,
) -> Option<&'a str> {
    let told = case.text(row, &fact::member_role(slot));
    told.or_else(|| (system(case, row) == "bcache" && slot + 1 == count).then_some("cache"))
}

/// The members that are meant to be alike: no cache, no log, no spare.
pub(crate) fn equals(case: &Case<'_>, row: &Measurement) -> Vec<Member> {
    let mut members = members(case, row);
    members.retain(|member| !member.is_auxiliary());
    members
}

fn by_device(case: &Case<'_>, row: &Measurement, device: &str) -> Member {
    let device = device.strip_prefix("/dev/").unwrap_or(device);
    // A partition has its disk's model and sectors.
    let parent = case
        .text(row, &fact::disk(device, property::PARENT))
        .unwrap_or_else(|| whole_disk(device));
    let own = |name| case.text(row, &fact::disk(device, name));
    let text = |name| own(name).or_else(|| case.text(row, &fact::disk(parent, name)));
    let number = |name| {
        let number: f64 = text(name)?.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    // The kernel reports disks as rotating unless their driver says otherwise.
    let virtual_disk = ["loop", "vd", "xvd", "nbd"]
        .iter()
        .any(|begin| device.starts_with(begin))
        || text(property::TRANSPORT) == Some("virtio")
        || text(property::BACKING_FILE).is_some()
        || text(property::MODEL).is_some_and(is_virtual_model);
    described(Member {
        device: device.to_owned(),
        role: None,
        model: text(property::MODEL).map(str::to_owned),
        rotational: text(property::ROTATIONAL)
            .map(|value| value == fact::TRUE)
            .filter(|_| !virtual_disk),
        physical_sector_bytes: number(property::PHYSICAL_SECTOR_BYTES),
        sector_by_model: false,
        start_sector: own(property::START_SECTOR).and_then(|value| value.parse().ok()),
        size_bytes: own(property::SIZE_BYTES).and_then(|value| value.parse().ok()),
        transport: text(property::TRANSPORT).map(str::to_owned),
        channel: text(property::CHANNEL).map(str::to_owned),
        channel_bytes_per_second: number(property::CHANNEL_BYTES_PER_SECOND),
        sequential_bytes_per_second: number(property::SEQUENTIAL_BYTES_PER_SECOND),
    })
}

/// Adds what follows from the model's name alone.
fn described(mut member: Member) -> Member {
    let Some(model) = &member.model else {
        return member;
    };
    if member.rotational.is_none() && is_rotating_model(model) {
        member.rotational = Some(true);
    }
    if member
        .physical_sector_bytes
        .is_none_or(|bytes| bytes < 4096.0)
        && has_4_kib_sectors(model)
    {
        member.physical_sector_bytes = Some(4096.0);
        member.sector_by_model = true;
    }
    member
}

/// The disk that a partition is on, by its name: `sdb1`, `nvme0n1p2`,
/// `ada2p1`, `ada2s1a`; a disk's own name is returned as it is.
pub(crate) fn whole_disk(device: &str) -> &str {
    let by_letters = ["sd", "hd", "vd", "xvd"];
    if by_letters.iter().any(|begin| device.starts_with(begin)) {
        return device.trim_end_matches(|c: char| c.is_ascii_digit());
    }
    let slice = device.trim_end_matches(|c: char| ('a'..='h').contains(&c));
    for (name, marks) in [(device, "p"), (slice, "s")] {
        let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if head.len() == name.len() {
            continue;
        }
        if let Some(disk) = head.strip_suffix(marks)
            && disk.ends_with(|c: char| c.is_ascii_digit())
        {
            return disk;
        }
    }
    device
}

/// The implementation of the row's subject: by fact, else by the subject's name for articles, which
/// give nothing else. Empty where neither says it.
pub(crate) fn system<'a>(case: &Case<'a>, row: &'a Measurement) -> &'a str {
    let known = ["zfs", "md", "gmirror", "gflash", "btrfs", "lvm"];
    case.text(row, fact::ARRAY_SYSTEM).unwrap_or_else(|| {
        let name = row.subject.as_str();
        let by_name = known.into_iter().find(|system| name.starts_with(system));
        by_name.unwrap_or_default()
    })
}

/// Whether the subject never overwrites in place: by fact, else by its system for older runs and
/// articles, which give nothing else.
pub(crate) fn copies_on_write(case: &Case<'_>, row: &Measurement) -> bool {
    let told = case.flag(row, fact::ARRAY_COPIES_ON_WRITE);
    let array = told.unwrap_or_else(|| matches!(system(case, row), "zfs" | "btrfs"));
    array || row.filesystem.starts_with("btrfs")
}

/// The array's level without a system's prefix: `raid5`, `mirror`; empty where
/// not known.
pub(crate) fn level<'a>(case: &Case<'a>, row: &Measurement) -> &'a str {
    case.text(row, fact::ARRAY_LEVEL).unwrap_or_default()
}

/// Whether a level keeps its data when a member fails, so that members must be made equal.
pub(crate) fn is_redundant(level: &str) -> bool {
    [
        "raid1", "raid4", "raid5", "raid6", "mirror", "raidz", "raid3",
    ]
    .iter()
    .any(|begin| level.starts_with(begin))
}

/// Whether the array is made of mirrors, so that each member has what a read asks for; `None` where
/// the evidence does not say.
pub(crate) fn is_mirror(case: &Case<'_>, row: &Measurement) -> Option<bool> {
    let level = level(case, row);
    if level.is_empty() {
        let mirrors = matches!(system(case, row), "gmirror" | "gflash");
        return mirrors.then_some(true);
    }
    Some(level == "mirror" || level == "raid1" || level.starts_with("raid1c"))
}

/// Classes of jobs that run while the array is degraded or copies in the background.
const UNSETTLED_CLASSES: [&str; 5] = ["resync", "recovery", "rebuild", "degraded", "check"];

/// Whether a class is one of those: one of the words, or a name that begins with one and a
/// dash, as `resync-writes`.
pub(crate) fn is_unsettled(class: &str) -> bool {
    let first = class.split_once('-').map_or(class, |(first, _)| first);
    UNSETTLED_CLASSES.contains(&first)
}

/// Whether the array was whole and nothing was copied in the background, as far as
/// the row says.
pub(crate) fn is_settled(row: &Measurement) -> bool {
    !is_unsettled(&row.class)
        && row.sync_percent_start.is_none()
        && row.sync_percent_end.is_none()
        && !row.array_state_start.contains('_')
        && !row.array_state_end.contains('_')
}

/// Whether the array has a cache or a log on disks of its own.
pub(crate) fn has_auxiliary(case: &Case<'_>, row: &Measurement) -> bool {
    matches!(system(case, row), "bcache")
        || case
            .text(row, fact::ARRAY_AUXILIARY)
            .is_some_and(|kinds| !kinds.is_empty())
        || members(case, row).iter().any(Member::is_auxiliary)
}

/// Whether the row is of random I/O.
pub(crate) fn is_random(row: &Measurement) -> bool {
    use raidlab_store::Operation::{RandomRead, RandomWrite, Seek};
    row.class.contains("random")
        || row.job_title.starts_with("random")
        || matches!(row.op, RandomRead | RandomWrite | Seek)
}

/// The tool that made the row, without its version. The model's own workload counts as fio's, whose
/// jobs and habits it has.
pub(crate) fn tool(row: &Measurement) -> &str {
    if row.bench == "model" && row.tool.is_empty() {
        return "fio";
    }
    row.tool.split([' ', '-']).next().unwrap_or_default()
}

/// Whether the job bypassed the system's page cache; `None` where the tool's options are not known.
pub(crate) fn is_direct(case: &Case<'_>, row: &Measurement) -> Option<bool> {
    match tool(row) {
        "bonnie++" => Some(false),
        "iozone" => Some(case.flag(row, fact::IOZONE_DIRECT).unwrap_or(false)),
        "dd" => {
            let name = if row.op.only_reads() {
                "iflag"
            } else {
                "oflag"
            };
            let flags = dd_operand(case, row, name).unwrap_or_default();
            Some(flags.split(',').any(|flag| flag == "direct"))
        }
        "fio" => {
            let direct = case.flag(row, &fact::fio_option("direct"));
            direct.or_else(|| reports_options(case, row).then_some(false))
        }
        _ => None,
    }
}

/// Whether fio reported the options it was given, so that a missing option was not given. Its
/// output for people names pattern, engine and depth only.
pub(crate) fn reports_options(case: &Case<'_>, row: &Measurement) -> bool {
    ["name", "bs", "size", "filesize", "filename", "runtime"]
        .iter()
        .any(|name| case.text(row, &fact::fio_option(name)).is_some())
}

/// An operand of the row's dd: as a fact, else out of the cell's own command.
pub(crate) fn dd_operand<'a>(case: &Case<'a>, row: &Measurement, name: &str) -> Option<&'a str> {
    case.text(row, &fact::dd_operand(name)).or_else(|| {
        let mut commands = case.commands(row).filter(|c| c.scope.sequence.is_some());
        commands.find_map(|command| operand(&command.command, name))
    })
}

/// The value of an operand of a dd command line; `None` where the command has no such operand.
pub(crate) fn operand<'a>(command: &'a str, name: &str) -> Option<&'a str> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == "dd" || word.ends_with("/dd"))?;
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The bytes that the row's job can touch. iozone's parts name the size of their file,
/// `16384k/64k`, or how many processes had a file each, `4 processes`.
pub(crate) fn working_set(case: &Case<'_>, row: &Measurement) -> Option<f64> {
    let set = case.number(row, fact::JOB_WORKING_SET_BYTES);
    if tool(row) != "iozone" {
        return set;
    }
    if let Some((kibibytes, _)) = row.part.split_once("k/") {
        return kibibytes.parse::<f64>().ok().map(|size| size * 1024.0);
    }
    // The fact is the largest number of processes of its cell.
    let cell = row.cell();
    let rows = case
        .evidence
        .rows
        .iter()
        .filter(|other| other.cell() == cell);
    let most = rows.map(|other| other.streams).max()?;
    Some(set? * f64::from(row.streams) / f64::from(most.max(1)))
}

/// Whether reads may be answered from memory: buffered I/O, and ZFS unless it keeps no data in its
/// cache. ZFS before 2.3 ignores direct I/O. Where this is not known, the fact that would tell.
pub(crate) fn may_be_cached(case: &Case<'_>, row: &Measurement) -> Result<bool, String> {
    let is_zfs = system(case, row) == "zfs";
    let found = case.text(row, &fact::setting("primarycache", fact::outcome::FOUND));
    if is_zfs && matches!(found, Some("none" | "metadata")) {
        return Ok(false);
    }
    let honours = if is_zfs {
        honours_direct(case, row)
    } else {
        Some(true)
    };
    match (is_direct(case, row), honours) {
        (Some(false), _) | (_, Some(false)) => Ok(true),
        (Some(true), Some(true)) => Ok(false),
        (None, _) => Err(fact::fio_option("direct")),
        (_, None) => Err(fact::version("zfs")),
    }
}

/// Whether the row's job only writes. iozone's rewrite writes its file again, but that of bonnie++
/// reads what it changes.
pub(crate) fn only_writes(row: &Measurement) -> bool {
    let is_anew = matches!(row.op, Operation::Rewrite | Operation::Frewrite);
    row.op.only_writes() || (is_anew && tool(row) == "iozone")
}

/// Whether what a writing job wrote was flushed before its time was taken, or bypassed the page
/// cache; `None` where the tool's options are not known.
pub(crate) fn is_flushed(case: &Case<'_>, row: &Measurement) -> Option<bool> {
    if is_direct(case, row)? {
        return Some(true);
    }
    let lists = |name: &str, wanted: &[&str]| {
        let list = dd_operand(case, row, name).unwrap_or_default();
        list.split(',').any(|word| wanted.contains(&word))
    };
    Some(match tool(row) {
        "dd" => {
            dd_operand(case, row, "of")?;
            lists("conv", &["fsync", "fdatasync"]) || lists("oflag", &["sync", "dsync"])
        }
        "fio" => {
            let options = ["end_fsync", "fsync_on_close", "fsync", "fdatasync", "sync"];
            let values = options
                .iter()
                .filter_map(|name| case.text(row, &fact::fio_option(name)));
            let values: Vec<&str> = values.collect();
            if values.is_empty() && !reports_options(case, row) {
                return None;
            }
            values.iter().any(|value| !matches!(*value, "0" | "none"))
        }
        "iozone" => case.flag(row, fact::IOZONE_INCLUDES_FSYNC)?,
        // bonnie++ flushes the end of its files since 1.90.
        "bonnie++" => !row.tool.starts_with("bonnie++ 1.0"),
        _ => return None,
    })
}

/// Whether the row's job ran on a volume of ZFS.
pub(crate) fn is_zfs_volume(case: &Case<'_>, row: &Measurement) -> bool {
    let file = case.text(row, &fact::fio_option("filename"));
    let setting = fact::setting("volblocksize", fact::outcome::FOUND);
    file.is_some_and(|file| file.starts_with("/dev/")) || case.text(row, &setting).is_some()
}

/// Whether this ZFS has real direct I/O (OpenZFS 2.3, pull request 10018), which its
/// volumes have not (zfsprops(7), `direct`); `None` where its version is not known.
pub(crate) fn honours_direct(case: &Case<'_>, row: &Measurement) -> Option<bool> {
    if is_zfs_volume(case, row) {
        return Some(false);
    }
    Some(version_in(case.text(row, &fact::version("zfs"))?)? >= (2, 3))
}

/// The first two numbers of a version: those of `zfs-2.1.11-1` are 2 and 1. A single number is no
/// version of a program, as `28` is that of a pool.
pub(crate) fn version_in(text: &str) -> Option<(u32, u32)> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let (major, rest) = digits.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether the members' counters cover the whole job. fio reads its disk counters once in a quarter
/// of a second and not at a job's end (`DISK_UTIL_MSEC` of its diskutil.h).
pub(crate) fn is_counted_whole(row: &Measurement) -> bool {
    row.bench != "import" || tool(row) != "fio" || row.runtime_ns >= 2_500_000_000
}

/// Bytes that the members read and wrote during the job; `None` where they
/// were not counted.
pub(crate) fn member_bytes(row: &Measurement) -> Option<(u64, u64)> {
    if !is_counted_whole(row) {
        return None;
    }
    let sum = |of: fn(&raidlab_store::MemberUse) -> u64| {
        row.members
            .iter()
            .fold(0_u64, |sum, member| sum.saturating_add(of(member)))
    };
    let (read, written) = (
        sum(|member| member.read_bytes),
        sum(|member| member.write_bytes),
    );
    let commands = sum(|member| member.read_ios.saturating_add(member.write_ios));
    // fio before 3.36 counts commands without bytes.
    (!row.members.is_empty() && (commands == 0 || read.saturating_add(written) > 0))
        .then_some((read, written))
}

/// The entry of the list of shingled drives for the member, if its maker says that it
/// has shingled tracks.
pub(crate) fn shingled(member: &Member) -> Option<&'static raidlab_inventory::smr::Model> {
    raidlab_inventory::smr::find(member.model.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::whole_disk;

    #[test]
    fn partitions_lead_to_their_disk() {
        for (device, disk) in [
            ("sdb1", "sdb"),
            ("hdc5", "hdc"),
            ("nvme0n1p2", "nvme0n1"),
            ("nvme0n1", "nvme0n1"),
            ("ada2p1", "ada2"),
            ("ada2s1a", "ada2"),
            ("ada2", "ada2"),
            ("ad10", "ad10"),
            ("mirror/m0", "mirror/m0"),
            ("loop3", "loop3"),
            ("", ""),
        ] {
            assert_eq!(whole_disk(device), disk, "{device}");
        }
    }
}
