//! Whether a machine is still the one on which a run began.

use crate::error::HostError;
use crate::machine::Machine;
use crate::plan_disks;
use raidlab_inventory::Inventory;
use raidlab_inventory::environment::{Change, Fact, Fingerprint, environment};
use raidlab_store::{Observation, Scope};

/// What has changed on a machine since a run told of it in its observations: its kernel,
/// processor, memory, tunables or disks. Nothing where the run was killed before it looked.
///
/// # Errors
/// When the machine cannot be asked.
pub fn changes(machine: &Machine, observations: &[Observation]) -> Result<Vec<Change>, HostError> {
    let told = observations
        .iter()
        .filter(|one| one.scope == Scope::host(machine.name()));
    let before: Vec<Fact> = told.map(Observation::fact).collect();
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let inventory = Inventory::of(machine.target())?;
    let now = environment(machine.target(), &inventory)?;
    // A trial's loop devices are made anew and may have other numbers.
    let disks = machine.disks().iter();
    let own: Vec<String> = disks
        .filter(|chosen| !plan_disks::is_trial(chosen))
        .map(|chosen| chosen.disk.device.clone())
        .collect();
    Ok(Fingerprint::of(&before, &own).changes(&Fingerprint::of(&now, &own)))
}
