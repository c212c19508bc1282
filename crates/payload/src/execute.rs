//! The compute steps on bytes.

use crate::PayloadError;
use crate::buffers::{Buffers, length};
use crate::pieces::{Overlap, borrow};
use raidlab_array::{BufferId, ComputeStep, StepId, StepResult};
use raidlab_parity::MAXIMUM_DATA;
use raidlab_units::{SECTOR_BYTES, Sectors};

const SECTOR: usize = SECTOR_BYTES as usize;

impl Buffers {
    /// Executes one step. Gives back the result of a step with an id.
    ///
    /// # Errors
    /// When the step names buffers that are not there, too short, or overlap,
    /// or asks for what cannot be. No byte has changed then.
    pub fn execute(
        &mut self,
        step: &ComputeStep,
    ) -> Result<Option<(StepId, StepResult)>, PayloadError> {
        match step {
            ComputeStep::Allocate { scratch, count } => self.allocate(*scratch, *count)?,
            ComputeStep::Release { scratch } => self.release(*scratch)?,
            ComputeStep::Fill { to, bytes } => self.fill(*to, bytes)?,
            ComputeStep::Zero { to, count } => self.slice_mut(*to, *count)?.fill(0),
            ComputeStep::Copy { from, to, count } => self.copy(*from, *to, *count)?,
            ComputeStep::Fetch { id, from, count } => {
                let bytes = self.slice(*from, *count)?.to_vec();
                return Ok(Some((*id, StepResult::Bytes(bytes))));
            }
            ComputeStep::Compare {
                id,
                left,
                right,
                count,
            } => {
                let left = self.slice(*left, *count)?;
                let different = different_sectors(left, self.slice(*right, *count)?);
                return Ok(Some((*id, StepResult::Compared { different })));
            }
            ComputeStep::Generate { count, data, p, q } => self.generate(*count, data, *p, *q)?,
            ComputeStep::Update {
                count,
                index,
                old,
                new,
                p,
                q,
            } => self.update(*count, *index, [*old, *new, *p, *q])?,
            ComputeStep::Recover {
                count,
                data,
                p,
                q,
                lost,
            } => self.recover(*count, data, *p, *q, lost)?,
            ComputeStep::Check {
                id,
                count,
                data,
                p,
                q,
            } => return Ok(Some((*id, self.check(*count, data, *p, *q)?))),
            ComputeStep::Seal {
                header,
                header_bytes,
                at,
                seal_at,
                blocks,
            } => self.seal(*header, *header_bytes, *at, *seal_at, blocks)?,
        }
        Ok(None)
    }

    fn fill(&mut self, to: BufferId, bytes: &[u8]) -> Result<(), PayloadError> {
        if !bytes.len().is_multiple_of(SECTOR) {
            return Err(PayloadError::NotWholeSectors(bytes.len()));
        }
        let count = Sectors((bytes.len() / SECTOR) as u64);
        self.slice_mut(to, count)?.copy_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId, count: Sectors) -> Result<(), PayloadError> {
        // Both are needed, so `None` is an error here.
        self.region(from, 0)?;
        self.region(to, 0)?;
        let mut pieces = self.borrow(count, [from, to])?;
        if let [Some(from), Some(to)] = &mut pieces[..] {
            to.copy_from_slice(from);
        }
        Ok(())
    }

    fn generate(
        &mut self,
        count: Sectors,
        data: &[BufferId],
        p: BufferId,
        q: BufferId,
    ) -> Result<(), PayloadError> {
        let mut pieces = self.borrow_stripe(count, data, p, q)?;
        let (data, parity) = pieces.split_at_mut(data.len());
        match parity {
            [Some(p), Some(q)] => raidlab_parity::generate_pq(data, p, q),
            [Some(p), None] => raidlab_parity::generate_p(data, p),
            [None, Some(q)] => raidlab_parity::generate_q(data, q),
            _ => {}
        }
        Ok(())
    }

    /// `buffers`: the data block before and after, P, Q.
    fn update(
        &mut self,
        count: Sectors,
        index: u8,
        buffers: [BufferId; 4],
    ) -> Result<(), PayloadError> {
        let index = usize::from(index);
        if index >= MAXIMUM_DATA {
            return Err(PayloadError::TooManyBlocks(index + 1));
        }
        let mut pieces = self.borrow(count, buffers)?;
        if let [old, new, p, q] = &mut pieces[..] {
            raidlab_parity::update(
                index,
                old.as_deref(),
                new.as_deref(),
                p.as_deref_mut(),
                q.as_deref_mut(),
            );
        }
        Ok(())
    }

