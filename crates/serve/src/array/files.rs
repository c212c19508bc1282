//! md's metadata on real files: read, created, assembled, and the write log replayed, before an
//! array runs. Here commands block; no other command is under way yet.

use crate::export::{BufferError, BufferPool};
use crate::member::Member;
use raidlab_array::mutation::{self, Mutation};
use raidlab_array::stripe_log::LogError;
use raidlab_array::{
    AssembleError, AssembleOptions, Assembly, BitmapFile, Candidate, EXTERNAL_BITMAP,
    LogSuperblock, Slot,
};
use raidlab_metadata::create::{CreatePlan, Write};
use raidlab_metadata::{
    Bitmap, BitmapError, BitmapSuperblock, MAXIMUM_BITMAP_BYTES, MemberMetadata, ProbeError,
    ReadAt, read_member,
};
use raidlab_units::{Bytes, SECTOR_BYTES, Sectors, visible_path};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The reason why an array cannot be assembled from files.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A device without md's metadata, or with damaged metadata.
    #[error("cannot use {}", visible_path(.path))]
    Examine {
        /// The file or device.
        path: PathBuf,
        /// The reason why it cannot be examined.
        #[source]
        source: ProbeError,
    },
    /// The devices do not form an array.
    #[error("cannot assemble")]
    Assemble(#[from] AssembleError),
    /// A bitmap's file without a bitmap, or with a damaged one.
    #[error("cannot use the bitmap {}", visible_path(.path))]
    Bitmap {
        /// The file with the bitmap.
        path: PathBuf,
        /// The reason why the bitmap cannot be used.
        #[source]
        source: BitmapError,
    },
    /// The logs contradict each other.
    #[error("cannot replay the write log")]
    Log(#[source] LogError),
    /// A device could not be read or written.
    #[error("cannot {what} {}", visible_path(.path))]
    Io {
        /// The failed operation: `read` or `write`.
        what: &'static str,
        /// The file or device.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Two devices whose paths are displayed identically.
    #[error("two devices are shown as {0}: give one of them another name")]
    OneName(String),
    /// A plan with more members than files.
    #[error("the plan has a member {0}, for which no file was given")]
    NoFile(usize),
}

/// The devices of an assembled array, ready to run.
#[derive(Debug)]
pub struct Assembled {
    /// The array that the devices form.
    pub assembly: Assembly,
    /// Each device of the array, by its handle.
    pub files: Vec<(Slot, Member)>,
    /// The number of writes that were repeated from the log.
    pub replayed: usize,
}

/// A reader of a member at any place and length, also past the page cache.
struct Reader<'a>(&'a Member);

impl ReadAt for Reader<'_> {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let start = offset.0 / SECTOR_BYTES * SECTOR_BYTES;
        let skip = usize::try_from(offset.0 - start).unwrap_or(0);
        let whole = (skip + bytes.len()).next_multiple_of(SECTOR_BYTES as usize);
        let mut buffer = pool_buffer(whole)?;
        self.0.read_exact_at(&mut buffer, start)?;
        bytes.copy_from_slice(&buffer[skip..skip + bytes.len()]);
        Ok(())
    }
}

fn pool_buffer(bytes: usize) -> io::Result<crate::export::Buffer> {
    /// Buffers for an assembly, which reads a dozen small pieces of each member, and long ones
    /// of their logs.
    static POOL: LazyLock<BufferPool> = LazyLock::new(|| BufferPool::new(1 << 20));
    POOL.take(bytes).map_err(|error| match error {
        BufferError::TooLong(_) => io::Error::new(io::ErrorKind::InvalidInput, error),
        BufferError::OutOfMemory(_) => io::Error::new(io::ErrorKind::OutOfMemory, error),
    })
}

/// Reads md's metadata on a device, its write log's superblock included.
///
/// # Errors
/// When it has no usable metadata, or cannot be read.
pub fn read_candidate(file: &Member) -> Result<Candidate, FilesError> {
    let failed = |source| FilesError::Examine {
        path: file.path().to_owned(),
        source,
    };
    let metadata = read_member(&mut Reader(file), file.size().to_bytes()).map_err(failed)?;
    Ok(Candidate {
        name: visible_path(file.path()),
        size: file.size(),
        log: read_log(file, &metadata),
        metadata,
        rotational: file.rotational(),
    })
}

