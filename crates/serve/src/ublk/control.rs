//! Commands to the driver's control device, `/dev/ublk-control`.
//!
//! They travel through a ring of their own, one at a time. Most are done at once; those that start,
//! stop and delete a device wait for its requests, and so have a time limit. The bytes that the
//! kernel reads or writes are copied to and from memory of this ring, which is leaked rather than
//! freed while an abandoned command may still access it.

use super::UblkError;
use super::wire::{ControlCommand, DeviceInformation, Parameters, command, flag};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::{FromZeros, IntoBytes};

/// The path of the driver's control device.
const PATH: &str = "/dev/ublk-control";

/// The longest wait for another server that is just adding a device.
const TURN_PATIENCE: Duration = Duration::from_secs(30);
const TURN_PAUSE: Duration = Duration::from_millis(50);

/// The ring's entries; commands go one at a time.
const ENTRIES: u32 = 4;

/// Memory for the bytes of any command.
type Memory = [u64; 16];

/// The reason why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    #[error(transparent)]
    Refused(#[from] Errno),
    #[error("there was no answer in time")]
    Slow,
    #[error("io_uring does not work any more")]
    Ring(#[source] io::Error),
}

/// The control device, opened.
pub(super) struct Control {
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    file: File,
    memory: Option<Box<Memory>>,
    /// The number of commands sent so far; also the last one's number.
    sent: u64,
    /// Whether the last command was given up.
    abandoned: bool,
}

impl Control {
    /// Opens the control device, and checks that the driver has the features needed.
    ///
    /// # Errors
    /// When there is no driver, it is too old, or only root may.
    pub(super) fn open() -> Result<Self, UblkError> {
        Self::open_at(Path::new(PATH))
    }

    fn open_at(path: &Path) -> Result<Self, UblkError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => UblkError::NoDriver,
            // The node exists without a driver behind it.
            _ if Errno::from_io_error(&error) == Some(Errno::NXIO) => UblkError::NoDriver,
            _ => UblkError::Control(error),
        })?;
        let ring = IoUring::builder().build(ENTRIES).map_err(UblkError::Ring)?;
        let mut control = Self {
            ring,
            file,
            memory: Some(Box::default()),
            sent: 0,
            abandoned: false,
        };
        let features = control.features().map_err(|error| match error {
            CommandError::Refused(Errno::PERM | Errno::ACCESS) => {
                UblkError::Control(io::ErrorKind::PermissionDenied.into())
            }
            CommandError::Ring(error) => UblkError::Ring(error),
            _ => UblkError::TooOld,
        })?;
        let needed = flag::USER_COPY | flag::IOCTL_ENCODING;
        if features & needed != needed {
            return Err(UblkError::TooOld);
        }
        Ok(control)
    }

    /// A new ring, without the command that was given up on this one; the turn stays taken.
    pub(super) fn again(&self) -> Result<Self, CommandError> {
        Ok(Self {
            ring: IoUring::builder()
                .build(ENTRIES)
                .map_err(CommandError::Ring)?,
            file: self.file.try_clone().map_err(CommandError::Ring)?,
            memory: Some(Box::default()),
            sent: 0,
            abandoned: false,
        })
    }

    /// Waits until no other server adds or cleans up devices, and keeps others
    /// waiting until [`Self::end_turn`].
    pub(super) fn take_turn(&self) -> Result<(), UblkError> {
        let until = Instant::now() + TURN_PATIENCE;
        loop {
            match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                    std::thread::sleep(TURN_PAUSE);
                }
                Err(Errno::WOULDBLOCK) => return Err(UblkError::Turn),
                Err(error) => return Err(UblkError::Control(error.into())),
            }
        }
    }

    pub(super) fn end_turn(&self) {
        // Closing the file would release the lock too.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }

    fn features(&mut self) -> Result<u64, CommandError> {
        let mut features = 0_u64;
        let to = ControlCommand::to(u32::MAX);
        self.exchange(command::FEATURES, to, features.as_mut_bytes())?;
        Ok(features)
    }

    /// Adds a device; `information` is updated to its actual properties.
    pub(super) fn add(&mut self, information: &mut DeviceInformation) -> Result<(), CommandError> {
        let to = ControlCommand::to(information.device);
        self.exchange(command::ADD_DEVICE, to, information.as_mut_bytes())
    }

    pub(super) fn information(&mut self, device: u32) -> Result<DeviceInformation, CommandError> {
        let mut information = DeviceInformation::new_zeroed();
        let to = ControlCommand::to(device);
        self.exchange(command::DEVICE_INFORMATION, to, information.as_mut_bytes())?;
        Ok(information)
    }

    pub(super) fn set_parameters(
        &mut self,
        device: u32,
        parameters: &Parameters,
    ) -> Result<(), CommandError> {
        let mut bytes = [0; size_of::<Parameters>()];
        bytes.copy_from_slice(parameters.as_bytes());
        let to = ControlCommand::to(device);
        self.exchange(command::SET_PARAMETERS, to, &mut bytes)
    }

    /// Makes the block device appear. The kernel reads its partition table before this returns, so
    /// the queue must be served.
    pub(super) fn start(&mut self, device: u32, patience: Duration) -> Result<(), CommandError> {
        let mut to = ControlCommand::to(device);
        to.data = u64::from(std::process::id());
        self.send(command::START_DEVICE, to, Some(patience))
    }

    /// Makes the block device disappear, after its dirty pages were written and all
    /// requests were answered.
    pub(super) fn stop(&mut self, device: u32, patience: Duration) -> Result<(), CommandError> {
        let to = ControlCommand::to(device);
        self.send(command::STOP_DEVICE, to, Some(patience))
    }

    /// Deletes a device; waits until no program has it open.
    pub(super) fn delete(&mut self, device: u32, patience: Duration) -> Result<(), CommandError> {
        let to = ControlCommand::to(device);
        self.send(command::DELETE_DEVICE, to, Some(patience))
    }

    /// Sends a command with bytes that the kernel reads, writes or both.
    fn exchange(
        &mut self,
        code: u32,
        mut to: ControlCommand,
        bytes: &mut [u8],
    ) -> Result<(), CommandError> {
        let memory = self.memory.as_mut().ok_or(CommandError::Slow)?;
        memory.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        to.address = std::ptr::from_mut(&mut **memory).expose_provenance() as u64;
        // Commands have at most the memory's 128 bytes.
        to.length = u16::try_from(bytes.len()).unwrap_or(0);
        self.send(code, to, None)?;
        if let Some(memory) = &self.memory {
            bytes.copy_from_slice(&memory.as_bytes()[..bytes.len()]);
        }
        Ok(())
    }

    fn send(
        &mut self,
        code: u32,
        to: ControlCommand,
        patience: Option<Duration>,
    ) -> Result<(), CommandError> {
        if self.abandoned {
            return Err(CommandError::Slow);
        }
        self.sent += 1;
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), code)
            .cmd(to.in_entry())
            .build()
            .user_data(self.sent);
        // Set until the command's completion is seen.
        self.abandoned = true;
        // SAFETY: the entry names the open control device, which lives as long
        // as the ring, and at most the memory of `self.memory`, which is long
        // enough for every command and is freed only when no command is under
        // way.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            return Err(CommandError::Ring(io::ErrorKind::WouldBlock.into()));
        }
        let until = patience.map(|patience| Instant::now() + patience);
        loop {
            self.wait(until)?;
            let own = |completion: &cqueue::Entry| completion.user_data() == self.sent;
            let found = self.ring.completion().find(own);
            if let Some(completion) = found {
                self.abandoned = false;
                return match completion.result() {
                    result if result < 0 => Err(Errno::from_raw_os_error(-result).into()),
                    _ => Ok(()),
                };
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(CommandError::Slow);
            }
        }
    }

    fn wait(&self, until: Option<Instant>) -> Result<(), CommandError> {
        let time;
        let mut arguments = SubmitArgs::new();
        if let Some(until) = until {
            time = Timespec::from(until.saturating_duration_since(Instant::now()));
            arguments = arguments.timespec(&time);
        }
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
                _ => Err(CommandError::Ring(error)),
            },
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.abandoned {
            std::mem::forget(self.memory.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_it_is_said_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = Control::open_at(&folder.path().join("ublk-control"));
        assert!(matches!(opened, Err(UblkError::NoDriver)));
    }

    #[test]
    fn what_is_no_control_device_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ublk-control");
        std::fs::write(&path, "").expect("a file");
        // Where io_uring itself is refused, that is the error.
        let opened = Control::open_at(&path);
        assert!(matches!(
            opened,
            Err(UblkError::TooOld | UblkError::Ring(_))
        ));
    }
}
