//! The warden: ends the processes that raidlab started when raidlab itself is killed.
//!
//! A process that dies by SIGKILL cannot clean up, and its children would go on writing to disks
//! that the next run needs. So beside the first command a small shell is started, the warden, whose
//! standard input is a pipe from raidlab. It is told each process group that begins (`+ 123`) and
//! ends (`- 123`). When raidlab has ended, for whatever reason, the pipe closes, and the warden
//! kills the groups that are left, including children of the tools, which the parent-death signal
//! of Linux's prctl(2) would not reach, and on FreeBSD too.
//!
//! The number of a group is known only once its command runs, and raidlab may be killed before it
//! has told that number. So the warden is told first that a command is about to begin
//! (`+ RAIDLAB_START=77.1`), and the command carries these words in its environment. What raidlab
//! did not live to number is found by them, where the system shows environments in `/proc`.
//!
//! A process that left its group (a daemon) is not found this way; [`crate::leftovers`] finds it
//! by its environment.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=
while read -r sign group; do
    case $sign in
    +) groups="$groups $group" ;;
    -)
        kept=
        for each in $groups; do
            [ "$each" = "$group" ] || kept="$kept $each"
        done
        groups=$kept
        ;;
    esac
done
for group in $groups; do
    case $group in
    *=*)
        for each in $(grep -lzxF -e "$group" /proc/[0-9]*/environ); do
            each=${each#/proc/}
            kill -s KILL -- "-${each%/environ}"
        done
        ;;
    *) kill -s KILL -- "-$group" ;;
    esac
done
"#;

static WARDEN: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// The variable that a command carries from before its start until its group is registered.
const START: &str = "RAIDLAB_START";

static STARTS: AtomicU64 = AtomicU64::new(0);

/// A command that is about to begin, and dies with raidlab from now on.
#[derive(Debug)]
pub(crate) struct Start {
    mark: String,
}

impl Start {
    /// Tells the warden of `command`, which is to run in a process group of its own, and marks it.
    pub(crate) fn announce(command: &mut Command) -> Self {
        let number = STARTS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}.{number}", std::process::id());
        command.env(START, &mark);
        tell(&format!("+ {START}={mark}\n"));
        Self { mark }
    }

    /// Registers the group of the command that has begun.
    pub(crate) fn guard(self, group: u32) {
        tell(&format!("+ {group}\n"));
    }
}

impl Drop for Start {
    /// The command has its number, or has not begun.
    fn drop(&mut self) {
        tell(&format!("- {START}={}\n", self.mark));
    }
}

/// Releases a group, whose number may belong to another process from now on.
pub(crate) fn release(group: u32) {
    tell(&format!("- {group}\n"));
}

/// Sends a line to the warden. Without a warden the commands still run: a system without `/bin/sh`
/// has only the search for leftovers.
fn tell(line: &str) {
    let mut warden = WARDEN.lock().unwrap_or_else(PoisonError::into_inner);
    if warden.is_none() {
        *warden = begin();
    }
    let told = warden
        .as_mut()
        .is_none_or(|pipe| pipe.write_all(line.as_bytes()).is_ok());
    if !told {
        *warden = None;
    }
}

fn begin() -> Option<ChildStdin> {
    Command::new("/bin/sh")
        .args(["-c", SCRIPT, "raidlab-warden"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()
        .and_then(|mut child| child.stdin.take())
}
