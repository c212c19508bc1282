//! A machine that experiments run on: the local one, or one behind ssh.

use crate::error::HostError;
use raidlab_inventory::choose::{
    Choice, Chosen, Consent, Planned, Reason, Refusal, Wanted, Warning, choose, open_by_others,
};
use raidlab_inventory::{Inventory, System, Use};
use raidlab_lab::QueueStyle;
use raidlab_shell::{Claim, KernelDisk, Local, Lock, Ssh, SshOptions, Target, TargetError};
use raidlab_systems::{Member, OperatingSystem};
use raidlab_units::Bytes;
use std::sync::Arc;

/// The environment variable that every command of a run carries: by it [`cleanup`](crate::cleanup)
/// finds the processes of a killed run.
pub const MARKER: (&str, &str) = ("RAIDLAB_RUN", "host");

/// The beginning of the names of arrays, pools and volume groups; a number follows.
pub const PREFIX: &str = "raidlab";

/// A machine with the disks that may be used on it.
pub struct Machine {
    name: String,
    target: Arc<dyn Target>,
    system: System,
    disks: Vec<Chosen>,
    /// The chosen disks as the kernel reports them, where it can be queried.
    kernel_disks: Vec<Option<KernelDisk>>,
    /// The disks of a resumed run as they were when it began, by their names.
    planned: Vec<Planned>,
    /// Loop devices that were made for this run.
    trial: Vec<String>,
    warnings: Vec<Warning>,
    fio_clock: Option<String>,
    /// Whether no other program uses the machine's disks.
    is_alone: bool,
}

impl Machine {
    /// The machine that this program runs on.
    ///
    /// # Errors
    /// When it runs neither Linux nor FreeBSD.
    pub fn local() -> Result<Self, HostError> {
        let target = Local::new().environment(MARKER.0, MARKER.1);
        Self::behind(Arc::new(target))
    }

    /// The machine behind an ssh destination: `root@store1`, `store2`.
    ///
    /// # Errors
    /// When it cannot be reached, or runs neither Linux nor FreeBSD.
    pub fn ssh(destination: &str, mut options: SshOptions) -> Result<Self, HostError> {
        let marker = (MARKER.0.to_owned(), MARKER.1.to_owned());
        options.environment.push(marker);
        Self::behind(Arc::new(Ssh::new(destination, options)?))
    }

    /// The machine behind a target.
    ///
    /// # Errors
    /// When it runs neither Linux nor FreeBSD.
    pub fn behind(target: Arc<dyn Target>) -> Result<Self, HostError> {
        Ok(Self {
            name: target.name().to_owned(),
            system: System::of(&target)?,
            target,
            disks: Vec::new(),
            kernel_disks: Vec::new(),
            planned: Vec::new(),
            trial: Vec::new(),
            warnings: Vec::new(),
            fio_clock: None,
            is_alone: false,
        })
    }

    /// Gives the machine another name than that by which it is reached.
    #[must_use]
    pub(crate) fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Gives the machine the disks of a resumed plan: they must still be the same disks, with
    /// nothing on them but what was agreed to be lost.
    #[must_use]
    pub fn with_plan(mut self, planned: Vec<Planned>) -> Self {
        self.planned = planned;
        self
    }

    /// Gives the machine the loop devices that were made for this run: they hold nothing to be
    /// lost, and a resumed run makes others.
    #[must_use]
    pub fn with_trial(mut self, devices: Vec<String>) -> Self {
        self.trial = devices;
        self
    }

    /// Whether a disk is a loop device that was made for this run.
    #[must_use]
    pub fn is_trial(&self, chosen: &Chosen) -> bool {
        self.trial.contains(&chosen.disk.device)
    }

    /// Locks the machine for one run, until the lock is dropped; `holder` names the run
    /// to other processes.
    ///
    /// # Errors
    /// When another run is under way there.
    pub fn lock(&self, holder: &str) -> Result<Lock, HostError> {
        let path = match self.system {
            System::Linux => "/run/raidlab.lock",
            System::FreeBsd => "/var/run/raidlab.lock",
        };
        Ok(self.target.lock(path, holder)?)
    }

    /// Chooses the disks to use, in the order of members.
    ///
    /// # Errors
    /// [`HostError::Refused`] with every reason against each of them.
    pub fn with_disks(mut self, names: &[String], consent: Consent) -> Result<Self, HostError> {
        let planned = |name: &String| self.planned.iter().find(|one| one.asked == *name);
        let wishes: Vec<Wanted> = names
            .iter()
            .map(|name| Wanted {
                planned: planned(name).cloned(),
                ..Wanted::named(name)
            })
            .collect();
        let inventory = Inventory::of(&self.target)?;
        let choice = self.choose(&inventory, &wishes, consent)?;
        self.disks = choice.disks;
        self.warnings = choice.warnings;
        let claims = self.claim(&self.disks.iter().collect::<Vec<_>>())?;
        let disk = |claim: &Option<Claim>| claim.as_ref().map(Claim::disk);
        self.kernel_disks = claims.iter().map(disk).collect();
        Ok(self)
    }

    /// Chooses the disks that pass all checks.
    fn choose(
        &self,
        inventory: &Inventory,
        wishes: &[Wanted],
        consent: Consent,
    ) -> Result<Choice, HostError> {
        let mut choice = choose(&self.target, inventory, wishes, consent)?;
        if choice.is_accepted() && !self.is_alone {
            choice.refusals = open_by_others(&self.target, inventory, &choice.disks)?;
        }
        if choice.is_accepted() {
            return Ok(choice);
        }
        Err(HostError::Refused {
            machine: self.name.clone(),
            refusals: choice.refusals,
        })
    }

