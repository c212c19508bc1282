use super::{
    FrontendMessage, FrontendMessageError, FrontendRequest, MemoryRegion, RingAddresses,
    config_reply, framing, interrupt, interrupt_answer, reply,
};
use proptest::prelude::*;

fn bytes(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [request, flags, payload.len() as u32] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(payload);
    bytes
}

fn decode(request: u32, payload: &[u8]) -> Result<FrontendRequest, FrontendMessageError> {
    FrontendMessage::decode(&bytes(request, 9, payload)).map(|message| message.request)
}

#[test]
fn requests_by_hand() {
    let numbers = |numbers: &[u64]| -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    };
    assert_eq!(decode(1, &[]), Ok(FrontendRequest::GetFeatures));
    assert_eq!(
        decode(16, &numbers(&[0x4228])),
        Ok(FrontendRequest::SetProtocolFeatures(0x4228))
    );
    assert_eq!(
        decode(8, &[1, 0, 0, 0, 0, 1, 0, 0]),
        Ok(FrontendRequest::SetVringNum { index: 1, num: 256 })
    );
    assert_eq!(
        decode(9, &numbers(&[2, 10, 20, 30, 40])),
        Ok(FrontendRequest::SetVringAddress {
            index: 2,
            addresses: RingAddresses {
                descriptors: 10,
                used: 20,
                available: 30,
            },
        })
    );
    // Two regions' room, one region.
    let region = MemoryRegion {
        guest_address: 5,
        size: 6,
        user_address: 7,
        file_offset: 8,
    };
    let table = numbers(&[1, 5, 6, 7, 8, 0, 0, 0, 0]);
    assert_eq!(
        decode(5, &table),
        Ok(FrontendRequest::SetMemoryTable(vec![region]))
    );
    assert_eq!(
        decode(24, &[0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9, 9]),
        Ok(FrontendRequest::GetConfig { offset: 0, size: 2 })
    );
    let kick = FrontendMessage::decode(&bytes(35, 1, &[0; 8])).unwrap();
    assert!(!kick.wants_acknowledgement);
    assert_eq!(kick.request, FrontendRequest::VringKick { index: 0 });
}

#[test]
fn what_does_not_fit_is_refused() {
    let payload = |code, bytes| Err(FrontendMessageError::Payload { code, bytes });
    assert_eq!(decode(1, &[0]), payload(1, 1));
    assert_eq!(decode(2, &[0; 7]), payload(2, 7));
    assert_eq!(decode(5, &[2, 0, 0, 0, 0, 0, 0, 0, 1]), payload(5, 9));
    assert_eq!(decode(5, &[9; 400]), payload(5, 400));
    assert_eq!(decode(18, &[0, 0, 0, 0, 2, 0, 0, 0]), payload(18, 8));
    assert_eq!(
        decode(24, &[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9]),
        payload(24, 13)
    );
    assert_eq!(
        decode(77, &[]),
        Err(FrontendMessageError::Unknown { code: 77 })
    );
    let flags = FrontendMessage::decode(&bytes(1, 5, &[]));
    assert_eq!(flags, Err(FrontendMessageError::Flags { flags: 5 }));
    let short = FrontendMessage::decode(&bytes(2, 1, &[0; 8])[..19]);
    assert_eq!(short, Err(FrontendMessageError::Length { bytes: 19 }));
}

#[test]
fn replies_by_hand() {
    assert_eq!(reply(15, 3)[..], bytes(15, 5, &3_u64.to_le_bytes())[..]);
    let config = config_reply(24, 2, 4, &[1, 2, 3, 4]);
    let payload = [2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0];
    assert_eq!(config, bytes(24, 5, &payload));
    assert_eq!(interrupt(0), bytes(4, 9, &[0; 8]));
    assert_eq!(
        interrupt_answer(&bytes(4, 5, &[1, 0, 0, 0, 0, 0, 0, 0])),
        Some(1)
    );
    assert_eq!(interrupt_answer(&bytes(4, 1, &[0; 8])), None);
    assert_eq!(interrupt_answer(&bytes(3, 5, &[0; 8])), None);
}

proptest! {
    #[test]
    fn any_bytes_decode_or_fail(
        request in 0_u32..40,
        flags in prop_oneof![Just(1_u32), Just(9), any::<u32>()],
        payload in proptest::collection::vec(any::<u8>(), 0..300),
        cut in 0_usize..400,
    ) {
        let mut whole = bytes(request, flags, &payload);
        let fits = framing(&whole) == Some(whole.len());
        prop_assert!(fits);
        if let Ok(message) = FrontendMessage::decode(&whole) {
            prop_assert_eq!(message.code, request);
            prop_assert_eq!(message.wants_acknowledgement, flags == 9);
        }
        whole.truncate(cut);
        if cut < 12 + payload.len() {
            let failed = FrontendMessage::decode(&whole).is_err();
            prop_assert!(failed);
        }
    }

    #[test]
    fn a_config_reply_is_as_long_as_asked(offset in any::<u32>(), size in 0_u32..1024) {
        let reply = config_reply(24, offset, size, &[7; 60]);
        prop_assert_eq!(reply.len(), 24 + size as usize);
    }
}
