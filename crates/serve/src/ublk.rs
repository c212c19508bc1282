//! An export as a block device of this machine, `/dev/ublkbN`, by Linux's driver for block devices
//! in user space.
//!
//! A device is added, gets its parameters, its queue is served by a thread (see `queue`), and only
//! then is it started: the block device appears. The end is the reverse: stopped (the page cache is
//! written, requests are answered, the block device disappears), no more served, deleted. A server
//! that is killed leaves the number behind; the next server cleans it up (see `leftover`).
//!
//! This needs root and Linux 6.5: payloads are copied by pread(2) and pwrite(2) on the device's
//! character device, straight between the block layer's pages and the buffers that requests travel
//! with, so that no memory is bound to a tag.
//!
//! The crate `libublk` does the same and more. It is not used, as it brings a hundred crates,
//! bindgen and an asynchronous runtime among them, and would have the build need libclang.

#[expect(unsafe_code, reason = "io_uring")]
mod control;
#[expect(unsafe_code, reason = "memory shared with the kernel")]
mod descriptors;
mod guard;
mod leftover;
mod parameters;
#[expect(unsafe_code, reason = "io_uring")]
mod queue;
mod request;
mod wire;

pub use guard::UblkGuard;

use crate::export::Export;
use control::{CommandError, Control};
use leftover::{MARK, character_path, open_character};
use queue::Queue;
use raidlab_units::visible_path;
use request::Shape;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wire::{ANY_NUMBER, DeviceInformation, MAXIMUM_DEPTH, flag};

/// The longest time until a block device appears: the kernel reads its partition table.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The longest wait at the end for other programs that still have the device open.
const DELETE_PATIENCE: Duration = Duration::from_secs(3);

/// The longest time until udev has made a device's node and set its permissions.
const NODE_PATIENCE: Duration = Duration::from_secs(5);
const NODE_PAUSE: Duration = Duration::from_millis(20);

/// The options of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UblkOptions {
    /// The number `N` of `/dev/ublkbN`; `None`: the first that is free.
    pub number: Option<u32>,
    /// The most requests at a time, 1 to 4096.
    pub depth: u16,
}

impl Default for UblkOptions {
    fn default() -> Self {
        Self {
            number: None,
            depth: 128,
        }
    }
}

/// The reason why there is no block device, or it cannot be ended.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The driver is not loaded.
    #[error("this kernel has no ublk driver: there is no /dev/ublk-control")]
    NoDriver,
    /// The driver lacks a feature that is needed.
    #[error("this kernel's ublk driver is too old: it does not copy by pread and pwrite")]
    TooOld,
    /// The control device cannot be opened.
    #[error("cannot use /dev/ublk-control")]
    Control(#[source] io::Error),
    /// The ring for commands cannot be made.
    #[error("cannot use io_uring")]
    Ring(#[source] io::Error),
    /// Another server is adding a device and does not finish.
    #[error("another server adds a device and does not end")]
    Turn,
    /// A depth that the driver does not support.
    #[error("the depth is 1 to 4096, not {0}")]
    Depth(u16),
    /// The export's blocks are larger than a page.
    #[error("a block device cannot have blocks of {0} bytes")]
    Blocks(u32),
    /// The export's longest request is shorter than a page.
    #[error("requests of at most {0} bytes are too short for a block device")]
    Short(u32),
    /// The export has no whole block.
    #[error("{0} bytes are no whole block")]
    Empty(u64),
    /// There is a device of this number already.
    #[error("there is a device {number} already, {}", of(.process))]
    Taken {
        /// The device's number, as in `/dev/ublkb0`.
        number: u32,
        /// The process that serves the device, if it runs.
        process: Option<i32>,
    },
    /// The driver refuses a command.
    #[error("the ublk driver does not {what}")]
    Refused {
        /// The command, in words.
        what: &'static str,
        /// The driver's reason.
        #[source]
        source: io::Error,
    },
    /// The queue's thread, or a resource that it needs, is not available.
    #[error("cannot serve {}", visible_path(.path))]
    Queue {
        /// The path of the character device, `/dev/ublkcN`.
        path: PathBuf,
        /// The reason why the device cannot be served.
        #[source]
        source: io::Error,
    },
}

fn of(process: &Option<i32>) -> String {
    match process {
        Some(process) => format!("served by process {process}"),
        None => "without a server".to_owned(),
    }
}

fn refused(what: &'static str) -> impl Fn(CommandError) -> UblkError {
    move |error| UblkError::Refused {
        what,
        source: match error {
            CommandError::Refused(errno) => errno.into(),
            CommandError::Slow => io::ErrorKind::TimedOut.into(),
            CommandError::Ring(error) => error,
        },
    }
}

/// Tells the kernel that this process serves a block device, so that memory for its threads is
/// never freed by writing to that same device. To be called before the threads are started; without
/// the right to it (`CAP_SYS_RESOURCE`) nothing changes.
pub fn prepare_process() {
    let _ = rustix::process::configure_io_flusher_behavior(true);
}

/// The result of cleaning up the devices of killed servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Numbers of devices that were deleted.
    pub gone: Vec<u32>,
    /// Numbers of devices that are still open or mounted somewhere; they are deleted
    /// when that ends.
    pub held: Vec<u32>,
}