    /// Opens disks exclusively, where the operating system can.
    fn claim(&self, disks: &[&Chosen]) -> Result<Vec<Option<Claim>>, HostError> {
        let mut claims = Vec::new();
        for chosen in disks {
            let device = &chosen.disk.device;
            match self.target.claim(device) {
                Ok(claim) => claims.push(claim),
                Err(TargetError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::ResourceBusy =>
                {
                    let used = Use::Open {
                        device: device.clone(),
                        mode: "exclusive".to_owned(),
                    };
                    return Err(self.refused(&chosen.asked, Reason::InUse { used }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(claims)
    }

    fn refused(&self, disk: &str, reason: Reason) -> HostError {
        HostError::Refused {
            machine: self.name.clone(),
            refusals: vec![Refusal {
                disk: disk.to_owned(),
                reason,
            }],
        }
    }

    /// Sets the clock that fio is to read (`clocksource` of fio(1)), where its default, the
    /// processor's counter, does not give the machine's time: in a guest whose time is virtual.
    #[must_use]
    pub fn with_fio_clock(mut self, clock: &str) -> Self {
        self.fio_clock = Some(clock.to_owned());
        self
    }

    /// Marks the machine as made for one experiment: it is not searched for other users of its
    /// disks, which would take of its virtual time.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// The clock that fio is to read, unless fio chooses.
    #[must_use]
    pub(crate) fn fio_clock(&self) -> Option<&str> {
        self.fio_clock.as_deref()
    }

    /// The machine's name in rows: `localhost`, `root@store1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The target that runs commands on the machine.
    #[must_use]
    pub fn target(&self) -> &Arc<dyn Target> {
        &self.target
    }

    /// The operating system that the machine runs.
    #[must_use]
    pub const fn system(&self) -> System {
        self.system
    }

    /// The operating system, in the type that arrays use.
    #[must_use]
    pub const fn operating_system(&self) -> OperatingSystem {
        match self.system {
            System::Linux => OperatingSystem::Linux,
            System::FreeBsd => OperatingSystem::FreeBsd,
        }
    }

    /// The way in which fio reaches a queue depth above one on this machine.
    #[must_use]
    pub const fn queue(&self) -> QueueStyle {
        match self.system {
            System::Linux => QueueStyle::Libaio,
            System::FreeBsd => QueueStyle::Threads,
        }
    }

    /// The disks that may be used, in the order of members.
    #[must_use]
    pub fn disks(&self) -> &[Chosen] {
        &self.disks
    }

    /// Warnings about the disks for the user.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The folder for mounts and marks; it is gone after a reboot, like the mounts.
    #[must_use]
    pub const fn folder(&self) -> &'static str {
        match self.system {
            System::Linux => "/run/raidlab",
            System::FreeBsd => "/var/run/raidlab",
        }
    }

    /// The members for these device names.
    ///
    /// # Errors
    /// A device that is not among the chosen ones.
    pub(crate) fn members(&self, names: &[String]) -> Result<Vec<Member>, HostError> {
        let member = |name: &String| {
            let chosen = self.disks.iter().find(|chosen| chosen.asked == *name);
            let chosen = chosen.ok_or_else(|| HostError::Unsuitable {
                what: format!("`{name}` was not chosen on {}", self.name),
            })?;
            Ok(Member {
                device: chosen.disk.device.clone(),
                size: Bytes(chosen.disk.size_bytes),
                backing: chosen.disk.backing_file.clone(),
                away: false,
            })
        };
        names.iter().map(member).collect()
    }

    /// Checks again the disks that a run is about to write to, and opens them exclusively first,
    /// where possible: they must be the chosen ones, with no new user, and nothing may lie on them
    /// but what was agreed to be lost.
    ///
    /// # Errors
    /// [`HostError::Refused`].
    pub(crate) fn check_disks(&self, names: &[String]) -> Result<Vec<Claim>, HostError> {
        let chosen = |name: &String| {
            let place = self.disks.iter().position(|one| one.asked == *name);
            place.map(|place| (&self.disks[place], self.kernel_disks[place]))
        };
        let (disks, kernel_disks): (Vec<&Chosen>, Vec<_>) = names.iter().filter_map(chosen).unzip();
        let claims = self.claim(&disks);
        let wishes: Vec<Wanted> = names
            .iter()
            .map(|name| Wanted {
                planned: chosen(name).map(|(disk, _)| Planned::of(disk)),
                ..Wanted::named(name)
            })
            .collect();
        // Consent covers what was on the disks when they were chosen, not what has come
        // onto them since.
        let consent = Consent {
            wipe_signatures: true,
        };
        let inventory = Inventory::of(&self.target)?;
        self.choose(&inventory, &wishes, consent)?;
        let claims = claims?;
        for ((disk, before), claim) in disks.iter().zip(kernel_disks).zip(&claims) {
            let now = claim.as_ref().map(Claim::disk);
            if now != before {
                let said = |disk: Option<KernelDisk>| match disk {
                    Some(disk) => disk.to_string(),
                    None => "unknown".to_owned(),
                };
                let change = format!("the kernel's disk: was {}, is {}", said(before), said(now));
                let reason = Reason::Changed {
                    changes: vec![change],
                };
                return Err(self.refused(&disk.asked, reason));
            }
        }
        Ok(claims.into_iter().flatten().collect())
    }
}
