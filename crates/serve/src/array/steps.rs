//! The core's compute steps, on borrowed ranges.
//!
//! Every range of a step is borrowed before a byte changes: a step that names
//! what does not exist, overlaps itself or touches what a member command is
//! moving is an error, not damage.

use super::payloads::{PayloadError, Payloads, length};
use crate::member::{Exclusive, Shared};
use raidlab_array::{BufferId, ComputeStep, StepId, StepResult};
use raidlab_parity::MAXIMUM_DATA;
use raidlab_units::{SECTOR_BYTES, Sectors};

const SECTOR: usize = SECTOR_BYTES as usize;

/// What a step found, for one that has an id.
pub(crate) type Found = Option<(StepId, StepResult)>;

impl Payloads {
    /// Executes a step.
    pub(crate) fn execute(&mut self, step: &ComputeStep) -> Result<Found, PayloadError> {
        match step {
            ComputeStep::Allocate { scratch, count } => self.allocate(*scratch, *count)?,
            ComputeStep::Release { scratch } => self.release(*scratch)?,
            ComputeStep::Fill { to, bytes } => {
                self.write(*to, bytes.len())?.copy_from_slice(bytes);
            }
            ComputeStep::Fetch { id, from, count } => {
                let bytes = self.read(*from, length(*count))?.to_vec();
                return Ok(Some((*id, StepResult::Bytes(bytes))));
            }
            ComputeStep::Zero { to, count } => self.write(*to, length(*count))?.fill(0),
            ComputeStep::Copy { from, to, count } => {
                let from = self.read(*from, length(*count))?;
                self.write(*to, length(*count))?.copy_from_slice(&from);
            }
            ComputeStep::Compare {
                id,
                left,
                right,
                count,
            } => {
                let left = self.read(*left, length(*count))?;
                let right = self.read(*right, length(*count))?;
                let different = different_sectors(&left, &right);
                return Ok(Some((*id, StepResult::Compared { different })));
            }
            ComputeStep::Generate { count, data, p, q } => {
                self.generate(length(*count), data, *p, *q)?;
            }
            ComputeStep::Update {
                count,
                index,
                old,
                new,
                p,
                q,
            } => self.update(length(*count), usize::from(*index), [*old, *new, *p, *q])?,
            ComputeStep::Recover {
                count,
                data,
                p,
                q,
                lost,
            } => self.recover(length(*count), data, *p, *q, lost)?,
            ComputeStep::Check {
                id,
                count,
                data,
                p,
                q,
            } => return Ok(Some((*id, self.check(length(*count), data, *p, *q)?))),
            ComputeStep::Seal {
                header,
                header_bytes,
                at,
                seal_at,
                blocks,
            } => {
                let [bytes, at, seal_at] =
                    [header_bytes, at, seal_at].map(|&number| number as usize);
                self.seal(*header, bytes, at, seal_at, blocks)?;
            }
        }
        Ok(None)
    }

    fn generate(
        &self,
        bytes: usize,
        data: &[BufferId],
        p: BufferId,
        q: BufferId,
    ) -> Result<(), PayloadError> {
        let data = self.read_all(bytes, data)?;
        let data = slices(&data);
        let mut p = self.write_if(bytes, p)?;
        let mut q = self.write_if(bytes, q)?;
        match (&mut p, &mut q) {
            (Some(p), Some(q)) => raidlab_parity::generate_pq(&data, p, q),
            (Some(p), None) => raidlab_parity::generate_p(&data, p),
            (None, Some(q)) => raidlab_parity::generate_q(&data, q),
            (None, None) => {}
        }
        Ok(())
    }

    /// `buffers`: the data block before and after, P, Q.
    fn update(
        &self,
        bytes: usize,
        index: usize,
        buffers: [BufferId; 4],
    ) -> Result<(), PayloadError> {
        if index >= MAXIMUM_DATA {
            return Err(PayloadError::Step("an exponent beyond the largest"));
        }
        let [old, new, p, q] = buffers;
        let old = self.read_if(bytes, old)?;
        let new = self.read_if(bytes, new)?;
        let mut p = self.write_if(bytes, p)?;
        let mut q = self.write_if(bytes, q)?;
        raidlab_parity::update(
            index,
            old.as_deref(),
            new.as_deref(),
            p.as_deref_mut(),
            q.as_deref_mut(),
        );
        Ok(())
    }

