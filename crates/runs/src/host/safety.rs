//! Protection of other people's data: consent before disks are overwritten, and a check that a
//! machine is still the one on which a run began.

use super::HostRun;
use crate::failure::{Failure, Kind};
use crate::front::Front;
use crate::task::Task;
use raidlab_bench_host::{HostBench, Machine, changes, forget_if_clean};
use raidlab_inventory::choose::Chosen;
use raidlab_store::{RunSummary, Store};
use raidlab_units::Bytes;

/// Refuses to resume a run on a machine that has changed: its new measurements would not compare
/// with the earlier ones.
///
/// # Errors
/// When a machine's kernel, processor, memory, tunables or disks have changed.
fn check_unchanged(bench: &HostBench, store: &Store, run: &RunSummary) -> Result<(), Failure> {
    let observations = store.observations(run.id)?;
    for machine in bench.machines() {
        let changes = changes(machine, &observations).map_err(Failure::run)?;
        if changes.is_empty() {
            continue;
        }
        let said = |value: Option<&String>| value.map_or("unknown", String::as_str).to_owned();
        let lines: Vec<String> = changes
            .iter()
            .map(|change| {
                format!(
                    "  {}: was {}, is {}",
                    change.name,
                    said(change.was.as_ref()),
                    said(change.is.as_ref())
                )
            })
            .collect();
        let words = format!(
            "{} is not as it was when run {} began:\n{}",
            machine.name(),
            run.run.name,
            lines.join("\n")
        );
        return Err(Failure::words(Kind::Run, words)
            .help("put it back as it was, or begin a new run and compare the two"));
    }
    Ok(())
}

/// A disk in words, with all by which its owner recognizes it, and with what lies on it.
fn in_words(machine: &Machine, chosen: &Chosen) -> String {
    let (disk, identity) = (&chosen.disk, &chosen.identity);
    let serial = identity.serial.as_ref();
    let held: Vec<String> = chosen.signatures.iter().map(ToString::to_string).collect();
    let told = [
        Some(disk.stable_name().to_owned()).filter(|name| *name != disk.device),
        identity.model.clone(),
        serial.map(|serial| format!("serial number {serial}")),
        identity.backing_file.clone(),
        Some(Bytes(disk.size_bytes).to_string()),
        (!held.is_empty()).then(|| format!("holds {}", held.join(", "))),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    format!(
        "  {} on {}: {}",
        disk.device,
        machine.name(),
        told.join(", ")
    )
}

/// The words on how to consent to the loss of what is on the disks, without the option
/// `--dry-run` where `raidlab resume` asks, which has none.
const fn how_to_consent(is_resumed: bool) -> &'static str {
    if is_resumed {
        "`--yes` consents"
    } else {
        "`--dry-run` shows every command; `--yes` consents"
    }
}

impl HostRun {
    /// Asks for consent before data are lost on disks other than our own trial's, and first records
    /// these disks on each machine: by that [`raidlab_bench_host::cleanup()`] recognizes what a
    /// killed run has left.
    ///
    /// # Errors
    /// When there is no consent, the record cannot be written, or a run cannot be resumed since
    /// machines have changed.
    pub fn begin(&self, task: &Task) -> Result<(), Failure> {
        if let Some(run) = &task.resumed {
            let store = Store::open_existing(&task.here.store)?;
            check_unchanged(&self.bench, &store, run)?;
        }
        let mut lost = Vec::new();
        for machine in self.bench.machines() {
            for chosen in machine.disks() {
                if !machine.is_trial(chosen) {
                    lost.push(in_words(machine, chosen));
                }
            }
        }
        if !lost.is_empty() && !task.here.yes {
            let lost = lost.join("\n");
            let question = format!("everything on these disks will be lost:\n{lost}");
            self.front
                .consent(&question, how_to_consent(task.resumed.is_some()))?;
        }
        for machine in self.bench.machines() {
            machine.mark().map_err(Failure::run)?;
        }
        Ok(())
    }
}

impl Drop for HostRun {
    fn drop(&mut self) {
        // The trial's files are among what the marks list as left.
        self.trial = None;
        for machine in self.bench.machines() {
            forget(machine, self.front);
        }
    }
}

/// Deletes a machine's record of the run where nothing of the run is left on it.
pub fn forget(machine: &Machine, front: &dyn Front) {
    if let Err(error) = forget_if_clean(machine) {
        front.say(&format!(
            "warning: what the run may lose on {} is not forgotten: {error}; `raidlab \
             cleanup` does it",
            machine.name()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use raidlab_bench_host::Machine;
    use raidlab_inventory::choose::{Chosen, Identity, Signature};
    use raidlab_inventory::{Disk, DiskKind, Inventory, System};
    use raidlab_shell::{Command, Recorded};
    use std::sync::Arc;

    #[test]
    fn a_resumed_run_is_not_sent_to_an_option_that_it_lacks() {
        assert_eq!(super::how_to_consent(true), "`--yes` consents");
        assert!(super::how_to_consent(false).contains("`--dry-run`"));
    }

    #[test]
    fn who_is_asked_is_told_which_disk_it_is_and_what_lies_on_it() {
        let mut disk = Disk::new("/dev/sdb", DiskKind::Disk, 1 << 40);
        disk.stable_ids = vec!["/dev/disk/by-id/ata-B".to_owned()];
        disk.model = Some("WD4000FYYZ".to_owned());
        disk.serial = Some("WD-B".to_owned());
        let inventory = Inventory {
            machine: "store1".to_owned(),
            system: System::Linux,
            disks: vec![disk.clone()],
            uses: Vec::new(),
            root: Vec::new(),
        };
        let photos = Signature {
            device: "/dev/sdb1".to_owned(),
            kind: "ext4".to_owned(),
            label: Some("photos".to_owned()),
            uuid: None,
        };
        let chosen = Chosen {
            asked: "/dev/sdb".to_owned(),
            identity: Identity::of(&inventory, &disk),
            disk,
            signatures: vec![photos],
        };
        let uname = Command::reads("uname", ["-s"]);
        let target = Recorded::new("store1").says(&uname, "Linux\n");
        let machine = Machine::behind(Arc::new(target)).expect("a Linux");
        assert_eq!(
            in_words(&machine, &chosen),
            "  /dev/sdb on store1: /dev/disk/by-id/ata-B, WD4000FYYZ, serial number WD-B, 1 TiB, \
             holds ext4 on /dev/sdb1 labelled \"photos\""
        );
    }
}
