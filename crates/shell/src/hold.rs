//! Locks and claims: exclusive rights of one process, for as long as it lives.
//!
//! A lock is taken on a file by flock(2), so the kernel releases it when its holder dies, however
//! it dies. The file names the holder. On a machine behind ssh a program there holds it, which ends
//! with its session.
//!
//! A claim is a block device opened exclusively: while it lives no other program can mount the
//! device, make it a member of an array or claim it, and the name leads to no other disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A lock, released when this is dropped or its process dies.
pub struct Lock {
    /// The locked file, or the program on another machine, which ends when it is dropped.
    _held: Box<dyn Send>,
}

impl Lock {
    /// A lock that is held by `holder` until it is dropped.
    pub(crate) fn held_by(holder: Box<dyn Send>) -> Self {
        Self { _held: holder }
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lock")
    }
}

/// The reason why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has the lock.
    #[error("{holder} goes on (lock {})", .path.display())]
    Held {
        /// The path of the lock's file.
        path: PathBuf,
        /// The holder, in that process's own words.
        holder: String,
    },
    /// The file cannot be used.
    #[error("cannot lock {}", .path.display())]
    Io {
        /// The path of the lock's file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

#[derive(Debug)]
struct LockedFile {
    path: PathBuf,
    file: File,
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Removed while the lock is still held: a waiting process checks that the name is still
        // that of its file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes a lock on this machine; `holder` names the holder to other processes.
///
/// # Errors
/// When another process has it, or the file cannot be created.
pub fn lock_file(path: &Path, holder: &str) -> Result<Lock, LockError> {
    let failed = |source| LockError::Io {
        path: path.to_owned(),
        source,
    };
    loop {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // The holder may not have written its name yet.
                file.read_to_string(&mut holder).map_err(failed)?;
                return Err(LockError::Held {
                    path: path.to_owned(),
                    holder: or_somebody(&holder),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let ours = file.metadata().map_err(failed)?;
        let named = fs::symlink_metadata(path);
        if !named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
            // The previous holder has just released it, and removed its file.
            continue;
        }
        // From here on the lock is removed with its holder: also where a full disk does not take
        // the holder's name.
        let mut held = LockedFile {
            path: path.to_owned(),
            file,
        };
        let file = &mut held.file;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(holder.as_bytes()))
            .map_err(failed)?;
        return Ok(Lock {
            _held: Box::new(held),
        });
    }
}

pub(crate) fn or_somebody(holder: &str) -> String {
    match holder.trim() {
        "" => "another process".to_owned(),
        holder => holder.to_owned(),
    }
}

/// The identity of the disk behind a name: another disk that gets the same name and number later
/// has another sequence number (Linux 5.15 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDisk {
    /// The device's number.
    pub number: u64,
    /// The sequence number among all disks since the machine started.
    pub sequence: Option<u64>,
}

impl std::fmt::Display for KernelDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = (
            rustix::fs::major(self.number),
            rustix::fs::minor(self.number),
        );
        write!(f, "{major}:{minor}")?;
        match self.sequence {
            Some(sequence) => write!(f, ", disk {sequence} since the start"),
            None => Ok(()),
        }
    }
}

/// A block device of this machine, opened exclusively.
#[derive(Debug)]
pub struct Claim {
    file: File,
    disk: KernelDisk,
}

impl Claim {
    /// Claims a device.
    pub(crate) fn take(device: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::EXCL.bits() as i32)
            .open(device)?;
        let found = file.metadata()?;
        if !found.file_type().is_block_device() {
            return Err(io::Error::other("it is not a block device"));
        }
        let number = found.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let sequence = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/diskseq"));
        let sequence = sequence.ok().and_then(|text| text.trim().parse().ok());
        Ok(Self {
            file,
            disk: KernelDisk { number, sequence },
        })
    }

    /// The identity of the disk.
    #[must_use]
    pub fn disk(&self) -> KernelDisk {
        self.disk
    }

    /// Gives up the exclusive right, for a tool that claims the device itself; the descriptor stays
    /// open, so that the name cannot lead to another disk.
    ///
    /// # Errors
    /// When the device can no longer be opened.
    pub fn relax(self) -> io::Result<File> {
        use std::os::fd::AsRawFd;
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Local;
    use crate::target::{PATIENCE, TargetError, lock_by_program};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_second_one_is_told_who_has_the_lock_and_gets_it_when_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = lock_file(&path, "run A").unwrap();
        let error = lock_file(&path, "run B").unwrap_err();
        assert!(matches!(&error, LockError::Held { holder, .. } if holder == "run A"));
        drop(first);
        assert!(!path.exists());
        drop(lock_file(&path, "run B").unwrap());
        // What a killed holder leaves is no lock.
        fs::write(&path, "run C").unwrap();
        lock_file(&path, "run D").unwrap();
        // Nor is anything written through a link that was put there.
        let other = folder.path().join("other");
        fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        lock_file(&path, "run E").unwrap_err();
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
    }

    /// Names the lock for the child process; unset in an ordinary test run.
    const LOCK_VARIABLE: &str = "RAIDLAB_TEST_LOCK";

    #[test]
    fn a_lock_for_whose_words_there_is_no_room_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        // No file may have a byte: as on a full disk.
        let without_room = "trap '' XFSZ; ulimit -f 0; exec \"$0\" --exact \"$1\"";
        let child = std::process::Command::new("sh")
            .args(["-c", without_room])
            .arg(std::env::current_exe().unwrap())
            .arg("hold::tests::child_without_room")
            .env(LOCK_VARIABLE, &path)
            .stdout(std::process::Stdio::null())
            .status();
        assert!(child.unwrap().success());
        assert!(!path.exists());
    }

    #[test]
    fn child_without_room() {
        if let Some(path) = std::env::var_os(LOCK_VARIABLE) {
            lock_file(Path::new(&path), "run A").unwrap_err();
        }
    }

    #[test]
    fn threads_that_take_turns_never_have_it_together() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let inside = AtomicU32::new(0);
        let turns = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while turns.load(Ordering::SeqCst) < 500 {
                        let Ok(lock) = lock_file(&path, "a thread") else {
                            continue;
                        };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        turns.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_s_lock_is_the_same_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let text = path.to_str().unwrap();
        let local = Local::new();
        let held = lock_by_program(&local, text, "run A").unwrap();
        let error = lock_by_program(&local, text, "run B").unwrap_err();
        assert!(matches!(&error, TargetError::Locked { holder, .. } if holder == "run A"));
        lock_file(&path, "run C").unwrap_err();
        drop(held);
        let begun = Instant::now();
        while lock_file(&path, "run D").is_err() {
            assert!(begun.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Who removes what a dead run has left finds its programs by their environment, and must
    /// not find the one that holds his own lock.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_s_lock_has_nothing_of_a_run_in_its_environment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let text = path.to_str().unwrap();
        let local = Local::new().environment("RAIDLAB_TEST_MARK", text);
        let _held = lock_by_program(&local, text, "run A").unwrap();
        let with = |file: &str, words: &str| {
            let all = fs::read_dir("/proc").unwrap().flatten();
            let says = |entry: &fs::DirEntry| {
                let said = fs::read(entry.path().join(file)).unwrap_or_default();
                said.split(|byte| *byte == 0)
                    .any(|one| one == words.as_bytes())
            };
            all.filter(says).count()
        };
        assert!(with("cmdline", text) > 0, "nobody holds it");
        assert_eq!(with("environ", &format!("RAIDLAB_TEST_MARK={text}")), 0);
    }
}
