//! The options that a seed makes: the array, the disks, and the rates of faults and requests.
//!
//! A swarm: every seed draws which features take part at all, and how often each does, so that rare
//! combinations are as frequent as any (Groce and others, Swarm Testing, 2012).

mod seldom;
mod shape;

pub use seldom::Seldom;

use crate::disk::TearRates;
use crate::medium::Medium;
use raidlab_array::{EngineOptions, ReadPolicyKind, RmwLevel, WritePolicy};
use raidlab_geometry::{Layout, Level};
use raidlab_metadata::Version;
use raidlab_random::Stream;
use raidlab_units::Sectors;

/// All options of a run, without its script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The RAID level, or linear.
    pub level: Level,
    /// The placement of copies or parity.
    pub layout: Layout,
    /// The number of slots of the array.
    pub members: usize,
    /// Sectors of a chunk.
    pub chunk: u64,
    /// Sectors of each member's data area.
    pub used: u64,
    /// Sectors by which each disk is larger than the one in the slot before it.
    pub growth: u64,
    /// The version of the superblock: its format and place.
    pub version: Version,
    /// Sectors of a chunk of the write-intent bitmap, if there is one.
    pub bitmap_chunk: Option<u64>,
    /// Whether parity arrays keep a write log.
    pub log: bool,
    /// Whether the disks are all zeros and count as in sync; otherwise they contain random bytes
    /// and the first sync makes them agree.
    pub assume_clean: bool,
    /// Whether a RAID 4 or 5 that is not in sync at first recovers its last member, as mdadm does,
    /// instead of computing parity.
    pub spare_rebuild: bool,
    /// Whether the disks have no volatile cache.
    pub write_through: bool,
    /// The percentages of writes that tear at a power cut.
    pub tear: TearRates,
    /// Whether a 4 KiB physical sector may become unreadable at a power cut.
    pub tear_physical: bool,
    /// Milliseconds without writes after which the array is marked clean (md's `safe_mode_delay`).
    pub safe_mode_ms: u64,
    /// Whether the write log's rings are so short that they wrap around many times.
    pub short_log: bool,
    /// The kind of the disks.
    pub medium: Medium,
    /// Nanoseconds of the fastest commands.
    pub latency_low_ns: u64,
    /// Nanoseconds of slow, but ordinary, commands.
    pub latency_high_ns: u64,
    /// Sectors of a block of a sync.
    pub sync_block: u64,
    /// The number of blocks of a sync in flight.
    pub sync_depth: u32,
    /// Sectors of the longest window of a stripe.
    pub window: u64,
    /// The rule by which partial writes read old data and parity.
    pub write_policy: WritePolicy,
    /// The number of windows that may gather writes.
    pub stripes: usize,
    /// The most requests in flight.
    pub depth: usize,
    /// Whether writes in flight may overlap.
    pub overlaps: bool,
    /// Whether faults may exceed what the level tolerates: then errors are permitted, and wrong
    /// bytes are not.
    pub over_budget: bool,
    /// Faults that only the driver sees.
    pub driver: DriverFaults,
    /// Features that few arrays have.
    pub seldom: Seldom,
    /// The number of steps of the script.
    pub steps: usize,
    /// The share of each kind of step; 0 for none.
    pub weights: Weights,
}

/// The shares of the kinds of steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weights {
    /// The share of writes.
    pub write: u32,
    /// The percentage of writes with force-unit-access.
    pub force_unit_access_percent: u32,
    /// The percentage of writes of whole chunks or stripes.
    pub aligned_percent: u32,
    /// The share of reads.
    pub read: u32,
    /// The share of flushes.
    pub flush: u32,
    /// The share of discards.
    pub discard: u32,
    /// The share of waits for all requests.
    pub drain: u32,
    /// The share of long idle times (bitmap cleared, array marked clean).
    pub idle: u32,
    /// The share of latent sector errors: sectors that cannot be read until they are written.
    pub unreadable: u32,
    /// The share of a few commands that fail once.
    pub transient: u32,
    /// The share of disks that become slow.
    pub slow: u32,
    /// The share of disks that do not answer for a while, or never again.
    pub hang: u32,
    /// The share of disks that die.
    pub lose: u32,
    /// The share of administrators who fail a member.
    pub fail: u32,
    /// The share of administrators who put members back.
    pub mend: u32,
    /// The share of checks and repairs.
    pub check: u32,
    /// The share of silent corruption, found by a check that follows.
    pub silent: u32,
    /// The share of power cuts.
    pub power_cut: u32,
    /// The share of crashes of the process that runs the array.
    pub kill: u32,
    /// The share of clean stops, each followed by a start.
    pub stop: u32,
    /// The share of splits, in which both halves of the array run alone.
    pub split: u32,
    /// The share of rests in which everything settles and the whole array is verified.
    pub settle: u32,
    /// The share of sectors of superblocks, bitmaps and logs that become unreadable.
    pub metadata: u32,
    /// The percentage of members put back that keep their unreadable sectors.
    pub unhealed_percent: u32,
    /// The share of the other orders that an administrator gives, such as sync speeds.
    pub order: u32,
    /// The share of administrators' mistakes, which must be refused.
    pub mistake: u32,
}

