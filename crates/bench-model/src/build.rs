//! The building of a machine from an experiment's description.

mod ablation;
mod error;
mod refusals;

pub use ablation::{Ablation, UnknownAblation};
pub use error::BuildError;

use crate::md_array::{self, MdArray};
use crate::pool_subject::{self, PoolSubject};
use crate::presets;
use crate::wiring;
use raidlab_array::{
    Array, ArrayConfig, CheckpointRule, EngineOptions, HostRequests, MdThreads, MemberConfig,
    ReadRecovered, RecoveringWrites, RecoveryConfig, Slot, SlotSet, SyncSource, Throttle,
    WriteBarrier,
};
use raidlab_disk::{DiskParameters, Order, Preset, QueueRules};
use raidlab_lab::{self as lab, Experiment, Files, SubjectKind};
use raidlab_md::Raid5d;
use raidlab_policies::read_policy;
use raidlab_random::Stream;
use raidlab_sim::{
    ArrayPaths, ArraySubject, Host, Machine, MachineConfig, ProcessorConfig, ProcessorPreset,
    Subject,
};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_zfs::{Pool, PoolConfig};
use refusals::{check_cache, check_discards, check_modelled};

/// The decisions about a machine, before it is made.
pub(crate) struct Plan {
    pub(crate) presets: Vec<Preset>,
    pub(crate) parameters: Vec<DiskParameters>,
    /// The size of each member.
    sizes: Vec<Bytes>,
    pub(crate) ablations: Vec<Ablation>,
    capacity: Bytes,
    host: lab::Host,
    /// The scheduler that the suite asks for.
    scheduler: Option<String>,
    pub(crate) processor: Option<ProcessorPreset>,
    /// The array of a subject of kind `array`; `None` for all other kinds.
    md: Option<MdArray>,
}

impl Plan {
    pub(crate) fn new(experiment: &Experiment, files: &Files) -> Result<Self, BuildError> {
        check_modelled(experiment)?;
        let processor = processor(experiment, files)?;
        let subject = &experiment.subject;
        let host = subject.host.clone().ok_or_else(|| BuildError::Incomplete {
            subject: subject.name.clone(),
            what: "host to be modelled on",
        })?;
        check_cache(subject, &host)?;
        let ablations = experiment
            .without
            .iter()
            .map(|name| name.parse::<Ablation>())
            .collect::<Result<Vec<_>, _>>()?;
        let mut presets = Vec::new();
        let mut parameters = Vec::new();
        for (member, disk) in experiment.disks.iter().enumerate() {
            let preset = presets::load_from(files, disk).map_err(|source| BuildError::Preset {
                disk: disk.clone(),
                source,
            })?;
            let mut numbers = preset
                .parameters(preset.set_beside(&experiment.fit))
                .map_err(|source| BuildError::Set {
                    set: experiment.fit.clone(),
                    source,
                })?
                .clone();
            for ablation in &ablations {
                if let Ablation::Disk(feature) = ablation {
                    numbers = numbers.without(*feature);
                }
            }
            let numbers =
                wiring::place(experiment, member, numbers).map_err(|source| BuildError::State {
                    disk: disk.clone(),
                    source,
                })?;
            presets.push(preset);
            parameters.push(numbers);
        }
        let sizes = wiring::sizes(&experiment.regions, &parameters)?;
        let sizes: Vec<Bytes> = sizes.into_iter().map(Sectors::to_bytes).collect();
        let md = match subject.kind {
            SubjectKind::Array => {
                let rotational: Vec<bool> = rotational(&parameters).collect();
                Some(MdArray::plan(subject, &sizes, &rotational)?)
            }
            _ => None,
        };
        check_discards(experiment, &parameters)?;
        let capacity = match &md {
            Some(md) => experiment.check_fits(md.size()).map(|()| md.size()),
            None => experiment.check_capacity(&sizes),
        };
        let capacity = capacity.map_err(BuildError::Capacity)?;
        Ok(Self {
            md,
            presets,
            parameters,
            sizes,
            ablations,
            capacity,
            host,
            scheduler: subject.scheduler.clone(),
            processor,
        })
    }

