//! An array of md from its subject file: planned as mdadm creates it, put
//! together from its superblocks and started, as `raidlab create` and `raidlab
//! serve` do with real members, but on modelled disks and without a write log.
//!
//! Every command to a member takes time, those for superblocks and bitmap included. Computing
//! parity takes none.

use raidlab_array::{
    AssembleError, AssembleOptions, Assembly, Candidate, EngineOptions, Layout, Level, MdRules,
    NewDevice, Outputs, PersistentArray, RecoveryConfig, Settings, StartError, Throttle,
};
use raidlab_lab::{self as lab, Host, MdRelease, OldLock, Subject, SubjectKind};
use raidlab_metadata::create::{
    BitmapChoice, CreateError, CreatePlan, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{DeviceFlags, MemberMetadata, Uuid, Version};
use raidlab_sim::{ArrayKind, ArrayPaths, BitmapWrites, OldLocks, PersistentSubject};
use raidlab_systems::array::md::{MdLevel, MdSpec, Metadata};
use raidlab_systems::{ArraySpec, ArraySystem, Member, SystemError};
use raidlab_units::{Bytes, Nanos, Sectors};
use thiserror::Error;

/// The time at which modelled arrays are created: 1 January 2026. It changes nothing.
const CREATED: u64 = 1_767_225_600;

/// The reason why an array of md cannot be modelled.
#[derive(Debug, Error)]
pub enum MdError {
    /// The subject has a setting that only a real md has.
    #[error("the model has no md array with {what}: run it with `--on host`")]
    NotModelled {
        /// The setting that the model does not have.
        what: &'static str,
    },
    /// The system would refuse these members.
    #[error(transparent)]
    System(#[from] SystemError),
    /// md has no layout of this name at the array's level.
    #[error("the layout cannot be used")]
    Layout(#[source] raidlab_geometry::UnknownLayout),
    /// mdadm would not create it.
    #[error("the array cannot be created")]
    Create(#[source] CreateError),
    /// The superblocks do not go together.
    #[error("the array cannot be assembled")]
    Assemble(#[source] AssembleError),
    /// The engine of md's parity levels refuses it.
    #[error("the array cannot be started")]
    Start(#[source] StartError),
}

/// An array that can be started any number of times.
#[derive(Debug)]
pub(crate) struct MdArray {
    spec: MdSpec,
    plan: CreatePlan,
    members: Vec<NewDevice>,
}

impl MdArray {
    /// Decides as mdadm would for members of these sizes, whose media turn or do not.
    pub(crate) fn plan(
        subject: &Subject,
        sizes: &[Bytes],
        rotational: &[bool],
    ) -> Result<Self, MdError> {
        let Some(ArraySpec::Md(spec)) = &subject.build else {
            let what = "no [build.md] table";
            return Err(MdError::NotModelled { what });
        };
        let create = specification(spec, sizes.len())?;
        spec.check(&real_members(sizes))?;
        let members: Vec<NewDevice> = (1_u8..)
            .zip(sizes.iter().zip(rotational))
            .map(|(number, (size, &rotational))| NewDevice {
                name: format!("disk{}", number - 1),
                size: size.to_sectors(),
                rotational,
                write_mostly: spec.write_mostly.contains(&usize::from(number - 1)),
                uuid: Uuid([number; 16]),
            })
            .collect();
        let sizes: Vec<Option<MemberSize>> = members
            .iter()
            .map(|member| {
                Some(MemberSize {
                    size: member.size.to_bytes(),
                    device_uuid: member.uuid,
                    flags: DeviceFlags(match member.write_mostly {
                        true => DeviceFlags::WRITE_MOSTLY,
                        false => 0,
                    }),
                    found: Vec::new(),
                })
            })
            .collect();
        Ok(Self {
            spec: spec.clone(),
            plan: plan(&create, &sizes).map_err(MdError::Create)?,
            members,
        })
    }

    /// Whether each member's medium turns.
    #[cfg(test)]
    pub(crate) fn rotational(&self) -> Vec<bool> {
        self.members
            .iter()
            .map(|member| member.rotational)
            .collect()
    }

    /// The size that the array offers.
    pub(crate) fn size(&self) -> Bytes {
        self.plan.array_size.to_bytes()
    }

    /// Has a sync come to rest with a bitmap, and the superblocks written, each time that bits may
    /// age (Linux 6.12 drivers/md/md-bitmap.c, `bitmap_cond_end_sync`). raid10.c asks for that in a
    /// resync or check only; raid1.c and raid5.c in a recovery too.
    fn checkpoint_by_bitmap(&self, recovery: &mut RecoveryConfig) {
        if let (Some(bitmap), Some(rule)) = (&self.plan.bitmap, &mut recovery.checkpoint) {
            let sleep = Nanos::from_secs(bitmap.superblock.daemon_sleep_seconds.into());
            rule.interval = rule.interval.min(sleep);
            if self.spec.level != MdLevel::Raid10 {
                rule.interval_of_recovery = rule.interval;
            }
        }
    }

    /// The lowest and the highest speed of a sync, in KiB/s, if the array is built with any; the
    /// other one is the subject's.
    fn sync_speeds(&self, throttle: Throttle) -> Option<(u64, u64)> {
        let kib = |asked: Option<Bytes>| asked.map(|speed| speed.0 / 1024);
        let (minimum, maximum) = throttle.speeds();
        match (kib(self.spec.sync_speed_min), kib(self.spec.sync_speed_max)) {
            (None, None) => None,
            (least, most) => Some((least.unwrap_or(minimum), most.unwrap_or(maximum))),
        }
    }

    /// Starts the array and returns it as a subject.
    pub(crate) fn start(&self, mut options: EngineOptions) -> Result<PersistentSubject, MdError> {
        if let Some(stripes) = self.spec.stripe_cache_size {
            options.stripes = usize::try_from(stripes).unwrap_or(options.stripes);
        }
        self.checkpoint_by_bitmap(&mut options.recovery);
        let candidates = self.plan.members.iter().map(|planned| {
            let member = &self.members[planned.index];
            Candidate {
                name: member.name.clone(),
                size: member.size,
                metadata: MemberMetadata {
                    superblock: planned.superblock.clone(),
                    checksum: raidlab_metadata::Checksum::default(),
                    legacy: None,
                    bitmap: self.plan.bitmap.clone(),
                    bitmap_error: None,
                    bad_blocks: Vec::new(),
                    log_area: planned.log_area.clone(),
                },
                log: None,
                rotational: member.rotational,
            }
        });
        let candidates = candidates.collect();
        let assembly = Assembly::decide(candidates, &AssembleOptions::default());
        let assembly = assembly.map_err(MdError::Assemble)?;
        let handles = assembly.handles();
        let members = self.members.iter().filter_map(|member| {
            let (handle, _) = handles.iter().find(|(_, name)| *name == member.name)?;
            Some((*handle, member.clone()))
        });
        let members = members.collect();
        let first = &self.plan.members[0].superblock;
        let data_offset = first.data_offset;
        let used = match first.used_size {
            // Members of an array without redundancy are used to their ends.
            Sectors::ZERO => first.data_size,
            used => used,
        };
        // Session 0: no write log, as md.
        let settings = Settings::new(Nanos::from_secs(CREATED), 0);
        let mut start = Outputs::default();
        let mut array =
            PersistentArray::start(assembly, &options, settings, Nanos::ZERO, &mut start)
                .map_err(MdError::Start)?;
        if let Some((minimum, maximum)) = self.sync_speeds(options.recovery.throttle) {
            array.set_sync_speed(minimum, maximum);
        }
        Ok(PersistentSubject::new(
            array,
            start,
            members,
            data_offset,
            used,
        ))
    }
}

/// The rules of the host's Linux for its md.
pub(crate) const fn rules(host: &Host) -> MdRules {
    match host.md {
        MdRelease::Linux6_1 => MdRules::LINUX_6_1,
        MdRelease::Linux6_12 => MdRules::LINUX_6_12,
    }
}

/// The threads and locks of a subject's array, as its host's Linux has them.
pub(crate) fn paths(subject: &Subject, host: &Host) -> ArrayPaths {
    let old = OldLocks {
        barrier: host.old_locks.contains(&OldLock::Barrier),
        wake_up: host.old_locks.contains(&OldLock::WakeUp),
        direct_read: host.old_locks.contains(&OldLock::DirectRead),
        overlap: host.old_locks.contains(&OldLock::Overlap),
        block_counts: host.old_locks.contains(&OldLock::BlockCounts),
    };
    let md = match (&subject.build, subject.kind) {
        (Some(ArraySpec::Md(spec)), SubjectKind::Array) => Some(spec),
        _ => None,
    };
    let kind = match (md.map(|spec| spec.level), subject.kind) {
        (Some(MdLevel::Linear | MdLevel::Raid0), _) => ArrayKind::Stripes,
        (Some(MdLevel::Raid10), _) => ArrayKind::Raid10,
        (Some(MdLevel::Raid4 | MdLevel::Raid5), _) => ArrayKind::Parity,
        (Some(MdLevel::Raid6), _) => ArrayKind::DoubleParity,
        (Some(MdLevel::Raid1), _) | (None, SubjectKind::Mirror) => ArrayKind::Mirror,
        (None, _) => ArrayKind::Disk,
    };
    let has_bitmap = md.is_some_and(MdSpec::has_bitmap);
    ArrayPaths {
        kind,
        old,
        bitmap: has_bitmap.then_some(match host.bitmap_writes {
            lab::BitmapWrites::Process => BitmapWrites::Process,
            lab::BitmapWrites::Thread => BitmapWrites::Thread,
            lab::BitmapWrites::Worker => BitmapWrites::Worker,
        }),
        unplugged: host.bitmap_writes == lab::BitmapWrites::Thread,
        // Both came with Linux 6.5 and 6.6, which no host tells apart.
        workers_near: host.bitmap_writes != lab::BitmapWrites::Process,
        group_threads: md.and_then(|spec| spec.group_thread_count).unwrap_or(0),
    }
}

/// Describes members of these sizes as a real system is asked whether it takes them.
fn real_members(sizes: &[Bytes]) -> Vec<Member> {
    let member = |(number, size): (usize, &Bytes)| Member {
        device: format!("disk{number}"),
        size: *size,
        backing: None,
        away: false,
    };
    sizes.iter().enumerate().map(member).collect()
}

/// Translates the subject's `[build.md]` into the terms of `raidlab create`.
fn specification(spec: &MdSpec, members: usize) -> Result<CreateSpec, MdError> {
    let refuse = |what| Err(MdError::NotModelled { what });
    let version = match spec.metadata {
        Metadata::V0_90 => return refuse("metadata 0.90, which raidlab reads but never writes"),
        Metadata::V1_0 => Version::V1_0,
        Metadata::V1_1 => Version::V1_1,
        Metadata::V1_2 => Version::V1_2,
    };
    if spec.consistency_policy.is_some() {
        return refuse("a consistency policy");
    }
    if spec.spares > 0 {
        return refuse("spares");
    }
    let level = level(spec.level);
    let layout = spec
        .layout
        .as_deref()
        .map(|name| Layout::parse(level, name));
    Ok(CreateSpec {
        version,
        level,
        layout: layout.transpose().map_err(MdError::Layout)?,
        chunk: spec.chunk.map(Bytes::to_sectors),
        raid_disks: members,
        array_uuid: Uuid([255; 16]),
        host: "model".to_owned(),
        name: "0".to_owned(),
        created: CREATED,
        size: None,
        data_offset: None,
        // The host bench asks for one too where nothing is said.
        bitmap: match spec.has_bitmap() {
            true => BitmapChoice::Internal(spec.bitmap_chunk),
            false => BitmapChoice::None,
        },
        initial: if spec.assume_clean {
            InitialSync::AssumeClean
        } else {
            // As mdadm does it: a RAID 5 is born with its last member to be
            // rebuilt.
            InitialSync::SpareRebuild
        },
        log: LogReserve::None,
        bad_block_log: true,
    })
}

const fn level(level: MdLevel) -> Level {
    match level {
        MdLevel::Linear => Level::Linear,
        MdLevel::Raid0 => Level::Raid0,
        MdLevel::Raid1 => Level::Raid1,
        MdLevel::Raid4 => Level::Raid4,
        MdLevel::Raid5 => Level::Raid5,
        MdLevel::Raid6 => Level::Raid6,
        MdLevel::Raid10 => Level::Raid10,
    }
}