    fn recover(
        &self,
        bytes: usize,
        data: &[BufferId],
        p: BufferId,
        q: BufferId,
        lost: &[u8],
    ) -> Result<(), PayloadError> {
        if data.len() > MAXIMUM_DATA {
            return Err(PayloadError::Step("more data blocks than parity can bear"));
        }
        let blocks = data.iter().map(|&block| self.write_if(bytes, block));
        let mut blocks = blocks.collect::<Result<Vec<_>, _>>()?;
        let mut p = self.write_if(bytes, p)?;
        let mut q = self.write_if(bytes, q)?;
        let mut blocks: Vec<_> = blocks.iter_mut().map(Option::as_deref_mut).collect();
        let lost: Vec<_> = lost.iter().map(|&block| usize::from(block)).collect();
        raidlab_parity::recover(&mut blocks, p.as_deref_mut(), q.as_deref_mut(), &lost)
            .map_err(PayloadError::Recover)
    }

    fn check(
        &self,
        bytes: usize,
        data: &[BufferId],
        p: BufferId,
        q: BufferId,
    ) -> Result<StepResult, PayloadError> {
        let data = self.read_all(bytes, data)?;
        let p = self.read(p, bytes)?;
        let q = self.read_if(bytes, q)?;
        let found = raidlab_parity::check(&slices(&data), &p, q.as_deref());
        Ok(StepResult::Parity {
            p_different: Sectors(found.p_sectors),
            q_different: Sectors(found.q_sectors),
            culprit: found.culprit.and_then(|block| u8::try_from(block).ok()),
        })
    }

    fn seal(
        &self,
        header: BufferId,
        bytes: usize,
        at: usize,
        seal_at: usize,
        blocks: &[(BufferId, Sectors)],
    ) -> Result<(), PayloadError> {
        let end = blocks.len().saturating_mul(4).saturating_add(at);
        if end > bytes || seal_at.saturating_add(4) > bytes {
            return Err(PayloadError::Step("checksums that do not fit their header"));
        }
        let mut checksums = Vec::with_capacity(blocks.len() * 4);
        for &(block, count) in blocks {
            let block = self.read(block, length(count))?;
            checksums.extend(crc32c::crc32c(&block).to_le_bytes());
        }
        let mut header = self.write(header, bytes)?;
        header[at..end].copy_from_slice(&checksums);
        header[seal_at..seal_at + 4].fill(0);
        let seal = crc32c::crc32c(&header);
        header[seal_at..seal_at + 4].copy_from_slice(&seal.to_le_bytes());
        Ok(())
    }

    fn read_all(
        &self,
        bytes: usize,
        data: &[BufferId],
    ) -> Result<Vec<Option<Shared>>, PayloadError> {
        if data.len() > MAXIMUM_DATA {
            return Err(PayloadError::Step("more data blocks than parity can bear"));
        }
        data.iter()
            .map(|&block| self.read_if(bytes, block))
            .collect()
    }

    fn read_if(&self, bytes: usize, buffer: BufferId) -> Result<Option<Shared>, PayloadError> {
        match buffer {
            BufferId::None => Ok(None),
            buffer => self.read(buffer, bytes).map(Some),
        }
    }

    fn write_if(&self, bytes: usize, buffer: BufferId) -> Result<Option<Exclusive>, PayloadError> {
        match buffer {
            BufferId::None => Ok(None),
            buffer => self.write(buffer, bytes).map(Some),
        }
    }
}

fn slices(data: &[Option<Shared>]) -> Vec<Option<&[u8]>> {
    data.iter().map(Option::as_deref).collect()
}

fn different_sectors(left: &[u8], right: &[u8]) -> Sectors {
    if left == right {
        return Sectors::ZERO;
    }
    let pairs = left.chunks(SECTOR).zip(right.chunks(SECTOR));
    Sectors(pairs.filter(|(left, right)| left != right).count() as u64)
}

#[cfg(test)]
mod tests;
