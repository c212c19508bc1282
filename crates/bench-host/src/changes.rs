//! Checks whether a machine has changed since a run began.

use crate::error::HostError;
use crate::machine::Machine;
use raidlab_inventory::Inventory;
use raidlab_inventory::environment::{Change, Fact, Fingerprint, environment};
use raidlab_store::{Observation, Scope};

/// The differences between a machine and a run's observations of it: its kernel, processor, memory,
/// tunables or disks. Empty where the run was killed before it looked.
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
    // A trial's loop devices are made again and may have other numbers.
    let disks = machine.disks().iter();
    let own: Vec<String> = disks
        .filter(|chosen| !machine.is_trial(chosen))
        .map(|chosen| chosen.disk.device.clone())
        .collect();
    let then = names_then(&own, &before, &now);
    Ok(Fingerprint::of(&before, &then).changes(&Fingerprint::of(&now, &own)))
}

/// The device names of the same disks when the run began; the kernel may name disks
/// differently at each boot. A disk is known by its serial number; one without is looked for
/// under its present name.
fn names_then(own: &[String], before: &[Fact], now: &[Fact]) -> Vec<String> {
    let then = |device: &String| {
        let name = format!("disk.{}.serial", device.trim_start_matches("/dev/"));
        let serial = &now.iter().find(|fact| fact.name == name)?.value;
        before.iter().find_map(|fact| {
            let name = fact.name.strip_prefix("disk.")?.strip_suffix(".serial")?;
            (!serial.is_empty() && fact.value == *serial).then(|| format!("/dev/{name}"))
        })
    };
    let names = own.iter();
    names
        .map(|device| then(device).unwrap_or_else(|| device.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::names_then;
    use raidlab_inventory::environment::{Fact, Fingerprint};

    fn facts(disks: &[(&str, &str)]) -> Vec<Fact> {
        let fact = |(name, serial): &(&str, &str)| Fact {
            name: format!("disk.{name}.serial"),
            value: (*serial).to_owned(),
            unit: String::new(),
            source: String::new(),
        };
        disks.iter().map(fact).collect()
    }

    #[test]
    fn disks_that_the_kernel_names_anew_are_the_same_and_others_are_not() {
        let before = facts(&[("sda", "B"), ("sdb", "A"), ("sdc", "")]);
        let own = ["/dev/sda", "/dev/sdb", "/dev/sdc"].map(str::to_owned);
        let changes = |now: &[Fact]| {
            let then = names_then(&own, &before, now);
            let changes = Fingerprint::of(&before, &then).changes(&Fingerprint::of(now, &own));
            (then, changes.len())
        };
        let now = facts(&[("sda", "A"), ("sdb", "B"), ("sdc", "")]);
        let then = ["/dev/sdb", "/dev/sda", "/dev/sdc"].map(str::to_owned);
        assert_eq!(changes(&now), (then.to_vec(), 0));
        let now = facts(&[("sda", "A"), ("sdb", "C"), ("sdc", "")]);
        assert_eq!(changes(&now).1, 1);
    }
}
