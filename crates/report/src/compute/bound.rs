//! The bound of a column's disks: the sum of each member's sequential rate, as measured alone or as
//! its maker declares.
//!
//! Reads can use all members at once. Writes include copies and parity, whose amount is a fact of
//! the array: of n members of the rate r, RAID 1 writes r, RAID 10 and a btrfs `raid1` n r / 2,
//! RAID 5 (n - 1) r, RAID 6 (n - 2) r. Spares, logs and caches do not count, and an array whose
//! cache answers before its members has no such bound. Channels that members share are not counted
//! here; the audit knows them.

use super::facts::Facts;
use super::view::{Cell, Row};
use raidlab_store::fact::{self, disk_property};
use raidlab_store::{Measurement, Operation};

/// The number of slots that are looked up for the rates of an array's members.
const MOST_MEMBERS: usize = 256;

/// The percentage of the disks' bound that a cell reached; `None` where the row is not of
/// sequential bytes, or a member's rate is not known.
pub(crate) fn percent_of_disks(facts: &Facts<'_>, row: &Row<'_>, cell: Cell<'_>) -> Option<f64> {
    let m = cell.m;
    let one_way = m.op.only_reads() || m.op.only_writes();
    let random = matches!(m.op, Operation::RandomRead | Operation::RandomWrite)
        || m.class.contains("random")
        || m.class.contains("mixed");
    if !row.rate.is_bytes() || !one_way || random {
        return None;
    }
    let bound = row.rate.of_bytes(bound(facts, m)?)?;
    (bound > 0.0).then(|| 100.0 * cell.value / bound)
}

/// The bytes per second that the members could read, or store of a file.
fn bound(facts: &Facts<'_>, m: &Measurement) -> Option<f64> {
    let devices = (0..MOST_MEMBERS).map_while(|slot| {
        let device = facts.value(m, &fact::member_device(slot))?;
        Some((device, facts.value(m, &fact::member_role(slot))))
    });
    let proper = devices.filter(|(_, role)| matches!(role, None | Some("write-mostly")));
    let rates: Option<Vec<f64>> = proper.map(|(device, _)| rate(facts, m, device)).collect();
    let rates = rates.filter(|rates| !rates.is_empty())?;
    let sum: f64 = rates.iter().sum();
    if m.op.only_reads() {
        return Some(sum);
    }
    let count = rates.len() as f64;
    let told = facts.number(m, fact::ARRAY_MEMBER_BYTES_PER_BYTE);
    let written = told.or_else(|| by_level(facts, m, count))?;
    // Each member must take all of the bytes, so the slowest decides.
    if (written - count).abs() < 1e-9 {
        return rates.into_iter().reduce(f64::min);
    }
    (written > 0.0).then(|| sum / written)
}

/// The bytes that members write per byte, by the level's name alone, as older runs and imports have
/// no more; `None` where the name does not tell.
fn by_level(facts: &Facts<'_>, m: &Measurement, count: f64) -> Option<f64> {
    let parity = |disks: f64| (count > disks).then(|| count / (count - disks));
    let is_btrfs = facts.value(m, fact::ARRAY_SYSTEM) == Some("btrfs");
    match facts.value(m, fact::ARRAY_LEVEL).unwrap_or_default() {
        "raid1" if is_btrfs => Some(2.0),
        "raid1" | "mirror" => Some(count),
        "raid10" | "dup" => Some(2.0),
        "raid1c3" => Some(3.0),
        "raid1c4" => Some(4.0),
        "raid4" | "raid5" | "raidz" | "raidz1" | "raid3" => parity(1.0),
        "raid6" | "raidz2" => parity(2.0),
        "raidz3" => parity(3.0),
        "raid0" | "linear" | "single" | "stripe" | "striped" => Some(1.0),
        _ => None,
    }
}

/// A device's own rate, or that of the disk that it is a partition of.
fn rate(facts: &Facts<'_>, m: &Measurement, device: &str) -> Option<f64> {
    let own = |device: &str| {
        facts.number(
            m,
            &fact::disk(device, disk_property::SEQUENTIAL_BYTES_PER_SECOND),
        )
    };
    own(device).or_else(|| own(facts.value(m, &fact::disk(device, disk_property::PARENT))?))
}

#[cfg(test)]
mod tests {
    use super::percent_of_disks;
    use crate::compute::facts::Facts;
    use crate::compute::view::View;
    use crate::data::RunData;
    use crate::sample;
    use raidlab_store::{Observation, fact};

    #[test]
    fn a_mirror_reads_with_both_disks_and_writes_with_one() {
        let mut data = sample::bench();
        data.measurements.retain(|m| m.repetition == 0);
        for m in &mut data.measurements {
            m.bytes_per_second = 171e6;
        }
        let view = View::new(&data);
        let facts = Facts::new(&data.observations);
        let percent = |job: &str| {
            let mut rows = view.rows.iter();
            let row = rows.find(|row| row.label == job).unwrap();
            percent_of_disks(&facts, row, row.cells[0].unwrap())
        };
        assert_eq!(percent("seqread"), Some(50.0));
        assert_eq!(percent("seqwrite"), Some(100.0));
        assert_eq!(percent("rw-256k"), None);
        assert_eq!(percent("rr-4"), None);
        assert_eq!(percent("bonnie seek"), None);
    }

    #[test]
    fn the_array_s_own_word_stands_before_its_level_s_name() {
        let mut data = sample::bench();
        data.measurements.retain(|m| m.repetition == 0);
        for m in &mut data.measurements {
            m.bytes_per_second = 171e6;
        }
        let level = |one: &&mut Observation| one.name == fact::ARRAY_LEVEL;
        let percent = |data: &RunData| {
            let view = View::new(data);
            let facts = Facts::new(&data.observations);
            let mut rows = view.rows.iter();
            let row = rows.find(|row| row.label == "seqwrite").unwrap();
            percent_of_disks(&facts, row, row.cells[0].unwrap())
        };
        for (name, percents) in [
            ("raid1", 100.0),
            ("striped", 50.0),
            ("dup", 100.0),
            ("raid10", 100.0),
        ] {
            for one in data.observations.iter_mut().filter(level) {
                name.clone_into(&mut one.value);
            }
            assert_eq!(percent(&data), Some(percents), "{name}");
        }
        let told: Vec<Observation> = data
            .observations
            .iter()
            .filter(|one| one.name == fact::ARRAY_LEVEL)
            .cloned()
            .collect();
        assert!(!told.is_empty());
        data.observations
            .extend(told.into_iter().map(|one| Observation {
                name: fact::ARRAY_MEMBER_BYTES_PER_BYTE.to_owned(),
                value: "1".to_owned(),
                ..one
            }));
        assert_eq!(
            percent(&data),
            Some(50.0),
            "nothing twice, whatever the level is called"
        );
        let spare: Vec<Observation> = data
            .observations
            .iter()
            .filter(|one| one.name == fact::member_device(1))
            .cloned()
            .collect();
        data.observations
            .extend(spare.into_iter().map(|one| Observation {
                name: fact::member_role(1),
                value: "spare".to_owned(),
                ..one
            }));
        assert_eq!(percent(&data), Some(100.0), "one of two is a spare");
    }

    #[test]
    fn an_unknown_member_leaves_the_bound_open() {
        let mut data = sample::bench();
        data.observations
            .retain(|o| !o.name.starts_with("disk.sdc"));
        let view = View::new(&data);
        let facts = Facts::new(&data.observations);
        let row = &view.rows[0];
        assert_eq!(percent_of_disks(&facts, row, row.cells[0].unwrap()), None);
    }
}
