//! The consoles were recorded on QEMU 7.2 with Debian's kernel
//! 6.1.0-56-cloud-amd64 (6.1.192-2): an archive without `/init`, one too large
//! for 280 MB and for 192 MB, and a first program that takes all memory.

use super::{Reason, excerpt, reason};

#[test]
fn a_panic_is_told_with_its_message() {
    assert_eq!(
        reason(include_str!("data/no-init.txt")),
        Reason::Panic("VFS: Unable to mount root fs on unknown-block(0,0)".to_owned())
    );
}

#[test]
fn a_first_file_system_that_does_not_fit_is_told_before_the_panic_it_causes() {
    assert_eq!(
        reason(include_str!("data/memory-too-small.txt")),
        Reason::MemoryTooSmall
    );
    assert_eq!(
        reason(include_str!("data/deadlocked.txt")),
        Reason::MemoryTooSmall
    );
}

#[test]
fn a_program_that_was_ended_for_memory_is_named() {
    assert_eq!(
        reason(include_str!("data/out-of-memory.txt")),
        Reason::OutOfMemory("busybox".to_owned())
    );
}

#[test]
fn a_quiet_console_says_nothing() {
    assert_eq!(
        reason("[    9.582516] reboot: Power down\n"),
        Reason::Unknown
    );
    assert_eq!(reason(""), Reason::Unknown);
}

#[test]
fn without_a_panic_the_last_lines_are_shown() {
    let console: String = (0..40).map(|line| format!("line {line}\r\n\r\n")).collect();
    let shown = excerpt(&console);
    assert!(
        shown.starts_with("line 28\n") && shown.ends_with("\nline 39"),
        "{shown}"
    );
}

#[test]
fn a_panic_is_shown_with_what_came_before_it() {
    let trace: String = (0..40)
        .map(|line| format!("  function{line}+0x18\n"))
        .collect();
    let console = "earlier\n".repeat(9) + include_str!("data/no-init.txt") + &trace;
    let shown: Vec<_> = excerpt(&console).lines().map(str::to_owned).collect();
    assert_eq!(shown.len(), 12);
    assert!(shown[3].contains("Can't open blockdev") && shown[4].contains("Kernel panic"));
}