fn read_log(file: &Member, metadata: &MemberMetadata) -> Option<LogSuperblock> {
    LogSuperblock::read(metadata, |start, bytes| {
        Reader(file).read_at(start.to_bytes(), bytes).is_ok()
    })
}

/// Finds the write logs of members whose own bitmap cannot be read. The log begins where the bitmap
/// ends, and the newest bitmap of the array tells where that is: all copies have one length.
/// Without that log no block computed from parity could be trusted after a crash.
fn find_hidden_logs(candidates: &mut [Candidate], files: &[Member]) {
    let mut bitmaps: Vec<(u64, BitmapSuperblock)> = candidates
        .iter()
        .filter_map(|it| {
            let bitmap = it.metadata.bitmap.as_ref()?;
            Some((it.metadata.superblock.events, bitmap.superblock))
        })
        .collect();
    bitmaps.sort_by_key(|(events, _)| std::cmp::Reverse(*events));
    for (candidate, file) in candidates.iter_mut().zip(files) {
        let metadata = &mut candidate.metadata;
        let array = metadata.superblock.array_uuid;
        let same = bitmaps.iter().find(|(_, it)| it.array_uuid == array);
        if let Some((_, bitmap)) = same
            && metadata.bitmap_error.is_some()
            && metadata.log_area.is_empty()
        {
            metadata.log_area = metadata.superblock.log_area(Some(bitmap));
            candidate.log = read_log(file, metadata);
        }
    }
}

/// Returns the versions of md superblocks that a device may have, sound or not.
#[must_use]
pub fn versions_on(file: &Member) -> Vec<raidlab_metadata::Version> {
    raidlab_metadata::versions_present(&mut Reader(file), file.size().to_bytes())
}

/// Writes the plan of a new array: `files` in the order of the plan's members. It is
/// durable on return.
///
/// # Errors
/// When a device cannot be written.
pub fn create(plan: &CreatePlan, files: &[Member]) -> Result<(), FilesError> {
    for member in &plan.members {
        let file = files
            .get(member.index)
            .ok_or(FilesError::NoFile(member.index))?;
        write_all(file, &member.writes)?;
    }
    Ok(())
}

/// Writes in order and makes the writes durable: each before the next one, so that a superblock is
/// never present before the areas that it describes.
///
/// # Errors
/// When the device cannot be written.
pub fn write_all(file: &Member, writes: &[Write]) -> Result<(), FilesError> {
    for write in writes {
        write_at(file, write.offset.0, &write.bytes)?;
        if !mutation::is(Mutation::CreateUnflushed) {
            flush(file)?;
        }
    }
    Ok(())
}

fn write_at(file: &Member, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
    pool_buffer(bytes.len())
        .and_then(|mut buffer| {
            buffer.copy_from_slice(bytes);
            file.write_all_at(&buffer, offset)
        })
        .map_err(|source| io_error("write", file, source))
}

fn flush(file: &Member) -> Result<(), FilesError> {
    file.flush()
        .map_err(|source| io_error("write", file, source))
}

fn io_error(what: &'static str, file: &Member, source: io::Error) -> FilesError {
    FilesError::Io {
        what,
        path: file.path().to_owned(),
        source,
    }
}

/// Reads a bitmap from a file of its own.
///
/// # Errors
/// When the file cannot be read or has no bitmap.
pub fn read_bitmap(file: &Member) -> Result<BitmapFile, FilesError> {
    // The file may be of any length; more than the largest bitmap is never read.
    let room = Bytes(file.size().to_bytes().0.min(MAXIMUM_BITMAP_BYTES));
    let mut bytes = vec![0; usize::try_from(room.0).unwrap_or(0)];
    for (piece, start) in bytes.chunks_mut(1 << 20).zip((0..).step_by(1 << 20)) {
        Reader(file)
            .read_at(Bytes(start), piece)
            .map_err(|source| io_error("read", file, source))?;
    }
    let bitmap = Bitmap::decode(&bytes).map_err(|source| FilesError::Bitmap {
        path: file.path().to_owned(),
        source,
    })?;
    Ok(BitmapFile { bitmap, room })
}

