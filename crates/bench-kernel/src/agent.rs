//! The first program in the guest: makes a system of the bare kernel, runs an experiment with the
//! host bench over the modelled disks, and hands out the results.
//!
//! For the host bench the guest is a machine as any other; it does not know that its clock is
//! virtual and its disks are models. Rows, records and the end go out as frames on a console of
//! their own. When all is said the machine is switched off.

pub(crate) mod disks;
mod udev;

use crate::messages::{Ended, Message, MessageError};
use raidlab_bench_host::{HostBench, HostError, Machine};
use raidlab_inventory::choose::Consent;
use raidlab_lab::{ArrayLook, Bench, Experiment, Finish, Observer, Progress};
use raidlab_store::{CellResult, Records};
use raidlab_units::Nanos;
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// The guest's console to which the agent writes its frames.
const CONSOLE: &str = "/dev/tty1";

/// The name by which the host bench calls the machine that it runs on.
pub const MACHINE: &str = "localhost";

/// The clock that fio is told to read: by itself it reads the processor's counter, whose
/// time is real.
const FIO_CLOCK: &str = "clock_gettime";

/// The time between two messages on how far an experiment is.
const PROGRESS: Nanos = Nanos::SECOND;

/// The file systems that programs expect, each with the place where it is mounted. `/tmp` and
/// `/run` are folders of the first file system, which is in memory too.
const MOUNTS: [(&str, &str); 5] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("devpts", "/dev/pts"),
    ("tmpfs", "/dev/shm"),
];

/// The names of the guest's disks, in order.
#[must_use]
pub fn devices(count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("/dev/{}", device_name(index)))
        .collect()
}

/// The name of a disk as the kernel's virtio_blk gives it: `vda` to `vdz`, then `vdaa`.
fn device_name(index: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = index + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(b'a' + u8::try_from(rest % 26).unwrap_or(0));
        rest /= 26;
    }
    letters.reverse();
    format!("vd{}", String::from_utf8_lossy(&letters))
}

/// Whether this is the first program of a machine: everywhere else it must do
/// nothing.
#[must_use]
pub fn is_first_program() -> bool {
    std::process::id() == 1
}

/// Makes a system of the bare kernel.
///
/// # Errors
/// When something cannot be mounted.
pub fn begin() -> Result<(), AgentError> {
    for (kind, folder) in MOUNTS {
        let made = fs::create_dir_all(folder);
        made.and_then(|()| Ok(mount(kind, folder, kind, MountFlags::empty(), None)?))
            .map_err(cannot(format!("mount {folder}")))?;
    }
    for folder in ["/mnt", "/root", "/tmp", "/var/tmp", "/run/lock"] {
        fs::create_dir_all(folder).map_err(cannot(format!("make {folder}")))?;
    }
    disks::prepare().map_err(cannot("tell the kernel what its disks are"))?;
    hide_host().map_err(cannot("hide the host's name"))?;
    udev::prepare(Path::new("/")).map_err(cannot("note the disks for OpenZFS"))?;
    let name = rustix::system::sethostname(b"raidlab-guest");
    name.map_err(|error| cannot("name the machine")(error.into()))
}

/// The error that the bare kernel does not give something.
fn cannot(what: impl Into<String>) -> impl FnOnce(io::Error) -> AgentError {
    let what = what.into();
    |source| AgentError::System { what, source }
}

/// Hides the host: User-Mode Linux tells in `/proc/cpuinfo` on which machine and kernel it runs; in
/// the file's place stands one that does not.
fn hide_host() -> io::Result<()> {
    const TOLD: &str = "/proc/cpuinfo";
    const INSTEAD: &str = "/run/cpuinfo";
    const ROOM: usize = 4096;
    // The text goes into room of one size, or the length of the machine's name would decide where
    // the memory of all that follows lies, and rows would change with it.
    let mut told = String::with_capacity(ROOM);
    let file = File::open(TOLD)?;
    file.take(ROOM as u64).read_to_string(&mut told)?;
    fs::write(INSTEAD, without_host(&told))?;
    mount_bind(INSTEAD, TOLD)?;
    Ok(())
}

fn without_host(cpuinfo: &str) -> String {
    let lines = cpuinfo.split_inclusive('\n');
    let is_host = |line: &&str| line.split(':').next().map(str::trim) == Some("host");
    lines.filter(|line| !is_host(line)).collect()
}

