//! Facts about an array and its file system once they are built: the settings in force, and the
//! same in the words that the audit reads.
//!
//! Systems name settings in their own words. The few that rules need whatever the system (a chunk,
//! a stripe, compression) are translated here, and nowhere else.

use crate::error::HostError;
use crate::facts::Facts;
use crate::sampler::kernel_name;
use crate::session::Session;
use raidlab_inventory::smart;
use raidlab_shell::{Command, Target, TargetError};
use raidlab_store::{Records, Setting, fact};
use raidlab_systems::{Access, ArraySpec, FileSystemKind, ReadBack};

/// The source of facts that the bench did not read anywhere, but knows from the suite.
const SUITE: &str = "suite";

/// The settings in force, whether the requested ones are, and the facts of the subject.
///
/// # Errors
/// When they cannot be read.
pub fn settings(session: &Session<'_>) -> Result<Records, HostError> {
    let mut facts = Facts::new(session.scope());
    let system = session.system();
    let array = system.settings(&session.target, &session.built)?;
    let mut filesystem = Vec::new();
    if let (Some(spec), Access::Device(device)) = (
        &session.experiment.filesystem,
        system.access(&session.built),
    ) {
        filesystem = spec.settings(&session.target, &device, &session.place.path)?;
    }
    of_array(
        &mut facts,
        session.spec,
        session.built.members.len(),
        &array,
    );
    of_filesystem(&mut facts, session, &filesystem);
    of_members(&mut facts, session);
    let capacity = session.place.capacity_bytes;
    facts.add(fact::ARRAY_CAPACITY_BYTES, capacity, "bytes", "measured");
    version(&mut facts, session)?;
    let mut settings = Vec::new();
    for setting in array.into_iter().chain(filesystem) {
        use fact::outcome::{APPLIED, ASKED, FOUND};
        let source = setting.source.as_str();
        let name = |what| fact::setting(&setting.name, what);
        facts.add(name(FOUND), &setting.found, "", source);
        if let Some(asked) = &setting.asked {
            facts.add(name(ASKED), asked, "", source);
            facts.flag(name(APPLIED), setting.applied, source);
        }
        let scope = format!("subject {}", session.experiment.subject.name);
        settings.push(Setting::new(
            scope,
            setting.name,
            setting.found,
            setting.source,
        ));
    }
    settings.extend(session.experiment.subject.queue_settings().cloned());
    Ok(Records {
        settings,
        observations: facts.all,
        ..Records::default()
    })
}

fn of_array(facts: &mut Facts, spec: &ArraySpec, count: usize, found: &[ReadBack]) {
    facts.add(fact::ARRAY_SYSTEM, spec.name(), "", SUITE);
    facts.maybe(fact::ARRAY_LEVEL, spec.level(), "", SUITE);
    let written = spec.member_bytes_per_byte(count);
    facts.maybe(fact::ARRAY_MEMBER_BYTES_PER_BYTE, written, "", SUITE);
    facts.flag(fact::ARRAY_COPIES_ON_WRITE, spec.copies_on_write(), SUITE);
    // The system's word, ours, and its unit.
    let words = [
        ("chunk", fact::ARRAY_CHUNK_BYTES, "bytes"),
        ("stripe_size", fact::ARRAY_CHUNK_BYTES, "bytes"),
        ("stripesize", fact::ARRAY_CHUNK_BYTES, "bytes"),
        ("bitmap", fact::ARRAY_BITMAP, ""),
        ("recordsize", fact::ARRAY_RECORD_BYTES, "bytes"),
        ("volblocksize", fact::ARRAY_RECORD_BYTES, "bytes"),
        ("compression", fact::COMPRESSION, ""),
        ("compressratio", fact::COMPRESS_RATIO, ""),
        ("dedup", fact::DEDUPLICATION, ""),
        ("dedupratio", fact::DEDUPLICATION_RATIO, ""),
        ("capacity", fact::FILL_PERCENT, "percent"),
        ("fragmentation", fact::FRAGMENTATION_PERCENT, "percent"),
    ];
    for setting in found {
        let Some((_, name, unit)) = words.iter().find(|(word, ..)| *word == setting.name) else {
            continue;
        };
        // Without `-p` zpool appends a unit.
        let value = setting.found.trim_end_matches(['%', 'x']);
        let number = !unit.is_empty() || name.ends_with("ratio");
        if number && value.parse::<f64>().is_err() {
            continue;
        }
        facts.add(
            *name,
            if number { value } else { &setting.found },
            unit,
            &setting.source,
        );
        if *name == fact::ARRAY_CHUNK_BYTES
            && let Some(data) = spec.data_members(count)
            && let Ok(chunk) = value.parse::<u64>()
        {
            let stripe = chunk.saturating_mul(data);
            facts.add(fact::ARRAY_STRIPE_BYTES, stripe, "bytes", &setting.source);
        }
    }
    if !spec.auxiliary().is_empty() {
        facts.add(fact::ARRAY_AUXILIARY, spec.auxiliary(), "", SUITE);
    }
    facts.maybe(fact::COMPRESSION, spec.compression(), "", SUITE);
    if !spec.tells_deduplication() {
        facts.add(fact::DEDUPLICATION, "off", "", SUITE);
    }
}

