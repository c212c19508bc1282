//! The vhost-user protocol as the front-end of User-Mode Linux speaks it
//! (`arch/um/drivers/virtio_uml.c` of Linux 6.1 and 6.12): bytes to messages and
//! back.
//!
//! rust-vmm's `vhost` has the protocol too, and is not used: its server reads a message, answers
//! it, and knows no in-band kick (`VHOST_USER_VRING_KICK`), which here must be answered later than
//! it is read, after the guest's clock has been told of the completion that the kick caused. Five
//! small structures remain. The rings themselves are read by rust-vmm's `virtio-queue`, the guest's
//! memory by its `vm-memory`.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The size of a header in bytes.
const HEADER_BYTES: usize = size_of::<Header>();
/// The most bytes of a payload: a table of eight regions, or a device's whole
/// configuration, fit in many times over.
const MOST_PAYLOAD_BYTES: usize = 4096;
/// The most regions of a memory table.
const MOST_REGIONS: usize = 8;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// The back-end's request that is an interrupt.
const VRING_CALL: u32 = 4;

/// Feature bits on which front-end and back-end can agree.
pub(crate) mod feature {
    /// `VHOST_USER_F_PROTOCOL_FEATURES` of the vhost-user specification, one of the device's
    /// features: there are protocol features to agree on, which are the other bits here.
    pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;
    /// `VHOST_USER_PROTOCOL_F_REPLY_ACK` of the vhost-user specification: the front-end may ask to
    /// be told that a request is done that has no reply otherwise.
    pub(crate) const REPLY_ACK: u64 = 1 << 3;
    /// `VHOST_USER_PROTOCOL_F_BACKEND_REQ` of the vhost-user specification: the back-end may send
    /// requests too, over a socket of its own. Here these are the interrupts.
    pub(crate) const BACKEND_REQUESTS: u64 = 1 << 5;
    /// `VHOST_USER_PROTOCOL_F_CONFIG` of the vhost-user specification: the front-end may read and
    /// write the device's configuration by messages.
    pub(crate) const CONFIG: u64 = 1 << 9;
    /// `VHOST_USER_PROTOCOL_F_INBAND_NOTIFICATIONS` of the vhost-user specification: kicks and
    /// interrupts are messages, not writes to an eventfd.
    pub(crate) const INBAND_NOTIFICATIONS: u64 = 1 << 14;
    /// The four protocol features above; the front-end must take all of them.
    pub(crate) const ALL: u64 = REPLY_ACK | BACKEND_REQUESTS | CONFIG | INBAND_NOTIFICATIONS;
}

/// A part of the guest's memory, in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRegion {
    /// The address at which the guest has it.
    pub guest_address: u64,
    /// The region's length in bytes.
    pub size: u64,
    /// The address at which the front-end has it, by which rings are named.
    pub user_address: u64,
    /// The offset in the file at which it begins.
    pub file_offset: u64,
}

/// The place of a ring, in the front-end's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingAddresses {
    /// The address of the descriptor table.
    pub descriptors: u64,
    /// The address of the used ring.
    pub used: u64,
    /// The address of the available ring.
    pub available: u64,
}

/// The request of a front-end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names and fields are the protocol's own")]
pub enum FrontendRequest {
    GetFeatures,
    SetFeatures(u64),
    SetOwner,
    SetMemoryTable(Vec<MemoryRegion>),
    SetVringNum {
        index: u32,
        num: u32,
    },
    SetVringAddress {
        index: u32,
        addresses: RingAddresses,
    },
    SetVringBase {
        index: u32,
        base: u32,
    },
    GetProtocolFeatures,
    SetProtocolFeatures(u64),
    SetVringEnable {
        index: u32,
        enable: bool,
    },
    SetBackendRequestFd,
    GetConfig {
        offset: u32,
        size: u32,
    },
    SetConfig {
        offset: u32,
        bytes: Vec<u8>,
    },
    VringKick {
        index: u32,
    },
}