    /// The size of the array.
    pub(crate) const fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// The size of each member.
    pub(crate) fn sizes(&self) -> &[Bytes] {
        &self.sizes
    }

    /// Whether each member's medium turns.
    fn rotational(&self) -> impl Iterator<Item = bool> {
        rotational(&self.parameters)
    }

    /// The time from the end of a job to the first request of the next.
    pub(crate) fn start_up(&self) -> Nanos {
        self.host.start_up
    }

    /// The time for which members are to be quiet before a job.
    pub(crate) fn quiet(&self) -> Nanos {
        self.host.quiet
    }

    /// The modelled host's main memory.
    pub(crate) const fn memory(&self) -> Bytes {
        self.host.memory
    }

    pub(crate) fn machine(&self, experiment: &Experiment) -> Result<Machine, BuildError> {
        let random = wiring::chance(experiment);
        let disks = wiring::wire(&experiment.regions, &self.parameters, &random)?;
        let disks = disks.into_iter().map(|wired| wired.disk).collect();
        let processor = self.processor.as_ref().map(|preset| ProcessorConfig {
            numbers: preset.numbers.clone(),
            array: self.paths(&experiment.subject),
        });
        Ok(Machine::new(MachineConfig {
            subject: self.subject(experiment, &random)?,
            disks,
            host: self.host()?,
            random: random.fork("jobs", 0),
            leaps: !self.ablations.contains(&Ablation::Leaps),
            processor,
        }))
    }

    /// Builds all but the disks: impossible values of a subject's or a host's file are told
    /// before anything runs.
    pub(crate) fn check(&self, experiment: &Experiment) -> Result<(), BuildError> {
        self.host()?;
        let random = wiring::chance(experiment);
        self.subject(experiment, &random).map(drop)
    }

    /// The threads and locks of the subject.
    fn paths(&self, subject: &lab::Subject) -> ArrayPaths {
        match &subject.zfs {
            Some(zfs) => pool_subject::paths(zfs, self.sizes.len()),
            None => md_array::paths(subject, &self.host),
        }
    }

    /// The time that passes between an answer and the next request, beside the time of a processor.
    fn turnaround(&self) -> Nanos {
        match self.processor {
            Some(_) => Nanos::ZERO,
            None if self.rotational().all(|turns| turns) => self.host.turnaround,
            None => self.host.turnaround_with_flash,
        }
    }

    fn host(&self) -> Result<Host, BuildError> {
        let order = |name: &str| name.parse().map_err(BuildError::Scheduler);
        let asked = self.scheduler.as_deref().map(order).transpose()?;
        Ok(Host {
            turnaround: self.turnaround(),
            tags: self.host.tags,
            order: asked.map_or_else(|| order(&self.host.scheduler), Ok)?,
            nvme_order: asked.unwrap_or(Order::None),
            maximum_request: self.host.maximum_request,
            flush_after_sync: self.host.flush_after_sync,
            // A modelled processor has the turns itself.
            scheduler_clock: self
                .host
                .scheduler_clock
                .filter(|_| self.processor.is_none()),
            one_processor: (self.host.one_processor && self.processor.is_none())
                .then_some(self.host.call),
        })
    }

    fn subject(
        &self,
        experiment: &Experiment,
        random: &Stream,
    ) -> Result<Box<dyn Subject>, BuildError> {
        match experiment.subject.kind {
            SubjectKind::Disk | SubjectKind::Mirror => self.array(&experiment.subject),
            SubjectKind::Array => self.md(&experiment.subject),
            SubjectKind::ZfsMirror => self.pool(&experiment.subject, random),
            SubjectKind::System => Err(BuildError::NotModelled {
                what: format!("subject `{}`", experiment.subject.name),
            }),
        }
    }

