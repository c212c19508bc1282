//! Reading of the settings of each file system.

use super::FileSystemSpec;
use crate::array::Result;
use crate::array::steps::Reader;
use raidlab_shell::{Command, Target};

/// Reads `dumpe2fs -h`: one `name: value` per line.
pub(super) fn ext(
    spec: &FileSystemSpec,
    reader: &mut Reader<'_>,
    target: &dyn Target,
    device: &str,
) -> Result<()> {
    let dump = Command::reads("dumpe2fs", ["-h", device]);
    let dump = target.run(&dump)?.stdout;
    let source = "dumpe2fs -h";
    let value = |wanted: &str| {
        dump.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value.trim().to_owned())
    };
    let nothing = || "nothing".to_owned();
    let block = spec.stripe.map(|_| super::EXT_BLOCK);
    let stride = spec.stripe.map(|stripe| stripe.chunk.0 / super::EXT_BLOCK);
    let width = spec
        .stripe
        .zip(stride)
        .map(|(stripe, stride)| stride * u64::from(stripe.data_members));
    for (name, label, asked) in [
        ("block_size", "Block size", block),
        ("stride", "RAID stride", stride),
        ("stripe_width", "RAID stripe width", width),
        ("features", "Filesystem features", None),
        ("journal_size", "Total journal size", None),
    ] {
        reader.found(name, asked, value(label).unwrap_or_else(nothing), source);
    }
    Ok(())
}

/// Reads `xfs_info`: `name=value` in sections; its stripe is in blocks.
pub(super) fn xfs(
    spec: &FileSystemSpec,
    reader: &mut Reader<'_>,
    target: &dyn Target,
    folder: &str,
) -> Result<()> {
    let info = target.run(&Command::reads("xfs_info", [folder]))?.stdout;
    let source = "xfs_info";
    let value = |section: &str, name: &str| xfs_value(&info, section, name);
    let block: u64 = value("data", "bsize")
        .and_then(|text| text.parse().ok())
        .unwrap_or(super::EXT_BLOCK);
    let unit = spec.stripe.map(|stripe| stripe.chunk.0 / block.max(1));
    let width = spec
        .stripe
        .zip(unit)
        .map(|(stripe, unit)| unit * u64::from(stripe.data_members));
    for (name, section, field, asked) in [
        ("block_size", "data", "bsize", None),
        ("stride", "data", "sunit", unit),
        ("stripe_width", "data", "swidth", width),
        ("allocation_groups", "meta-data", "agcount", None),
        ("sector_size", "meta-data", "sectsz", None),
        ("checksums", "meta-data", "crc", None),
        ("log_blocks", "log", "blocks", None),
    ] {
        let found = value(section, field).unwrap_or("nothing");
        reader.found(name, asked, found, source);
    }
    Ok(())
}

/// The value of a name in a section, which continues over lines that begin with blanks.
fn xfs_value<'a>(info: &'a str, section: &str, wanted: &str) -> Option<&'a str> {
    let mut inside = false;
    for line in info.lines() {
        if !line.starts_with(' ') {
            inside = line.split([' ', '=']).next() == Some(section);
        }
        if !inside {
            continue;
        }
        let words = line.split([' ', ',']);
        let found = words
            .filter_map(|word| word.split_once('='))
            .find(|(name, _)| *name == wanted);
        if let Some((_, value)) = found {
            return Some(value);
        }
    }
    None
}

/// Reads `tunefs -p`, which prints to standard error: `tunefs: soft updates: (-n) enabled`.
pub(super) fn ufs(reader: &mut Reader<'_>, target: &dyn Target, device: &str) -> Result<()> {
    let output = target.run(&Command::reads("tunefs", ["-p", device]))?;
    let value = |wanted: &str| {
        output
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("tunefs: ")?.split_once(": ("))
            .find(|(name, _)| *name == wanted)
            .and_then(|(_, rest)| Some(rest.split_once(')')?.1.trim().to_owned()))
            .unwrap_or_else(|| "nothing".to_owned())
    };
    let source = "tunefs -p";
    reader.found(
        "soft_updates",
        Some("enabled"),
        value("soft updates"),
        source,
    );
    for (name, label) in [
        ("soft_update_journal", "soft update journaling"),
        ("gjournal", "gjournal"),
        ("trim", "trim"),
    ] {
        reader.found(name, None::<&str>, value(label), source);
    }
    Ok(())
}
