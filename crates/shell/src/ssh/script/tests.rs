use super::*;
use proptest::prelude::*;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command as Shell, Stdio};

/// Starts a line as sshd does, in a group of its own: a keeper that ends its
/// group must not end the tests.
fn start(line: &str) -> Child {
    Shell::new("sh")
        .args(["-c", line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// What a POSIX shell makes of a line.
fn through_sh(line: &str, input: &str) -> Vec<u8> {
    let mut child = start(line);
    // Held to the end: that it closes would end the command.
    let mut stdin = child.stdin.take().unwrap();
    // Input that nobody reads is not written.
    let _ = stdin.write_all(input.as_bytes());
    let mut said = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_end(&mut said).unwrap();
    child.wait().unwrap();
    said
}

fn text() -> impl Strategy<Value = String> {
    // Any characters, and often those that mean something to a shell.
    let awkward = prop::sample::select(
        "!'\"\\$`\n\r\t ~*?[]{}()<>|&;#%^=-\u{7f}\u{1}é\u{101}\u{1f600}"
            .chars()
            .collect::<Vec<char>>(),
    );
    let any = any::<char>().prop_filter("no zero byte", |&c| c != '\0');
    prop::collection::vec(prop_oneof![awkward, any], 0..12)
        .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_quoted_word_is_one_word_to_a_shell(words in prop::collection::vec(text(), 0..5)) {
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let line = format!("printf '%s\\0' x {}", quoted.join(" "));
        let expected: String = std::iter::once("x")
            .chain(words.iter().map(String::as_str))
            .map(|word| format!("{word}\0"))
            .collect();
        prop_assert_eq!(String::from_utf8(through_sh(&line, "")).unwrap(), expected);
    }

    #[test]
    fn arguments_environment_and_input_arrive_as_they_were(
        arguments in prop::collection::vec(text(), 0..5),
        value in text(),
        input in text(),
    ) {
        let script = r#"printf '%s\0' "$VALUE" "$@"; cat"#;
        let mut command = Command::reads("sh", ["-c", script, "sh"]).input(&*input);
        command.arguments.extend(arguments.iter().cloned());
        command.environment = vec![("VALUE".to_owned(), value.clone())];
        let line = line(&["env".to_owned()], &keeper("MARK", &[], &command));
        let stdout = through_sh(&line, &input);
        let (trailer, said) = trailer("MARK", &stdout).unwrap();
        prop_assert_eq!(trailer, Trailer::Status(0));
        let mut expected: String = std::iter::once(&value)
            .chain(&arguments)
            .map(|word| format!("{word}\0"))
            .collect();
        expected.push_str(&input);
        prop_assert_eq!(String::from_utf8(said).unwrap(), expected);
    }

    /// What csh would take apart: history, newlines, quotes within quotes.
    #[test]
    fn nothing_on_the_wire_means_anything_to_csh(argument in text()) {
        let command = Command::reads("echo", [argument]);
        let line = line(&[], &keeper("MARK", &[], &command));
        let word = line
            .strip_prefix(r#"exec sh -c 'eval "$(printf %b "$1")"' sh '"#)
            .and_then(|rest| rest.strip_suffix('\''))
            .unwrap();
        prop_assert!(word.bytes().all(|byte| byte == b'\\' || harmless(byte)), "{}", word);
    }
}

#[test]
fn a_word_of_the_shells_grammar_is_a_program_like_any_other() {
    for program in ["if", "a=b", "time "] {
        let command = Command::reads(program, [""; 0]);
        let stdout = through_sh(&line(&[], &keeper("MARK", &[], &command)), "");
        let (found, _) = trailer("MARK", &stdout).unwrap();
        // `command -v if` knows it, but as a program it is not found.
        let missing = matches!(found, Trailer::Missing | Trailer::Status(127));
        assert!(missing, "{program}: {found:?}");
    }
}

#[test]
fn the_trailer_is_taken_out_and_nothing_else() {
    let found = |stdout: &[u8]| trailer("MARK", stdout);
    assert_eq!(found(b"out"), None);
    assert_eq!(found(b"out\nMARK 25"), None);
    let out = Some((Trailer::Status(255), b"out\n".to_vec()));
    assert_eq!(found(b"out\n\nMARK 255\n"), out);
    assert_eq!(found(b"ou\nMARK 255\nt\n"), out);
    assert_eq!(
        found(b"\nMARK missing\n"),
        Some((Trailer::Missing, Vec::new()))
    );
}

#[test]
fn a_command_whose_connection_has_gone_is_ended() {
    let command = Command::reads("sleep", ["1000"]);
    let child = start(&line(&[], &keeper("MARK", &[], &command)));
    // This closes its input first.
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        trailer("MARK", &output.stdout).unwrap().0,
        Trailer::Status(143)
    );
}
