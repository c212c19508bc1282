//! What stands between a run and other people's data: consent before disks are
//! overwritten, and a machine that is still the one on which a run began.

use super::HostRun;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::run::Here;
use console::Term;
use raidlab_host::{Machine, changes, forget_if_clean, plan_disks};
use raidlab_store::{RunSummary, Store};
use raidlab_units::Bytes;

/// Refuses to go on with a run on a machine that is not as it was: what would be
/// measured now would not compare with what was measured before.
///
/// # Errors
/// When a machine's kernel, processor, memory, tunables or disks have changed.
pub fn check_unchanged(host: &HostRun, store: &Store, run: &RunSummary) -> Result<(), Failure> {
    let observations = store.observations(run.id)?;
    for machine in host.bench.machines() {
        let changes =
            changes(machine, &observations).map_err(|error| Failure::new(Kind::Run, error))?;
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

impl HostRun {
    /// Writes down on each machine which disks may be lost there, before any is: by
    /// that [`raidlab_host::cleanup()`] knows what a killed run has left.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn mark(&self) -> Result<(), Failure> {
        for machine in self.bench.machines() {
            machine
                .mark()
                .map_err(|error| Failure::new(Kind::Run, error))?;
        }
        Ok(())
    }

    /// Asks before data on disks that are not our own trial's are lost.
    ///
    /// # Errors
    /// When there is no consent.
    pub fn consent(&self, here: &Here) -> Result<(), Failure> {
        let mut lost = Vec::new();
        for machine in self.bench.machines() {
            for chosen in machine.disks() {
                if !plan_disks::is_trial(chosen) {
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
        if lost.is_empty() || here.yes {
            return Ok(());
        }
        let question = format!(
            "everything on these disks will be lost:\n{}",
            lost.join("\n")
        );
        let terminal = Term::stderr();
        if !terminal.is_term() {
            return Err(Failure::words(Kind::Usage, question)
                .help("`--dry-run` shows every command; `--yes` consents"));
        }
        output::say(&question);
        output::say("type `yes` to go on:");
        match terminal.read_line() {
            Ok(answer) if answer.trim() == "yes" => Ok(()),
            _ => Err(Failure::words(
                Kind::Interrupted,
                "no consent; nothing was done",
            )),
        }
    }
}

impl Drop for HostRun {
    fn drop(&mut self) {
        // Its files are among what would be left.
        self.trial = None;
        for machine in self.bench.machines() {
            forget(machine);
        }
    }
}

/// Removes what is written down of a machine where nothing of a run is left on it.
pub fn forget(machine: &Machine) {
    if let Err(error) = forget_if_clean(machine) {
        output::say(&format!(
            "warning: what the run may lose on {} is not forgotten: {error}; `raidlab \
             cleanup` does it",
            machine.name()
        ));
    }
}
