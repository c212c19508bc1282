//! The protocol of external time travel (`include/uapi/linux/um_timetravel.h`
//! of Linux 6.1 and 6.12), as far as one guest and one calendar need it.
//!
//! Every message has 16 bytes: an operation, a number, a time. The guest says when its next event
//! is (REQUEST), that it stops until it is told to go on (WAIT), what its clock shows (UPDATE), and
//! asks for the time (GET, `GET_TOD`). The calendar says how far the guest's clock may run by
//! itself (`FREE_UNTIL`) and what time it is (RUN). Each is answered by an ACK with its number.
//!
//! Since Linux 6.11 the answer to START may bring shared memory, in which most of
//! these messages become loads and stores.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The size of a message in bytes.
pub const MESSAGE_BYTES: usize = size_of::<Wire>();

/// The operation that a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The answer to a message of any other kind.
    Ack,
    /// The guest's first message, with which it makes itself known.
    Start,
    /// The guest's next event is at this time.
    Request,
    /// The guest stops until it is sent RUN.
    Wait,
    /// The guest asks for the present time.
    Get,
    /// The guest's clock shows this time.
    Update,
    /// The guest may go on, and this is the time.
    Run,
    /// The guest's clock may run by itself before this time.
    FreeUntil,
    /// The guest asks for the time of day.
    GetTimeOfDay,
    /// The message is for all guests; with one guest there is no other to hear it.
    Broadcast,
}

impl Operation {
    const ALL: [Self; 10] = [
        Self::Ack,
        Self::Start,
        Self::Request,
        Self::Wait,
        Self::Get,
        Self::Update,
        Self::Run,
        Self::FreeUntil,
        Self::GetTimeOfDay,
        Self::Broadcast,
    ];

    fn code(self) -> u32 {
        self as u32
    }
}

/// A message of the time-travel socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeMessage {
    /// The kind of the message.
    pub operation: Operation,
    /// The sender's number, which its answer repeats.
    pub sequence: u32,
    /// The time in nanoseconds, or the number that the operation makes of it.
    pub time: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Wire {
    operation: U32,
    sequence: U32,
    time: U64,
}

/// The error that bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeMessageError {
    /// There are too few or too many bytes.
    #[error("{bytes} bytes are no time-travel message, which has {MESSAGE_BYTES}")]
    Length {
        /// The number of bytes.
        bytes: usize,
    },
    /// The operation is one that Linux does not have.
    #[error("time-travel operation {code} does not exist")]
    Operation {
        /// The operation's number in the message; Linux has 0 to 9.
        code: u32,
    },
}

impl TimeMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// When the length is not a message's or the operation does not exist.
    pub fn decode(bytes: &[u8]) -> Result<Self, TimeMessageError> {
        let length = TimeMessageError::Length { bytes: bytes.len() };
        let wire = Wire::read_from_bytes(bytes).map_err(|_| length)?;
        let code = wire.operation.get();
        let operation = usize::try_from(code)
            .ok()
            .and_then(|index| Operation::ALL.get(index))
            .copied()
            .ok_or(TimeMessageError::Operation { code })?;
        Ok(Self {
            operation,
            sequence: wire.sequence.get(),
            time: wire.time.get(),
        })
    }

    /// Encodes the message as it travels.
    #[must_use]
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let wire = Wire {
            operation: self.operation.code().into(),
            sequence: self.sequence.into(),
            time: self.time.into(),
        };
        let mut bytes = [0; MESSAGE_BYTES];
        bytes.copy_from_slice(wire.as_bytes());
        bytes
    }
}

/// The length of any message, as all have the same.
#[expect(clippy::unnecessary_wraps, reason = "the form of every framing")]
pub(crate) fn framing(_: &[u8]) -> Option<usize> {
    Some(MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::{MESSAGE_BYTES, Operation, TimeMessage, TimeMessageError};
    use proptest::prelude::*;

    #[test]
    fn a_request_in_bytes() {
        let message = TimeMessage {
            operation: Operation::Request,
            sequence: 7,
            time: 0x0102_0304_0506_0708,
        };
        let bytes = [2, 0, 0, 0, 7, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1];
        assert_eq!(message.encode(), bytes);
        assert_eq!(TimeMessage::decode(&bytes), Ok(message));
        assert_eq!(
            TimeMessage::decode(&bytes[1..]),
            Err(TimeMessageError::Length { bytes: 15 })
        );
    }

    #[test]
    fn operations_have_the_header_files_numbers() {
        let numbers: Vec<u32> = Operation::ALL.iter().map(|one| one.code()).collect();
        assert_eq!(numbers, (0..10).collect::<Vec<u32>>());
        assert_eq!(Operation::GetTimeOfDay.code(), 8);
    }

    proptest! {
        #[test]
        fn whatever_decodes_encodes_to_the_same(bytes: [u8; MESSAGE_BYTES]) {
            if let Ok(message) = TimeMessage::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            } else {
                prop_assert!(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) > 9);
            }
        }
    }
}
