//! Latency against load: five drives in steady state, as SSD-iq measured them.

use crate::load::{BLOCK, Latencies, drive, preset, somewhere};
use raidlab_disk::medium::flash::translation::State;
use raidlab_disk::{Command, CommandKind, DiskParameters, MediumParameters};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use std::collections::VecDeque;

/// A drive's published curve: SSD-iq (G. Haas and V. Leis, PVLDB 18(11), 2025), data of
/// gabriel-haas/ssdiq-pub.
struct Published {
    preset: &'static str,
    title: &'static str,
    /// The rows: thousand requests per second; mean and 99th percentile of reads, then of
    /// writes, in microseconds.
    rows: &'static [(u64, [f64; 4])],
    /// Thousand writes per second of the saturated drive.
    saturated: Option<f64>,
}

const PUBLISHED: [Published; 5] = [
    Published {
        preset: "pe8110",
        title: "PE8110",
        rows: &[
            (20, [89.0, 372.0, 10.0, 12.0]),
            (30, [105.0, 396.0, 10.0, 12.0]),
            (40, [120.0, 411.0, 10.0, 13.0]),
            (70, [168.0, 448.0, 13.0, 32.0]),
        ],
        saturated: Some(79.0),
    },
    Published {
        preset: "p5520",
        title: "D7-P5520",
        rows: &[
            (10, [72.0, 255.0, 9.0, 27.0]),
            (20, [113.0, 364.0, 10.0, 57.0]),
            (60, [153.0, 439.0, 11.0, 41.0]),
            (90, [170.0, 466.0, 13.0, 64.0]),
            (100, [167.0, 464.0, 15.0, 74.0]),
        ],
        saturated: Some(119.0),
    },
    Published {
        preset: "pm9a3",
        title: "PM9A3",
        rows: &[
            (20, [84.0, 276.0, 11.0, 14.0]),
            (30, [95.0, 317.0, 12.0, 14.0]),
            (40, [105.0, 350.0, 12.0, 15.0]),
            (60, [127.0, 388.0, 21.0, 81.0]),
            (70, [136.0, 383.0, 46.0, 321.0]),
        ],
        saturated: None,
    },
    Published {
        preset: "7450max",
        title: "7450 MAX",
        rows: &[
            (10, [73.0, 161.0, 13.0, 14.0]),
            (20, [81.0, 259.0, 36.0, 880.0]),
            (30, [88.0, 322.0, 153.0, 3689.0]),
            (40, [100.0, 557.0, 395.0, 6998.0]),
            (90, [131.0, 438.0, 1912.0, 4661.0]),
            (100, [152.0, 674.0, 2307.0, 4580.0]),
        ],
        saturated: Some(117.0),
    },
    Published {
        preset: "wddc",
        title: "WD DC",
        rows: &[
            (10, [104.0, 358.0, 13.0, 16.0]),
            (20, [135.0, 451.0, 13.0, 17.0]),
            (30, [167.0, 505.0, 14.0, 21.0]),
            (40, [201.0, 557.0, 14.0, 35.0]),
        ],
        saturated: None,
    },
];

/// The number of requests that the six load threads have in flight.
const LOAD_DEPTH: usize = 6 * 64;

