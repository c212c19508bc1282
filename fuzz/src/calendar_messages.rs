//! Any bytes as a time-travel message and as a vhost-user message: they are read
//! or refused, and what is read was all there.

use raidlab_uml_calendar::time_travel::TimeMessage;
use raidlab_uml_calendar::vhost_user::{FrontendMessage, FrontendRequest};

/// Reads these bytes.
pub fn run(bytes: &[u8]) {
    if let Ok(message) = TimeMessage::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
    let Ok(message) = FrontendMessage::decode(bytes) else {
        return;
    };
    assert_eq!(message.code.to_le_bytes(), bytes[..4]);
    match message.request {
        FrontendRequest::SetMemoryTable(regions) => {
            assert!(!regions.is_empty() && 20 + regions.len() * 32 <= bytes.len());
        }
        FrontendRequest::GetConfig { size, .. } => assert_eq!(bytes.len(), 24 + size as usize),
        FrontendRequest::SetConfig { bytes: value, .. } => {
            assert_eq!(bytes.len(), 24 + value.len());
        }
        _ => assert!(bytes.len() <= 52),
    }
}
