//! mdadm's verbs on a running array, as they come over the control socket.
//!
//! Files are opened and read in the caller's thread; the owner only attaches them and tells the
//! core. A device is named by its path or its number, which is its handle.

use super::attach::AttachError;
use super::engine::{Core, place_of};
use super::files::{read_candidate, versions_on};
use super::owner::Owner;
use super::random::random_uuid;
use super::serve::ArrayExport;
use crate::control::{
    ControlRequest, ControlResponse, Controlled, DeviceReport, Publisher, StatusReport, SyncReport,
};
use crate::member::{Identity, Member, MemberFile, OpenOptions};
use raidlab_array::{
    AdminError, ArrayStatus, DeviceStatus, Layout, NewDevice, Outputs, PersistentArray, Slot,
    SyncKind, VerbError,
};
use raidlab_metadata::{Uuid, detail};
use raidlab_units::{Nanos, in_one_line, visible_path};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest time that a removal waits for a failure to be recorded, and the pause between its
/// attempts. The other members' superblocks may take as long as a member may take to answer; mdadm
/// waits 5 s when it is told to use force (`hot_remove_disk` in util.c, mdadm 4.2).
const REMOVAL_PATIENCE: Duration = Duration::from_secs(30);
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// The reason why a verb is refused, in one line with its causes.
type Refusal = String;

impl Controlled for ArrayExport {
    fn control(&self, request: ControlRequest) -> ControlResponse {
        match self.carry_out(request) {
            Ok(response) => response,
            Err(error) => ControlResponse::Refused { error },
        }
    }

    fn publisher(&self) -> &Publisher {
        Self::publisher(self)
    }
}

impl ArrayExport {
    /// Returns the status of the array.
    ///
    /// # Errors
    /// When it has stopped, or is a single file.
    pub fn status(&self) -> Result<StatusReport, String> {
        self.on_array(|owner, now| {
            let Core::Array(array) = &owner.core else {
                return Err(no_array());
            };
            let mut status = array.status();
            status.state.failed |= owner.core.has_failed(&owner.members);
            let mut report = report(&status);
            for device in &mut report.devices {
                let handle = u16::try_from(device.number).unwrap_or(u16::MAX);
                fill_in(device, owner, Slot(handle));
            }
            report.backend = owner.members.backend_name().to_owned();
            report.registered_memory = owner.members.registered();
            report.broken = owner.broken.as_ref().map(|error| in_one_line(error));
            report.at_ns = now.0;
            Ok(report)
        })
    }

    fn carry_out(&self, request: ControlRequest) -> Result<ControlResponse, Refusal> {
        match request {
            ControlRequest::Status {} => {
                let status = Box::new(self.status()?);
                return Ok(ControlResponse::Status { status });
            }
            ControlRequest::Fail { device } => {
                let handle = self.find(&device)?;
                self.on_core(move |array, now, out| match array.fail(now, handle, out) {
                    // Nothing to do, as for md (`md_error`); a removal that follows goes on.
                    Err(VerbError::Engine(AdminError::AlreadyFaulty(_))) => Ok(()),
                    failed => failed,
                })?;
            }
            ControlRequest::Remove { device } => self.remove(&device)?,
            ControlRequest::Add { path, overwrite } => self.add(&path, overwrite)?,
            ControlRequest::ReAdd { path } => self.re_add(&path)?,
            ControlRequest::Assemble { paths } => self.assemble(&paths)?,
            ControlRequest::Replace { device, with } => {
                let handle = self.find(&device)?;
                let with = with.map(|with| self.find(&with)).transpose()?;
                self.on_core(move |array, now, out| array.replace(now, handle, with, out))?;
            }
            ControlRequest::Check {} => {
                self.on_core(|array, now, out| array.check(now, out))?;
            }
            ControlRequest::Repair {} => {
                self.on_core(|array, now, out| array.repair(now, out))?;
            }
            ControlRequest::Idle {} => self.end_sync()?,
            ControlRequest::ReadOnly {} => {
                self.on_core(|array, now, out| array.read_only(now, out))?;
                self.wait_until_clean();
            }
            ControlRequest::ReadWrite {} => {
                self.on_core(|array, now, out| array.read_write(now, out))?;
            }
            ControlRequest::Speed { minimum, maximum } => {
                if minimum > maximum {
                    return Err("the least speed is above the highest".to_owned());
                }
                if maximum == 0 {
                    return Err("at a highest speed of 0 no sync would end".to_owned());
                }
                self.on_core(move |array, _, _| {
                    array.set_sync_speed(minimum, maximum);
                    Ok(())
                })?;
            }
            ControlRequest::Stop {} => {
                self.stop();
                // The answer comes after the end; a server that dies before sends none.
                let _stopped = self.wait_until_stopped(Duration::MAX);
                let cleanly = self.stopped_cleanly();
                cleanly.map_err(|error| in_one_line(&error))?;
            }
            ControlRequest::Events {} => {}
        }
        Ok(ControlResponse::Done)
    }

