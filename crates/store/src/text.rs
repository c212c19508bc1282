//! Foreign text made safe to show: names in files and stores, output of tools, paths.
//!
//! A terminal obeys control characters wherever they come from, and characters that reverse the
//! direction of writing, or have no width, make a text look like another one. All of these are
//! shown as Rust writes them, `\u{1b}`, and bytes that are no UTF-8 as `\xff`.

mod each;

pub use each::EachText;
pub use raidlab_units::{acts, visible, visible_bytes, visible_lines, visible_path};

use std::borrow::Cow;
use std::fmt::Write;

/// JSON text with every such character escaped as in JSON, `\u009b`: its meaning stays the same.
/// Line ends, between values, stay.
#[must_use]
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let is_bad = |letter| acts(letter) && letter != '\n';
    if !json.contains(is_bad) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        if is_bad(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// Text for a terminal: as [`visible_lines`], but the sequences that set colours and weights
/// (`ESC [ … m`), which are ours, are kept.
#[must_use]
pub fn visible_styled(text: &str) -> Cow<'_, str> {
    let style = |rest: &str| {
        let end = rest
            .strip_prefix("\u{1b}[")?
            .find(|letter: char| !(letter.is_ascii_digit() || letter == ';'))?;
        rest[2 + end..].starts_with('m').then_some(end + 3)
    };
    let mut safe = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|letter| acts(letter) && !matches!(letter, '\n' | '\t')) {
        safe.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = style(rest).inspect(|length| safe.push_str(&rest[..*length]));
        let length = length.unwrap_or_else(|| {
            let letter = rest.chars().next();
            safe.extend(letter.into_iter().flat_map(char::escape_default));
            letter.map_or(0, char::len_utf8)
        });
        rest = &rest[length..];
    }
    if safe.is_empty() {
        return Cow::Borrowed(text);
    }
    safe.push_str(rest);
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::{acts, visible, visible_bytes, visible_json, visible_lines, visible_styled};
    use proptest::prelude::*;

    #[test]
    fn what_acts_is_shown() {
        for (text, expected) in [
            ("md-raid5 größer", "md-raid5 größer"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("a\u{9b}2J", "a\\u{9b}2J"),
            ("gpj.\u{202e}exe", "gpj.\\u{202e}exe"),
        ] {
            assert_eq!(visible(text), expected);
        }
        assert_eq!(visible_lines("a\nb\tc\r\u{7}"), "a\nb\tc\\r\\u{7}");
        let json = visible_json("{\"a\": \"b\u{9b}\u{e0001}\"}");
        assert_eq!(json, r#"{"a": "b\u009b\udb40\udc01"}"#);
        let colours = "\u{1b}[1;31mred\u{1b}[0m\n";
        assert_eq!(visible_styled(colours), colours);
        let others = "\u{1b}[2J\u{1b}]0;x\u{7}\u{1b}[1mö\u{1b}";
        assert_eq!(
            visible_styled(others),
            "\\u{1b}[2J\\u{1b}]0;x\\u{7}\u{1b}[1mö\\u{1b}"
        );
        assert_eq!(
            visible_bytes(b"/srv/\xffa\x1b\xc3"),
            "/srv/\\xffa\\u{1b}\\xc3"
        );
    }

    proptest! {
        #[test]
        fn nothing_acts_any_more(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            prop_assert!(!visible(&text).contains(acts));
            prop_assert!(!visible_lines(&text).replace(['\n', '\t'], "").contains(acts));
            let styled = visible_styled(&text).replace(['\n', '\t', '\u{1b}'], "");
            prop_assert!(!styled.contains(acts));
            let json = serde_json::to_string(&text).expect("a text");
            let safe = visible_json(&json);
            prop_assert!(!safe.contains(acts));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).expect("JSON"), text.clone());
            prop_assert!(!visible_bytes(&bytes).contains(acts));
        }
    }
}
