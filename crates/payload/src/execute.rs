//! Execution of the compute steps on bytes, in whatever store keeps them.
//!
//! Every range of a step is borrowed before a byte changes: a step that names a missing buffer,
//! overlaps itself or has impossible parameters is an error and damages nothing.

use crate::PayloadError;
use raidlab_array::{BufferId, ComputeStep, ScratchId, StepId, StepResult};
use raidlab_parity::MAXIMUM_DATA;
use raidlab_units::{SECTOR_BYTES, Sectors};

const SECTOR: usize = SECTOR_BYTES as usize;

/// The ranges that a step borrows: `bytes` bytes of each buffer. [`BufferId::None`] is no range.
#[derive(Debug, Clone, Copy)]
pub struct Ranges<'a> {
    /// The number of bytes borrowed from each buffer.
    pub bytes: usize,
    /// The buffers that are only read.
    pub reads: &'a [BufferId],
    /// The buffers that are read and written.
    pub writes: &'a [BufferId],
}

/// A store of the bytes that steps work on.
pub trait Store {
    /// The error of a step that cannot be executed.
    type Error: From<PayloadError>;

    /// Makes a scratch buffer; its bytes are undefined.
    ///
    /// # Errors
    /// When a buffer of this name exists, or there is no memory.
    fn allocate(&mut self, scratch: ScratchId, count: Sectors) -> Result<(), Self::Error>;

    /// Frees a scratch buffer.
    ///
    /// # Errors
    /// When no buffer of this name exists.
    fn release(&mut self, scratch: ScratchId) -> Result<(), Self::Error>;

    /// Calls a closure with ranges of buffers, all borrowed at once: those that are read and those
    /// that are written, in the order of `ranges`, `None` for [`BufferId::None`].
    ///
    /// # Errors
    /// When a range does not exist, or one that is written overlaps another.
    fn with<R>(
        &mut self,
        ranges: Ranges<'_>,
        work: impl FnOnce(&[Option<&[u8]>], &mut [Option<&mut [u8]>]) -> R,
    ) -> Result<R, Self::Error>;
}

/// Executes one step. Returns the result of a step that has an id.
///
/// # Errors
/// When the step names buffers that are missing, too short or overlapping, or has impossible
/// parameters. No byte has changed then.
pub fn execute<S: Store>(
    store: &mut S,
    step: &ComputeStep,
) -> Result<Option<(StepId, StepResult)>, S::Error> {
    match step {
        ComputeStep::Allocate { scratch, count } => store.allocate(*scratch, *count)?,
        ComputeStep::Release { scratch } => store.release(*scratch)?,
        ComputeStep::Fill { to, bytes } => {
            if !bytes.len().is_multiple_of(SECTOR) {
                return Err(PayloadError::NotWholeSectors(bytes.len()).into());
            }
            write(store, *to, bytes.len(), |to| to.copy_from_slice(bytes))?;
        }
        ComputeStep::Zero { to, count } => write(store, *to, length(*count), |to| to.fill(0))?,
        ComputeStep::Copy { from, to, count } => copy(store, *from, *to, *count)?,
        ComputeStep::Fetch { id, from, count } => {
            let bytes = read(store, *from, length(*count), <[u8]>::to_vec)?;
            return Ok(Some((*id, StepResult::Bytes(bytes))));
        }
        ComputeStep::Compare {
            id,
            left,
            right,
            count,
        } => return Ok(Some((*id, compare(store, [*left, *right], *count)?))),
        ComputeStep::Generate { count, data, p, q } => generate(store, *count, data, [*p, *q])?,
        ComputeStep::Update {
            count,
            index,
            old,
            new,
            p,
            q,
        } => update(store, *count, usize::from(*index), [*old, *new], [*p, *q])?,
        ComputeStep::Recover {
            count,
            data,
            p,
            q,
            lost,
        } => recover(store, *count, data, [*p, *q], lost)?,
        ComputeStep::Check {
            id,
            count,
            data,
            p,
            q,
        } => return Ok(Some((*id, check(store, *count, data, [*p, *q])?))),
        ComputeStep::Seal {
            header,
            header_bytes,
            at,
            seal_at,
            blocks,
        } => seal(store, *header, [*header_bytes, *at, *seal_at], blocks)?,
    }
    Ok(None)
}

/// Returns the buffer, or an error where the step names none.
fn needed(buffer: BufferId) -> Result<BufferId, PayloadError> {
    match buffer {
        BufferId::None => Err(PayloadError::NoBuffer),
        buffer => Ok(buffer),
    }
}

fn read<S: Store, R>(
    store: &mut S,
    buffer: BufferId,
    bytes: usize,
    work: impl FnOnce(&[u8]) -> R,
) -> Result<R, S::Error> {
    let ranges = Ranges {
        bytes,
        reads: &[needed(buffer)?],
        writes: &[],
    };
    store.with(ranges, |reads, _| work(reads[0].unwrap_or_default()))
}

fn write<S: Store>(
    store: &mut S,
    buffer: BufferId,
    bytes: usize,
    work: impl FnOnce(&mut [u8]),
) -> Result<(), S::Error> {
    let ranges = Ranges {
        bytes,
        reads: &[],
        writes: &[needed(buffer)?],
    };
    store.with(ranges, |_, writes| {
        work(writes[0].as_deref_mut().unwrap_or_default());
    })
}

fn copy<S: Store>(
    store: &mut S,
    from: BufferId,
    to: BufferId,
    count: Sectors,
) -> Result<(), S::Error> {
    let ranges = Ranges {
        bytes: length(count),
        reads: &[needed(from)?],
        writes: &[needed(to)?],
    };
    store.with(ranges, |reads, writes| {
        if let ([Some(from)], [Some(to)]) = (reads, writes) {
            to.copy_from_slice(from);
        }
    })
}