/// A message of a front-end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontendMessage {
    /// The request, with its payload.
    pub request: FrontendRequest,
    /// The request's number, which its reply repeats.
    pub code: u32,
    /// Whether the front-end wants to be told that it was done.
    pub wants_acknowledgement: bool,
}

/// The error that bytes are no message of a front-end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontendMessageError {
    /// The bytes are not those that the header announces, or there is no header.
    #[error("{bytes} bytes are no vhost-user message")]
    Length {
        /// The number of bytes.
        bytes: usize,
    },
    /// The flags are of another version, or of a reply.
    #[error("flags {flags:#x} are not those of a request")]
    Flags {
        /// The header's flags as they came.
        flags: u32,
    },
    /// The request is one that User-Mode Linux does not make.
    #[error("request {code} is not known")]
    Unknown {
        /// The request's number in the message's header.
        code: u32,
    },
    /// The payload does not fit its request.
    #[error("request {code} cannot have a payload of {bytes} bytes like this")]
    Payload {
        /// The request's number in the message's header.
        code: u32,
        /// The payload's length in bytes.
        bytes: usize,
    },
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy)]
#[repr(C)]
struct Header {
    request: U32,
    flags: U32,
    size: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy)]
#[repr(C)]
struct State {
    index: U32,
    num: U32,
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Addresses {
    index: U32,
    _flags: U32,
    descriptors: U64,
    used: U64,
    available: U64,
    _log: U64,
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Region {
    guest_address: U64,
    size: U64,
    user_address: U64,
    file_offset: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ConfigHeader {
    offset: U32,
    size: U32,
    flags: U32,
}

/// The length of a message, which its header says.
pub(crate) fn framing(bytes: &[u8]) -> Option<usize> {
    let Ok((header, _)) = Header::read_from_prefix(bytes) else {
        return Some(HEADER_BYTES);
    };
    let payload = usize::try_from(header.size.get()).ok()?;
    (payload <= MOST_PAYLOAD_BYTES).then_some(HEADER_BYTES + payload)
}

impl FrontendMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// When it is not whole, not a request, or not one that is understood.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrontendMessageError> {
        let length = FrontendMessageError::Length { bytes: bytes.len() };
        if bytes.len() < HEADER_BYTES || framing(bytes) != Some(bytes.len()) {
            return Err(length);
        }
        let (header, payload) = Header::read_from_prefix(bytes).map_err(|_| length)?;
        let flags = header.flags.get();
        if flags & !NEED_REPLY != VERSION {
            return Err(FrontendMessageError::Flags { flags });
        }
        let code = header.request.get();
        Ok(Self {
            request: decode_request(code, payload)?,
            code,
            wants_acknowledgement: flags & NEED_REPLY != 0,
        })
    }
}

fn decode_request(code: u32, payload: &[u8]) -> Result<FrontendRequest, FrontendMessageError> {
    let wrong = FrontendMessageError::Payload {
        code,
        bytes: payload.len(),
    };
    let number = || U64::read_from_bytes(payload).map(U64::get);
    let state =
        || State::read_from_bytes(payload).map(|state| (state.index.get(), state.num.get()));
    let request = match code {
        1 | 3 | 15 | 21 if !payload.is_empty() => None,
        1 => Some(FrontendRequest::GetFeatures),
        2 => number().ok().map(FrontendRequest::SetFeatures),
        3 => Some(FrontendRequest::SetOwner),
        5 => decode_regions(payload).map(FrontendRequest::SetMemoryTable),
        8 => state()
            .ok()
            .map(|(index, num)| FrontendRequest::SetVringNum { index, num }),
        9 => decode_addresses(payload),
        10 => state()
            .ok()
            .map(|(index, base)| FrontendRequest::SetVringBase { index, base }),
        15 => Some(FrontendRequest::GetProtocolFeatures),
        16 => number().ok().map(FrontendRequest::SetProtocolFeatures),
        18 => state()
            .ok()
            .filter(|&(_, num)| num <= 1)
            .map(|(index, num)| FrontendRequest::SetVringEnable {
                index,
                enable: num == 1,
            }),
        21 => Some(FrontendRequest::SetBackendRequestFd),
        24 | 25 => decode_config(code, payload),
        35 => state()
            .ok()
            .map(|(index, _)| FrontendRequest::VringKick { index }),
        _ => return Err(FrontendMessageError::Unknown { code }),
    };
    request.ok_or(wrong)
}

/// Decodes the regions of a memory table; the front-end of User-Mode Linux sends room for two even
/// where there is one.
fn decode_regions(payload: &[u8]) -> Option<Vec<MemoryRegion>> {
    let (head, rest) = State::read_from_prefix(payload).ok()?;
    let count = usize::try_from(head.index.get()).ok()?;
    if count == 0 || count > MOST_REGIONS {
        return None;
    }
    let (regions, _) = <[Region]>::ref_from_prefix_with_elems(rest, count).ok()?;
    let region = |region: &Region| MemoryRegion {
        guest_address: region.guest_address.get(),
        size: region.size.get(),
        user_address: region.user_address.get(),
        file_offset: region.file_offset.get(),
    };
    Some(regions.iter().map(region).collect())
}

fn decode_addresses(payload: &[u8]) -> Option<FrontendRequest> {
    let addresses = Addresses::read_from_bytes(payload).ok()?;
    Some(FrontendRequest::SetVringAddress {
        index: addresses.index.get(),
        addresses: RingAddresses {
            descriptors: addresses.descriptors.get(),
            used: addresses.used.get(),
            available: addresses.available.get(),
        },
    })
}

fn decode_config(code: u32, payload: &[u8]) -> Option<FrontendRequest> {
    let (header, bytes) = ConfigHeader::read_from_prefix(payload).ok()?;
    let size = header.size.get();
    if bytes.len() != usize::try_from(size).ok()? {
        return None;
    }
    let offset = header.offset.get();
    Some(if code == 24 {
        FrontendRequest::GetConfig { offset, size }
    } else {
        FrontendRequest::SetConfig {
            offset,
            bytes: bytes.to_vec(),
        }
    })
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        request: request.into(),
        flags: (VERSION | flags).into(),
        size: u32::try_from(payload.len()).unwrap_or(u32::MAX).into(),
    };
    [header.as_bytes(), payload].concat()
}