    fn recover(
        &mut self,
        count: Sectors,
        data: &[BufferId],
        p: BufferId,
        q: BufferId,
        lost: &[u8],
    ) -> Result<(), PayloadError> {
        let mut pieces = self.borrow_stripe(count, data, p, q)?;
        let (data, parity) = pieces.split_at_mut(data.len());
        if let [p, q] = parity {
            let lost = lost.iter().map(|&block| usize::from(block));
            let lost: Vec<usize> = lost.collect();
            raidlab_parity::recover(data, p.as_deref_mut(), q.as_deref_mut(), &lost)?;
        }
        Ok(())
    }

    fn check(
        &mut self,
        count: Sectors,
        data: &[BufferId],
        p: BufferId,
        q: BufferId,
    ) -> Result<StepResult, PayloadError> {
        let pieces = self.borrow_stripe(count, data, p, q)?;
        let (data, parity) = pieces.split_at(data.len());
        let [Some(p), q] = parity else {
            return Err(PayloadError::NoBuffer);
        };
        let found = raidlab_parity::check(data, p, q.as_deref());
        Ok(StepResult::Parity {
            p_different: Sectors(found.p_sectors),
            q_different: Sectors(found.q_sectors),
            culprit: found.culprit.and_then(|block| u8::try_from(block).ok()),
        })
    }

    fn seal(
        &mut self,
        header: BufferId,
        header_bytes: u32,
        at: u32,
        seal_at: u32,
        blocks: &[(BufferId, Sectors)],
    ) -> Result<(), PayloadError> {
        let bytes = header_bytes as usize;
        let (at, seal_at) = (at as usize, seal_at as usize);
        let end = blocks.len().saturating_mul(4).saturating_add(at);
        if end > bytes || seal_at + 4 > bytes {
            return Err(PayloadError::Seal {
                blocks: blocks.len(),
                header_bytes,
            });
        }
        // Every block is looked up before the header changes.
        self.region(header, bytes)?;
        let mut checksums = Vec::with_capacity(blocks.len() * 4);
        for &(block, count) in blocks {
            let block = self.slice(block, count)?;
            checksums.extend(crc32c::crc32c(block).to_le_bytes());
        }
        let count = Sectors(u64::from(header_bytes).div_ceil(SECTOR_BYTES));
        let header = &mut self.slice_mut(header, count)?[..bytes];
        header[at..end].copy_from_slice(&checksums);
        header[seal_at..seal_at + 4].fill(0);
        let seal = crc32c::crc32c(header);
        header[seal_at..seal_at + 4].copy_from_slice(&seal.to_le_bytes());
        Ok(())
    }

    /// The bytes of all data blocks, then P and Q; `None` for a buffer that is
    /// `None`.
    fn borrow_stripe(
        &mut self,
        count: Sectors,
        data: &[BufferId],
        p: BufferId,
        q: BufferId,
    ) -> Result<Vec<Option<&mut [u8]>>, PayloadError> {
        if data.len() > MAXIMUM_DATA {
            return Err(PayloadError::TooManyBlocks(data.len()));
        }
        self.borrow(count, data.iter().copied().chain([p, q]))
    }

    /// The bytes of several buffers at once.
    fn borrow(
        &mut self,
        count: Sectors,
        buffers: impl IntoIterator<Item = BufferId, IntoIter: Clone>,
    ) -> Result<Vec<Option<&mut [u8]>>, PayloadError> {
        let bytes = length(count);
        let mut regions = std::mem::take(&mut self.regions);
        regions.clear();
        let buffers = buffers.into_iter();
        let mut places = 0;
        for buffer in buffers.clone() {
            if buffer != BufferId::None {
                let mut region = self.region(buffer, bytes)?;
                region.place = places;
                regions.push(region);
            }
            places += 1;
        }
        self.regions = regions;
        borrow(&mut self.entries, &mut self.regions, places as usize).map_err(
            |Overlap(first, second)| {
                let [first, second] = [first, second].map(|place| {
                    let buffer = buffers.clone().nth(place as usize);
                    buffer.unwrap_or(BufferId::None)
                });
                PayloadError::Overlap(first, second)
            },
        )
    }
}

fn different_sectors(left: &[u8], right: &[u8]) -> Sectors {
    if left == right {
        return Sectors::ZERO;
    }
    let sectors = left.chunks(SECTOR).zip(right.chunks(SECTOR));
    Sectors(sectors.filter(|(left, right)| left != right).count() as u64)
}