fn compare<S: Store>(
    store: &mut S,
    [left, right]: [BufferId; 2],
    count: Sectors,
) -> Result<StepResult, S::Error> {
    let ranges = Ranges {
        bytes: length(count),
        reads: &[needed(left)?, needed(right)?],
        writes: &[],
    };
    store.with(ranges, |reads, _| {
        let different = match reads {
            [Some(left), Some(right)] => different_sectors(left, right),
            _ => Sectors::ZERO,
        };
        StepResult::Compared { different }
    })
}

fn generate<S: Store>(
    store: &mut S,
    count: Sectors,
    data: &[BufferId],
    parity: [BufferId; 2],
) -> Result<(), S::Error> {
    let ranges = Ranges {
        bytes: length(count),
        reads: few(data)?,
        writes: &parity,
    };
    store.with(ranges, |data, parity| match parity {
        [Some(p), Some(q)] => raidlab_parity::generate_pq(data, p, q),
        [Some(p), None] => raidlab_parity::generate_p(data, p),
        [None, Some(q)] => raidlab_parity::generate_q(data, q),
        _ => {}
    })
}

/// Updates parity for one data block that changes; `blocks`: its content before and after.
fn update<S: Store>(
    store: &mut S,
    count: Sectors,
    index: usize,
    blocks: [BufferId; 2],
    parity: [BufferId; 2],
) -> Result<(), S::Error> {
    if index >= MAXIMUM_DATA {
        return Err(PayloadError::TooManyBlocks(index + 1).into());
    }
    let ranges = Ranges {
        bytes: length(count),
        reads: &blocks,
        writes: &parity,
    };
    store.with(ranges, |blocks, parity| {
        if let ([old, new], [p, q]) = (blocks, parity) {
            raidlab_parity::update(index, *old, *new, p.as_deref_mut(), q.as_deref_mut());
        }
    })
}

fn recover<S: Store>(
    store: &mut S,
    count: Sectors,
    data: &[BufferId],
    parity: [BufferId; 2],
    lost: &[u8],
) -> Result<(), S::Error> {
    let blocks: Vec<BufferId> = few(data)?.iter().copied().chain(parity).collect();
    let ranges = Ranges {
        bytes: length(count),
        reads: &[],
        writes: &blocks,
    };
    let lost: Vec<usize> = lost.iter().map(|&block| usize::from(block)).collect();
    let recovered = store.with(ranges, |_, blocks| {
        let (data, parity) = blocks.split_at_mut(data.len());
        match parity {
            [p, q] => raidlab_parity::recover(data, p.as_deref_mut(), q.as_deref_mut(), &lost),
            _ => Ok(()),
        }
    })?;
    Ok(recovered.map_err(PayloadError::Recover)?)
}

fn check<S: Store>(
    store: &mut S,
    count: Sectors,
    data: &[BufferId],
    [p, q]: [BufferId; 2],
) -> Result<StepResult, S::Error> {
    let parity = [needed(p)?, q];
    let blocks: Vec<BufferId> = few(data)?.iter().copied().chain(parity).collect();
    let ranges = Ranges {
        bytes: length(count),
        reads: &blocks,
        writes: &[],
    };
    let found = store.with(ranges, |blocks, _| {
        let (data, parity) = blocks.split_at(data.len());
        let p = parity[0].unwrap_or_default();
        raidlab_parity::check(data, p, parity[1])
    })?;
    Ok(StepResult::Parity {
        p_different: Sectors(found.p_sectors),
        q_different: Sectors(found.q_sectors),
    })
}

/// Writes checksums and the seal into a header; `numbers`: the bytes of the header, the offset of
/// the checksums in it, the offset of the seal.
fn seal<S: Store>(
    store: &mut S,
    header: BufferId,
    numbers: [u32; 3],
    blocks: &[(BufferId, Sectors)],
) -> Result<(), S::Error> {
    let [bytes, at, seal_at] = numbers.map(|number| number as usize);
    let end = blocks.len().saturating_mul(4).saturating_add(at);
    if end > bytes || seal_at.saturating_add(4) > bytes {
        let refused = PayloadError::Seal {
            blocks: blocks.len(),
            header_bytes: numbers[0],
        };
        return Err(refused.into());
    }
    // Everything is looked up before the header changes.
    read(store, header, bytes, |_| ())?;
    let mut checksums = Vec::with_capacity(blocks.len() * 4);
    for &(block, count) in blocks {
        let checksum = read(store, block, length(count), crc32c::crc32c)?;
        checksums.extend(checksum.to_le_bytes());
    }
    write(store, header, bytes, |header| {
        header[at..end].copy_from_slice(&checksums);
        header[seal_at..seal_at + 4].fill(0);
        let seal = crc32c::crc32c(header);
        header[seal_at..seal_at + 4].copy_from_slice(&seal.to_le_bytes());
    })
}

/// Returns the data blocks, or an error if there are more than the parity code allows.
fn few(data: &[BufferId]) -> Result<&[BufferId], PayloadError> {
    match data.len() {
        0..=MAXIMUM_DATA => Ok(data),
        count => Err(PayloadError::TooManyBlocks(count)),
    }
}

fn different_sectors(left: &[u8], right: &[u8]) -> Sectors {
    if left == right {
        return Sectors::ZERO;
    }
    let sectors = left.chunks(SECTOR).zip(right.chunks(SECTOR));
    Sectors(sectors.filter(|(left, right)| left != right).count() as u64)
}

/// Returns the bytes in this many sectors; a number larger than any buffer if that overflows.
#[must_use]
pub fn length(count: Sectors) -> usize {
    usize::try_from(count.0.saturating_mul(SECTOR_BYTES)).unwrap_or(usize::MAX)
}