/// Makes the reply of a number: a feature set, or 0 for "done".
pub(crate) fn reply(code: u32, number: u64) -> Vec<u8> {
    message(code, REPLY, &number.to_le_bytes())
}

/// Makes the reply to `GetConfig`: the bytes that were asked for, from `offset` of `configuration`
/// on, with zeros beyond it.
pub(crate) fn config_reply(code: u32, offset: u32, size: u32, configuration: &[u8]) -> Vec<u8> {
    let header = ConfigHeader {
        offset: offset.into(),
        size: size.into(),
        flags: 0.into(),
    };
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = configuration.get(start..).unwrap_or_default();
    let mut payload = header.as_bytes().to_vec();
    let whole = payload.len() + usize::try_from(size).unwrap_or(0).min(MOST_PAYLOAD_BYTES);
    payload.extend_from_slice(rest);
    payload.resize(whole, 0);
    message(code, REPLY, &payload)
}

/// Makes the back-end's interrupt, which wants a reply.
pub(crate) fn interrupt(index: u32) -> Vec<u8> {
    let state = State {
        index: index.into(),
        num: 0.into(),
    };
    message(VRING_CALL, NEED_REPLY, state.as_bytes())
}

/// Reads the number with which the front-end answers an interrupt: 0 for "done". `None` if the
/// bytes are no such answer.
pub(crate) fn interrupt_answer(bytes: &[u8]) -> Option<u64> {
    let (header, payload) = Header::read_from_prefix(bytes).ok()?;
    let flags = header.flags.get();
    let fits =
        header.request.get() == VRING_CALL && flags & VERSION_MASK == VERSION && flags & REPLY != 0;
    let number = U64::read_from_bytes(payload).ok()?;
    fits.then_some(number.get())
}

#[cfg(test)]
mod tests;