    fn array(&self, subject: &lab::Subject) -> Result<Box<dyn Subject>, BuildError> {
        let members: Vec<MemberConfig> = self
            .sizes
            .iter()
            .zip(self.rotational())
            .map(|(size, rotational)| MemberConfig {
                size: size.to_sectors(),
                data_offset: subject.data_offset.to_sectors(),
                rotational,
                write_mostly: false,
                bad_blocks: None,
            })
            .collect();
        // One disk has nothing to choose and nothing to recover.
        let policy = subject.read_policy.as_deref().unwrap_or("nearest-head");
        let recovery = subject
            .recovery
            .as_ref()
            .map_or_else(RecoveryConfig::md_3_16, recovery);
        let spare = members.last().cloned().ok_or(BuildError::Incomplete {
            subject: subject.name.clone(),
            what: "members",
        })?;
        let array = Array::new(ArrayConfig::mirror(
            members,
            self.capacity.to_sectors(),
            read_policy(policy).map_err(BuildError::ReadPolicy)?,
            recovery,
            self.host.maximum_request.to_sectors(),
        ))
        .map_err(BuildError::Array)?;
        Ok(Box::new(ArraySubject::new(array, spare)))
    }

    /// The requests that the host holds for each member, and for the NVMe drives among them: a
    /// host has one kind of queue before these and one before all other disks.
    fn host_requests(&self) -> Result<(HostRequests, Option<(SlotSet, HostRequests)>), BuildError> {
        let rules = self.host()?.queue();
        let number = |it| u32::try_from(it).unwrap_or(u32::MAX);
        let of = |rules: QueueRules| HostRequests {
            requests: number(rules.requests()),
            tags: number(rules.tags),
        };
        let disks = || self.parameters.iter().zip(0..);
        let other = disks().find(|(disk, _)| !disk.is_nvme());
        let nvme = disks().find(|(disk, _)| disk.is_nvme());
        let others = nvme.map(|(disk, _)| {
            let slots = disks().filter(|(disk, _)| disk.is_nvme());
            let slots = slots.map(|(_, slot)| Slot(slot)).collect();
            (slots, of(rules.before(disk)))
        });
        let requests = other.map_or(rules, |(disk, _)| rules.before(disk));
        Ok((of(requests), others))
    }

    fn md(&self, subject: &lab::Subject) -> Result<Box<dyn Subject>, BuildError> {
        let md = self.md.as_ref().ok_or(BuildError::Incomplete {
            subject: subject.name.clone(),
            what: "[build.md] table",
        })?;
        // Levels without copies have nothing to choose.
        let policy = subject.read_policy.as_deref().unwrap_or("nearest-head");
        let recovery = subject
            .recovery
            .as_ref()
            .map_or_else(RecoveryConfig::md_6, recovery);
        let engine = EngineOptions::new(read_policy(policy).map_err(BuildError::ReadPolicy)?);
        let (requests, others) = self.host_requests()?;
        let options = EngineOptions {
            recovery: RecoveryConfig {
                threads: Some(MdThreads {
                    turnaround: self.turnaround(),
                    requests,
                    others,
                    plugs: true,
                    rules: md_array::rules(&self.host),
                    one_processor: self.host()?.one_processor.is_some(),
                }),
                ..recovery
            },
            maximum_request: self.host.maximum_request.to_sectors(),
            parity: Raid5d::build,
            ..engine
        };
        Ok(Box::new(md.start(options)?))
    }

