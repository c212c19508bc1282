//! With which code the program ends, and errors of rooms that only commands know.

pub use raidlab_runs::{Failure, Kind};
use std::io::{self, Write};
use std::process::ExitCode;

/// The program's exit code. `raidlab --help` lists them too.
const fn exit_code(kind: Kind) -> u8 {
    match kind {
        Kind::ReaderGone => 0,
        Kind::Run => 1,
        // As clap's for arguments that it refuses.
        Kind::Usage => 2,
        Kind::Input => 3,
        Kind::Output => 4,
        // As a shell's for a process that SIGINT ended.
        Kind::Interrupted => 130,
    }
}

/// Prints a failure on standard error; the code to end with.
pub fn report(failure: &Failure) -> ExitCode {
    if failure.kind() != Kind::ReaderGone {
        // Nothing is left to be done if standard error fails too.
        write!(io::stderr().lock(), "{failure}").ok();
    }
    ExitCode::from(exit_code(failure.kind()))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Kind, exit_code};
    use std::io;

    #[test]
    fn a_reader_that_left_is_no_error() {
        let gone = Failure::write_output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(gone.kind(), Kind::ReaderGone);
        assert_eq!(exit_code(gone.kind()), 0);
        let full = Failure::write_output(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(exit_code(full.kind()), 4);
    }
}
