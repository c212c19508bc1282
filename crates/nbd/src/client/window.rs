//! The requests that wait for their replies.

use super::handshake::Session;
use crate::{
    ErrorCode, ProtocolError, TransmissionFlags,
    wire::{self, Command, command_flag},
};

/// Why a request is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// As many requests as agreed wait already.
    #[error("the window is full")]
    Full,
    /// The export does not take this command or flag.
    #[error("the export does not offer this")]
    NotOffered,
    /// Outside the export, empty, too long, or not on a block.
    #[error("the range is outside the export or not allowed by its block sizes")]
    Range,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Pending {
    pub command: Command,
    pub offset: u64,
    pub length: u32,
    /// Parts of a read that have come, in order, apart from one another.
    covered: Vec<(u32, u32)>,
    pub failed: Option<(ErrorCode, String)>,
}

/// Separate parts of one read that are kept apart; a server that sends more
/// is not served further.
const MAXIMUM_PARTS: usize = 4096;

impl Pending {
    /// Marks a part of a read as come.
    pub fn cover(&mut self, skip: u32, length: u32) -> Result<(), ProtocolError> {
        let end = skip
            .checked_add(length)
            .filter(|&end| end <= self.length && length > 0)
            .ok_or(ProtocolError::ChunkRange)?;
        let place = self.covered.partition_point(|&(start, _)| start < skip);
        let follows = place > 0 && self.covered[place - 1].1 == skip;
        let overlaps = place > 0 && self.covered[place - 1].1 > skip
            || self.covered.get(place).is_some_and(|next| next.0 < end);
        if overlaps || self.covered.len() >= MAXIMUM_PARTS {
            return Err(ProtocolError::ChunkRange);
        }
        let precedes = self.covered.get(place).is_some_and(|next| next.0 == end);
        match (follows, precedes) {
            (true, true) => {
                self.covered[place - 1].1 = self.covered[place].1;
                self.covered.remove(place);
            }
            (true, false) => self.covered[place - 1].1 = end,
            (false, true) => self.covered[place].0 = skip,
            (false, false) => self.covered.insert(place, (skip, end)),
        }
        Ok(())
    }

    pub fn is_covered(&self) -> bool {
        self.covered == [(0, self.length)]
    }
}

/// Requests in flight: a bounded number of slots. A cookie is a slot with the
/// number of times that it was used, so that a reply that comes twice is
/// found out.
#[derive(Debug)]
pub struct Window {
    flags: TransmissionFlags,
    size_bytes: u64,
    minimum: u32,
    maximum: u32,
    has_contexts: bool,
    slots: Vec<(u32, Option<Pending>)>,
    free: Vec<u32>,
}

impl Window {
    /// At most `depth` requests at once (at least one, at most 65,536).
    #[must_use]
    pub fn new(session: &Session, depth: usize) -> Self {
        let depth = depth.clamp(1, 1 << 16) as u32;
        Self {
            flags: session.flags,
            size_bytes: session.size_bytes,
            minimum: session.block_sizes.minimum.max(1),
            maximum: session.block_sizes.maximum.min(wire::MAXIMUM_PAYLOAD_BYTES),
            has_contexts: !session.contexts.is_empty(),
            slots: (0..depth).map(|_| (0, None)).collect(),
            free: (0..depth).rev().collect(),
        }
    }

    /// Requests that wait.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Longest read or write, in bytes: a multiple of the minimum block size.
    #[must_use]
    pub fn maximum_payload(&self) -> u32 {
        self.maximum - self.maximum % self.minimum
    }

    /// Begins a request: gives its cookie and its header; a write's payload is
    /// to be sent right after it.
    ///
    /// # Errors
    ///
    /// The request would break the export's rules, or the window is full;
    /// nothing has happened.
    pub fn start(
        &mut self,
        command: Command,
        offset: u64,
        length: u32,
        flags: u16,
    ) -> Result<(u64, [u8; wire::REQUEST_BYTES]), Refusal> {
        self.check(command, offset, length, flags)?;
        let slot = self.free.pop().ok_or(Refusal::Full)?;
        let (uses, pending) = &mut self.slots[slot as usize];
        *uses = uses.wrapping_add(1);
        *pending = Some(Pending {
            command,
            offset,
            length,
            covered: Vec::new(),
            failed: None,
        });
        let cookie = u64::from(*uses) << 32 | u64::from(slot);
        Ok((cookie, header(command, offset, length, flags, cookie)))
    }

    /// The header of the last request, which has no reply.
    #[must_use]
    pub fn disconnect() -> [u8; wire::REQUEST_BYTES] {
        header(Command::Disconnect, 0, 0, 0, 0)
    }

    fn check(&self, command: Command, offset: u64, length: u32, flags: u16) -> Result<(), Refusal> {
        use TransmissionFlags as Can;
        let offered = match command {
            Command::Read => true,
            Command::Write => !self.flags.contains(Can::READ_ONLY),
            Command::Flush => self.flags.contains(Can::SEND_FLUSH),
            Command::Trim => self.flags.contains(Can::SEND_TRIM),
            Command::Cache => self.flags.contains(Can::SEND_CACHE),
            Command::WriteZeroes => self.flags.contains(Can::SEND_WRITE_ZEROES),
            Command::BlockStatus => self.has_contexts,
            Command::Disconnect => false,
        };
        let has = |flag| flags & flag != 0;
        let flags_offered = (!has(command_flag::FUA) || self.flags.contains(Can::SEND_FUA))
            && (!has(command_flag::DF) || self.flags.contains(Can::SEND_DF))
            && (!has(command_flag::FAST_ZERO) || self.flags.contains(Can::SEND_FAST_ZERO));
        if !offered || !flags_offered {
            return Err(Refusal::NotOffered);
        }
        if command == Command::Flush {
            return match (offset, length) {
                (0, 0) => Ok(()),
                _ => Err(Refusal::Range),
            };
        }
        let inside = offset
            .checked_add(u64::from(length))
            .is_some_and(|end| end <= self.size_bytes);
        let minimum = u64::from(self.minimum);
        let aligned = offset.is_multiple_of(minimum) && u64::from(length).is_multiple_of(minimum);
        let short = !matches!(command, Command::Read | Command::Write) || length <= self.maximum;
        if length == 0 || !inside || !aligned || !short {
            return Err(Refusal::Range);
        }
        Ok(())
    }

    pub(super) fn pending(&mut self, cookie: u64) -> Result<&mut Pending, ProtocolError> {
        let (slot, uses) = ((cookie & 0xffff_ffff) as usize, (cookie >> 32) as u32);
        self.slots
            .get_mut(slot)
            .filter(|(used, _)| *used == uses)
            .and_then(|(_, pending)| pending.as_mut())
            .ok_or(ProtocolError::UnknownCookie(cookie))
    }

    pub(super) fn finish(&mut self, cookie: u64) -> Result<Pending, ProtocolError> {
        self.pending(cookie)?;
        let slot = cookie as u32;
        let pending = self.slots[slot as usize].1.take();
        self.free.push(slot);
        pending.ok_or(ProtocolError::UnknownCookie(cookie))
    }
}

fn header(
    command: Command,
    offset: u64,
    length: u32,
    flags: u16,
    cookie: u64,
) -> [u8; wire::REQUEST_BYTES] {
    let mut bytes = [0; wire::REQUEST_BYTES];
    bytes[..4].copy_from_slice(&wire::REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&(command as u16).to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}