/// Faults of the driver that its core does not see: the core sees only commands that are done
/// or have failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverFaults {
    /// The percentage of reads and writes of several sectors of which only some are moved.
    pub short_percent: u32,
    /// The percentage of commands that are interrupted and have to be repeated.
    pub again_percent: u32,
    /// Nanoseconds after which a member that leaves a command unanswered is given up.
    pub command_limit_ns: u64,
    /// Nanoseconds by which the driver at most delays its turn after the end of a command; it then
    /// sees all that have ended by that time at once.
    pub turn_ns: u64,
}

impl Default for DriverFaults {
    /// No faults of the driver: nothing is cut short, and no member is given up.
    fn default() -> Self {
        Self {
            short_percent: 0,
            again_percent: 0,
            command_limit_ns: u64::MAX,
            turn_ns: 0,
        }
    }
}

impl DriverFaults {
    fn draw(random: &mut Stream) -> Self {
        Self {
            short_percent: pick(random, &[0, 2, 10, 40]),
            again_percent: pick(random, &[0, 1, 5, 20]),
            command_limit_ns: pick(random, &[10, 10, 30]) * 1_000_000_000,
            turn_ns: pick(random, &[0, 1_000, 50_000, 1_000_000]),
        }
    }
}

/// A caller's restrictions on the options of every seed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Seeds draw only arrays of this level; `None`: of any level.
    pub level: Option<Level>,
    /// Seeds make only runs within, or only runs over, the fault budget.
    pub over_budget: Option<bool>,
    /// Seeds make only parity arrays with, or only ones without, a log.
    pub log: Option<bool>,
    /// Seeds draw only arrays with, or only without, a write-intent bitmap.
    pub bitmap: Option<bool>,
    /// Whether faults strike that only the driver sees, not its core.
    pub driver: bool,
}

impl Filter {
    /// Whether an array that is not drawn from a seed passes the filter.
    pub(crate) fn takes(&self, options: &Options) -> bool {
        let agrees = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        self.level.is_none_or(|level| level == options.level)
            && agrees(self.over_budget, options.over_budget)
            && agrees(self.log, options.log)
            && agrees(self.bitmap, options.bitmap_chunk.is_some())
    }
}

