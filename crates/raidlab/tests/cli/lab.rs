//! A folder of its own for each test, and the program run in it.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A suite that takes a blink: two jobs, a member taken out and put back, a
/// job while it is rebuilt.
pub const SUITE: &str = r#"schema = 1
name = "short"
title = "A short one"
description = "For tests."
source = "here"
disks = ["wd4000fyyz", "wd4000fyyz"]
subjects = ["md", "gflash", "gmirror", "zfs"]

[[step]]
job = "1"
title = "random read 4 KiB, queue depth 4"
class = "random-read"
fio = "--rw=randread --bs=4k --iodepth=4 --filesize=8g --runtime=1 --direct=1 --gtod_reduce=1"

[[step]]
job = "2"
title = "two random reads to one write"
class = "mixed"
fio = "--rw=randrw --rwmixread=67 --bs=8k --iodepth=8 --filesize=8g --runtime=1 --direct=1"

[[step]]
event = "remove"
member = 1

[[step]]
wait = "1s"

[[step]]
event = "insert"
member = 1

[[step]]
wait = "1m"

[[step]]
job = "3"
title = "random read during the rebuild"
class = "resync"
fio = "--rw=randread --bs=4k --iodepth=32 --filesize=8g --runtime=1 --direct=1 --gtod_reduce=1"
"#;

/// Rows of [`SUITE`]'s jobs for each subject and fit: job 2 reads and writes.
pub const JOB_ROWS: usize = 4;

/// With those of the rebuild and of the time without a member.
pub const ROWS: usize = JOB_ROWS + 2;

/// A fio job file that takes a blink.
pub const JOB_FILE: &str = "\
[global]
ioengine=libaio
direct=1
bs=4k
size=1g
runtime=1

[reads]
rw=randread
iodepth=8

[writes]
stonewall
rw=randwrite
";

/// What is typed after `raidlab`: words with blanks between them, of which `'one word'` is one; or
/// a list of words.
pub trait CommandLine: Debug {
    /// Returns the words that the program is started with.
    fn words(&self) -> Vec<String>;
}

impl CommandLine for str {
    fn words(&self) -> Vec<String> {
        let quoted = self.split('\'').enumerate();
        let words = quoted.flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    }
}

impl<T: CommandLine + ?Sized> CommandLine for &T {
    fn words(&self) -> Vec<String> {
        (*self).words()
    }
}

impl CommandLine for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl<T: AsRef<str> + Debug> CommandLine for [T] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<T: AsRef<str> + Debug, const COUNT: usize> CommandLine for [T; COUNT] {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl<T: AsRef<str> + Debug> CommandLine for Vec<T> {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

/// A folder to run in.
pub struct Lab {
    folder: TempDir,
}

/// What a run of the program gave.
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Lab {
    /// A new folder with `short.toml` and `jobs.fio` in it.
    pub fn new() -> Self {
        let lab = Self {
            folder: TempDir::new().expect("a folder"),
        };
        lab.write("short.toml", SUITE);
        lab.write("jobs.fio", JOB_FILE);
        lab
    }

    /// A file's path.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    /// The names of all files, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    /// The program, in this folder.
    pub fn command(&self, arguments: &(impl CommandLine + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raidlab"));
        command
            .args(arguments.words())
            .current_dir(self.folder.path())
            // The width of help and the look of tables.
            .env_remove("COLUMNS")
            .env_remove("TERM")
            // No kernel that somebody has built here.
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program.
    pub fn run(&self, arguments: &(impl CommandLine + ?Sized)) -> Ran {
        let output = self.command(arguments).output().expect("it starts");
        Ran::new(output)
    }

    /// Runs the program, which must succeed; its standard output.
    pub fn ok(&self, arguments: &(impl CommandLine + ?Sized)) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }

    /// Runs the program, which must fail with `code`, say why in the usual
    /// form, print nothing else and change no file; its standard error.
    pub fn fails(&self, code: i32, arguments: &(impl CommandLine + ?Sized)) -> String {
        let before = contents(self.folder.path());
        let ran = self.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        let after = contents(self.folder.path());
        assert_eq!(before, after, "{arguments:?} changed files");
        ran.stderr
    }
}

impl Ran {
    /// What a process gave.
    pub fn new(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// Every file of a folder with its bytes, sorted by name.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<(PathBuf, Vec<u8>)> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), fs::read(path).unwrap_or_default()))
        .collect();
    files.sort();
    files
}
