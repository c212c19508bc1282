//! The command `raidlab create`: it makes an array of files or devices.

mod bitmap;
mod content;

use self::bitmap::{BitmapWord, bitmap, bitmap_choice, check_bitmap_file, write_bitmap};
use self::content::what_is_lost;
use super::devices::{Named, Opening, brief_nest, named};
use super::{claim, host_name, look_at, mdadm_size, named_once, new_uuid, parse_uuid};
use crate::failure::{Failure, Kind};
use crate::output;
use clap::{Args, ValueEnum};
use raidlab_array::AssembleOptions;
use raidlab_geometry::{Layout, Level};
use raidlab_metadata::create::{
    CreateError, CreatePlan, CreateSpec, InitialSync, LEAST_LOG_AREA, LogReserve, MemberSize,
    PlannedMember, plan,
};
use raidlab_metadata::{DeviceFlags, Uuid, Version, full_name};
use raidlab_serve::array::{Assembled, Nest, versions_on};
use raidlab_serve::control::check_name;
use raidlab_serve::member::Member;
use raidlab_store::text::visible_path;
use raidlab_units::Sectors;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time that inner arrays may take to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// The words on how to consent to the loss of the members' content.
const CONSENTS: &str = "`--run` consents";

/// The word for a missing member.
const MISSING: &str = "missing";

/// What keeps parity and data in step through a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConsistencyPolicy {
    /// Every stripe write goes to a log on the members first, so there is no write hole.
    /// The log is raidlab's own, in a gap that md does not use. Default for levels 4, 5, 6.
    Log,
    /// A write-intent bitmap says what is to be resynced after a crash.
    Bitmap,
    /// The whole array is resynced after a crash.
    Resync,
}

/// Arguments of `raidlab create`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The level: linear, 0, 1, 4, 5, 6 or 10.
    #[arg(short, long)]
    level: Level,

    /// How many members the array has, spares not counted.
    #[arg(short = 'n', long, value_name = "N")]
    raid_devices: usize,

    /// How many more members are spares.
    #[arg(short = 'x', long, value_name = "N", default_value_t = 0)]
    spare_devices: usize,

    /// The size of a chunk. Default: 512 KiB.
    #[arg(short, long, value_name = "SIZE", value_parser = mdadm_size)]
    chunk: Option<Sectors>,

    /// The layout, in mdadm's words, such as left-symmetric, ra, n2, f2, o3 or original.
    /// Default: left-symmetric at levels 5 and 6, n2 at level 10.
    #[arg(short = 'p', long)]
    layout: Option<String>,

    /// How much of each member is used. Default: `max`, all that the smallest one offers.
    #[arg(short = 'z', long, value_name = "SIZE", value_parser = used_size)]
    size: Option<UsedSize>,

    /// The array's name.
    #[arg(short = 'N', long, default_value = "raidlab")]
    name: String,

    /// The host that is written into the array's name. Default: this one.
    #[arg(long, value_name = "NAME")]
    homehost: Option<String>,

    /// The array's UUID; default: a new one.
    #[arg(short, long, value_parser = parse_uuid)]
    uuid: Option<Uuid>,

    /// The version of md's superblock: 1.0, 1.1 or 1.2.
    #[arg(short = 'e', long, default_value = "1.2", value_parser = version)]
    metadata: Version,

    /// The write-intent bitmap: internal, none, or a file for it, whose name has a
    /// slash in it. Default: internal if more than 100 GiB of each member are
    /// used, otherwise none.
    #[arg(short, long, value_name = "WORD", value_parser = bitmap)]
    bitmap: Option<BitmapWord>,

    /// How much data one bit of the bitmap stands for. Without --bitmap, this makes
    /// an internal bitmap.
    #[arg(long, value_name = "SIZE", value_parser = mdadm_size)]
    bitmap_chunk: Option<Sectors>,

    /// What keeps parity and data in step through a crash.
    #[arg(short = 'k', long, value_enum)]
    consistency_policy: Option<ConsistencyPolicy>,

    /// Where the data begin on each member.
    #[arg(long, value_name = "SIZE", value_parser = mdadm_size)]
    data_offset: Option<Sectors>,

    /// Assume that copies and parity agree already, and do no first resync.
    #[arg(long)]
    assume_clean: bool,

    /// Overwrite members that have content, without asking.
    #[arg(short = 'R', long)]
    run: bool,

    /// Say what would be written, and write nothing. What would be refused is refused.
    #[arg(long)]
    dry_run: bool,

    /// Files or block devices in the order of the slots, or arrays of them in
    /// brackets; `missing` leaves a slot empty.
    #[arg(required = true, value_name = "DEVICE")]
    devices: Vec<PathBuf>,
}

