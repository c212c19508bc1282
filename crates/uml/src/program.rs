//! A program without the parts that only debuggers read.
//!
//! Running a program needs the segments that its program headers name; symbols
//! and debug information lie behind them and are most of a development build.
//! The guest's first file system lies in its memory, so they are left out.

/// Cuts off the parts of a program that it does not need to run; anything that is no 64-bit
/// little-endian ELF file stays as it is.
pub(crate) fn trimmed(mut program: Vec<u8>) -> Vec<u8> {
    if let Some(end) = end_of_segments(&program) {
        program.truncate(end);
        // The section headers are gone: their place, number and names are zeroed (e_shoff, e_shnum,
        // e_shstrndx of elf(5)).
        program[0x28..0x30].fill(0);
        program[0x3c..0x40].fill(0);
    }
    program
}

/// The first byte behind all segments and headers.
fn end_of_segments(program: &[u8]) -> Option<usize> {
    const SIZE: usize = 56;
    if !program.starts_with(b"\x7fELF\x02\x01") || program.len() < 64 {
        return None;
    }
    let number = |at: usize, length: usize| -> Option<usize> {
        let bytes = program.get(at..at.checked_add(length)?)?;
        let mut word = [0; 8];
        word[..length].copy_from_slice(bytes);
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    let (headers, count) = (number(0x20, 8)?, number(0x38, 2)?);
    let mut end = headers.checked_add(count.checked_mul(SIZE)?)?.max(64);
    for index in 0..count {
        let header = headers.checked_add(index.checked_mul(SIZE)?)?;
        let (offset, length) = (
            number(header.checked_add(8)?, 8)?,
            number(header.checked_add(32)?, 8)?,
        );
        end = end.max(offset.checked_add(length)?);
    }
    (end <= program.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn this_very_program_is_smaller_and_still_runs() {
        let path = std::env::current_exe().expect("a path");
        let whole = fs::read(path).expect("it can be read");
        let length = whole.len();
        let program = trimmed(whole);
        assert!(program.len() < length, "{} of {length}", program.len());
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("program");
        fs::write(&file, &program).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("set");
        let listed = Command::new(&file).arg("--list").output().expect("it runs");
        assert!(listed.status.success());
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains("still_runs"), "{listed}");
    }

    #[test]
    fn what_is_no_program_stays() {
        for text in [&b"#!/bin/sh\n"[..], b"", b"\x7fELF\x02\x01", &[0xff; 100]] {
            assert_eq!(trimmed(text.to_vec()), text);
        }
        let mut wrong = b"\x7fELF\x02\x01".to_vec();
        wrong.resize(200, 0xff);
        assert_eq!(trimmed(wrong.clone()), wrong);
    }
}