/// The result of deleting a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The block device is gone.
    Gone,
    /// A program still has the block device open: it takes no more requests, and its number becomes
    /// free when the device is closed.
    Held,
}

struct Running {
    control: Control,
    queue: Queue,
}

/// A block device over an export. When dropped, it is stopped and deleted.
pub struct UblkDevice {
    number: u32,
    path: PathBuf,
    /// Whether its queue is no longer served.
    over: Arc<AtomicBool>,
    /// Whether the device was asked to end.
    stopping: AtomicBool,
    running: Mutex<Option<Running>>,
}

impl std::fmt::Debug for UblkDevice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "UblkDevice({})", visible_path(&self.path))
    }
}

impl UblkDevice {
    /// Checks that there is a driver that this program may use.
    ///
    /// # Errors
    /// When there is no driver, it is too old, or only root may.
    pub fn find_driver() -> Result<(), UblkError> {
        Control::open().map(drop)
    }

    /// Cleans up after killed servers, and makes a block device of an export.
    ///
    /// # Errors
    /// When there is no driver, it is too old or refuses, the number is taken, or the export cannot
    /// be a block device.
    pub fn start(
        export: Arc<dyn Export>,
        options: UblkOptions,
    ) -> Result<(Self, Swept), UblkError> {
        if !(1..=MAXIMUM_DEPTH).contains(&options.depth) {
            return Err(UblkError::Depth(options.depth));
        }
        let shape = Shape::of(&*export);
        let parameters = parameters::parameters(&shape)?;
        let mut control = Control::open()?;
        control.take_turn()?;
        let (gone, held) = leftover::sweep(&mut control)
            .map_err(refused("delete what a killed server has left"))?;
        let number = add(&mut control, options, &shape)?;
        let started = control
            .set_parameters(number, &parameters)
            .map_err(refused("take the device's parameters"))
            .and_then(|()| serve(&mut control, number, export, options.depth));
        let queue = match started {
            Ok(queue) => queue,
            Err(error) => {
                // The error to report is that there is no device, whatever the deletion returns.
                let _ = control.delete(number, DELETE_PATIENCE);
                return Err(error);
            }
        };
        control.end_turn();
        let device = Self {
            number,
            path: PathBuf::from(format!("/dev/ublkb{number}")),
            over: queue.over(),
            stopping: AtomicBool::new(false),
            running: Mutex::new(Some(Running { control, queue })),
        };
        Ok((device, Swept { gone, held }))
    }

