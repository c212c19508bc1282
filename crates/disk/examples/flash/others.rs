//! Queue depth, the end of the cache of one bit a cell, and flushes.

use crate::load::{BLOCK, Latencies, closed_loop, drive, preset, somewhere};
use raidlab_disk::medium::flash::translation::State;
use raidlab_disk::{Command, CommandKind, Disk, DiskParameters};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

/// Prints thousand requests per second against queue depth, for reads and writes of a drive
/// in steady state.
pub fn depth() {
    let depths = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    let head: Vec<String> = depths.iter().map(ToString::to_string).collect();
    println!("| drive | | {} |", head.join(" | "));
    println!("|---|---|{}", "---|".repeat(depths.len()));
    for name in ["pm9a3", "7300pro", "p5520", "970pro", "pm883", "870evo"] {
        let numbers = preset(name);
        for (reads, what) in [(100, "reads"), (0, "writes")] {
            let cell = |&depth: &u64| {
                let mut disk = drive(&numbers, State::Steady);
                // Writes must first fill the buffer.
                let warm = if reads == 0 { 2.0 } else { 0.05 };
                let found = closed_loop(&mut disk, depth, reads, warm, 0.5);
                let count = found[0].count() + found[1].count();
                format!(" {:.1} |", count as f64 / 0.5 / 1e3)
            };
            let cells: String = depths.iter().map(cell).collect();
            println!("| {name} | {what} |{cells}");
        }
    }
    println!("\n| drive, depth 1 | read mean | p50 | p90 | p99 | write mean, fresh |");
    println!("|---|---|---|---|---|---|");
    for name in ["pm9a3", "7300pro", "870evo", "980pro"] {
        let numbers = preset(name);
        let mut disk = drive(&numbers, State::Steady);
        let [mut reads, _] = closed_loop(&mut disk, 1, 100, 0.01, 1.0);
        let [_, writes] = closed_loop(&mut drive(&numbers, State::Fresh), 1, 0, 0.01, 0.2);
        let mean = reads.mean();
        let [p50, p90, p99] = [50.0, 90.0, 99.0].map(|percent| reads.percentile(percent));
        println!(
            "| {name} | {mean:.0} | {p50:.0} | {p90:.0} | {p99:.0} | {:.0} |",
            writes.mean()
        );
    }
}

/// Writes an erased drive from its beginning to its end in commands of 1 MiB, eight at a time;
/// returns the rate in MB/s of each part.
fn fill(numbers: &DiskParameters, part: u64) -> Vec<f64> {
    let mut disk = drive(numbers, State::Fresh);
    let parts = disk.parameters().capacity.to_bytes().0 / part;
    let (mut now, mut next, mut done) = (Nanos::ZERO, 0, 0);
    let mut rates = Vec::new();
    let mut since = Nanos::ZERO;
    let mut completions = Vec::new();
    let commands = disk.parameters().capacity.0 / 2048;
    let mut submit = |disk: &mut Disk, now| {
        if next == commands {
            return;
        }
        let (tag, start) = (next, Sectors(next * 2048));
        next += 1;
        disk.submit(
            now,
            Command {
                tag,
                kind: CommandKind::Write,
                start,
                count: Sectors(2048),
            },
        );
    };
    (0..8).for_each(|_| submit(&mut disk, now));
    while (rates.len() as u64) < parts {
        now = disk.next_event().expect("writes are under way");
        disk.advance(now, &mut completions);
        for _ in completions.drain(..) {
            done += 1 << 20;
            if done >= part {
                rates.push(done as f64 / (now - since).0 as f64 * 1e3);
                (done, since) = (0, now);
            }
            submit(&mut disk, now);
        }
    }
    rates
}

/// Prints the rates of drives as they are filled, and where they fall.
pub fn cliff() {
    println!("| drive | measured | modelled: GB written, then MB/s until there |");
    println!("|---|---|---|");
    for (name, measured) in [
        ("980pro", "4 GB/s to 113 GB, then 1.5"),
        ("nm800pro", "3.5 GB/s to 592 GB, then 2.2, then 1.0"),
        ("a2000", "2.0 GB/s to 150 GB, then 0.5, then 0.4"),
        (
            "sn850x",
            "6.3 GB/s to 600 GB, then 1.5 to 1.8, from 75 % on 0.8 to 1.2",
        ),
        ("pm9a3", "flat (the 3.84 TB one, 4.14 GB/s)"),
    ] {
        let rates = fill(&preset(name), 4_000_000_000);
        // Adjacent rates within 5 % of their mean are one step.
        let mut steps: Vec<(f64, usize)> = Vec::new();
        for rate in rates {
            match steps.last_mut() {
                Some((mean, count)) if (rate / *mean - 1.0).abs() < 0.05 => {
                    *mean = (*mean * *count as f64 + rate) / (*count + 1) as f64;
                    *count += 1;
                }
                _ => steps.push((rate, 1)),
            }
        }
        let mut end = 0;
        let told = steps
            .iter()
            .filter(|step| step.1 > 3)
            .map(|&(rate, count)| {
                end += count * 4;
                format!("to {end}: {rate:.0}")
            });
        println!(
            "| {name} | {measured} | {} |",
            told.collect::<Vec<_>>().join(", ")
        );
    }
}

/// Writes of 4 KiB by so many jobs, each followed by a flush; returns the latency of a write with
/// its flush, and the writes per second of all jobs.
fn storm(numbers: &DiskParameters, jobs: u64) -> (Latencies, f64) {
    let mut disk = drive(numbers, State::Filled);
    let mut random = Stream::new(4).fork("requests", 0);
    let mut since = vec![Nanos::ZERO; jobs as usize];
    let mut found = Latencies::default();
    let mut completions = Vec::new();
    let mut now = Nanos::ZERO;
    let mut submit = |disk: &mut Disk, now, tag: u64, flush: bool| {
        let kind = if flush {
            CommandKind::Flush
        } else {
            CommandKind::Write
        };
        let start = somewhere(disk, &mut random);
        let tag = tag * 2 + u64::from(flush);
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
    (0..jobs).for_each(|job| submit(&mut disk, now, job, false));
    let end = Nanos::from_secs(2);
    while now < end {
        now = disk.next_event().expect("commands are under way");
        disk.advance(now, &mut completions);
        for completion in completions.drain(..) {
            let job = completion.tag / 2;
            let ended = completion.tag % 2 == 1;
            if ended {
                found.note((now - since[job as usize]).0);
                since[job as usize] = now;
            }
            submit(&mut disk, now, job, !ended);
        }
    }
    let rate = found.count() as f64 / 2.0;
    (found, rate)
}

/// Prints drives with and without power-loss protection, and one drive in both ways.
pub fn flush() {
    println!(
        "| drive | protected | 1 job: mean us, p99, a second | 16 jobs: mean us, p99, a second |"
    );
    println!("|---|---|---|---|");
    for (name, protected) in [
        ("pm9a3", true),
        ("pm9a3", false),
        ("7300pro", true),
        ("970pro", false),
        ("980pro", false),
        ("pm883", true),
        ("870evo", false),
    ] {
        let mut numbers = preset(name);
        numbers.set_named(
            "flash_power_loss_protection",
            f64::from(u8::from(protected)),
        );
        let cells = [1, 16].map(|jobs| {
            let (mut found, rate) = storm(&numbers, jobs);
            format!(
                "{:.0}, {:.0}, {rate:.0}",
                found.mean(),
                found.percentile(99.0)
            )
        });
        println!("| {name} | {protected} | {} | {} |", cells[0], cells[1]);
    }
}
