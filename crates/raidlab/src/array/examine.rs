//! The command `raidlab examine`: it shows a member's metadata.

use super::devices::{Named, Opening, brief_nest, named};
use super::{Bare, host_name, look_at};
use crate::failure::{Failure, Kind, report};
use crate::output;
use clap::Args;
use raidlab_array::AssembleOptions;
use raidlab_metadata::detail::{
    DetailOptions, brief, examine, examine_bad_blocks, examine_bitmap, utc,
};
use raidlab_metadata::{MemberMetadata, ProbeError, examine_member};
use raidlab_serve::array::read_bitmap;
use raidlab_serve::member::Member;
use raidlab_store::text::visible_path;
use std::path::PathBuf;

/// Arguments of `raidlab examine`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Print one ARRAY line for mdadm.conf instead of everything.
    #[arg(short = 'Y', long, conflicts_with_all = ["bitmap", "bad_blocks"])]
    brief: bool,

    /// With --brief: print levels, sizes and devices too.
    #[arg(short, long, requires = "brief", conflicts_with_all = ["bitmap", "bad_blocks"])]
    verbose: bool,

    /// Print the write-intent bitmap of a member, or of a bitmap file.
    #[arg(short = 'X', long, conflicts_with = "bad_blocks")]
    bitmap: bool,

    /// Print the bad-block log.
    #[arg(long)]
    bad_blocks: bool,

    /// Files or block devices, or arrays of them in brackets.
    #[arg(required = true, value_name = "DEVICE")]
    devices: Vec<PathBuf>,
}

/// Prints what the md metadata of files or devices says.
///
/// # Errors
/// When a device cannot be read or has no sound superblock; the others are printed.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let host = host_name();
    let (mut members, mut last) = (Vec::new(), None);
    let nest = brief_nest(false);
    let how = AssembleOptions {
        read_only: true,
        run_degraded: true,
        ..AssembleOptions::default()
    };
    let opening = Opening {
        nest: &nest,
        how: &how,
        file: &look_at,
    };
    for device in named(&arguments.devices)? {
        let shown = opening.open(&device, &mut |_| {}).and_then(|member| {
            let name = match &device {
                Named::File(path) => visible_path(path),
                Named::Array(_) => visible_path(member.path()),
            };
            one(arguments, &member, &name, &host).map(|shown| (name, shown))
        });
        match shown {
            Ok((_, Shown::Text(text))) => output::print(&text)?,
            Ok((name, Shown::Brief(metadata))) => members.push((name, *metadata)),
            Err(failure) => {
                if let Some(earlier) = last.replace(failure) {
                    report(&earlier);
                }
            }
        }
    }
    let members: Vec<_> = members
        .iter()
        .map(|(name, one)| (name.as_str(), one))
        .collect();
    output::print(&brief(&members, arguments.verbose))?;
    last.map_or(Ok(()), Err)
}

/// The output for a device: printed at once, or together with the others in the end.
enum Shown {
    Text(String),
    Brief(Box<MemberMetadata>),
}

fn one(arguments: &Arguments, member: &Member, name: &str, host: &str) -> Result<Shown, Failure> {
    if arguments.bitmap
        && let Ok(file) = read_bitmap(member)
    {
        // A file with an external bitmap begins with the bitmap.
        return Ok(Shown::Text(examine_bitmap(&file.bitmap, name)));
    }
    let size = member.size().to_bytes();
    let options = DetailOptions {
        device: name,
        size,
        host,
        time: utc,
    };
    let refused = |source| {
        let name = name.to_owned();
        Failure::new(Kind::Input, ExamineError { name, source })
    };
    let (metadata, fault) = examine_member(&mut Bare(member), size).map_err(refused)?;
    if let Some(source) = fault {
        // Damaged metadata are shown as mdadm shows them; readers of lists and areas take
        // them for true.
        if arguments.brief || arguments.bitmap || arguments.bad_blocks {
            return Err(refused(source));
        }
        output::print(&examine(&metadata, &options))?;
        let name = name.to_owned();
        return Err(Failure::new(Kind::Input, DamagedError { name, source }));
    }
    if arguments.brief {
        return Ok(Shown::Brief(Box::new(metadata)));
    }
    text(arguments, &metadata, &options).map(Shown::Text)
}

fn text(
    arguments: &Arguments,
    metadata: &MemberMetadata,
    options: &DetailOptions<'_>,
) -> Result<String, Failure> {
    if arguments.bad_blocks {
        return Ok(examine_bad_blocks(metadata, options.device));
    }
    if !arguments.bitmap {
        return Ok(examine(metadata, options));
    }
    match (&metadata.bitmap, &metadata.bitmap_error) {
        (Some(bitmap), _) => Ok(examine_bitmap(bitmap, options.device)),
        (None, Some(error)) => Err(Failure::new(Kind::Input, *error)),
        (None, None) => {
            let words = format!("{} has no internal bitmap", options.device);
            Err(Failure::words(Kind::Input, words))
        }
    }
}

/// The error that a device has no usable metadata.
#[derive(Debug, thiserror::Error)]
#[error("cannot examine {name}")]
struct ExamineError {
    name: String,
    #[source]
    source: ProbeError,
}

/// The error that a device's metadata were shown, though they are not sound.
#[derive(Debug, thiserror::Error)]
#[error("{name} is damaged: no array takes it")]
struct DamagedError {
    name: String,
    #[source]
    source: ProbeError,
}
