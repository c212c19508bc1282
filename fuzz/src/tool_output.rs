//! Any text is read as any tool's output, or refused; and what is read holds
//! finite numbers only.

use crate::text;
use raidlab_tools::{Tool, detect};

/// Reads the text that these bytes begin with.
pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    let _ = detect(text);
    for tool in Tool::all() {
        let result = match tool.parse(text) {
            Ok(result) => result,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        for part in &result.parts {
            for rate in [part.operations_per_second, part.bytes_per_second] {
                assert!(rate.is_none_or(f64::is_finite), "{part:?}");
            }
        }
    }
}
