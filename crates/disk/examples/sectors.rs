//! The cost of a partition that begins at sector 63 on a disk with physical sectors of 4 KiB: makes
//! the table of docs/design/disk-model.md.

use raidlab_disk::{Command, CommandKind, Disk, Preset};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

/// Milliseconds for each of `count` writes, one at a time, until all are on the platters.
fn each(first_sector: u64, kind: CommandKind, count: u64, place: fn(u64) -> u64) -> f64 {
    let text = include_str!("../../../data/disks/wd15ears.toml");
    let preset = Preset::parse("wd15ears.toml", text).expect("the shipped preset is valid");
    let mut numbers = preset.parameters("rated").expect("its only set").clone();
    numbers.first_sector = Sectors(first_sector);
    let mut disk = Disk::new(numbers, Nanos::ZERO, Stream::new(7));
    let mut now = Nanos::ZERO;
    let mut completions = Vec::new();
    for tag in 0..count {
        let (start, count) = (Sectors(place(tag)), Sectors(8));
        disk.submit(
            now,
            Command {
                tag,
                kind,
                start,
                count,
            },
        );
        while completions.is_empty() {
            now = disk.next_event().expect("a write is under way");
            disk.advance(now, &mut completions);
        }
        completions.clear();
    }
    while let Some(next) = disk.next_event().filter(|_| !disk.is_quiet()) {
        now = next;
        disk.advance(now, &mut completions);
    }
    now.0 as f64 / 1e6 / count as f64
}

/// A row: what is written, how, how many times, at which sectors, and the measured time.
type Row = (&'static str, CommandKind, u64, fn(u64) -> u64, &'static str);

fn main() {
    println!("| writes of 4 KiB | from sector 64 | from sector 63 | factor | measured |");
    println!("|---|---|---|---|---|");
    let somewhere = |turn| Stream::new(turn).below(300_000_000) * 8;
    let rows: [Row; 3] = [
        (
            "one in every 16 KiB, 32768 of them",
            CommandKind::Write,
            32768,
            |turn| turn * 32,
            "0.60 and 37 ms, factor 62 (WD20EARS, des.no, 2010)",
        ),
        (
            "random, through the cache, 1000",
            CommandKind::WriteThrough,
            1000,
            somewhere,
            "7 to 8 and 22 to 24 ms, factor 3 (WD Green, OSNews, 2010)",
        ),
        (
            "one after the other, cached, 32768",
            CommandKind::Write,
            32768,
            |turn| turn * 8,
            "small loss (Caviar Green, R. Smith, 2010)",
        ),
    ];
    for (title, kind, count, place, measured) in rows {
        let (aligned, shifted) = (each(64, kind, count, place), each(63, kind, count, place));
        let factor = shifted / aligned;
        println!("| {title} | {aligned:.2} ms | {shifted:.2} ms | {factor:.1} | {measured} |");
    }
}
