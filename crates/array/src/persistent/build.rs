//! The engine and the tables of a running array, built from an assembly.

use super::assembly::{AssembledMember, Assembly, NeededSync, Part};
use super::device::Device;
use super::{Settings, StartError};
use crate::array::Array;
use crate::config::{ArrayConfig, Initial};
use crate::engine::Engine;
use crate::mutation::{self, Mutation};
use crate::policy::ReadPolicyKind;
use crate::recovery::RecoveryConfig;
use crate::request::Slot;
use crate::stripes::{LogConfig, StripeArray, StripeConfig, StripeConfigError, WritePolicy};
use raidlab_geometry::{Layout, Level, ParityLayout, SlotSet, StripeMap};
use raidlab_metadata::{Bitmap, Role, Superblock};
use raidlab_units::{Sectors, Span};
use std::collections::{BTreeMap, BTreeSet};

/// A function that makes the engine of an array with parity, from its configuration and the resync
/// that it needs.
pub type ParityBuilder =
    fn(StripeConfig, Option<&NeededSync>) -> Result<Box<dyn Engine>, StripeConfigError>;

/// The options of the engine, which the superblocks do not contain.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// For levels with copies: the policy that chooses the member for a read.
    pub read_policy: ReadPolicyKind,
    /// The rules of syncs: throttle, barrier, checkpoints.
    pub recovery: RecoveryConfig,
    /// For levels with copies: the longest command; 0 for no limit.
    pub maximum_request: Sectors,
    /// For levels with parity: read-modify-write or reconstruct-write.
    pub write_policy: WritePolicy,
    /// For levels with parity: the number of windows gathered.
    pub stripes: usize,
    /// For levels with parity: the longest window.
    pub window: Sectors,
    /// For levels with parity: the engine, [`StripeArray`] unless given. An engine that has no
    /// bytes is for models only.
    pub parity: ParityBuilder,
}

/// Whether the level can lose a member.
pub(super) const fn is_redundant(level: Level) -> bool {
    !matches!(level, Level::Linear | Level::Raid0)
}

/// Returns the device numbers of members in service by the newest superblock that are missing.
pub(super) fn gone(assembly: &Assembly) -> BTreeSet<u32> {
    let here: BTreeSet<u32> = assembly
        .members
        .iter()
        .map(|member| member.candidate.metadata.superblock.device_number)
        .collect();
    (0..)
        .zip(&assembly.array.roles)
        .filter(|(number, role)| {
            matches!(role, Role::Slot(_) | Role::Faulty) && !here.contains(number)
        })
        .map(|(number, _)| number)
        .collect()
}

/// Returns the map of a level with parity.
pub(super) fn stripe_map(assembly: &Assembly) -> Option<StripeMap> {
    let Layout::Parity(layout) = assembly.layout else {
        return None;
    };
    StripeMap::new(
        assembly.level,
        layout,
        assembly.slot_count(),
        assembly.array.chunk,
        assembly.array.used_size,
    )
    .ok()
}

/// Returns the place where all members have room for the records of a write log, behind the log's
/// superblock. A spare that has none there is not used.
pub(super) fn ring(assembly: &Assembly) -> Option<Span> {
    if assembly.level.parity_count() == 0 {
        return None;
    }
    let mut common: Option<Span> = None;
    let members = assembly.members.iter();
    for member in members.filter(|it| it.part != Part::Spare) {
        let area = super::log_area(&member.candidate.metadata)?;
        common = Some(match common {
            None => area,
            Some(common) => Span::between(common.start.max(area.start), common.end.min(area.end)),
        });
    }
    let common = common?;
    let start = common.start + super::LOG_SUPERBLOCK_SECTORS;
    // A record's place must fit 32 bits; no array needs a longer ring.
    let end = common.end.min(start + MAXIMUM_RING);
    let widest = (end.0 >= start.0.checked_add(MINIMUM_RING)?).then_some(Span { start, end })?;
    // Members that are away or come later have room for the previous ring, and perhaps for
    // no longer one.
    let before = ring_of_before(assembly).filter(|ring| {
        let is_within = widest.start <= ring.start && ring.end <= widest.end;
        is_within
            && !mutation::is(Mutation::RingWidened)
            && ring.start.0 + MINIMUM_RING <= ring.end.0
    });
    Some(before.unwrap_or(widest))
}

