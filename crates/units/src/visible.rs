//! Text from outside, made safe to show: characters that a terminal would obey or that are
//! invisible appear in Rust's notation, `\u{1b}`, and bytes that are not UTF-8 as `\xff`.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Whether a character is invisible or changes a terminal's state instead of being shown.
#[must_use]
pub fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns a text of one line with all such characters made visible.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, acts)
}

/// Returns a text of several lines and columns with all such characters made visible.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, |letter| {
        acts(letter) && !matches!(letter, '\n' | '\t')
    })
}

/// Returns bytes, which need not be UTF-8, as text with all such characters made visible.
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

/// Returns a path as text to be shown.
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
