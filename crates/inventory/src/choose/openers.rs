//! The programs that have a disk open.
//!
//! The kernel protects a disk only for a program that opens it exclusively, which a virtual machine
//! or a database with a disk of its own does not do. Linux shows what every process has open.

use super::{Chosen, Reason, Refusal};
use crate::text::optional;
use crate::{Inventory, InventoryError, System, Use};
use raidlab_shell::{Command, Target, TargetError};
use std::thread;
use std::time::{Duration, Instant};

/// The time for which udev and the like open a disk after each change.
const PASSING: Duration = Duration::from_secs(3);

/// The command that lists the files open in all processes: the process ID, and a device or a file.
pub(super) fn open_files() -> Command {
    let script = r#"find /proc/[0-9]*/fd -maxdepth 1 -lname '/*' -printf '%p %l\n'"#;
    // Some processes end meanwhile, and others may not be inspected.
    Command::reads("sh", ["-c", script]).success(&[0, 1])
}

/// The reasons against disks that programs have open, or parts of them, and still have open after a
/// moment. Empty where that cannot be told. This program itself may have them open.
///
/// # Errors
/// When the machine cannot be reached.
pub fn open_by_others(
    target: &dyn Target,
    inventory: &Inventory,
    disks: &[Chosen],
) -> Result<Vec<Refusal>, InventoryError> {
    if inventory.system != System::Linux {
        return Ok(Vec::new());
    }
    // A program that has the file behind a loop device open uses the device.
    let file_of = |device: &String| inventory.find(device)?.backing_file.clone();
    let family = |chosen: &Chosen| {
        let device = &chosen.disk.device;
        let devices = [inventory.above(device), inventory.below(device)].concat();
        let files: Vec<String> = devices.iter().filter_map(file_of).collect();
        [devices, files].concat()
    };
    let families: Vec<Vec<String>> = disks.iter().map(family).collect();
    let deadline = Instant::now() + PASSING;
    loop {
        let found = now(target, &families.concat())?;
        if found.is_empty() || Instant::now() >= deadline {
            let refused = disks.iter().zip(&families).flat_map(|(chosen, family)| {
                let uses = found.iter().cloned();
                let own = uses.filter(|used| family.iter().any(|one| one == used.device()));
                own.map(|used| Refusal {
                    disk: chosen.asked.clone(),
                    reason: Reason::InUse { used },
                })
            });
            return Ok(refused.collect());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn now(target: &dyn Target, devices: &[String]) -> Result<Vec<Use>, InventoryError> {
    let listed = match target.run(&open_files()) {
        Ok(output) => output.stdout,
        // There is no find(1), or one without these options.
        Err(TargetError::NoProgram { .. } | TargetError::Failed { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    for line in listed.lines() {
        let Some((place, device)) = line.split_once(' ') else {
            continue;
        };
        let process = place
            .split('/')
            .nth(2)
            .and_then(|number| number.parse().ok());
        let Some(process) = process.filter(|process| *process != std::process::id()) else {
            continue;
        };
        if devices.iter().all(|one| one != device) {
            continue;
        }
        let program = optional(target, &format!("/proc/{process}/comm"))?;
        let used = Use::OpenBy {
            device: device.to_owned(),
            program: program.unwrap_or_else(|| "a program".to_owned()),
            process,
        };
        if !found.contains(&used) {
            found.push(used);
        }
    }
    Ok(found)
}
