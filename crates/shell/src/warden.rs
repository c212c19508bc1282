//! The warden: ends the processes that raidlab started when raidlab itself is killed.
//!
//! A process that dies by SIGKILL cannot clean up, and its children would go on writing to disks
//! that the next run needs. So beside the first command a small shell is started, the warden, whose
//! standard input is a pipe from raidlab. It is told each process group that begins (`+ 123`) and
//! ends (`- 123`). When raidlab has ended, for whatever reason, the pipe closes, and the warden
//! kills the groups that are left, including children of the tools, which the parent-death signal
//! of Linux's prctl(2) would not reach, and on FreeBSD too.
//!
//! A process that left its group (a daemon) is not found this way; [`crate::leftovers`] finds it
//! by its environment.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
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
    kill -s KILL -- "-$group"
done
"#;

static WARDEN: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Starts the warden ahead of a command, which is then known to it a moment after its start, and
/// not only once the warden runs.
pub(crate) fn stand_by() {
    begin_if_none(&mut WARDEN.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Registers a group, which from now on dies with raidlab.
pub fn guard(group: u32) {
    tell(&format!("+ {group}\n"));
}

/// Releases a group, whose number may belong to another process from now on.
pub fn release(group: u32) {
    tell(&format!("- {group}\n"));
}

/// Sends a line to the warden. Without a warden the commands still run: a system without `/bin/sh`
/// has only the search for leftovers.
fn tell(line: &str) {
    let mut warden = WARDEN.lock().unwrap_or_else(PoisonError::into_inner);
    begin_if_none(&mut warden);
    let told = warden
        .as_mut()
        .is_none_or(|pipe| pipe.write_all(line.as_bytes()).is_ok());
    if !told {
        *warden = None;
    }
}

fn begin_if_none(warden: &mut Option<ChildStdin>) {
    if warden.is_none() {
        *warden = begin();
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