    /// Returns the number `N` of `/dev/ublkbN`.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the path of the block device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the device takes no more requests although it was not stopped here: another program
    /// has deleted it, or the kernel accepts no answers.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.over.load(Ordering::SeqCst) && !self.stopping.load(Ordering::SeqCst)
    }

    /// Whether the device is mounted, part of an array, swap, or otherwise claimed.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        // The flags of open(2), which the library expects in an integer type of its own.
        let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(exclusive)
            .open(&self.path);
        matches!(opened, Err(error) if error.kind() == io::ErrorKind::ResourceBusy)
    }

    /// Writes the device's dirty pages, waits for its requests, and deletes it. Once it is gone, a
    /// further call does nothing.
    ///
    /// # Errors
    /// When that takes longer than `patience`. It continues meanwhile: call again, or the device
    /// ends with the process.
    pub fn stop(&self, patience: Duration) -> Result<Deletion, UblkError> {
        self.stopping.store(true, Ordering::SeqCst);
        let mut running = self.lock();
        let Some(Running { mut control, queue }) = running.take() else {
            return Ok(Deletion::Gone);
        };
        match control.stop(self.number, patience) {
            // Another program has deleted it.
            Ok(()) | Err(CommandError::Refused(Errno::NODEV)) => {}
            Err(error) => {
                // The kernel continues the stop, and the queue's thread the service. A further call
                // waits again: the page cache may need more time than that to be written.
                let control = control.again().unwrap_or(control);
                *running = Some(Running { control, queue });
                return Err(refused("stop the device in time")(error));
            }
        }
        queue.join();
        delete(&mut control, self.number)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UblkDevice {
    fn drop(&mut self) {
        // A drop cannot report an error.
        let _ = self.stop(START_PATIENCE);
    }
}

fn delete(control: &mut Control, number: u32) -> Result<Deletion, UblkError> {
    match control.delete(number, DELETE_PATIENCE) {
        Ok(()) | Err(CommandError::Refused(Errno::NODEV)) => Ok(Deletion::Gone),
        Err(CommandError::Slow | CommandError::Refused(Errno::INTR)) => Ok(Deletion::Held),
        Err(error) => Err(refused("delete the device")(error)),
    }
}

/// Adds a device; returns its number.
fn add(control: &mut Control, options: UblkOptions, shape: &Shape) -> Result<u32, UblkError> {
    let wanted = options.number.unwrap_or(ANY_NUMBER);
    let mut information = DeviceInformation {
        queues: 1,
        depth: options.depth,
        maximum_request_bytes: parameters::maximum_request_bytes(shape)?,
        device: wanted,
        flags: flag::USER_COPY | flag::IOCTL_ENCODING,
        mark: MARK,
        ..DeviceInformation::default()
    };
    match control.add(&mut information) {
        Ok(()) => Ok(information.device),
        Err(CommandError::Refused(Errno::EXIST)) => {
            let process = control.information(wanted).ok().map(|one| one.process);
            Err(UblkError::Taken {
                number: wanted,
                process: process.filter(|&process| process > 0),
            })
        }
        Err(error) => Err(refused("add a device")(error)),
    }
}

/// Serves a device's queue and makes the block device appear.
fn serve(
    control: &mut Control,
    number: u32,
    export: Arc<dyn Export>,
    depth: u16,
) -> Result<Queue, UblkError> {
    let queue = character(number).and_then(|character| Queue::start(export, character, depth));
    let queue = queue.map_err(|source| UblkError::Queue {
        path: character_path(number),
        source,
    })?;
    match control.start(number, START_PATIENCE) {
        Ok(()) => Ok(queue),
        Err(error) => {
            // All tags are returned, and with the last one the thread ends.
            if control.stop(number, DELETE_PATIENCE).is_ok() {
                queue.join();
            }
            Err(refused("start the device")(error))
        }
    }
}

/// Opens the character device as soon as there is a node that may be opened.
fn character(number: u32) -> io::Result<File> {
    let until = Instant::now() + NODE_PATIENCE;
    loop {
        match open_character(number) {
            Err(error) if is_early(&error) && Instant::now() < until => {
                std::thread::sleep(NODE_PAUSE);
            }
            opened => return opened,
        }
    }
}

fn is_early(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied, ResourceBusy};
    matches!(error.kind(), NotFound | PermissionDenied | ResourceBusy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::NullExport;

    #[test]
    fn what_cannot_be_a_device_is_refused_before_the_driver_is_asked() {
        let start = |bytes, depth| {
            let options = UblkOptions {
                number: None,
                depth,
            };
            UblkDevice::start(Arc::new(NullExport::new(bytes)), options).map(drop)
        };
        assert!(matches!(start(1 << 20, 0), Err(UblkError::Depth(0))));
        assert!(matches!(start(1 << 20, 4097), Err(UblkError::Depth(4097))));
        assert!(matches!(start(511, 1), Err(UblkError::Empty(511))));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let taken = |process| UblkError::Taken { number: 3, process }.to_string();
        assert_eq!(
            taken(Some(42)),
            "there is a device 3 already, served by process 42"
        );
        assert_eq!(taken(None), "there is a device 3 already, without a server");
        let slow = refused("stop the device in time")(CommandError::Slow);
        assert_eq!(
            slow.to_string(),
            "the ublk driver does not stop the device in time"
        );
        assert!(matches!(slow, UblkError::Refused { source, .. }
            if source.kind() == io::ErrorKind::TimedOut));
    }
}
