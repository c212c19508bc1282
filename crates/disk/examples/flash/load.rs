//! Loads on a bare modelled drive, and their latencies.

use raidlab_disk::medium::flash::translation::State;
use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, MediumParameters, Preset};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

/// Sectors of a block of 4 KiB.
pub const BLOCK: u64 = 8;

/// The numbers of a preset that comes with raidlab.
pub fn preset(name: &str) -> DiskParameters {
    let path = format!(
        "{}/../../data/disks/{name}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).expect("a preset of the repository");
    let preset = Preset::parse(name, &text).expect("it is valid");
    preset.parameters("rated").expect("its only set").clone()
}

/// Creates a drive with these numbers in a state.
pub fn drive(numbers: &DiskParameters, state: State) -> Disk {
    let mut numbers = numbers.clone();
    if let MediumParameters::Flash(own) = &mut numbers.medium {
        own.state = state;
    }
    Disk::new(numbers, Nanos::ZERO, Stream::new(1).fork("drive", 0))
}

/// Latencies of one kind of request, in nanoseconds.
#[derive(Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// The number of latencies.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds a latency.
    pub fn note(&mut self, nanos: u64) {
        self.0.push(nanos);
    }

    /// The mean in microseconds; 0 without latencies.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / self.0.len().max(1) as f64 / 1e3
    }

    /// The percentile in microseconds.
    pub fn percentile(&mut self, percent: f64) -> f64 {
        self.0.sort_unstable();
        let rank = self.0.len() as f64 * percent / 100.0;
        let last = self.0.len().saturating_sub(1);
        let found = self
            .0
            .get((rank.ceil() as usize).saturating_sub(1).min(last));
        found.map_or(0.0, |&nanos| nanos as f64 / 1e3)
    }
}

/// A random block of a drive.
pub fn somewhere(disk: &Disk, random: &mut Stream) -> Sectors {
    Sectors(random.below(disk.parameters().capacity.0 / BLOCK) * BLOCK)
}

/// Keeps `depth` random requests of 4 KiB in flight, `reads` of a hundred being reads, for
/// `warm` and then `counted` seconds; returns the latencies of reads and of writes that began
/// in the latter.
pub fn closed_loop(
    disk: &mut Disk,
    depth: u64,
    reads: u32,
    warm: f64,
    counted: f64,
) -> [Latencies; 2] {
    let mut random = Stream::new(2).fork("requests", 0);
    let mut sent = vec![(CommandKind::Read, Nanos::ZERO); depth as usize];
    let mut found = [Latencies::default(), Latencies::default()];
    let mut submit = |disk: &mut Disk, sent: &mut Vec<(CommandKind, Nanos)>, now, tag: u64| {
        let kind = if random.percent(reads) {
            CommandKind::Read
        } else {
            CommandKind::Write
        };
        let start = somewhere(disk, &mut random);
        sent[tag as usize] = (kind, now);
        disk.submit(
            now,
            Command {
                tag,
                kind,
                start,
                count: Sectors(BLOCK),
            },
        );
    };
    for tag in 0..depth {
        submit(disk, &mut sent, Nanos::ZERO, tag);
    }
    let (begin, end) = (
        Nanos::from_secs_f64(warm),
        Nanos::from_secs_f64(warm + counted),
    );
    let mut now = Nanos::ZERO;
    let mut completions = Vec::new();
    while now < end {
        now = disk.next_event().expect("requests are under way");
        disk.advance(now, &mut completions);
        for completion in completions.drain(..) {
            let (kind, at) = sent[completion.tag as usize];
            if at >= begin {
                found[usize::from(kind != CommandKind::Read)].note((now - at).0);
            }
            submit(disk, &mut sent, now, completion.tag);
        }
    }
    found
}