/// How much of each member is used.
#[derive(Debug, Clone, Copy)]
enum UsedSize {
    /// All that the smallest member offers, as without a word.
    Max,
    /// This much of each.
    Of(Sectors),
}

fn used_size(text: &str) -> Result<UsedSize, String> {
    match text {
        "max" => Ok(UsedSize::Max),
        size => mdadm_size(size).map(UsedSize::Of),
    }
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1" | "1.2" | "default" => Ok(Version::V1_2),
        "1.1" => Ok(Version::V1_1),
        "1.0" => Ok(Version::V1_0),
        "0.90" => Err("0.90 is read, not written: use 1.0, 1.1 or 1.2".to_owned()),
        _ => Err("use 1.0, 1.1 or 1.2".to_owned()),
    }
}

/// Makes the array.
///
/// # Errors
/// When a member cannot be used, has content and there is no consent, or the
/// array cannot be made so.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    check_name(&arguments.name).map_err(Failure::usage)?;
    let wanted = arguments
        .raid_devices
        .saturating_add(arguments.spare_devices);
    let devices = named(&arguments.devices)?;
    if devices.len() != wanted {
        let words = format!(
            "{} devices are named, {} slots and {} spares need {wanted}",
            devices.len(),
            arguments.raid_devices,
            arguments.spare_devices
        );
        return Err(Failure::words(Kind::Usage, words)
            .help("the word `missing` stands for a member that is not there"));
    }
    check_members(arguments)?;
    check_bitmap_file(arguments)?;
    let nest = brief_nest(!arguments.dry_run);
    let claimed = claim_all(arguments, &devices, &nest)?;
    let spec = specification(arguments)?;
    let plan = planned(arguments, &spec, &claimed)?;
    let report = words(arguments, &claimed, &spec, &plan);
    let bitmap = match &arguments.bitmap {
        Some(BitmapWord::File(path)) => Some(path),
        _ => None,
    };
    // Another user of the file, as a member or as an array's bitmap, would lose it.
    let old_file = bitmap.filter(|path| path.exists() && !arguments.dry_run);
    let bitmap_claim = old_file.map(|path| claim(path)).transpose()?;
    let lost = what_is_lost(&claimed, bitmap).filter(|_| !arguments.run);
    if arguments.dry_run {
        output::print(&format!("{report}nothing was written\n"))?;
        // The answer is that without the option, where the user cannot be asked.
        let refused = |lost| Failure::words(Kind::Usage, lost).help(CONSENTS);
        return lost.map_or(Ok(()), |lost| Err(refused(lost)));
    }
    if let Some(lost) = lost {
        output::consent(&lost, CONSENTS)?;
    }
    if let (Some(path), Some(bitmap)) = (bitmap, &plan.external_bitmap) {
        write_bitmap(path, &bitmap.encode())?;
    }
    for planned in &plan.members {
        if let Some(member) = &claimed[planned.index] {
            write(member, &planned.writes)?;
        }
    }
    drop((claimed, bitmap_claim));
    if !nest.stop(PATIENCE) {
        output::say("warning: an inner array could not be stopped in time");
    }
    output::print(&report)
}