/// The latencies of reads and writes of the measuring thread, and the writes per second of all
/// threads, at `rate` requests per second, or at the highest possible rate.
fn measure(numbers: &DiskParameters, rate: Option<u64>, seconds: f64) -> ([Latencies; 2], f64) {
    let mut disk = drive(numbers, State::Steady);
    let mut random = Stream::new(3).fork("requests", 0);
    let mut due = [Nanos::ZERO; 2];
    let load_rate = rate.map(|rate| rate.saturating_sub(10_000));
    let pause = |rate: u64, random: &mut Stream| {
        let share = (random.below(1 << 32) + 1) as f64 / (1_u64 << 32) as f64;
        Nanos::from_secs_f64(-share.ln() / rate as f64)
    };
    // For each tag: its kind, the time when it was due, and whether it makes load.
    let mut sent: Vec<(CommandKind, Nanos, bool)> = Vec::new();
    let mut unused: Vec<usize> = Vec::new();
    let mut late: VecDeque<(CommandKind, Nanos)> = VecDeque::new();
    let mut load = 0;
    let mut found = [Latencies::default(), Latencies::default()];
    let (begin, end) = (Nanos::from_secs(1), Nanos::from_secs_f64(1.0 + seconds));
    let (mut now, mut writes) = (Nanos::ZERO, 0_u64);
    let mut completions = Vec::new();
    if load_rate == Some(0) {
        due[1] = Nanos::MAX;
    }
    while now < end {
        let event = disk.next_event().unwrap_or(Nanos::MAX);
        let arrival = if load_rate.is_none() && load >= LOAD_DEPTH {
            due[0]
        } else {
            due[0].min(due[1])
        };
        now = now.max(event.min(arrival));
        if event <= arrival {
            disk.advance(now, &mut completions);
            for completion in completions.drain(..) {
                let tag = completion.tag as usize;
                let (kind, at, is_load) = sent[tag];
                unused.push(tag);
                let is_write = kind == CommandKind::Write;
                load -= usize::from(is_load);
                writes += u64::from(is_write && now >= begin);
                if !is_load && at >= begin {
                    found[usize::from(is_write)].note((now - at).0);
                }
            }
        } else {
            let is_load = due[1] <= due[0] && (load_rate.is_some() || load < LOAD_DEPTH);
            let reads = if is_load { 1 } else { 50 };
            let kind = if random.percent(reads) {
                CommandKind::Read
            } else {
                CommandKind::Write
            };
            if is_load {
                match load_rate {
                    Some(rate) => due[1] += pause(rate, &mut random),
                    None => due[1] = now,
                }
            } else {
                due[0] += pause(10_000, &mut random);
            }
            if is_load {
                late.push_back((kind, now));
            } else {
                send(
                    &mut disk,
                    &mut sent,
                    &mut unused,
                    &mut random,
                    (kind, now, false),
                    now,
                );
            }
        }
        while load < LOAD_DEPTH
            && let Some((kind, at)) = late.pop_front()
        {
            load += 1;
            send(
                &mut disk,
                &mut sent,
                &mut unused,
                &mut random,
                (kind, at, true),
                now,
            );
        }
    }
    (found, writes as f64 / seconds)
}

fn send(
    disk: &mut raidlab_disk::Disk,
    sent: &mut Vec<(CommandKind, Nanos, bool)>,
    unused: &mut Vec<usize>,
    random: &mut Stream,
    what: (CommandKind, Nanos, bool),
    now: Nanos,
) {
    let tag = unused.pop().unwrap_or_else(|| {
        sent.push(what);
        sent.len() - 1
    });
    sent[tag] = what;
    let start = somewhere(disk, random);
    let command = Command {
        tag: tag as u64,
        kind: what.0,
        start,
        count: Sectors(BLOCK),
    };
    disk.submit(now, command);
}

/// The four figures at a load.
fn figures(numbers: &DiskParameters, rate: u64) -> [f64; 4] {
    let ([mut reads, mut writes], _) = measure(numbers, Some(rate), 3.0);
    let (read, write) = (reads.mean(), writes.mean());
    [read, reads.percentile(99.0), write, writes.percentile(99.0)]
}

/// The same drive after a fit on two facts: its mean read at the lightest load, and, where known,
/// its writes per second when saturated.
fn fit(published: &Published) -> DiskParameters {
    let mut numbers = preset(published.preset);
    if let Some(wanted) = published.saturated {
        let (mut low, mut high) = (1.02, 2.0);
        for _ in 0..8 {
            let middle = f64::midpoint(low, high);
            numbers.set_named("flash_over_provisioning", middle);
            if measure(&numbers, None, 1.0).1 < wanted * 1e3 {
                low = middle
            } else {
                high = middle
            }
        }
    }
    let (rate, wanted) = published.rows[0];
    for _ in 0..3 {
        let off = wanted[0] - figures(&numbers, rate * 1000)[0];
        if let MediumParameters::Flash(own) = &mut numbers.medium {
            let read = own.read.0 as f64 + off * 1e3;
            own.read = Nanos(read.max(1e3) as u64);
        }
    }
    numbers
}

