//! The scripts that are sent to the far side's POSIX shell.
//!
//! sshd hands the command line to the user's login shell, which on FreeBSD may be csh. Its
//! quoting differs: `!` means history even between single quotes, and a newline ends a quoted
//! word. So a script travels as one word of a few harmless characters, everything else written in
//! octal, and `exec sh -c 'eval "$(printf %b "$1")"' sh 'WORD'`, which means the same in csh, sh,
//! bash, zsh and fish, decodes it. `exec` makes that shell the leader of the session that sshd
//! begins for every command, so that a signal to process group 0 reaches all that the script
//! started and nothing else.
//!
//! The script of a command is its keeper:
//! 1. It takes the command's input, of a length told beforehand, from its own.
//! 2. It starts the command in the background, before it sets a trap of its
//!    own: a signal that comes between fork and exec would run the inherited
//!    trap and be lost to the command.
//! 3. A second process, the leash, keeps reading the input. On the line `MARK seconds`, or when the
//!    connection closes because raidlab or the network has failed, it ends the whole group:
//!    SIGTERM, and SIGKILL after the seconds.
//! 4. When the command ends, the keeper prints a trailer, `MARK code`, on a
//!    line of its own. No trailer means that the connection broke: ssh's exit
//!    code 255 could also be the command's.
//!
//! The mark is chosen anew each time, so that no output can contain it by chance.

use crate::command::{Command, quote};
use crate::target::Watched;
use std::fmt::Write;

/// The patience with a command whose connection is lost, in seconds.
const LOST_PATIENCE_SECONDS: u64 = 5;

/// The distance from the end, in bytes, within which the trailer is looked for: only a daemon that
/// was left behind writes after it.
const TAIL_BYTES: usize = 64 << 10;

/// Whether a byte is left alone by every login shell between single quotes.
fn harmless(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" _-./=:,+@".contains(&byte)
}

/// The line for the far login shell that runs `script` in a POSIX shell,
/// behind the words of `elevate` (`sudo -n`).
pub fn line(elevate: &[String], script: &str) -> String {
    let mut line = String::from("exec ");
    for word in elevate {
        line.push_str(&quote(word));
        line.push(' ');
    }
    line.push_str(r#"sh -c 'eval "$(printf %b "$1")"' sh '"#);
    for byte in script.bytes() {
        if harmless(byte) {
            line.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(line, r"\0{byte:03o}");
        }
    }
    line.push('\'');
    line
}

/// A word between single quotes, always: otherwise a shell may treat `if` and `a=b` specially.
fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The command's words, preceded by the variables for it alone.
fn words(command: &Command) -> String {
    let mut text = String::new();
    if !command.environment.is_empty() {
        text.push_str("env ");
        for (name, value) in &command.environment {
            text.push_str(&word(&format!("{name}={value}")));
            text.push(' ');
        }
    }
    text.push_str(&word(&command.program));
    for argument in &command.arguments {
        text.push(' ');
        text.push_str(&word(argument));
    }
    text
}

/// The beginning of every script.
fn preamble(mark: &str, environment: &[(String, String)]) -> String {
    let mut text = format!(
        "mark={mark}\nLC_ALL=C\n\
         PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         export LC_ALL PATH\n"
    );
    for (name, value) in environment {
        let _ = writeln!(text, "export {}", word(&format!("{name}={value}")));
    }
    text
}

/// The keeper's script; see the top of the file.
pub fn keeper(mark: &str, environment: &[(String, String)], command: &Command) -> String {
    let mut text = preamble(mark, environment);
    let program = word(&command.program);
    let _ = writeln!(
        text,
        "command -v {program} >/dev/null 2>&1 || {{ printf '\\n%s missing\\n' $mark; exit 0; }}"
    );
    let (read, feed) = if command.input.is_empty() {
        (String::new(), "</dev/null")
    } else {
        // The x keeps newlines at the end, which the shell would drop.
        let read = format!(
            "input=$(dd bs=1 count={} 2>/dev/null; echo x)\ninput=${{input%x}}\n",
            command.input.len()
        );
        (read, "")
    };
    let pipe = if feed.is_empty() {
        "printf %s \"$input\" |"
    } else {
        ""
    };
    text.push_str(&read);
    let _ = write!(
        text,
        r#"exec 3<&0
{pipe} {words} {feed} 3<&- &
child=$!
ended=
trap ended=1 TERM
trap : HUP INT
{{
    trap : TERM HUP INT
    patience={LOST_PATIENCE_SECONDS}
    while read -r word number; do
        if [ "$word" = $mark ]; then patience=$number; break; fi
    done
    kill -s TERM 0
    sleep "$patience" >/dev/null
    printf '\n%s 137\n' $mark
    kill -s KILL 0
}} <&3 2>/dev/null &
leash=$!
exec 3<&- </dev/null 2>/dev/null
wait $child
code=$?
if [ -n "$ended" ]; then
    wait $child
    again=$?
    [ $again = 127 ] || code=$again
fi
printf '\n%s %s\n' $mark $code
if [ -n "$ended" ]; then kill -s KILL 0; fi
kill -s KILL $leash
exit 0
"#,
        words = words(command),
    );
    text
}

/// The script of a watch: for every line on its input, the number of a tick,
/// it prints `MARK number` and then each source followed by `MARK status` on a
/// line of its own. It ends with its input.
pub fn watcher(mark: &str, environment: &[(String, String)], sources: &[Watched]) -> String {
    let mut text = preamble(mark, environment);
    text.push_str("while read -r tick; do\nprintf '%s %s\\n' $mark \"$tick\"\n");
    for source in sources {
        let (words, input) = match source {
            Watched::File(path) => (format!("cat -- {}", word(path)), ""),
            Watched::Command(command) => (words(command), &*command.input),
        };
        let feed = if input.is_empty() {
            String::new()
        } else {
            format!("printf %s {} | ", word(input))
        };
        let close = if input.is_empty() { " </dev/null" } else { "" };
        let _ = writeln!(
            text,
            "{feed}{words}{close} 2>/dev/null\nprintf '\\n%s %s\\n' $mark $?"
        );
    }
    text.push_str("done\nexit 0\n");
    text
}

/// The trailer of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trailer {
    /// The command ended with this status of the shell: above 128 a signal's number plus 128.
    Status(i32),
    /// The program does not exist.
    Missing,
}

/// Takes the trailer out of a command's output; `None` while there is none.
pub(crate) fn trailer(mark: &str, stdout: &[u8]) -> Option<(Trailer, Vec<u8>)> {
    let needle = format!("\n{mark} ").into_bytes();
    let tail = stdout.len().saturating_sub(TAIL_BYTES);
    let begin = stdout[tail..]
        .windows(needle.len())
        .rposition(|window| window == needle)
        .map(|begin| tail + begin)?;
    let rest = &stdout[begin + needle.len()..];
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let trailer = match std::str::from_utf8(&rest[..end]).ok()? {
        "missing" => Trailer::Missing,
        status => Trailer::Status(status.parse().ok()?),
    };
    let said = [&stdout[..begin], &rest[end + 1..]].concat();
    Some((trailer, said))
}

#[cfg(test)]
mod tests;
