//! What is fuzzed: every reader of what comes from outside, a module for each, with what must
//! hold of any bytes.
//!
//! A target of `fuzz_targets` is such a module as a program. Built for fuzzing (`--cfg fuzzing`,
//! which `checks/fuzz` and `cargo fuzz` give) it draws inputs by libFuzzer. Built in any other
//! way it takes the files that it is given, one after the other, such as an input that was found.

pub mod array_state;
pub mod bitmap;
pub mod calendar_guest;
pub mod calendar_messages;
pub mod control;
pub mod job_file;
pub mod nbd_server;
pub mod preset;
pub mod suite;
pub mod superblock;
pub mod tool_output;

/// The program of a target: what its module's `run` is given is libFuzzer's, or files.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| raidlab_fuzz::$name::run(bytes));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            for file in std::env::args_os().skip(1) {
                raidlab_fuzz::$name::run(&std::fs::read(file)?);
            }
            Ok(())
        }
    };
}

/// The text that these bytes begin with, as far as it is UTF-8.
fn text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |first| first.valid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_random::Stream;
    use std::fs;
    use std::path::Path;

    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 11] = [
        ("array_state", array_state::run),
        ("bitmap", bitmap::run),
        ("calendar_guest", calendar_guest::run),
        ("calendar_messages", calendar_messages::run),
        ("control", control::run),
        ("job_file", job_file::run),
        ("nbd_server", nbd_server::run),
        ("preset", preset::run),
        ("suite", suite::run),
        ("superblock", superblock::run),
        ("tool_output", tool_output::run),
    ];

    /// The file of inputs names them for `checks/fuzz`: a target, and folders.
    #[test]
    fn what_the_targets_begin_with_is_there_and_holds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let inputs = fs::read_to_string(root.join("fuzz/inputs")).expect("the list");
        for line in inputs.lines().filter(|line| !line.starts_with('#')) {
            let (name, folders) = line.split_once(' ').expect("a target and its folders");
            let (_, run) = TARGETS.iter().find(|(of, _)| *of == name).expect(name);
            for folder in folders.split(' ') {
                let files = fs::read_dir(root.join(folder)).expect(folder);
                let files: Vec<_> = files.map(|file| file.expect(folder).path()).collect();
                assert!(files.iter().any(|file| file.is_file()), "{folder}");
                for file in files.iter().filter(|file| file.is_file()) {
                    run(&fs::read(file).expect(folder));
                }
            }
        }
    }

    #[test]
    fn noise_holds_at_every_target() {
        let mut stream = Stream::new(1);
        for (_, run) in TARGETS {
            for length in (0..40).chain([500, 5000]) {
                let bytes: Vec<u8> = (0..length).map(|_| stream.below(256) as u8).collect();
                run(&bytes);
            }
        }
    }

    #[test]
    fn text_ends_where_it_is_none() {
        assert_eq!(text(b"one\ntwo"), "one\ntwo");
        assert_eq!(text(b"one\xfftwo"), "one");
        assert_eq!(text(b""), "");
    }
}
