//! The run of a job in a guest from the first boot to the last word.

use crate::boot::Boot;
use crate::frames::frames;
use crate::guest::{Finished, Guest, GuestError, Job, Stream};
use crate::machine::{Accelerator, Machine};
use raidlab_initramfs::Archive;
use raidlab_shell::{Command, Output};
use std::fs::OpenOptions;
use std::time::Duration;

/// The time within which a trial boot ends or counts as failed: a machine whose KVM works needs
/// some two seconds.
const TRIAL: Duration = Duration::from_secs(15);

impl Guest {
    /// Whether this machine runs the guest with KVM: a device that exists may
    /// still refuse, so the only proof is a boot.
    #[must_use]
    pub fn kvm_boots(&self) -> bool {
        let device = OpenOptions::new().read(true).write(true).open("/dev/kvm");
        if device.is_err() {
            return false;
        }
        let trial = Self {
            machine: Machine {
                accelerator: Accelerator::Kvm,
                disks: Vec::new(),
                exports: Vec::new(),
                ..self.machine.clone()
            },
            ..self.clone()
        };
        let command = Command::reads("true", [""; 0]).timeout(TRIAL);
        trial
            .run(&Job::new(command), &mut |_, _| ())
            .is_ok_and(|finished| finished.output.code == Some(0))
    }

    /// Boots, runs a job to its end, whatever its exit code, and throws the machine away. `hear`
    /// gets the command's output, as it comes.
    ///
    /// # Errors
    /// When QEMU cannot be started, when the guest does not come to its end (panic, no memory), or
    /// after the job's time limit.
    pub fn run(
        &self,
        job: &Job,
        hear: &mut dyn FnMut(Stream, &str),
    ) -> Result<Finished, GuestError> {
        let mut boot = Boot::start(self, job)?;
        let times = boot.wait(job.command.timeout, hear)?;
        let console = boot.console();
        let Some(ended) = times.ended else {
            return Err(GuestError::Timeout {
                limit: job.command.timeout.unwrap_or_default(),
                console: raidlab_initramfs::excerpt(&console),
            });
        };
        let Some(report) = Report::read(&boot.result()?)? else {
            return Err(GuestError::Early {
                reason: raidlab_initramfs::reason(&console),
                console: raidlab_initramfs::excerpt(&console),
                emulator: boot.said(),
            });
        };
        Ok(Finished {
            output: Output {
                code: Some(report.code),
                signal: None,
                stdout: boot.port("stdout")?,
                stderr: boot.port("stderr")?,
                took: ended.saturating_sub(times.ready),
            },
            files: report.files,
            boot: times.ready,
            console,
        })
    }
}

/// The report that the guest hands over at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) code: i32,
    pub(crate) files: Archive,
}

impl Report {
    /// Reads the bytes from the result port; `None` when the guest did not come to its end.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>, GuestError> {
        let frames = frames(bytes)?;
        let payload = |kind| {
            let frame = frames.iter().find(|frame| frame.kind == kind);
            frame.map(|frame| frame.payload)
        };
        if payload("end").is_none() {
            return Ok(None);
        }
        let lacking = |lacks| GuestError::Incomplete { lacks };
        let code = payload("exit")
            .and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok())
            .ok_or_else(|| lacking("exit"))?;
        let files = payload("files").ok_or_else(|| lacking("files"))?;
        let files = Archive::read(files)?;
        Ok(Some(Self { code, files }))
    }
}