fn of_filesystem(facts: &mut Facts, session: &Session<'_>, found: &[ReadBack]) {
    let own = session.spec.has_own_file_system();
    let Some(spec) = &session.experiment.filesystem else {
        // btrfs and ZFS have no tables that are written later in the background.
        facts.flag(fact::FILESYSTEM_LAZY, false, SUITE);
        if own && session.place.is_folder {
            facts.add(fact::FILESYSTEM_TYPE, session.spec.name(), "", SUITE);
        } else if !own {
            facts.add(fact::COMPRESSION, "off", "", SUITE);
        }
        return;
    };
    facts.add(fact::FILESYSTEM_TYPE, spec.kind.name(), "", SUITE);
    facts.add(fact::FILESYSTEM_OPTIONS, spec.options.join(" "), "", SUITE);
    let lazy = spec.options.iter().any(|word| word.contains("lazy_"));
    // Unless the suite says otherwise, all tables are written at once.
    if !lazy {
        facts.flag(fact::FILESYSTEM_LAZY, false, SUITE);
    }
    let compresses = spec.kind == FileSystemKind::Btrfs
        && spec
            .mount_options
            .iter()
            .any(|option| option.starts_with("compress"));
    if !own && !compresses {
        facts.add(fact::COMPRESSION, "off", "", SUITE);
    }
    let number = |name: &str| {
        let setting = found.iter().find(|setting| setting.name == name)?;
        let text = setting.found.as_str();
        if text == "nothing" {
            Some(0)
        } else {
            text.parse::<u64>().ok()
        }
    };
    // ext4 and XFS both count the width in blocks.
    if let (Some(width), Some(block)) = (number("stripe_width"), number("block_size")) {
        let bytes = width.saturating_mul(block);
        facts.add(fact::FILESYSTEM_STRIPE_BYTES, bytes, "bytes", "file system");
    }
}

fn of_members(facts: &mut Facts, session: &Session<'_>) {
    let count = session.built.members.len();
    for (slot, member) in session.built.members.iter().enumerate() {
        let device = kernel_name(&member.device);
        facts.add(fact::member_device(slot), device, "", "chosen");
        if let Some(role) = session.spec.role(count, slot) {
            facts.add(fact::member_role(slot), role, "", SUITE);
        }
        let signatures: Vec<&str> = session
            .machine
            .disks()
            .iter()
            .filter(|chosen| chosen.disk.device == member.device)
            .flat_map(|chosen| &chosen.signatures)
            .map(|signature| signature.kind.as_str())
            .collect();
        if !signatures.is_empty() {
            let name = fact::disk(device, fact::disk_property::STALE_SIGNATURES);
            facts.add(name, signatures.join(" "), "", "chosen");
        }
    }
}

/// Adds the version of the program that built the array; for ZFS that of the module, where
/// it is reported.
fn version(facts: &mut Facts, session: &Session<'_>) -> Result<(), HostError> {
    let Some((program, arguments)) = session.spec.version_command() else {
        return Ok(());
    };
    let command = Command::reads(program, arguments.iter().copied());
    let output = match session.target.output(&command) {
        Ok(output) => output,
        Err(TargetError::NoProgram { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let found = number_in(&output.stdout).or_else(|| number_in(&output.stderr));
    facts.maybe(fact::version(program), found, "", &command.to_string());
    Ok(())
}

/// The first version number of a text: `4.2` of `mdadm - v4.2 - 2021-12-30`,
/// `2.1.11-1` of `zfs-2.1.11-1`.
fn number_in(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| {
        let number = word.trim_start_matches(|c: char| !c.is_ascii_digit());
        let digits = number.split(|c: char| !c.is_ascii_digit());
        let dotted = number.contains('.') && digits.take(2).all(|digits| !digits.is_empty());
        dotted.then_some(number)
    })
}

/// The health that the members' drives report at the end of an experiment. A drive that cannot be
/// queried reports nothing: the measurements stand.
pub fn health(session: &Session<'_>) -> Records {
    let mut facts = Facts::new(session.scope());
    for member in &session.built.members {
        // A loop device has no drive's health.
        if member.backing.is_some() {
            continue;
        }
        let Ok(Some(smart)) = smart::smart(&session.target, &member.device) else {
            continue;
        };
        use fact::disk_property as property;
        let device = kernel_name(&member.device);
        let source = "smartctl";
        for (name, value) in [
            (property::REALLOCATED_SECTORS, smart.reallocated_sectors),
            (property::PENDING_SECTORS, smart.pending_sectors),
            (property::UNCORRECTABLE_SECTORS, smart.uncorrectable_sectors),
            (property::CHECKSUM_ERRORS, smart.checksum_errors),
            (property::MEDIA_ERRORS, smart.media_errors),
        ] {
            facts.maybe(fact::disk(device, name), value, "", source);
        }
        let degrees = smart.temperature_celsius;
        let name = fact::disk(device, property::TEMPERATURE_CELSIUS);
        facts.maybe(name, degrees, "°C", source);
    }
    Records {
        observations: facts.all,
        ..Records::default()
    }
}

#[cfg(test)]
mod tests;
