//! One boot: the kernel's process, with the files around it.
//!
//! The kernel runs in a folder of its own in shared memory, in which the sockets of its clock and
//! its disks stand, and writes to two files there: its console, and the frames of the programs in
//! it. Files never make it wait, as pipes would. All that could differ from boot to boot is fixed:
//! its command line, environment and the length of every path; its addresses (`setarch -R`); its
//! entropy; the size of its memory and of the files laid into it, whatever size raidlab itself has
//! ([`crate::image`]). It runs on one processor, together with the clock's thread, since only one
//! of the two ever runs.
//!
//! The process leads a group with all programs that run in it, and the group
//! is killed when this is dropped, and when raidlab is killed, whichever way.

use crate::cache::Kernel;
use crate::charges::Charges;
use crate::frames::{Frame, FrameError, FrameReader};
use crate::image::{AGENT, AGENT_SLOT};
use raidlab_initramfs::{Archive, Reason};
use raidlab_shell::{Command, Local, Output, Running, Target, TargetError};
use raidlab_units::{PathError, cannot};
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The folder in which a boot's folder is made: the kernel's memory is a file beside it, and must
/// not go to a disk.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// The name of the clock's socket in the boot's folder.
pub const CLOCK: &str = "calendar";

/// The beginning of the names of such folders; the owner's process follows.
const PREFIX: &str = "raidlab-kernel-";

/// The time that a kernel that is stopped may take to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The script that starts the kernel in its folder: `$0` is the folder. A shell tells its programs
/// the folder that it is in and the one that it was in before, so the environment is made after it.
const SCRIPT: &str = r#"cd "$0" && exec env -i TMPDIR=/dev/shm PATH=/usr/bin:/bin "$@" \
    </dev/null >console 2>&1 3>frames"#;

/// The number of digits of the owner's process number in a folder's name: paths have one length.
const OWNER_DIGITS: usize = 10;

/// The machine that is booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The guest's memory in bytes, beside the slot in which raidlab's own program lies.
    pub memory_bytes: u64,
    /// The seed from which the guest gets its entropy.
    pub seed: u64,
    /// The virtual time that reading the clock takes, in nanoseconds.
    pub clock_cost_ns: u32,
    /// The virtual time that a system call takes, in nanoseconds.
    pub call_cost_ns: u32,
    /// The same time for one that reads the clock, in nanoseconds; `None`: as any other.
    pub clock_call_cost_ns: Option<u32>,
    /// The costs of computing; `None`: nothing but the above.
    pub charges: Option<Charges>,
    /// The number of disks: `/dev/vda` and so on.
    pub disks: usize,
    /// The number of commands that the guest lets into one disk at a time, at least 1: 32 for SATA.
    pub queue_depth: usize,
    /// The processor to run on; `None`: any.
    pub processor: Option<usize>,
    /// Further words of the command line. Of those that the kernel does not know, `NAME=VALUE`
    /// is put into the environment of the first program.
    pub words: Vec<String>,
}

impl Machine {
    /// The kernel's command line.
    #[must_use]
    pub fn command_line(&self, kernel: &Kernel) -> Vec<String> {
        let mut words = vec![
            // The slot is beside the memory that the guest's user has asked for.
            format!("mem={}K", (self.memory_bytes + AGENT_SLOT) >> 10),
            "initrd=root".to_owned(),
            format!("rdinit={AGENT}"),
            format!("time-travel=ext:1:{CLOCK}"),
        ];
        words.extend((0..self.disks).map(|disk| {
            // The word has the socket, virtio's number for block devices, and the number
            // of the device.
            format!("virtio_uml.device={}:2:{disk}", socket_name(disk))
        }));
        words.push(format!("virtio_blk.queue_depth={}", self.queue_depth));
        words.extend(
            [
                "con=null",
                "con0=null,fd:1",
                "con1=null,fd:3",
                "umid=raidlab",
                "uml_dir=./",
                "noreboot",
                "panic=-1",
            ]
            .map(str::to_owned),
        );
        if kernel.seccomp {
            words.push("seccomp=on".to_owned());
        }
        if kernel.zfs.is_some() {
            // The default since OpenZFS 2.3 is five eighths, and more of larger memories; here the
            // first file system lies in memory too. Until 2.2 it was this.
            words.push(format!("zfs.zfs_arc_max={}", self.memory_bytes / 2));
        }
        words.push(format!("tt-clock-cost={}", self.clock_cost_ns));
        words.push(format!("tt-syscall-cost={}", self.call_cost_ns));
        let clock_call = self.clock_call_cost_ns;
        words.extend(clock_call.map(|cost| format!("tt-clock-call-cost={cost}")));
        words.extend(self.charges.as_ref().map(Charges::word));
        words.push(format!("tt-seed={}", self.seed));
        words.extend(self.words.iter().cloned());
        words
    }
}

/// The name of a disk's socket in the boot's folder.
fn socket_name(disk: usize) -> String {
    format!("disk{disk}")
}

