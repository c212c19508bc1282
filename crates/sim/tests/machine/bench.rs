//! What the tests run on: the shipped disk, alone or mirrored.

use raidlab_array::{Array, ArrayConfig, MemberConfig, RecoveryConfig};
use raidlab_disk::shared::{Attached, Region, Sharing, ports};
use raidlab_disk::{Disk, DiskParameters, Order, Preset};
use raidlab_policies::read_policy;
use raidlab_random::Stream;
use raidlab_sim::{ArraySubject, Host, Machine, MachineConfig, ProcessorConfig};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{Engine, JobGroup, JobSpec, Pattern};

/// What differs from test to test.
pub struct Bench {
    pub members: u64,
    pub policy: &'static str,
    pub recovery: RecoveryConfig,
    /// Sectors of each disk and of the array.
    pub capacity: Option<Sectors>,
    pub turnaround: Nanos,
    pub scheduler_clock: Option<Nanos>,
    pub tags: u32,
    pub leaps: bool,
    /// The members hang on one cable, which carries one command at a time.
    pub cable: bool,
    /// So many of the members take discards, each in [`DISCARD`].
    pub take_discards: u64,
    /// The disks are shingled ones.
    pub shingled: bool,
    /// The disks are of flash, for data centres.
    pub flash: bool,
    pub processor: Option<ProcessorConfig>,
    pub seed: u64,
}

/// How long a discard takes beside the command's overhead.
pub const DISCARD: Nanos = Nanos::from_micros(100);

impl Default for Bench {
    fn default() -> Self {
        Self {
            members: 2,
            policy: "md-3.16",
            recovery: RecoveryConfig::md_3_16(),
            capacity: None,
            turnaround: Nanos::from_micros(59),
            scheduler_clock: None,
            tags: 31,
            leaps: false,
            cable: false,
            take_discards: 0,
            shingled: false,
            flash: false,
            processor: None,
            seed: 1,
        }
    }
}

pub fn strict() -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    shipped(text, "strict")
}

fn shipped(text: &str, set: &str) -> DiskParameters {
    let preset = Preset::parse("a shipped preset", text).expect("it is valid");
    preset.parameters(set).expect("it has this set").clone()
}

impl Bench {
    pub fn machine(&self) -> Machine {
        let mut parameters = if self.shingled {
            let text = include_str!("../../../../data/disks/st4000dm004.toml");
            shipped(text, "rated")
        } else if self.flash {
            let text = include_str!("../../../../data/disks/p5520.toml");
            shipped(text, "rated")
        } else {
            strict()
        };
        if let Some(capacity) = self.capacity {
            parameters.capacity = capacity;
        }
        let member = MemberConfig {
            size: parameters.capacity,
            data_offset: Sectors::ZERO,
            rotational: !self.flash,
            write_mostly: false,
            bad_blocks: None,
        };
        let array = Array::new(ArrayConfig::mirror(
            (0..self.members).map(|_| member.clone()).collect(),
            parameters.capacity,
            read_policy(self.policy).expect("a read policy"),
            self.recovery.clone(),
            Bytes(512 << 10).to_sectors(),
        ))
        .expect("a valid array");
        let random = Stream::new(self.seed);
        let disk = |index| {
            let phase = Nanos(index * 1_234_567);
            let parameters = DiskParameters {
                discard: (index < self.take_discards).then_some(DISCARD),
                ..parameters.clone()
            };
            Disk::new(parameters, phase, random.fork("disk", index))
        };
        let disks = (0..self.members).map(disk);
        let disks: Vec<Attached> = if self.cable {
            let disks: Vec<Disk> = disks.collect();
            let start = Sectors::ZERO;
            let regions = (0..disks.len()).map(|disk| Region { disk, start });
            let ports = ports(disks, &regions.collect::<Vec<_>>(), Sharing::Cable);
            ports.into_iter().map(Attached::Port).collect()
        } else {
            disks.map(Attached::from).collect()
        };
        Machine::new(MachineConfig {
            subject: Box::new(ArraySubject::new(array, member)),
            disks,
            host: Host {
                tags: self.tags,
                order: Order::Sweep,
                scheduler_clock: self.scheduler_clock,
                ..Host::new(self.turnaround)
            },
            random: random.fork("jobs", 0),
            leaps: self.leaps,
            processor: self.processor.clone(),
        })
    }
}

/// Random I/O of 4 KiB at `depth`, ended by `requests`.
pub fn random(pattern: Pattern, depth: u32, requests: u64) -> JobSpec {
    JobSpec {
        pattern,
        engine: Engine::Libaio,
        io_depth: depth,
        random_map: false,
        request_limit: Some(requests),
        ..JobSpec::default()
    }
}

/// The same, ended by time.
pub fn timed(pattern: Pattern, depth: u32, seconds: u64) -> JobSpec {
    JobSpec {
        request_limit: None,
        runtime: Some(Nanos::from_secs(seconds)),
        ..random(pattern, depth, 1)
    }
}

/// One stream of 128 KiB over `bytes` from the start.
pub fn sequential(pattern: Pattern, bytes: u64) -> JobSpec {
    JobSpec {
        pattern,
        block_size: Bytes(128 << 10),
        size: Some(Bytes(bytes)),
        ..JobSpec::default()
    }
}

/// Jobs that run together.
pub fn group<const N: usize>(jobs: [JobSpec; N]) -> JobGroup {
    JobGroup {
        jobs: jobs.into(),
        stop_together: false,
    }
}
