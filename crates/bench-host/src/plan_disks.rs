//! The disks of a run's plan among its facts: `plan.disk.0` and so on.
//!
//! They are stored before any data is lost, and compared when a killed run is resumed: the
//! names must lead to the same disks, with nothing on them that was not there when their loss
//! was agreed to.

use crate::machine::Machine;
use raidlab_inventory::choose::Planned;
use raidlab_store::{Observation, Scope};

const NAME: &str = "plan.disk.";

/// The machine's disks as facts, without those of a trial.
pub fn facts(machine: &Machine) -> Vec<Observation> {
    let disks = machine.disks().iter().enumerate();
    disks
        .filter(|(_, chosen)| !machine.is_trial(chosen))
        .map(|(slot, chosen)| {
            let planned = Planned {
                // The device number is left out: the machine may be restarted before the
                // run is resumed.
                device: None,
                ..Planned::of(chosen)
            };
            let scope = Scope::host(machine.name());
            // These types have no value that JSON could not hold.
            let value = serde_json::to_string(&planned).unwrap_or_default();
            Observation::new(&scope, format!("{NAME}{slot}"), value, "", "the plan")
        })
        .collect()
}

/// The disks of a machine as they were when the run began, out of its facts.
///
/// # Errors
/// The name of a fact that is not of this form.
pub fn planned(facts: &[Observation], machine: &str) -> Result<Vec<Planned>, String> {
    let scope = Scope::host(machine);
    let mut planned: Vec<Planned> = Vec::new();
    for fact in facts {
        if fact.scope != scope || !fact.name.starts_with(NAME) {
            continue;
        }
        let disk: Planned = serde_json::from_str(&fact.value)
            .map_err(|error| format!("fact `{}` cannot be read: {error}", fact.name))?;
        // A run that was resumed before has recorded the disks again.
        if planned.iter().all(|one| one.asked != disk.asked) {
            planned.push(disk);
        }
    }
    Ok(planned)
}