    fn pool(
        &self,
        subject: &lab::Subject,
        random: &Stream,
    ) -> Result<Box<dyn Subject>, BuildError> {
        let zfs = subject.zfs.as_ref().ok_or(BuildError::Incomplete {
            subject: subject.name.clone(),
            what: "[zfs] table",
        })?;
        let members = self
            .sizes
            .iter()
            .zip(self.rotational())
            .map(|(size, rotational)| raidlab_zfs::MemberConfig {
                size: size.to_sectors(),
                rotational,
            })
            .collect();
        let volume: Sectors = zfs.volume_size.to_sectors();
        let memory = self.host.memory;
        let mut config = match zfs.release {
            lab::ZfsRelease::Freebsd10_1 => PoolConfig::freebsd_10_1(members, volume, memory),
            lab::ZfsRelease::Zol0_6_4 => PoolConfig::zol_0_6_4(members, volume, memory),
            lab::ZfsRelease::OpenZfs2_3 => PoolConfig::openzfs_2_3(members, volume, memory),
        };
        config.volume_block = zfs.volume_block;
        config.placed_block = Some(zfs.placed_block());
        config.ashift = zfs.ashift;
        config.cache = zfs.cache;
        if self.processor.is_some() {
            config = config.charged();
        }
        let pool = Pool::new(config, random.fork("pool", 0)).map_err(BuildError::Pool)?;
        Ok(Box::new(PoolSubject::new(pool)))
    }
}

/// The processor of the modelled host, if it has one.
fn processor(
    experiment: &Experiment,
    files: &Files,
) -> Result<Option<ProcessorPreset>, BuildError> {
    let Some(name) = &experiment.processor else {
        return Ok(None);
    };
    let preset = presets::processor(files, name).map_err(BuildError::Processor)?;
    Ok(Some(preset))
}

/// Whether the medium of each of these disks turns.
fn rotational(disks: &[DiskParameters]) -> impl Iterator<Item = bool> {
    disks.iter().map(|disk| disk.medium().facts().rotational)
}

/// The subject file's recovery in the terms of the array core.
fn recovery(recovery: &lab::Recovery) -> RecoveryConfig {
    let kib = |bytes: Bytes| bytes.0 / 1024;
    RecoveryConfig {
        block: recovery.block,
        depth: recovery.depth,
        merged: recovery.merged,
        tick: recovery.tick.unwrap_or(RecoveryConfig::md_6().tick),
        source: match recovery.source {
            lab::SyncSource::LowestInSync => SyncSource::LowestInSync,
            lab::SyncSource::Balanced => SyncSource::Balanced,
        },
        barrier: match recovery.barrier {
            lab::WriteBarrier::Overlap => WriteBarrier::Overlap,
            lab::WriteBarrier::MdWindow => WriteBarrier::MdWindow,
            lab::WriteBarrier::MdBuckets => WriteBarrier::MdBuckets,
            lab::WriteBarrier::MdArray => WriteBarrier::MdArray,
        },
        recovering_writes: match recovery.recovering_writes {
            lab::RecoveringWrites::Everywhere => RecoveringWrites::Everywhere,
            lab::RecoveringWrites::BelowPosition => RecoveringWrites::BelowPosition,
        },
        throttle: match recovery.throttle {
            lab::Throttle::None => Throttle::None,
            lab::Throttle::Rate { minimum, maximum } => Throttle::Rate {
                maximum_kib_per_second: kib(maximum),
                busy_kib_per_second: kib(minimum),
            },
            lab::Throttle::MdSleep { minimum, maximum } => Throttle::MdSleep {
                minimum_kib_per_second: kib(minimum),
                maximum_kib_per_second: kib(maximum),
            },
            lab::Throttle::MdDrain { minimum, maximum } => Throttle::MdDrain {
                minimum_kib_per_second: kib(minimum),
                maximum_kib_per_second: kib(maximum),
            },
        },
        read_recovered: match recovery.read_recovered {
            lab::ReadRecovered::AtEnd => ReadRecovered::AtEnd,
            lab::ReadRecovered::BelowCheckpoint => ReadRecovered::BelowCheckpoint,
            lab::ReadRecovered::BelowPosition => ReadRecovered::BelowPosition,
        },
        checkpoint: recovery.checkpoint.map(|rule| CheckpointRule {
            parts: u64::from(rule.parts),
            interval: rule.interval,
            interval_of_recovery: rule.interval,
        }),
        threads: None,
    }
}

#[cfg(test)]
mod tests;
