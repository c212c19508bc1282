//! One boot: QEMU's process and the files around it, gone when it is dropped.

use crate::guest::{Guest, GuestError, Job, Stream, job_archive};
use crate::machine::{BootFiles, PORTS, QEMU};
use raidlab_initramfs::Archive;
use raidlab_units::{PathError, cannot};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time between two looks at the machine and its ports.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The times of a machine's stages, since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// The time at which it was about to run the command; zero when it never was.
    pub(crate) ready: Duration,
    /// The time at which it ended; `None` when it was ended because its time had passed.
    pub(crate) ended: Option<Duration>,
}

/// A running machine.
pub(crate) struct Boot {
    folder: TempDir,
    emulator: Child,
    begun: Instant,
}

impl Boot {
    /// Writes the files and starts QEMU.
    ///
    /// setpriv ends QEMU when the thread that started it is gone, even by a signal that cannot be
    /// caught; dropping ends it at once.
    pub(crate) fn start(guest: &Guest, job: &Job) -> Result<Self, GuestError> {
        let folder = tempfile::Builder::new()
            .prefix("raidlab-guest-")
            .tempdir()
            .map_err(cannot("use", &std::env::temp_dir()))?;
        let files = BootFiles(folder.path());
        write_initrd(&files.initrd(), guest.initramfs.archive(), job)?;
        for (index, disk) in guest.machine.disks.iter().enumerate() {
            let path = files.disk(index);
            File::create(&path)
                .and_then(|file| file.set_len(disk.size.0))
                .map_err(cannot("use", &path))?;
        }
        for name in PORTS {
            let path = files.port(name);
            File::create(&path).map_err(cannot("use", &path))?;
        }
        let said = said_file(folder.path());
        let said = File::create(&said).map_err(cannot("use", &said))?;
        let emulator = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", QEMU])
            .args(guest.machine.arguments(&guest.kernel.image, files))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .map_err(|source| GuestError::Program {
                program: "setpriv",
                package: "util-linux",
                source,
            })?;
        Ok(Self {
            folder,
            emulator,
            begun: Instant::now(),
        })
    }

    /// Waits for the machine's end and passes on the command's output meanwhile; ends the machine
    /// when the limit passes first.
    pub(crate) fn wait(
        &mut self,
        limit: Option<Duration>,
        hear: &mut dyn FnMut(Stream, &str),
    ) -> Result<Times, GuestError> {
        let files = BootFiles(self.folder.path());
        let result = files.port("result");
        let mut streams = [
            (Stream::Output, Tail::open(files.port("stdout"))?),
            (Stream::Error, Tail::open(files.port("stderr"))?),
        ];
        let mut ready = Duration::ZERO;
        loop {
            let ended = self.emulator.try_wait().map_err(GuestError::Lost)?;
            let now = self.begun.elapsed();
            // The first frame on this port says that the command is about to run.
            if ready.is_zero() && fs::metadata(&result).map_err(cannot("use", &result))?.len() > 0 {
                ready = now;
            }
            for (stream, tail) in &mut streams {
                let text = tail.more(ended.is_some())?;
                if !text.is_empty() {
                    hear(*stream, &text);
                }
            }
            if let Some(status) = ended {
                self.judge(status)?;
                let ended = Some(now);
                return Ok(Times { ready, ended });
            }
            if limit.is_some_and(|limit| now >= limit) {
                self.end();
                return Ok(Times { ready, ended: None });
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Checks that there was a QEMU at all: setpriv ends with 127 where it finds no such program.
    fn judge(&self, status: ExitStatus) -> Result<(), GuestError> {
        if status.code() != Some(127) {
            return Ok(());
        }
        Err(GuestError::Program {
            program: QEMU,
            package: "qemu-system-x86",
            source: io::Error::other(self.said()),
        })
    }

    /// The kernel's text on its console.
    pub(crate) fn console(&self) -> String {
        lossy(&BootFiles(self.folder.path()).console())
    }

    /// QEMU's own text on its standard output and error.
    pub(crate) fn said(&self) -> String {
        lossy(&said_file(self.folder.path())).trim().to_owned()
    }

    /// The bytes that came out of the result port.
    pub(crate) fn result(&self) -> Result<Vec<u8>, PathError> {
        let path = BootFiles(self.folder.path()).port("result");
        fs::read(&path).map_err(cannot("use", &path))
    }

    /// The text that came out of a port of text.
    pub(crate) fn port(&self, name: &str) -> Result<String, PathError> {
        let path = BootFiles(self.folder.path()).port(name);
        let bytes = fs::read(&path).map_err(cannot("use", &path))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn end(&mut self) {
        // QEMU may have ended by itself: then there is nothing to do.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

impl Drop for Boot {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes the first file system with the job's files behind it: the kernel
/// unpacks both, one over the other.
fn write_initrd(path: &Path, base: &Archive, job: &Job) -> Result<(), PathError> {
    let file = File::create(path).map_err(cannot("use", path))?;
    let mut file = io::BufWriter::new(file);
    base.write_to(&mut file)
        .and_then(|()| job_archive(job).write_to(&mut file))
        .and_then(|()| io::Write::flush(&mut file))
        .map_err(cannot("use", path))
}

/// The file in which QEMU's own output is kept.
fn said_file(folder: &Path) -> PathBuf {
    folder.join("qemu")
}

/// Reads a file as text; empty where there is none: the machine may have ended before it was made.
fn lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A file that grows, read in whole lines.
struct Tail {
    path: PathBuf,
    file: File,
    unfinished: Vec<u8>,
}

impl Tail {
    fn open(path: PathBuf) -> Result<Self, PathError> {
        let file = File::open(&path).map_err(cannot("use", &path))?;
        Ok(Self {
            path,
            file,
            unfinished: Vec::new(),
        })
    }

    /// Returns the lines that have come since the last call; at the end also a last line
    /// without its end.
    fn more(&mut self, at_end: bool) -> Result<String, PathError> {
        self.file
            .read_to_end(&mut self.unfinished)
            .map_err(cannot("use", &self.path))?;
        let whole = match self.unfinished.iter().rposition(|byte| *byte == b'\n') {
            _ if at_end => self.unfinished.len(),
            Some(last) => last + 1,
            None => 0,
        };
        let lines: Vec<u8> = self.unfinished.drain(..whole).collect();
        Ok(String::from_utf8_lossy(&lines).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;
    use std::fs::{File, OpenOptions};
    use std::io::Write;

    #[test]
    fn a_growing_file_is_passed_on_in_whole_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stdout");
        File::create(&path).expect("made");
        let mut file = OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("it is there");
        let mut tail = Tail::open(path).expect("it is there");
        let mut more = |text: &str, at_end| {
            file.write_all(text.as_bytes()).expect("written");
            tail.more(at_end).expect("read")
        };
        assert_eq!(more("", false), "");
        assert_eq!(more("one\ntw", false), "one\n");
        assert_eq!(more("o", false), "");
        assert_eq!(more("\nthr", false), "two\n");
        assert_eq!(more("ee", true), "three");
    }
}