/// Determines the array that devices form, without changing anything. `bitmap`: the file with the
/// array's bitmap, if that is not on the members.
///
/// # Errors
/// When they do not form an array that may be started.
pub fn decide(
    files: &[Member],
    bitmap: Option<&Member>,
    options: &AssembleOptions,
) -> Result<Assembly, FilesError> {
    let options = &AssembleOptions {
        external_bitmap: bitmap.map(read_bitmap).transpose()?,
        ..options.clone()
    };
    let candidates = files.iter().map(read_candidate);
    let mut candidates = candidates.collect::<Result<Vec<_>, _>>()?;
    find_hidden_logs(&mut candidates, files);
    // A member is found again by its name, so names have to differ.
    let mut names = BTreeSet::new();
    if let Some(twin) = candidates.iter().find(|one| !names.insert(&one.name)) {
        return Err(FilesError::OneName(twin.name.clone()));
    }
    Ok(Assembly::decide(candidates, options)?)
}

/// Assembles an array as [`decide`] does, and replays its write log.
///
/// # Errors
/// When the devices do not form an array that may be started, or the replay fails; a replay
/// may be repeated.
pub fn assemble(
    files: &[Member],
    bitmap: Option<&Member>,
    options: &AssembleOptions,
) -> Result<Assembled, FilesError> {
    let mut assembly = decide(files, bitmap, options)?;
    let file_of = |name: &str| {
        let named = |file: &&Member| visible_path(file.path()) == name;
        files.iter().find(named)
    };
    let members: Vec<&Member> = assembly
        .members
        .iter()
        .filter_map(|member| file_of(&member.candidate.name))
        .collect();
    let mut replayed = 0;
    // Without a replay the data are correct if no member is missing; the core refuses to start an
    // array that lacks one.
    if !options.read_only {
        replayed = replay(&mut assembly, &members)?;
        assembly.replayed();
    }
    let handles = assembly.handles();
    let files = handles
        .into_iter()
        .filter_map(|(handle, name)| Some((handle, file_of(name)?.clone())))
        .chain(bitmap.map(|file| (EXTERNAL_BITMAP, file.clone())))
        .collect();
    Ok(Assembled {
        assembly,
        files,
        replayed,
    })
}

/// Replays the write log; `members` as in the assembly.
fn replay(assembly: &mut Assembly, members: &[&Member]) -> Result<usize, FilesError> {
    let Some(needed) = &assembly.replay else {
        return Ok(0);
    };
    let mut rings = Vec::new();
    for log in &needed.logs {
        let file = members[log.member];
        let count = Sectors(log.ring.end.0.saturating_sub(log.ring.start.0));
        let mut ring = vec![0; super::payloads::length(count)];
        // A ring may be longer than the longest buffer.
        for (piece, start) in ring.chunks_mut(1 << 20).zip((0_u64..).step_by(1 << 20)) {
            let offset = Bytes(log.ring.start.to_bytes().0 + start);
            Reader(file)
                .read_at(offset, piece)
                .map_err(|source| io_error("read", file, source))?;
        }
        rings.push(ring);
    }
    let logs: Vec<usize> = needed.logs.iter().map(|log| log.member).collect();
    let replay = assembly.replay(&rings).map_err(FilesError::Log)?;
    let count = replay.writes.len();
    for step in [replay.absences, replay.writes] {
        for write in step {
            let offset = write.start.to_bytes().0;
            for (piece, start) in write.bytes.chunks(1 << 20).zip((0_u64..).step_by(1 << 20)) {
                write_at(members[write.member], offset + start, piece)?;
            }
        }
        for member in &logs {
            flush(members[*member])?;
        }
    }
    Ok(count)
}
