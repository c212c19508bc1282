//! The disks of an experiment as its suite lays them out: whole ones, parts of one
//! drive, drives of one channel.
//!
//! Members that share neither arm, cable nor bus get a disk of their own each. The
//! others are put together by bus, by channel, or by drive where there is none: each group
//! has its drives once, and its members are ports to them.

use raidlab_disk::shared::{self, Attached, Sharing};
use raidlab_disk::{BusRules, Disk, DiskParameters, StateError};
use raidlab_lab::{Experiment, Region};
use raidlab_random::Stream;
use raidlab_units::{Bytes, BytesPerSecond, Nanos, Sectors};
use thiserror::Error;

/// The error of a member that is a part beyond its drive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("member {member} ends at {end}, but its drive has {capacity}")]
pub struct WiringError {
    /// The number of the member, from 0.
    pub member: usize,
    /// The place where its region would end.
    pub end: Bytes,
    /// The size of the drive that the member is a part of.
    pub capacity: Bytes,
}

/// A member's disk, or its way to one.
#[derive(Debug, Clone)]
pub struct Wired {
    /// The disk, and the cable or bus that it hangs on.
    pub disk: Attached,
    /// The part of it that is the member's.
    pub size: Sectors,
    /// Whether the suite itself says that size.
    pub fixed_size: bool,
}

/// The random numbers of an experiment: for the angles of its disks and the offsets of the model's
/// jobs. A repetition has its own, as real disks are not found at the same angles again; the first
/// one has those of the seed.
#[must_use]
pub fn chance(experiment: &Experiment) -> Stream {
    let stream = Stream::new(experiment.seed);
    match experiment.repetition {
        0 => stream,
        repetition => stream.fork("repetition", u64::from(repetition)),
    }
}

/// Puts the numbers of a member's preset into the state that its place in the suite has.
///
/// # Errors
/// When the drive has no such state.
pub fn place(
    experiment: &Experiment,
    member: usize,
    mut numbers: DiskParameters,
) -> Result<DiskParameters, StateError> {
    let state = experiment
        .regions
        .get(member)
        .map(|region| region.state.as_str());
    if let Some(state) = state.filter(|state| !state.is_empty()) {
        numbers.begin_in(state)?;
    }
    Ok(numbers)
}

/// The size of each member.
///
/// # Errors
/// When a region ends behind its drive.
pub fn sizes(
    regions: &[Region],
    parameters: &[DiskParameters],
) -> Result<Vec<Sectors>, WiringError> {
    let numbers = parameters.iter().enumerate();
    numbers
        .map(|(member, numbers)| {
            let whole = Region::default();
            let region = regions.get(member).unwrap_or(&whole);
            let start = region.start.to_sectors() + Sectors(region.first_sector);
            let rest = numbers.capacity.0.saturating_sub(start.0);
            let size = region.size.map_or(Sectors(rest), Bytes::to_sectors);
            if size.0 == 0 || size.0 > rest {
                return Err(WiringError {
                    member,
                    end: (start + size).to_bytes(),
                    capacity: numbers.capacity.to_bytes(),
                });
            }
            Ok(size)
        })
        .collect()
}

/// Makes the disks of an experiment, member by member; `regions` may be shorter than `parameters`:
/// the others are whole. `random` is the experiment's own stream.
///
/// # Errors
/// When a region ends behind its drive.
pub fn wire(
    regions: &[Region],
    parameters: &[DiskParameters],
    random: &Stream,
) -> Result<Vec<Wired>, WiringError> {
    let sizes = sizes(regions, parameters)?;
    let whole = Region::default();
    let region = |member: usize| regions.get(member).unwrap_or(&whole);
    let mut wired: Vec<Option<Wired>> = vec![None; parameters.len()];
    for member in 0..parameters.len() {
        if wired[member].is_some() {
            continue;
        }
        let group: Vec<usize> = (member..parameters.len())
            .filter(|&other| other == member || together(region(member), region(other)))
            .collect();
        let disks = attach(&group, &region, parameters, random);
        for (&member, disk) in group.iter().zip(disks) {
            wired[member] = Some(Wired {
                disk,
                size: sizes[member],
                fixed_size: region(member).size.is_some(),
            });
        }
    }
    Ok(wired.into_iter().flatten().collect())
}

/// Whether two members share a cable or an arm.
fn together(one: &Region, other: &Region) -> bool {
    if one.bus.is_some() || other.bus.is_some() {
        return one.bus == other.bus;
    }
    if one.channel.is_empty() || other.channel.is_empty() {
        one.channel == other.channel && !one.drive.is_empty() && one.drive == other.drive
    } else {
        one.channel == other.channel
    }
}

/// The ways to the disks of a group of members.
fn attach<'a>(
    group: &[usize],
    region: &impl Fn(usize) -> &'a Region,
    parameters: &[DiskParameters],
    random: &Stream,
) -> Vec<Attached> {
    let make = |member: usize, first_sector: u64| {
        let mut numbers = parameters[member].clone();
        numbers.first_sector = Sectors(first_sector);
        let index = member as u64;
        let angle = numbers.some_angle(&mut random.fork("phase", index));
        Disk::new(numbers, angle, random.fork("disk", index))
    };
    let first = region(group[0]);
    let alone =
        group.len() == 1 && first.channel.is_empty() && first.bus.is_none() && first.start.0 == 0;
    if alone {
        return vec![make(group[0], first.first_sector).into()];
    }
    // Each drive is there once, as that of the first member that names it.
    let mut drives: Vec<usize> = Vec::new();
    let mut ports = Vec::new();
    for &member in group {
        let own = region(member);
        let same = |&drive: &usize| !own.drive.is_empty() && region(drive).drive == own.drive;
        let disk = drives.iter().position(same).unwrap_or_else(|| {
            drives.push(member);
            drives.len() - 1
        });
        ports.push(shared::Region {
            disk,
            start: own.start.to_sectors() + Sectors(own.first_sector),
        });
    }
    let disks = drives.into_iter().map(|member| make(member, 0)).collect();
    let sharing = match &first.bus {
        Some(bus) => Sharing::Bus(BusRules {
            rate: BytesPerSecond(bus.bytes_per_second.0 as f64),
            half_duplex: bus.half_duplex,
            command: Nanos::from_micros(u64::from(bus.command_us)),
        }),
        None if first.channel.is_empty() => Sharing::Arm,
        None => Sharing::Cable,
    };
    let ports = shared::ports(disks, &ports, sharing);
    ports.into_iter().map(Attached::Port).collect()
}

#[cfg(test)]
mod tests;