    /// Returns the handle of a device that is named by the name under which it is known, by its
    /// number, or by any path that leads to the same file or device.
    fn find(&self, device: &str) -> Result<Slot, Refusal> {
        let path = Path::new(device);
        let identity = Identity::at(path);
        let absolute = std::path::absolute(path).ok();
        let word = device.to_owned();
        self.on_array(move |owner, _| {
            let Core::Array(array) = &owner.core else {
                return Err(no_array());
            };
            let devices = array.status().devices;
            let number = word.parse().ok().map(Slot);
            let is_it = |found: &&DeviceStatus| is_at(owner, found.handle, identity);
            // Another file may have a member's path by now: the path still names the member.
            let was_it = |found: &&DeviceStatus| {
                absolute.is_some() && std::path::absolute(&found.name).ok() == absolute
            };
            let named = devices.iter().find(|found| found.name == word);
            let numbered = || devices.iter().find(|found| Some(found.handle) == number);
            let found = named
                .or_else(numbered)
                .or_else(|| devices.iter().find(is_it))
                .or_else(|| devices.iter().find(was_it));
            found.map(|found| found.handle).ok_or_else(|| {
                let names: Vec<&str> = devices.iter().map(|found| found.name.as_str()).collect();
                format!("no such device: {word}; there are {}", names.join(", "))
            })
        })
    }

