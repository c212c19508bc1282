//! Emptying the caches, and checking that they are empty.
//!
//! A job that is to read disks must not read memory. An exit code proves
//! nothing here (bench-fio "drops" caches with a call that only prints a text),
//! so the memory's state is read before and after. `sync` comes first: the
//! kernel frees clean pages only.

use crate::counters::{DeviceCounters, MemoryState, devices_now, memory_state};
use crate::{InventoryError, System};
use raidlab_shell::{Command, Target};
use std::collections::BTreeMap;
use std::time::Duration;

/// Writes all dirty pages and drops the page, directory and inode caches; returns the memory's
/// state between the two. `None` where the system has no call for it: FreeBSD frees a file system's
/// pages only when it is unmounted. The ZFS cache is emptied only by exporting the pool.
///
/// # Errors
/// When the machine cannot be queried, or does not let the caches be dropped (only root may).
pub fn drop_caches(
    target: &dyn Target,
    system: System,
) -> Result<Option<MemoryState>, InventoryError> {
    if system == System::FreeBsd {
        return Ok(None);
    }
    target.run(&Command::changes("sync", [""; 0]))?;
    let before = memory_state(target, system)?;
    target.write("/proc/sys/vm/drop_caches", "3\n")?;
    Ok(Some(before))
}

/// The result of a wait for quiet disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Whether there was no write for the requested time.
    pub quiet: bool,
    /// The number of seconds waited.
    pub waited_s: u64,
    /// The bytes written in the last second that was not quiet, by kernel name: the
    /// disks that disturb.
    pub last_writes_bytes: BTreeMap<String, u64>,
}

/// Waits until none of some devices has been written to for `quiet_s` seconds
/// on end, at most `limit_s` seconds: after mkfs (ext4 initialises its tables
/// for minutes), after a write job, before a read job. Devices by kernel name
/// (`sdb`); `pause` sleeps, once for each second, and may end the wait by an error
/// of its own.
///
/// # Errors
/// When the machine cannot be queried, and those of `pause`.
pub fn settle<E: From<InventoryError>>(
    target: &dyn Target,
    system: System,
    devices: &[String],
    quiet_s: u64,
    limit_s: u64,
    mut pause: impl FnMut(Duration) -> Result<(), E>,
) -> Result<Settled, E> {
    let mut then = devices_now(target, system)?;
    let (mut waited_s, mut still_s) = (0, 0);
    let mut last_writes_bytes = BTreeMap::new();
    while still_s < quiet_s && waited_s < limit_s {
        pause(Duration::from_secs(1))?;
        waited_s += 1;
        let now = devices_now(target, system)?;
        let writes = written(devices, &then, &now);
        then = now;
        if writes.is_empty() {
            still_s += 1;
        } else {
            still_s = 0;
            last_writes_bytes = writes;
        }
    }
    Ok(Settled {
        quiet: still_s >= quiet_s,
        waited_s,
        last_writes_bytes,
    })
}

/// The bytes written to each device with finished writes or one in progress.
fn written(
    devices: &[String],
    then: &BTreeMap<String, DeviceCounters>,
    now: &BTreeMap<String, DeviceCounters>,
) -> BTreeMap<String, u64> {
    let each = devices.iter().filter_map(|name| {
        let (then, now) = (then.get(name)?, now.get(name)?);
        let busy = now.writes != then.writes || now.in_flight > 0;
        busy.then(|| (name.clone(), now.write_bytes.wrapping_sub(then.write_bytes)))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::{InventoryError, drop_caches, settle};
    use crate::System;
    use crate::testing::Machine;
    use std::cell::Cell;

    #[test]
    fn the_kernel_s_file_is_written() {
        let machine = Machine::loops().command("sync", 0, "");
        let before = drop_caches(&machine, System::Linux).unwrap();
        assert_eq!(before.unwrap().total_bytes, 24_684_096 * 1024);
        let written = machine.written.lock().unwrap();
        assert_eq!(
            *written,
            [("/proc/sys/vm/drop_caches".to_owned(), "3\n".to_owned())]
        );
    }

    #[test]
    fn freebsd_says_that_it_cannot() {
        let dropping = drop_caches(&Machine::default(), System::FreeBsd).unwrap();
        assert_eq!(dropping, None);
    }

    #[test]
    fn quiet_disks_settle_after_the_time_asked() {
        let pauses = Cell::new(0);
        let devices = ["loop4".to_owned()];
        let machine = Machine::loops();
        let pause = |_| {
            pauses.set(pauses.get() + 1);
            Ok::<(), InventoryError>(())
        };
        let settled = settle(&machine, System::Linux, &devices, 3, 60, pause).unwrap();
        assert!(settled.quiet);
        assert_eq!((settled.waited_s, pauses.get()), (3, 3));
        assert!(settled.last_writes_bytes.is_empty());
    }

    #[test]
    fn a_disk_that_is_written_to_is_waited_for_and_named() {
        let line = |writes: u64| format!("7 4 loop4 0 0 0 0 {writes} 0 {} 0 0 0 0\n", writes * 8);
        let machine = Machine::loops().file("/proc/diskstats", &line(0));
        let second = Cell::new(0);
        // Written to in the seconds 1 to 5.
        let pause = |_| {
            second.set(second.get() + 1);
            machine.replace("/proc/diskstats", &line(second.get().min(5)));
            Ok::<(), InventoryError>(())
        };
        let devices = ["loop4".to_owned()];
        let settled = settle(&machine, System::Linux, &devices, 3, 60, pause).unwrap();
        assert!(settled.quiet);
        assert_eq!(settled.waited_s, 8);
        assert_eq!(settled.last_writes_bytes["loop4"], 4096);
        second.set(0);
        let pause = |_| {
            second.set(second.get() + 1);
            machine.replace("/proc/diskstats", &line(second.get()));
            Ok::<(), InventoryError>(())
        };
        let settled = settle(&machine, System::Linux, &devices, 3, 20, pause).unwrap();
        assert!(!settled.quiet);
        assert_eq!(settled.waited_s, 20);
    }

    #[test]
    fn a_wait_ends_in_the_second_in_which_somebody_stops_it() {
        #[derive(Debug)]
        struct Stopped;
        impl From<InventoryError> for Stopped {
            fn from(_: InventoryError) -> Self {
                unreachable!("this machine answers")
            }
        }
        let pauses = Cell::new(0);
        let pause = |_| {
            pauses.set(pauses.get() + 1);
            (pauses.get() < 4).then_some(()).ok_or(Stopped)
        };
        let devices = ["loop4".to_owned()];
        let ended = settle(&Machine::loops(), System::Linux, &devices, 30, 60, pause);
        assert!(matches!(ended, Err(Stopped)));
        assert_eq!(pauses.get(), 4);
    }
}
