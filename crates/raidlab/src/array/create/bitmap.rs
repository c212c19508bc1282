//! The place of a new array's bitmap: nowhere, on its members, or in a file of its own.

use super::{Arguments, ConsistencyPolicy};
use crate::failure::{Failure, Kind};
use raidlab_geometry::Level;
use raidlab_metadata::create::BitmapChoice;
use raidlab_store::output::{Found, OutputError, check_distinct, look};
use raidlab_units::Sectors;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The place of an array's bitmap as it is typed: nowhere, on the members, or in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BitmapWord {
    None,
    Internal,
    File(PathBuf),
}

pub(super) fn bitmap(text: &str) -> Result<BitmapWord, String> {
    match text {
        "none" => Ok(BitmapWord::None),
        "internal" => Ok(BitmapWord::Internal),
        file if file.contains('/') => Ok(BitmapWord::File(file.into())),
        _ => Err("use internal, none, or a file name with a slash, as in ./FILE".to_owned()),
    }
}

/// The place of the bitmap, if the options for it and for consistency agree.
pub(super) fn bitmap_choice(arguments: &Arguments) -> Result<BitmapChoice, Failure> {
    use ConsistencyPolicy as Policy;
    let level = arguments.level;
    let policy = arguments.consistency_policy;
    let chunk = arguments.bitmap_chunk.map(Sectors::to_bytes);
    let wants = matches!(
        arguments.bitmap,
        Some(BitmapWord::Internal | BitmapWord::File(_))
    );
    let refused = |words: String| Err(Failure::words(Kind::Usage, words));
    match (policy, &arguments.bitmap) {
        (Some(Policy::Log), _) if level.parity_count() == 0 => {
            return refused(format!("{level} has no parity and needs no log"));
        }
        (Some(Policy::Resync), _) if matches!(level, Level::Linear | Level::Raid0) => {
            return refused(format!("{level} has nothing to resync"));
        }
        (Some(Policy::Bitmap), Some(BitmapWord::None)) => {
            return refused("`--consistency-policy bitmap` needs a bitmap".to_owned());
        }
        (Some(Policy::Resync), _) if wants || chunk.is_some() => {
            return refused("`--consistency-policy resync` has no bitmap".to_owned());
        }
        (_, Some(BitmapWord::None)) if chunk.is_some() => {
            return refused("`--bitmap-chunk` needs a bitmap".to_owned());
        }
        _ => {}
    }
    Ok(match &arguments.bitmap {
        Some(BitmapWord::Internal) => BitmapChoice::Internal(chunk),
        Some(BitmapWord::File(_)) => BitmapChoice::External(chunk),
        Some(BitmapWord::None) => BitmapChoice::None,
        None if chunk.is_some() || policy == Some(Policy::Bitmap) => BitmapChoice::Internal(chunk),
        None if policy == Some(Policy::Resync) => BitmapChoice::None,
        None => BitmapChoice::Automatic,
    })
}

/// Checks that the bitmap's file is no member, and that nothing but a file stands in its place.
pub(super) fn check_bitmap_file(arguments: &Arguments) -> Result<(), Failure> {
    let Some(BitmapWord::File(path)) = &arguments.bitmap else {
        return Ok(());
    };
    for device in &arguments.devices {
        check_distinct(&[("DEVICE", device), ("--bitmap", path)])?;
    }
    match look(path).map_err(|source| Failure::write_file(path, source))? {
        Found::Nothing | Found::Empty | Found::Ours(_) | Found::Database(_) | Found::Other => {
            Ok(())
        }
        found => {
            let path = path.clone();
            Err(OutputError::Taken { path, found }.into())
        }
    }
}

/// Writes the bitmap before the members: an array without its bitmap is resynced wholly.
pub(super) fn write_bitmap(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |source| Failure::write_file(path, source);
    let file = File::create(path).map_err(failed)?;
    file.write_all_at(bytes, 0).map_err(failed)?;
    file.sync_all().map_err(failed)
}
