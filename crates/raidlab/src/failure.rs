//! The codes with which the program ends, and the printing of failures.

pub use raidlab_runs::{Failure, Kind};
use std::io::{self, Write};
use std::process;

/// A code with which the program ends.
#[derive(Debug)]
pub struct ExitCode {
    /// The kind of failure for which the program ends with this code.
    kind: Kind,
    /// The number that the system is given.
    pub code: u8,
    /// The meaning of the code, in a line.
    pub says: &'static str,
    /// An example of where a user meets it.
    pub example: &'static str,
}

/// All exit codes, in the order of `raidlab --help` and of `docs/reference/exit-codes.md`.
pub const EXIT_CODES: [ExitCode; 7] = [
    ExitCode {
        kind: Kind::ReaderGone,
        code: 0,
        says: "everything was done",
        example: "Also where the reader of a pipe leaves early, as `head` does. What `audit`, \
                  `claims`, `compare` and `status` find out is no failure.",
    },
    ExitCode {
        kind: Kind::Run,
        code: 1,
        says: "the run failed, or was done in part only",
        example: "An experiment breaks off, and the others go on; a machine lacks what is needed; \
                  `simulate` finds a promise that was broken.",
    },
    // The code is clap's for arguments that it refuses.
    ExitCode {
        kind: Kind::Usage,
        code: 2,
        says: "wrong arguments, or a name that is not built in",
        example: "`raidlab run nosuch`; nobody can be asked before disks are overwritten.",
    },
    ExitCode {
        kind: Kind::Input,
        code: 3,
        says: "a file given as input is missing or wrong",
        example: "`raidlab run ./nosuch.toml`; a store that is none; a disk that may not be used.",
    },
    ExitCode {
        kind: Kind::Output,
        code: 4,
        says: "the store, the report or other output cannot be written",
        example: "A full disk; a folder that is not there.",
    },
    // The code is that of sysexits.h for a command to be tried again later.
    ExitCode {
        kind: Kind::StartAgain,
        code: 75,
        says: "a shard was stopped before its end: start it again, it goes on",
        example: "SIGTERM or SIGUSR1 to `raidlab run --shard`; `--stop-after 55m`.",
    },
    // The code is a shell's for a process that SIGINT ended.
    ExitCode {
        kind: Kind::Interrupted,
        code: 130,
        says: "interrupted by Ctrl-C or SIGTERM; complete rows are kept",
        example: "Also where somebody who is asked does not consent.",
    },
];

/// The program's exit code.
pub fn exit_code(kind: Kind) -> u8 {
    let found = EXIT_CODES.iter().find(|one| one.kind == kind);
    found.map_or(1, |one| one.code)
}

/// The kind of failure for which another program of raidlab has ended with this code, although it
/// should not have ended; a killed program may have no code.
pub fn kind_of(code: Option<i32>) -> Kind {
    let is_it = |one: &&ExitCode| one.code > 0 && code == Some(one.code.into());
    let found = EXIT_CODES.iter().find(is_it);
    found.map_or(Kind::Run, |one| one.kind)
}

/// Prints a failure on standard error and returns the code to end with.
pub fn report(failure: &Failure) -> process::ExitCode {
    if failure.kind() != Kind::ReaderGone {
        // Nothing is left to be done if standard error fails too.
        write!(io::stderr().lock(), "{failure}").ok();
    }
    exit_code(failure.kind()).into()
}

#[cfg(test)]
mod tests {
    use super::{EXIT_CODES, Failure, Kind, exit_code, kind_of};
    use std::fmt::Write;
    use std::io;

    #[test]
    fn a_reader_that_left_is_no_error() {
        let gone = Failure::write_output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(gone.kind(), Kind::ReaderGone);
        assert_eq!(exit_code(gone.kind()), 0);
        let full = Failure::write_output(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(exit_code(full.kind()), 4);
    }

    #[test]
    fn every_kind_of_failure_has_a_code_of_its_own() {
        let kinds = EXIT_CODES.iter().map(|one| one.kind);
        assert_eq!(kinds.collect::<Vec<_>>(), Kind::ALL);
        assert!(EXIT_CODES.is_sorted_by(|one, next| one.code < next.code));
        let again = EXIT_CODES[1..]
            .iter()
            .map(|one| kind_of(Some(one.code.into())));
        assert_eq!(again.collect::<Vec<_>>(), Kind::ALL[1..]);
        assert_eq!([kind_of(Some(0)), kind_of(None)], [Kind::Run; 2]);
    }

    /// `RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab --bin raidlab exit_codes` writes it.
    #[test]
    fn the_page_of_exit_codes_is_the_table() {
        let mut page = String::from(
            "# Exit codes\n\nThis page lists the exit codes of `raidlab`, which are the same for \
             every command. An error is\nprinted on standard error as `error:`, its causes as \
             `caused by:`, and a remedy, if one is known, as `help:`.\n\n| code | meaning | for example |\n|---|---|---|\n",
        );
        for one in &EXIT_CODES {
            let row = writeln!(page, "| {} | {} | {} |", one.code, one.says, one.example);
            row.expect("a string takes all");
        }
        page.push_str(
            "\n`raidlab serve` that is asked to stop, by `raidlab stop`, Ctrl-C or SIGTERM, ends \
             with 0.\n\nThe page is made from the program's own table by\n`RAIDLAB_WRITE_DOCS=1 cargo test \
             -p raidlab --bin raidlab exit_codes`.\n",
        );
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/exit-codes.md"
        );
        if std::env::var_os("RAIDLAB_WRITE_DOCS").is_some() {
            std::fs::write(path, &page).expect("the page is written");
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == page,
            "docs/reference/exit-codes.md is not the table's"
        );
    }
}