/// Plans the new array, and checks that a log that was asked for by name has room.
fn planned(
    arguments: &Arguments,
    spec: &CreateSpec,
    claimed: &[Option<Member>],
) -> Result<CreatePlan, Failure> {
    let plan = plan(spec, &sizes(claimed)?).map_err(|error| not_made(error, claimed))?;
    let wants_log = arguments.consistency_policy == Some(ConsistencyPolicy::Log);
    if wants_log && plan.members.iter().any(|it| log_room(it).is_none()) {
        let words = "there is no room for the log between the metadata and the data";
        let help = "leave out `--data-offset`, or make it larger";
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    Ok(plan)
}

/// The room for raidlab's log on a member, where it is enough for one.
fn log_room(member: &PlannedMember) -> Option<Sectors> {
    let room = Sectors(member.log_area.end.0 - member.log_area.start.0);
    (room >= LEAST_LOG_AREA).then_some(room)
}

/// The failure for an array that cannot be made; the member at fault is named as the user named it.
fn not_made(error: CreateError, claimed: &[Option<Member>]) -> Failure {
    let named = |index: usize| {
        let member = claimed.get(index).and_then(Option::as_ref);
        member.map_or_else(String::new, |member| visible_path(member.path()))
    };
    let (words, help) = match error {
        CreateError::TooSmall { index, size } => (
            format!("{} has {size}, which is too little", named(index)),
            "a member has room for the metadata and a chunk at least",
        ),
        CreateError::SmallerThanSize {
            index,
            offered,
            wanted,
        } => {
            let [offered, wanted] = [offered, wanted].map(Sectors::to_bytes);
            let name = named(index);
            let words = format!("{name} offers {offered} for data, less than {wanted}");
            (words, "choose a smaller `--size`, or leave that member out")
        }
        CreateError::NoCopy(_) => {
            let help = "name a device for one of them instead of `missing`";
            return Failure::usage(error).help(help);
        }
        error => return Failure::usage(error),
    };
    Failure::words(Kind::Usage, words).help(help)
}

/// Claims the members, and starts those that are arrays; nothing is written to them in a dry run.
fn claim_all(
    arguments: &Arguments,
    devices: &[Named],
    nest: &Arc<Nest>,
) -> Result<Vec<Option<Member>>, Failure> {
    let how = AssembleOptions {
        read_only: arguments.dry_run,
        ..AssembleOptions::default()
    };
    let opening = Opening {
        nest,
        how: &how,
        file: if arguments.dry_run { &look_at } else { &claim },
    };
    let mut at_end = None;
    let mut note = |assembled: &Assembled| {
        let is_at_end = assembled.assembly.members.iter().any(|member| {
            let version = member.candidate.metadata.superblock.version;
            matches!(version, Version::V1_0 | Version::V0_90)
        });
        if is_at_end {
            at_end = Some(assembled.assembly.array.name.clone());
        }
    };
    let claim_one = |device: &Named| match device {
        Named::File(path) if path.as_os_str() == MISSING => Ok(None),
        device => opening.open(device, &mut note).map(Some),
    };
    let claimed = devices.iter().map(claim_one);
    let claimed = claimed.collect::<Result<Vec<_>, _>>()?;
    // Both kinds of superblocks would be found on the same devices.
    match at_end.filter(|_| arguments.metadata != Version::V1_0) {
        Some(name) => {
            let words = format!(
                "the superblocks of `{name}` are at the end of its members: those of an array on \
                 it would be taken for theirs"
            );
            Err(Failure::words(Kind::Usage, words).help("make it with `--metadata 1.2`"))
        }
        None => Ok(claimed),
    }
}

fn sizes(claimed: &[Option<Member>]) -> Result<Vec<Option<MemberSize>>, Failure> {
    let size = |member: &Member| {
        Ok(MemberSize {
            size: member.size().to_bytes(),
            device_uuid: new_uuid()?,
            flags: DeviceFlags::default(),
            found: versions_on(member),
        })
    };
    claimed
        .iter()
        .map(|member| member.as_ref().map(size).transpose())
        .collect()
}

fn specification(arguments: &Arguments) -> Result<CreateSpec, Failure> {
    let level = arguments.level;
    let size = match arguments.size {
        Some(UsedSize::Of(size)) => Some(size),
        Some(UsedSize::Max) | None => None,
    };
    if size.is_some() && matches!(level, Level::Linear | Level::Raid0) {
        let words = format!("{level} uses all of each member and takes no `--size`");
        return Err(Failure::words(Kind::Usage, words));
    }
    let layout = arguments
        .layout
        .as_deref()
        .map(|name| Layout::parse(level, name))
        .transpose()
        .map_err(Failure::usage)?;
    let host = host(arguments)?;
    let policy = arguments.consistency_policy;
    let log = match policy {
        None | Some(ConsistencyPolicy::Log) => LogReserve::Automatic,
        Some(_) if level.parity_count() > 0 => LogReserve::TooLittle,
        Some(_) => LogReserve::None,
    };
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Ok(CreateSpec {
        version: arguments.metadata,
        level,
        layout,
        chunk: arguments.chunk,
        raid_disks: arguments.raid_devices,
        array_uuid: arguments.uuid.map_or_else(new_uuid, Ok)?,
        host,
        name: arguments.name.clone(),
        created: since.as_secs(),
        size,
        data_offset: arguments.data_offset,
        bitmap: bitmap_choice(arguments)?,
        initial: if arguments.assume_clean {
            InitialSync::AssumeClean
        } else {
            InitialSync::Resync
        },
        log,
        bad_block_log: true,
    })
}

/// The host in the array's name. This machine's own is left out where it has no place, as mdadm
/// does; one that was asked for is not.
fn host(arguments: &Arguments) -> Result<String, Failure> {
    let Some(host) = &arguments.homehost else {
        return Ok(host_name());
    };
    let shown = format!("{host}:{}", arguments.name);
    if host.is_empty() || full_name(host, &arguments.name) == shown {
        return Ok(host.clone());
    }
    let words = format!("`{shown}` cannot be an array's name: at most 31 bytes, and one `:`");
    Err(Failure::words(Kind::Usage, words).help("`--homehost ''` leaves the host out"))
}

fn write(member: &Member, writes: &[raidlab_metadata::create::Write]) -> Result<(), Failure> {
    let failed = |source| Failure::write_file(member.path(), source);
    for write in writes {
        // A superblock must not be there before the data that it speaks of.
        let written = member.write_all_at(&write.bytes, write.offset.0);
        written.map_err(failed)?;
        member.flush().map_err(failed)?;
    }
    Ok(())
}

/// Checks that no member is named twice.
fn check_members(arguments: &Arguments) -> Result<(), Failure> {
    let words = [MISSING, "[", "]"].map(Path::new);
    let files = arguments.devices.iter().map(PathBuf::as_path);
    named_once(files.filter(|path| !words.contains(path)))
}

fn words(
    arguments: &Arguments,
    claimed: &[Option<Member>],
    spec: &CreateSpec,
    plan: &CreatePlan,
) -> String {
    let mut text = String::new();
    let layout = spec.layout.unwrap_or(Layout::default_of(spec.level));
    let _ = write!(text, "{} `{}`", spec.level, spec.name);
    if layout != Layout::None {
        let _ = write!(text, ", layout {layout}");
    }
    let _ = writeln!(
        text,
        ", {} slots, {}",
        spec.raid_disks,
        plan.array_size.to_bytes()
    );
    let _ = match (&plan.bitmap, &plan.external_bitmap, &arguments.bitmap) {
        (Some(bitmap), ..) => writeln!(
            text,
            "  bitmap: internal, a bit for {}",
            bitmap.superblock.chunk
        ),
        (None, Some(bitmap), Some(BitmapWord::File(path))) => writeln!(
            text,
            "  bitmap: in {}, a bit for {}",
            visible_path(path),
            bitmap.superblock.chunk
        ),
        _ => writeln!(text, "  bitmap: none"),
    };
    let has_parity = spec.level.parity_count() > 0;
    for member in &plan.members {
        let _ = write!(
            text,
            "  {}: {}, data from {}",
            visible_path(
                claimed[member.index]
                    .as_ref()
                    .map_or(Path::new(MISSING), Member::path)
            ),
            role(&member.superblock),
            member.superblock.data_offset.to_bytes(),
        );
        if let Some(room) = log_room(member).filter(|_| has_parity) {
            let _ = write!(text, ", room for the log {}", room.to_bytes());
        }
        text.push('\n');
    }
    let has_log = plan.members.iter().all(|it| log_room(it).is_some());
    text.push_str(match (spec.log, has_log) {
        _ if !has_parity => "",
        (LogReserve::TooLittle, true) => {
            "  a log is kept in that room unless it is served with `--no-log`\n"
        }
        (LogReserve::Automatic, false) => {
            "  no room for the log: after a crash of the degraded array, data may be lost\n"
        }
        _ => "",
    });
    text
}

fn role(superblock: &raidlab_metadata::Superblock) -> String {
    match superblock.role() {
        raidlab_metadata::Role::Slot(slot) => format!("slot {slot}"),
        _ => "spare".to_owned(),
    }
}