    /// Removes a device; as mdadm does, it waits for one that has just failed.
    fn remove(&self, device: &str) -> Result<(), Refusal> {
        let until = Instant::now() + REMOVAL_PATIENCE;
        let handle = self.find(device)?;
        loop {
            let is_last = Instant::now() >= until;
            let removed = self.on_array(move |owner, now| match owner.remove(now, handle) {
                Err(AttachError::Refused(VerbError::Busy)) if !is_last => Ok(false),
                removed => removed.map(|()| true).map_err(|error| in_one_line(&error)),
            });
            if removed? {
                return Ok(());
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }

    /// Waits until the members of an array that takes no more writes say that it is clean, as
    /// mdadm's `--readonly` does.
    fn wait_until_clean(&self) {
        let until = Instant::now() + REMOVAL_PATIENCE;
        let is_clean = || {
            self.on_array(|owner, _| match &owner.core {
                Core::Array(array) => Ok(array.is_recorded_clean()),
                Core::Plain(_) => Err(no_array()),
            })
        };
        while is_clean() == Ok(false) && Instant::now() < until {
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }

    /// Ends the sync that runs, unless it is a recovery: md restarts a recovery at once when `idle`
    /// has ended it, and here the array would stay degraded.
    fn end_sync(&self) -> Result<(), Refusal> {
        let status = self.on_array(|owner, _| match &owner.core {
            Core::Array(array) => Ok(array.status()),
            Core::Plain(_) => Err(no_array()),
        })?;
        let filled = |it: &&DeviceStatus| it.recovered_below.is_some();
        let mut filled = status.devices.iter().filter(filled).peekable();
        let is_recovery = match status.sync {
            Some(sync) => sync.kind == SyncKind::Recovery,
            None => filled.peek().is_some(),
        };
        if is_recovery {
            let what = match filled.all(|it| it.replaces.is_some()) {
                true => "replacement",
                false => "recovery",
            };
            return Err(format!(
                "a {what} is ended by `--fail` of the device that is being filled"
            ));
        }
        self.on_core(|array, now, out| {
            array.stop_sync(now, out);
            Ok(())
        })
    }

    /// Adds a device. The data on it are lost, so a member of another array is accepted
    /// only with `overwrite`.
    fn add(&self, path: &str, overwrite: bool) -> Result<(), Refusal> {
        let file = self.open_new(path)?;
        let name = visible_path(Path::new(path));
        if !overwrite && let Ok(found) = read_candidate(&file) {
            let other = found.metadata.superblock;
            let ours = self.on_array(|owner, _| match &owner.core {
                Core::Array(array) => Ok(array.status().uuid),
                Core::Plain(_) => Err(no_array()),
            })?;
            if other.array_uuid != ours {
                return Err(format!(
                    "{name} is a member of another array, `{}`, and would be lost to it: \
                     `--run` adds it all the same",
                    other.name
                ));
            }
        }
        let found = versions_on(&file);
        let new = NewDevice {
            name: name.clone(),
            size: file.size(),
            rotational: file.rotational(),
            write_mostly: false,
            uuid: random_uuid().map_err(|error| in_one_line(&error))?,
        };
        let (device, uuid) = (file.clone(), new.uuid);
        let handle = self.on_array(move |owner, now| {
            let added = owner.add(now, &file, new, &found);
            added.map_err(|error| format!("{name}: {}", in_one_line(&error)))
        })?;
        self.wait_for_superblock(&device, uuid, handle);
        Ok(())
    }

    /// Waits until a device that was added says so itself, as after mdadm's `--add`: a server that
    /// is killed behind the answer would know nothing of it. It ends, too, if the device fails.
    fn wait_for_superblock(&self, device: &Member, uuid: Uuid, handle: Slot) {
        let until = Instant::now() + REMOVAL_PATIENCE;
        let is_written = || {
            let found = read_candidate(device);
            found.is_ok_and(|found| found.metadata.superblock.device_uuid == uuid)
        };
        let is_in_use = || {
            let status = self.status();
            let mut devices = status.into_iter().flat_map(|status| status.devices);
            devices.any(|it| it.number == u32::from(handle.0) && it.state != "faulty")
        };
        while !is_written() && is_in_use() && Instant::now() < until {
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }

    fn re_add(&self, path: &str) -> Result<(), Refusal> {
        let file = self.open_new(path)?;
        let mut candidate = read_candidate(&file).map_err(|error| in_one_line(&error))?;
        let name = visible_path(Path::new(path));
        candidate.name.clone_from(&name);
        self.on_array(move |owner, now| {
            let added = owner.re_add(now, &file, candidate).map(drop);
            added.map_err(|error| format!("{name}: {}", in_one_line(&error)))
        })
    }

    /// Opens a device that is not in the array yet; one that is would be found locked
    /// by this process.
    fn open_new(&self, path: &str) -> Result<Member, Refusal> {
        let identity = Identity::at(Path::new(path));
        let known = self.on_array(move |owner, _| {
            let Core::Array(array) = &owner.core else {
                return Err(no_array());
            };
            let mut devices = array.status().devices.into_iter();
            Ok(devices.find(|device| is_at(owner, device.handle, identity)))
        })?;
        match known {
            Some(DeviceStatus { handle, state, .. }) => Err(format!(
                "{} is device {} of the array already, {state}: `--remove` takes it out",
                visible_path(Path::new(path)),
                handle.0
            )),
            None => self.open(path),
        }
    }

    /// Opens a file or block device, or an array that this process serves.
    fn open(&self, path: &str) -> Result<Member, Refusal> {
        if let Some(name) = path.strip_prefix("array:") {
            return self.others().ok_or_else(alone)?.claim(name);
        }
        MemberFile::open(Path::new(path), OpenOptions::default())
            .map(Member::from)
            .map_err(|error| in_one_line(&error))
    }

    /// Starts the array that these devices form, for a later `add`.
    fn assemble(&self, paths: &[String]) -> Result<(), Refusal> {
        let others = self.others().ok_or_else(alone)?;
        let devices = paths.iter().map(|path| self.open(path));
        others.start(&devices.collect::<Result<Vec<_>, _>>()?)
    }

    fn on_core(
        &self,
        work: impl FnOnce(&mut PersistentArray, Nanos, &mut Outputs) -> Result<(), VerbError>
        + Send
        + 'static,
    ) -> Result<(), Refusal> {
        self.on_array(move |owner, now| {
            let done = owner.on_array(now, work);
            let done = done.map_err(|error| in_one_line(&error))?;
            done.map_err(|error| in_one_line(&error))
        })
    }

    fn on_array<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Owner, Nanos) -> Result<R, Refusal> + Send + 'static,
    ) -> Result<R, Refusal> {
        self.call(work).map_err(|error| in_one_line(&error))?
    }
}

/// Whether a device of the array is the file or block device with this identity.
fn is_at(owner: &Owner, handle: Slot, identity: Option<Identity>) -> bool {
    match owner.members.member(place_of(handle)) {
        Some(Member::Storage(storage)) => identity == Some(storage.identity()),
        _ => false,
    }
}

/// Returns the refusal of a verb on other arrays where only one is served.
pub(super) fn alone() -> Refusal {
    "no other array is served here".to_owned()
}

fn no_array() -> Refusal {
    AttachError::NoArray.to_string()
}

fn report(status: &ArrayStatus) -> StatusReport {
    StatusReport {
        name: status.name.clone(),
        uuid: detail::uuid(status.uuid),
        level: status.level.to_string(),
        layout: match status.layout {
            Layout::None => String::new(),
            layout => layout.to_string(),
        },
        chunk_bytes: status.chunk.to_bytes().0,
        size_bytes: status.size.to_bytes().0,
        state: status.state.to_string(),
        health: status.health.clone(),
        events: status.events,
        devices: status.devices.iter().map(device_report).collect(),
        sync: status.sync.map(|sync| SyncReport {
            kind: match sync.kind {
                SyncKind::Recovery => "recovery",
                SyncKind::Resync => "resync",
                SyncKind::Check => "check",
                SyncKind::Repair => "repair",
            }
            .to_owned(),
            position: sync.position.0,
            total: sync.total.0,
        }),
        mismatch_sectors: status.mismatches.0,
        bitmap_chunks: status.bitmap_chunks,
        log_bytes: status.log.to_bytes().0,
        warnings: status.warnings.clone(),
        ..StatusReport::default()
    }
}

fn device_report(device: &DeviceStatus) -> DeviceReport {
    DeviceReport {
        number: u32::from(device.handle.0),
        path: device.name.clone(),
        slot: device.slot.map(|slot| u32::from(slot.0)),
        state: device.state.to_owned(),
        corrected_read_errors: device.corrected_read_errors,
        bad_sectors: device.bad_sectors.0,
        ..DeviceReport::default()
    }
}

fn fill_in(report: &mut DeviceReport, owner: &Owner, handle: Slot) {
    report.counters = owner.members.counters(place_of(handle));
    // A member that has been kept in service, and answers again, is not lost.
    let is_out = report.state == "faulty" || owner.members.is_lost(place_of(handle));
    let why = owner.members.why_lost(place_of(handle));
    report.lost = why.filter(|_| is_out).map(ToOwned::to_owned);
}
