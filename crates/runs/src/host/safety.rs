//! What stands between a run and other people's data: consent before disks are
//! overwritten, and a machine that is still the one on which a run began.

use super::HostRun;
use crate::failure::{Failure, Kind};
use crate::front::Front;
use crate::task::Task;
use raidlab_bench_host::{HostBench, HostError, Machine, changes, forget_if_clean};
use raidlab_store::{RunSummary, Store};
use raidlab_units::Bytes;

/// Refuses to go on with a run on a machine that is not as it was: what would be
/// measured now would not compare with what was measured before.
///
/// # Errors
/// When a machine's kernel, processor, memory, tunables or disks have changed.
fn check_unchanged(bench: &HostBench, store: &Store, run: &RunSummary) -> Result<(), Failure> {
    let observations = store.observations(run.id)?;
    for machine in bench.machines() {
        let changes = changes(machine, &observations).map_err(failed)?;
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

fn failed(error: HostError) -> Failure {
    Failure::new(Kind::Run, error)
}

impl HostRun {
    /// Asks before data on disks that are not our own trial's are lost, and writes down on
    /// each machine which disks those are, before any is: by that
    /// [`raidlab_bench_host::cleanup()`] knows what a killed run has left.
    ///
    /// # Errors
    /// When there is no consent, it cannot be written, or a run cannot go on on machines
    /// that have changed.
    pub fn begin(&self, task: &Task) -> Result<(), Failure> {
        if let Some(run) = &task.resumed {
            let store = Store::open_existing(&task.here.store)?;
            check_unchanged(&self.bench, &store, run)?;
        }
        let mut lost = Vec::new();
        for machine in self.bench.machines() {
            for chosen in machine.disks() {
                if !machine.is_trial(chosen) {
                    lost.push(format!(
                        "  {} on {}: {}, {}",
                        chosen.disk.device,
                        machine.name(),
                        chosen.disk.stable_name(),
                        Bytes(chosen.disk.size_bytes)
                    ));
                }
            }
        }
        if !lost.is_empty() && !task.here.yes {
            let lost = lost.join("\n");
            let question = format!("everything on these disks will be lost:\n{lost}");
            self.front.consent(&question)?;
        }
        for machine in self.bench.machines() {
            machine.mark().map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for HostRun {
    fn drop(&mut self) {
        // Its files are among what would be left.
        self.trial = None;
        for machine in self.bench.machines() {
            forget(machine, self.front);
        }
    }
}

/// Removes what is written down of a machine where nothing of a run is left on it.
pub fn forget(machine: &Machine, front: &dyn Front) {
    if let Err(error) = forget_if_clean(machine) {
        front.say(&format!(
            "warning: what the run may lose on {} is not forgotten: {error}; `raidlab \
             cleanup` does it",
            machine.name()
        ));
    }
}