/// Draws one of these values, each as likely as the others.
pub(crate) fn pick<T: Copy>(random: &mut Stream, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// Draws a number in `low..=high`, each as likely as the others.
pub(crate) fn between(random: &mut Stream, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

fn draw_version(random: &mut Stream) -> Version {
    match random.below(10) {
        0 => Version::V1_0,
        1 => Version::V1_1,
        _ => Version::V1_2,
    }
}

fn draw_tears(random: &mut Stream) -> TearRates {
    TearRates {
        prefix: pick(random, &[0, 10, 40]),
        subset: pick(random, &[0, 10, 40]),
        whole: pick(random, &[0, 20, 50, 80, 100]),
    }
}

fn draw_write_policy(random: &mut Stream) -> WritePolicy {
    let policies = [
        WritePolicy::default(),
        WritePolicy::Md3_16,
        WritePolicy::Md4_1(RmwLevel::Disabled),
        WritePolicy::Md4_1(RmwLevel::Preferred),
    ];
    pick(random, &policies)
}

impl Options {
    /// A plain run without special features: members in sync, without bitmap and log, with a cache
    /// that keeps or loses whole writes. `chunk` and `used` are sectors; nothing is drawn, so the
    /// script must be given.
    #[must_use]
    pub fn plain(level: Level, layout: Layout, members: usize, (chunk, used): (u64, u64)) -> Self {
        Self {
            level,
            layout,
            members,
            chunk,
            used,
            growth: 0,
            version: Version::V1_2,
            bitmap_chunk: None,
            log: false,
            assume_clean: true,
            spare_rebuild: false,
            write_through: false,
            tear: TearRates {
                prefix: 0,
                subset: 0,
                whole: 100,
            },
            tear_physical: false,
            safe_mode_ms: 200,
            short_log: false,
            medium: Medium::Drawn,
            latency_low_ns: 50_000,
            latency_high_ns: 200_000,
            sync_block: 64,
            sync_depth: 4,
            window: 64,
            write_policy: WritePolicy::Md4_1(RmwLevel::Preferred),
            stripes: 4,
            depth: 4,
            overlaps: true,
            over_budget: false,
            driver: DriverFaults::default(),
            seldom: Seldom::default(),
            steps: 0,
            weights: Weights::default(),
        }
    }

    /// Draws the options of a run from its seed.
    #[must_use]
    pub fn draw(seed: u64, filter: &Filter) -> Self {
        let random = &mut Stream::new(seed).fork("options", 0);
        let level = shape::draw_level(random);
        let level = filter.level.unwrap_or(level);
        let members = shape::draw_members(random, level);
        let layout = shape::draw_layout(random, level, members);
        let chunk = pick(random, &[8, 8, 16, 32, 128]);
        // mdadm leaves no room for a bitmap below 64 KiB.
        let chunks = between(random, (128 / chunk).max(3), (512 / chunk).max(4));
        let has_redundancy = !matches!(level, Level::Raid0 | Level::Linear);
        let bitmap = random.percent(60);
        let bitmap_chunk = pick(random, &[8, 16, 64, 128]);
        let log = random.percent(75);
        let over_budget = random.percent(10);
        let version = draw_version(random);
        // These come from a stream of their own: older seeds keep the arrays that they made before
        // these options existed.
        let late = &mut random.fork("late options", 0);
        let latency_low_ns = pick(random, &[5_000, 50_000, 1_000_000]);
        let safe_mode_ms = pick(late, &[200, 200, 200, 30_000]);
        let short_log = late.percent(50);
        let (chunk, chunks) = shape::draw_odd_chunk(late, level).unwrap_or((chunk, chunks));
        let layout = shape::draw_odd_layout(late, members, layout, (chunk, chunk * chunks));
        let log = filter.log.unwrap_or(log) && level.parity_count() > 0;
        let growth = pick(late, &[0, 0, 8, 264]);
        // The log of version 1.0 lies at the members' ends, so the members must be of one size.
        let must_be_alike = log && version == Version::V1_0;
        let options = Self {
            level,
            layout,
            members,
            chunk,
            used: chunk * chunks,
            growth: if must_be_alike { 0 } else { growth },
            version,
            bitmap_chunk: (filter.bitmap.unwrap_or(bitmap) && has_redundancy)
                .then_some(bitmap_chunk),
            log,
            assume_clean: random.percent(80),
            spare_rebuild: matches!(level, Level::Raid4 | Level::Raid5) && late.percent(50),
            write_through: random.percent(10),
            tear: draw_tears(random),
            tear_physical: random.percent(20),
            safe_mode_ms,
            short_log,
            medium: Medium::draw(random.percent(10), &mut Stream::new(seed).fork("medium", 0)),
            latency_low_ns,
            latency_high_ns: latency_low_ns * pick(random, &[1, 4, 40]),
            sync_block: pick(random, &[8, 16, 64, 128, 1024]),
            sync_depth: pick(random, &[1, 4, 16]),
            window: pick(random, &[8, 16, 64, 128]),
            write_policy: draw_write_policy(random),
            stripes: pick(random, &[1, 4, 256]),
            depth: pick(random, &[1, 2, 4, 8, 16]),
            overlaps: random.percent(50),
            over_budget: filter.over_budget.unwrap_or(over_budget),
            driver: match filter.driver {
                true => DriverFaults::draw(&mut Stream::new(seed).fork("driver", 0)),
                false => DriverFaults::default(),
            },
            seldom: Seldom::default(),
            steps: between(random, 10, 120) as usize,
            weights: Weights::draw(random, late),
        };
        let seldom = &mut Stream::new(seed).fork("seldom", 0);
        Seldom::draw(seldom, &options).apply(options)
    }
}

impl Options {
    /// Returns the options of the engine.
    #[must_use]
    pub(crate) fn engine(&self) -> EngineOptions {
        let policy = self.seldom.read_policy;
        let mut engine = EngineOptions::new(policy.unwrap_or(ReadPolicyKind::LEAST_PENDING));
        engine.recovery.block = Sectors(self.sync_block).to_bytes();
        engine.recovery.depth = self.sync_depth;
        engine.window = Sectors(self.window);
        engine.write_policy = self.write_policy;
        engine.stripes = self.stripes;
        engine
    }
}

impl Weights {
    fn draw(random: &mut Stream, late: &mut Stream) -> Self {
        let some = |random: &mut Stream, percent: u32, most: u64| {
            let taken = random.percent(percent);
            let weight = between(random, 1, most);
            if taken { weight as u32 } else { 0 }
        };
        let mut late = |percent, most| some(late, percent, most);
        let mut some = |percent, most| some(random, percent, most);
        Self {
            write: 10 + some(80, 40),
            force_unit_access_percent: some(50, 60),
            aligned_percent: some(50, 80),
            read: some(80, 30),
            flush: some(80, 10),
            discard: some(20, 6),
            drain: some(50, 6),
            idle: some(50, 4),
            unreadable: some(40, 5),
            transient: some(20, 3),
            slow: some(20, 3),
            hang: some(15, 2),
            lose: some(40, 3),
            fail: some(30, 3),
            mend: some(60, 6),
            check: some(25, 3),
            silent: some(15, 2),
            power_cut: some(75, 8),
            kill: some(30, 4),
            stop: some(30, 3),
            split: some(8, 2),
            settle: some(60, 2),
            metadata: late(25, 3),
            unhealed_percent: late(50, 100),
            order: late(40, 5),
            mistake: late(20, 3),
        }
    }
}