/// The folder of a boot, before the kernel runs: the sockets of its clock and
/// its disks must listen in it by then.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// Makes a place, with the first file system: a common archive and one more on top of it.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn new(base: &Archive, more: &Archive) -> Result<Self, BootError> {
        remove_abandoned(Path::new(SHARED_MEMORY));
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{:0OWNER_DIGITS$}-", std::process::id()))
            .tempdir_in(SHARED_MEMORY)
            .map_err(cannot("use", SHARED_MEMORY))?;
        let root = folder.path().join("root");
        File::create(&root)
            .map(BufWriter::new)
            .and_then(|mut file| {
                base.write_to(&mut file)?;
                more.write_to(&mut file)?;
                file.flush()
            })
            .map_err(cannot("use", &root))?;
        Ok(Self { folder })
    }

    /// The folder that belongs to this boot alone.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of processes that are gone: a killed one could not.
pub(crate) fn remove_abandoned(shared: &Path) {
    for entry in fs::read_dir(shared).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('-'))
            .and_then(|(owner, _)| owner.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists()) {
            // Another run may be doing the same.
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// A running kernel.
pub struct Boot {
    place: Place,
    running: Box<dyn Running>,
    frames: File,
    reader: FrameReader,
}

impl Boot {
    /// Starts the kernel; its clock and its disks must listen.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(kernel: &Kernel, machine: &Machine, place: Place) -> Result<Self, BootError> {
        let folder = place.folder();
        let program = folder.join("linux");
        std::os::unix::fs::symlink(&kernel.program, &program).map_err(cannot("use", &program))?;
        let frames = folder.join("frames");
        File::create(&frames).map_err(cannot("use", &frames))?;
        let mut words: Vec<String> = ["-i", "PATH=/usr/bin:/bin", "setarch", "-R"]
            .map(str::to_owned)
            .to_vec();
        if let Some(processor) = machine.processor {
            words.extend(["taskset", "-c"].map(str::to_owned));
            words.push(processor.to_string());
        }
        words.extend(["sh", "-c", SCRIPT].map(str::to_owned));
        words.push(folder.to_string_lossy().into_owned());
        words.push("./linux".to_owned());
        words.extend(machine.command_line(kernel));
        let running = Local::new().start(&Command::changes("env", words))?;
        let frames = File::open(&frames).map_err(cannot("use", &frames))?;
        Ok(Self {
            place,
            running,
            frames,
            reader: FrameReader::default(),
        })
    }

    /// Takes the next whole frame that the guest has handed out.
    ///
    /// # Errors
    /// When the bytes that it handed out are damaged.
    pub fn frame(&mut self) -> Result<Option<Frame>, BootError> {
        let mut bytes = Vec::new();
        self.frames
            .read_to_end(&mut bytes)
            .map_err(cannot("use", &self.place.folder().join("frames")))?;
        self.reader.feed(&bytes);
        Ok(self.reader.take()?)
    }

    /// The end of the kernel; `None` while it runs.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn ended(&mut self) -> Result<Option<Output>, BootError> {
        Ok(self.running.poll()?)
    }

    /// Kills the kernel and everything in it.
    pub fn stop(&mut self) {
        // The kernel may have ended by itself.
        self.running.stop(PATIENCE).ok();
    }

    /// The text that the kernel wrote on its console.
    #[must_use]
    pub fn console(&self) -> String {
        let bytes = fs::read(self.place.folder().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The error of a kernel that ended before the program in it did.
    #[must_use]
    pub fn ended_early(&self) -> BootError {
        let console = self.console();
        BootError::Early {
            reason: raidlab_initramfs::reason(&console),
            console: raidlab_initramfs::excerpt(&console),
        }
    }
}

/// The error of a boot that failed.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PathError),
    /// The kernel cannot be started.
    #[error("cannot run the kernel")]
    Start(#[from] TargetError),
    /// The bytes that the guest handed out are damaged.
    #[error(transparent)]
    Frames(#[from] FrameError),
    /// The kernel ended before the experiment.
    #[error("the guest ended early: {reason}\nits console ends with:\n{console}")]
    Early {
        /// The reason, as far as is known.
        reason: Reason,
        /// The console's last lines.
        console: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_initramfs::Node;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    /// A kernel whose program is a shell script.
    fn kernel(folder: &Path, script: &str) -> Kernel {
        let program = folder.join("script");
        fs::write(&program, format!("#!/bin/sh\n{script}")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
        Kernel {
            name: "6.12".to_owned(),
            release: "6.12.1".to_owned(),
            source: "a test".to_owned(),
            zfs: None,
            shared_memory: true,
            seccomp: false,
            changes: None,
            program,
        }
    }

    fn machine() -> Machine {
        Machine {
            memory_bytes: 256 << 20,
            seed: 7,
            clock_cost_ns: 2048,
            call_cost_ns: 1000,
            clock_call_cost_ns: None,
            charges: None,
            disks: 2,
            queue_depth: 32,
            processor: None,
            words: Vec::new(),
        }
    }

    fn place() -> Place {
        let mut archive = Archive::default();
        let contents = b"contents".to_vec();
        archive.insert(
            "a/file",
            Node::File {
                mode: 0o644,
                contents,
            },
        );
        Place::new(&archive, &Archive::default()).expect("a place")
    }

    fn wait(boot: &mut Boot) -> Output {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(output) = boot.ended().expect("it can be told") {
                return output;
            }
            assert!(Instant::now() < limit, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_command_line_names_the_clock_and_every_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let kernel = kernel(folder.path(), "");
        let line = machine().command_line(&kernel).join(" ");
        assert_eq!(
            line,
            "mem=327680K initrd=root rdinit=/raidlab/agent time-travel=ext:1:calendar \
             virtio_uml.device=disk0:2:0 virtio_uml.device=disk1:2:1 virtio_blk.queue_depth=32 con=null con0=null,fd:1 \
             con1=null,fd:3 umid=raidlab uml_dir=./ noreboot panic=-1 tt-clock-cost=2048 \
             tt-syscall-cost=1000 tt-seed=7"
        );
        let more = Machine {
            clock_call_cost_ns: Some(0),
            words: vec!["raidlab_disks=nr".to_owned()],
            ..machine()
        };
        let line = more.command_line(&kernel).join(" ");
        let end = "tt-syscall-cost=1000 tt-clock-call-cost=0 tt-seed=7 raidlab_disks=nr";
        assert!(line.ends_with(end), "{line}");
        let newer = Kernel {
            seccomp: true,
            changes: None,
            ..kernel
        };
        assert!(
            machine()
                .command_line(&newer)
                .contains(&"seccomp=on".to_owned())
        );
        let with_zfs = Kernel {
            zfs: Some("2.3.2".to_owned()),
            ..newer
        };
        let words = machine().command_line(&with_zfs);
        assert!(words.contains(&"zfs.zfs_arc_max=134217728".to_owned()));
    }

    #[test]
    fn frames_and_console_are_read_and_the_environment_is_always_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let frame = String::from_utf8(Frame::bytes("end", b"")).expect("text");
        let script = format!(
            "tr '\\0' '\\n' </proc/$$/environ | sort\nls\nprintf '{}' >&3\n",
            frame.replace('\n', "\\n")
        );
        let kernel = kernel(folder.path(), &script);
        let mut boot = Boot::start(&kernel, &machine(), place()).expect("started");
        wait(&mut boot);
        let console = boot.console();
        assert_eq!(
            console,
            "PATH=/usr/bin:/bin\nTMPDIR=/dev/shm\nconsole\nframes\nlinux\nroot\n"
        );
        let frame = boot.frame().expect("a whole frame");
        assert_eq!(frame.map(|frame| frame.kind).as_deref(), Some("end"));
    }

    #[test]
    fn a_place_s_path_has_one_length_whatever_process_makes_it() {
        let place = place();
        let name = place.folder().file_name().expect("a name");
        let owner = name
            .to_string_lossy()
            .strip_prefix(PREFIX)
            .map(str::to_owned);
        let owner = owner.expect("its prefix");
        let (owner, rest) = owner.split_once('-').expect("an owner");
        assert_eq!((owner.len(), rest.len()), (OWNER_DIGITS, 6));
        assert_eq!(owner.parse(), Ok(std::process::id()));
    }

    #[test]
    fn a_panic_is_told_and_the_place_is_gone_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "echo 'Kernel panic - not syncing: No working init found.'\nexit 134\n";
        let kernel = kernel(folder.path(), script);
        let mut boot = Boot::start(&kernel, &machine(), place()).expect("started");
        assert_eq!(wait(&mut boot).code, Some(134));
        let error = boot.ended_early().to_string();
        assert!(error.contains("panicked: No working init"), "{error}");
        let place = boot.place.folder().to_owned();
        assert!(place.exists());
        drop(boot);
        assert!(!place.exists());
    }

    #[test]
    fn folders_of_processes_that_are_gone_are_removed() {
        let shared = tempfile::tempdir().expect("a folder");
        let own = format!("{PREFIX}{:0OWNER_DIGITS$}-abc", std::process::id());
        // No process has this number (proc(5): pid_max is at most 4194304).
        let gone = format!("{PREFIX}{:0OWNER_DIGITS$}-abc", 4_194_305);
        let others = [own.as_str(), "raidlab-kernel-x-abc", "raidlab-other"];
        for name in others.iter().chain([&gone.as_str()]) {
            fs::create_dir(shared.path().join(name)).expect("made");
        }
        remove_abandoned(shared.path());
        assert!(!shared.path().join(gone).exists());
        for name in others {
            assert!(shared.path().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn a_kernel_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "sleep 1000 &\necho $! >child\nwait\n";
        let kernel = kernel(folder.path(), script);
        let mut boot = Boot::start(&kernel, &machine(), place()).expect("started");
        let file = boot.place.folder().join("child");
        let limit = Instant::now() + Duration::from_secs(20);
        let child = loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_owned();
            }
            assert!(Instant::now() < limit, "it does not start");
            std::thread::sleep(Duration::from_millis(5));
        };
        boot.stop();
        drop(boot);
        let gone = || {
            let state = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        while !gone() {
            assert!(Instant::now() < limit, "a child is left");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