/// Returns the place of the records in the members' last run.
fn ring_of_before(assembly: &Assembly) -> Option<Span> {
    let mut members = assembly.members.iter().map(|member| &member.candidate);
    members.find_map(|it| Some(it.log.as_ref()?.of(&it.metadata.superblock)?.ring))
}

/// The shortest ring: 128 KiB with the log's superblock, half of what raidlab leaves for a log on
/// the smallest members, of which rounding and bitmaps may take some.
const MINIMUM_RING: u64 = super::log_superblock::MINIMUM_AREA - super::LOG_SUPERBLOCK_SECTORS.0;
/// The longest ring of a write log, 64 MiB.
const MAXIMUM_RING: Sectors = Sectors(64 << 11);

/// Returns the devices by handle, and the one that serves each slot.
pub(super) fn devices(
    members: Vec<AssembledMember>,
    slots: usize,
) -> (BTreeMap<Slot, Device>, Vec<Option<Slot>>) {
    let mut devices = BTreeMap::new();
    let mut served = vec![None; slots];
    let mut next = u16::try_from(slots).unwrap_or(u16::MAX);
    for member in members {
        let device = Device::new(member);
        let handle = match device.place.slot() {
            Some(slot) => {
                served[slot.index()] = Some(slot);
                slot
            }
            None => {
                let handle = Slot(next);
                next = next.saturating_add(1);
                handle
            }
        };
        devices.insert(handle, device);
    }
    (devices, served)
}

/// Whether a member that the newest superblock has in service is missing.
pub(super) fn lacks(array: &Superblock, devices: &BTreeMap<Slot, Device>) -> bool {
    let mut numbers = (0..).zip(&array.roles);
    numbers.any(|(number, role)| {
        let mut devices = devices.values();
        matches!(role, Role::Slot(_)) && !devices.any(|it| it.own.device_number == number)
    })
}

/// Returns the members whose superblocks are one event behind the newest, which has them in
/// service, with the superblock that they are to get: the newest as it was found, whichever device
/// has it. Members taken by force are not among them: until the first pass is over they must not
/// count as current for another system. Nor is a spare to which the newest gives a slot: it has no
/// record of that, and with such a superblock it would count as filled.
pub(super) fn behind(
    found: &Superblock,
    devices: &BTreeMap<Slot, Device>,
    has_bitmap: bool,
) -> Vec<(Slot, Superblock)> {
    let is_behind = |device: &Device| {
        let number = usize::try_from(device.own.device_number).unwrap_or(usize::MAX);
        device.own.events.checked_add(1) == Some(found.events)
            && matches!(device.role(), Role::Slot(_))
            && found.roles.get(number) == Some(&device.role())
    };
    devices
        .iter()
        .filter(|(_, device)| is_behind(device))
        .map(|(handle, device)| (*handle, device.superblock(found, has_bitmap)))
        .collect()
}

impl Assembly {
    /// Returns the handles under which a running array will know the devices, each with
    /// its device's name.
    #[must_use]
    pub fn handles(&self) -> Vec<(Slot, &str)> {
        let mut next = u16::try_from(self.slot_count()).unwrap_or(u16::MAX);
        let handles = self.members.iter().map(|member| {
            let handle = match &member.part {
                Part::InSync(slot) | Part::Recovering(slot, _) => *slot,
                Part::Replacing(..) | Part::Spare => {
                    let handle = Slot(next);
                    next = next.saturating_add(1);
                    handle
                }
            };
            (handle, member.candidate.name.as_str())
        });
        handles.collect()
    }

    /// Returns the initial state of each slot for an engine.
    #[must_use]
    pub fn initial(&self) -> Vec<Initial> {
        let slots = self.slots().into_iter().map(|member| match member {
            None => Initial::Missing,
            Some(member) => {
                let config = Device::new(member.clone()).config();
                match &member.part {
                    // Without permission to write no member can be recovered.
                    Part::Recovering(..) if self.read_only => Initial::Missing,
                    Part::Recovering(_, admission) => {
                        Initial::Recovering(config, admission.clone())
                    }
                    _ => Initial::InSync(config),
                }
            }
        });
        slots.collect()
    }
}

impl EngineOptions {
    /// Options that imitate md of Linux 6 except in the read policy.
    #[must_use]
    pub fn new(read_policy: ReadPolicyKind) -> Self {
        let stripes = StripeConfig::new(
            Level::Raid5,
            ParityLayout::default(),
            Sectors(128),
            Sectors(128),
        );
        Self {
            read_policy,
            recovery: RecoveryConfig::md_6(),
            maximum_request: Sectors(1024),
            write_policy: stripes.write_policy,
            stripes: stripes.stripes,
            window: stripes.window,
            parity: own_parity,
        }
    }
}