/// Runs an experiment on the guest's disks and hands out the results.
///
/// # Errors
/// When these cannot be handed out.
pub fn serve(experiment: Result<Experiment, Vec<String>>) -> Result<(), AgentError> {
    let mut outlet = Outlet::open(Path::new(CONSOLE))?;
    let ended = match experiment {
        Err(reasons) => Ended::Failed(reasons),
        Ok(experiment) => {
            let finish = run(&experiment, &mut outlet);
            if let Some(error) = outlet.failed.take() {
                return Err(error);
            }
            finish
        }
    };
    outlet.send(&Message::Ended(ended));
    outlet.failed.take().map_or(Ok(()), Err)
}

fn run(experiment: &Experiment, outlet: &mut Outlet) -> Ended {
    let machine = Machine::local().and_then(|machine| {
        // The disks are new with every boot.
        let consent = Consent {
            wipe_signatures: true,
        };
        machine
            .with_fio_clock(FIO_CLOCK)
            .alone()
            .with_disks(&experiment.disks, consent)
    });
    let machine = match machine {
        Ok(machine) => machine,
        Err(error) => return Ended::of(Err::<Finish, HostError>(error)),
    };
    let bench = HostBench::new(vec![machine]);
    let finish = bench
        .check(experiment)
        .and_then(|()| bench.run(experiment, outlet));
    Ended::of(finish)
}

/// Switches the machine off.
pub fn end() {
    // The call can only fail in a program that is not the first one.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
}

/// The way out: an observer that writes frames.
struct Outlet {
    console: File,
    last: Option<(usize, Nanos)>,
    failed: Option<AgentError>,
}

impl Outlet {
    /// Opens the console, which must not alter any byte.
    fn open(path: &Path) -> Result<Self, AgentError> {
        let open = || -> io::Result<File> {
            let console = OpenOptions::new().read(true).write(true).open(path)?;
            let mut settings = tcgetattr(&console)?;
            settings.make_raw();
            tcsetattr(&console, OptionalActions::Now, &settings)?;
            Ok(console)
        };
        let console = open().map_err(cannot(format!("open {}", path.display())))?;
        Ok(Self {
            console,
            last: None,
            failed: None,
        })
    }

    fn send(&mut self, message: &Message) {
        if self.failed.is_some() {
            return;
        }
        let sent = message.bytes().map_err(AgentError::from).and_then(|bytes| {
            self.console
                .write_all(&bytes)
                .map_err(cannot("write a frame"))
        });
        self.failed = sent.err();
    }
}

impl Observer for Outlet {
    fn progress(&mut self, progress: Progress) {
        let due = self.last.is_none_or(|(step, clock)| {
            step != progress.step || progress.clock >= clock + PROGRESS
        });
        if due {
            self.last = Some((progress.step, progress.clock));
            self.send(&Message::Progress(progress));
        }
    }

    fn record(&mut self, records: Records) {
        self.send(&Message::Records(records));
    }

    fn look(&mut self, look: ArrayLook) {
        self.send(&Message::Look(look));
    }

    fn cell(&mut self, result: CellResult) {
        self.send(&Message::Cell(Box::new(result)));
    }

    // Everything is done anew at each boot; the program outside knows what was measured before. So
    // no cell is finished.

    /// Whether to stop. A user who wants no more switches the machine off; a way out that is closed
    /// makes everything in vain.
    fn cancelled(&self) -> bool {
        self.failed.is_some()
    }
}

/// The reason why the agent cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The bare kernel does not give a thing that is needed.
    #[error("cannot {what}")]
    System {
        /// The action or the thing looked for, in words that follow the error.
        what: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A result has no form as a message.
    #[error(transparent)]
    Message(#[from] MessageError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_does_not_know_where_it_runs() {
        let told = "processor\t: 0\nvendor_id\t: User Mode Linux\nmode\t\t: skas\n\
                    host\t\t: Linux store1 6.18.5 x86_64\nbogomips\t: 1.00\n\n";
        let shown = without_host(told);
        assert!(
            !shown.contains("store1") && shown.contains("bogomips"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), told.lines().count() - 1);
    }

    #[test]
    fn disks_are_named_as_virtio_blk_names_them() {
        let names = devices(30);
        assert_eq!(names[..2], ["/dev/vda", "/dev/vdb"]);
        assert_eq!(names[25..28], ["/dev/vdz", "/dev/vdaa", "/dev/vdab"]);
        assert_eq!(device_name(26 + 26 * 26), "vdaaa");
        assert!(!is_first_program());
    }
}