/// The ratio of prediction to measurement within which half of these are, either way.
fn typical(ratios: &mut [f64]) -> f64 {
    for ratio in ratios.iter_mut() {
        *ratio = ratio.max(1.0 / *ratio);
    }
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Prints a row for each drive and rate, and the errors over all.
pub fn print() {
    println!("| drive | thousand/s | measured | from the data sheet | fitted on two facts |");
    println!("|---|---|---|---|---|");
    let mut ratios = [[const { Vec::new() }; 5], [const { Vec::new() }; 5]];
    let mut means: Vec<(u64, [f64; 3])> = Vec::new();
    let mut rates = Vec::new();
    for published in &PUBLISHED {
        let variants = [preset(published.preset), fit(published)];
        for (row, &(rate, measured)) in published.rows.iter().enumerate() {
            let found = variants
                .each_ref()
                .map(|numbers| figures(numbers, rate * 1000));
            let cell = |found: &[f64; 4]| {
                format!(
                    "{:.0}/{:.0}, {:.0}/{:.0}",
                    found[0], found[1], found[2], found[3]
                )
            };
            let own = if row == 0 { " (fact)" } else { "" };
            println!(
                "| {} | {rate}{own} | {} | {} | {} |",
                published.title,
                cell(&measured),
                cell(&found[0]),
                cell(&found[1])
            );
            means.push((rate, [measured[0], found[0][0], found[1][0]]));
            for (variant, found) in found.iter().enumerate() {
                let is_pe8110 = published.preset == "pe8110";
                let tail = found[1] / measured[1];
                for (figure, ratio, counts) in [
                    (0, found[0] / measured[0], true),
                    // `flash_suspend_left_us` was fitted to this row.
                    (1, tail, !is_pe8110 || row > 0),
                    (2, tail, !is_pe8110),
                    (3, found[2] / measured[2], true),
                    (4, found[3] / measured[3], true),
                ] {
                    if counts {
                        ratios[variant][figure].push(ratio);
                    }
                }
            }
        }
        let saturated = variants.map(|numbers| measure(&numbers, None, 2.0).1 / 1e3);
        let known = published
            .saturated
            .map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        rates.push(format!(
            "| {} | {known} | {:.0} | {:.0} |",
            published.title, saturated[0], saturated[1]
        ));
    }
    println!(
        "\n| drive | thousand writes/s when saturated | data sheet | fitted |\n|---|---|---|---|"
    );
    println!("{}", rates.join("\n"));
    println!(
        "\n| figure | typical ratio, data sheet | worst | typical ratio, fitted | worst |\n|---|---|---|---|---|"
    );
    let names = [
        "read mean",
        "read p99",
        "read p99, without the PE8110",
        "write mean",
        "write p99",
    ];
    for (figure, name) in names.iter().enumerate() {
        let mut row = format!("| {name} |");
        for variant in &mut ratios {
            let middle = typical(&mut variant[figure]);
            let worst = variant[figure].last().copied().unwrap_or(1.0);
            row += &format!(" {middle:.2} | {worst:.2} |");
        }
        println!("{row}");
    }
    for (column, name) in [(1, "data sheet"), (2, "fitted")] {
        let (mut pairs, mut right) = (0, 0);
        for (index, (rate, one)) in means.iter().enumerate() {
            for (_, other) in means[index + 1..].iter().filter(|other| other.0 == *rate) {
                pairs += 1;
                right += u32::from((one[0] < other[0]) == (one[column] < other[column]));
            }
        }
        println!(
            "\nOf {pairs} pairs of drives at one rate, {name}: the quicker reader is the right \
             one in {right}."
        );
    }
}