/// Builds raidlab's own engine of levels with parity.
fn own_parity(
    config: StripeConfig,
    resync: Option<&NeededSync>,
) -> Result<Box<dyn Engine>, StripeConfigError> {
    let mut members = config.members.iter();
    let is_whole = members.all(|member| matches!(member, Initial::InSync(_)));
    let end = config.member_size;
    let mut engine = StripeArray::new(config)?;
    if let Some(resync) = resync {
        // Exactly the ranges of the resync: nothing else would ever make the rest trusted again.
        let rest = [Span::between(resync.from, end)];
        let ranges = resync.ranges.as_deref().unwrap_or(&rest);
        match resync.is_first {
            true => engine.declare_unwritten(ranges),
            false if is_whole => engine.declare_unsynced(Some(ranges)),
            // A degraded array was started by force, or with the log's permission: missing data are
            // computed from parity as it stands.
            false => {}
        }
    }
    Ok(Box::new(engine))
}

impl Assembly {
    /// Builds the engine for the array's level, with the members as they were assembled.
    pub(super) fn build_engine(
        &self,
        options: &EngineOptions,
        settings: &Settings,
    ) -> Result<Box<dyn Engine>, StartError> {
        if let Some(config) = self.stripe_config(options, settings) {
            let torn = self.unreplayed();
            let resync = torn.as_ref().or(self.resync.as_ref());
            return (options.parity)(config, resync).map_err(StartError::Stripes);
        }
        let mut engine = Array::new(self.copies_config(options)).map_err(StartError::Copies)?;
        if self.resync.is_some() {
            engine.declare_dirty();
        }
        if !mutation::is(Mutation::ForcedCopyFirst) {
            engine.declare_doubtful(self.forced_slots());
        }
        Ok(Box::new(engine))
    }

    /// Returns the slots of members that are in sync only because of `force`.
    fn forced_slots(&self) -> SlotSet {
        let is_forced = |member: &&AssembledMember| self.forced.contains(&member.candidate.name);
        let slots = self.members.iter().filter(is_forced);
        slots
            .filter_map(|member| match member.part {
                Part::InSync(slot) => Some(slot),
                _ => None,
            })
            .collect()
    }

    /// Returns the ranges in which parity may be torn, as a log is not replayed without
    /// permission to write.
    fn unreplayed(&self) -> Option<NeededSync> {
        let spans = |bitmap: &Bitmap| bitmap.set_spans().map(super::intent::span).collect();
        let is_torn = self.replay.is_some() && !mutation::is(Mutation::UnreplayedParityTrusted);
        is_torn.then(|| NeededSync {
            from: Sectors::ZERO,
            ranges: self.bitmap.as_ref().map(spans),
            is_first: false,
        })
    }

    /// Returns the configuration of the engine of a level with copies.
    fn copies_config(&self, options: &EngineOptions) -> ArrayConfig {
        let mut shape = super::assembly::shape_of(&self.array, self.level, self.layout);
        for (size, member) in shape.member_sizes.iter_mut().zip(self.slots()) {
            // Without redundancy each member is used to its own end.
            if let Some(member) = member.filter(|_| !is_redundant(self.level)) {
                *size = member.candidate.metadata.superblock.data_size;
            }
        }
        ArrayConfig {
            shape,
            members: self.initial(),
            read_policy: options.read_policy,
            recovery: options.recovery.clone(),
            maximum_request: options.maximum_request,
            record_failures: true,
        }
    }

    /// Returns the configuration of the engine of a level with parity; `None` for other levels.
    #[must_use]
    pub fn stripe_config(
        &self,
        options: &EngineOptions,
        settings: &Settings,
    ) -> Option<StripeConfig> {
        let Layout::Parity(layout) = self.layout else {
            return None;
        };
        let ring = ring(self).filter(|_| settings.session != 0 && !self.read_only);
        let (chunk, size) = (self.array.chunk, self.array.used_size);
        Some(StripeConfig {
            members: self.initial(),
            write_policy: options.write_policy,
            stripes: options.stripes,
            window: options.window,
            sync: options.recovery.clone(),
            log: ring.map(|ring| LogConfig {
                session: settings.session,
                ring,
            }),
            ..StripeConfig::new(self.level, layout, chunk, size)
        })
    }
}
