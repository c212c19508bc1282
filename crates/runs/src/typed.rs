//! The command line as text, for a shell to repeat it. An argument is any bytes but NUL;
//! one that is no UTF-8 is told as `$'\xff'`.

use raidlab_shell::Command;
use std::ffi::OsStr;
use std::fmt::Write;

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
    use super::in_shell;
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
}
