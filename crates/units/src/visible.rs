//! Text from others, to be shown: everything that a terminal would obey, or that nobody sees, as
//! Rust writes it, `\u{1b}`, and bytes that are no UTF-8 as `\xff`.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Whether a character acts, or is not seen, instead of being shown.
#[must_use]
pub fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text of one line, with everything that acts shown.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, acts)
}

/// The same of a text that may have several lines and columns.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, |letter| {
        acts(letter) && !matches!(letter, '\n' | '\t')
    })
}

/// The same of bytes that need not be UTF-8.
#[must_use]
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A path to be shown.
#[must_use]
pub fn visible_path(path: &Path) -> String {
    visible_bytes(path.as_os_str().as_encoded_bytes())
}

fn shown(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_bad(letter) {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}
