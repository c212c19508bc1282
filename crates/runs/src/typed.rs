//! The command line as text, for a shell to repeat it. An argument may hold any bytes but NUL; one
//! that is no UTF-8 is written as `$'\xff'`.

use crate::notes::STORE;
use raidlab_shell::Command;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

/// The command line of this program.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| in_shell(&word));
    let all = std::iter::once("raidlab".to_owned()).chain(words);
    all.collect::<Vec<_>>().join(" ")
}

/// An argument as one word of a shell.
pub fn in_shell(word: &OsStr) -> String {
    match word.to_str() {
        Some(text) => Command::reads(text, [""; 0]).to_string(),
        None => dollar_quoted(word),
    }
}

/// A command on a store; the usual store need not be named.
#[must_use]
pub fn on_store(command: &str, store: &Path) -> String {
    if store == Path::new(STORE) {
        return command.to_owned();
    }
    format!("{command} --store {}", in_shell(store.as_os_str()))
}

/// The words of such a command line, as they are written; blanks within quotes do
/// not separate words.
pub fn words(line: &str) -> Vec<&str> {
    // The quote that the word began with, and whether the character before escapes this one.
    let (mut quotes, mut escaped, mut last) = (None, false, ' ');
    let parts = move |one: char| {
        let was = std::mem::take(&mut escaped);
        match (quotes, one) {
            _ if was => {}
            (None | Some('$'), '\\') => escaped = true,
            (None, '\'') => quotes = Some(last),
            (Some(_), '\'') => quotes = None,
            _ => {}
        }
        last = one;
        one == ' ' && quotes.is_none()
    };
    line.split(parts).collect()
}

fn dollar_quoted(word: &OsStr) -> String {
    let mut text = String::from("$'");
    for byte in word.as_encoded_bytes() {
        match byte {
            b'\'' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('\'');
    text
}

#[cfg(all(test, unix))]
mod tests {
    use super::{in_shell, words};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn any_bytes_are_a_word() {
        for (bytes, word) in [
            (&b"quick"[..], "quick"),
            (b"a b", "'a b'"),
            (b"a\xff'\\ b", r"$'a\xff\'\\ b'"),
        ] {
            assert_eq!(in_shell(OsStr::from_bytes(bytes)), word);
        }
    }

    #[test]
    fn a_command_line_falls_into_its_words_again() {
        let all = ["raidlab", "a b", "it's", "c\\d", "e \\", "f", ""];
        let mut typed: Vec<String> = all.iter().map(|word| in_shell(OsStr::new(word))).collect();
        typed.push(in_shell(OsStr::from_bytes(b"g\xff h'i \\")));
        assert_eq!(words(&typed.join(" ")), typed);
    }
}
