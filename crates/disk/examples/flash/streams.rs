//! Streams of drives on each link beside their makers' ratings, and small reads in order beside
//! small reads at random places.

use crate::load::{BLOCK, closed_loop, drive, preset};
use raidlab_disk::medium::flash::translation::State;
use raidlab_disk::{Command, CommandKind, DiskParameters};
use raidlab_units::{Nanos, Sectors};

/// Sectors of a request of 1 MiB.
const REQUEST: u64 = 2048;

/// The sequential requests of so many sectors that are done in a second, of each of these kinds
/// `depth` in flight, in the second half of half a second.
fn rate(
    numbers: &DiskParameters,
    state: State,
    kinds: &[CommandKind],
    (sectors, depth): (u64, u64),
) -> f64 {
    let mut disk = drive(numbers, state);
    let places = disk.parameters().capacity.0 / sectors / 2;
    let mut next = vec![0; kinds.len()];
    let mut submit = |disk: &mut raidlab_disk::Disk, now, tag: u64| {
        let stream = tag as usize % kinds.len();
        let place = next[stream] % places + places * stream as u64;
        next[stream] += 1;
        let (kind, start, count) = (kinds[stream], Sectors(place * sectors), Sectors(sectors));
        disk.submit(
            now,
            Command {
                tag,
                kind,
                start,
                count,
            },
        );
    };
    (0..depth * kinds.len() as u64).for_each(|tag| submit(&mut disk, Nanos::ZERO, tag));
    let (begin, end) = (Nanos::from_millis(250), Nanos::from_millis(500));
    let (mut now, mut done) = (Nanos::ZERO, 0);
    let mut completions = Vec::new();
    while now < end {
        now = disk.next_event().expect("requests are under way");
        disk.advance(now, &mut completions);
        for completion in completions.drain(..) {
            done += u64::from(now >= begin);
            submit(&mut disk, now, completion.tag);
        }
    }
    done as f64 / 0.25
}

/// Prints reads and writes of one drive for each kind of link and rating, and both together.
pub fn print() {
    println!("| drive | link | rated: reads, writes | reads | writes | both at a time |");
    println!("|---|---|---|---|---|---|");
    for (name, link, rated) in [
        ("870evo", "SATA", "560, 530"),
        ("970pro", "3.0 x4", "3500, 2300"),
        ("a2000", "3.0 x4", "2200, 2000"),
        ("pm9a3", "4.0 x4", "6500, 1500"),
        ("980pro", "4.0 x4", "7000, 5000"),
        ("sn850x", "4.0 x4", "7300, 6600"),
        ("nm800pro", "4.0 x4", "7500, 6500"),
        ("cm7r", "5.0 x4", "14000, 6750"),
    ] {
        let numbers = preset(name);
        let (read, write) = (CommandKind::Read, CommandKind::Write);
        let [reads, writes, both] = [
            (State::Filled, &[read][..]),
            (State::Fresh, &[write]),
            (State::Filled, &[read, write]),
        ]
        .map(|(state, kinds)| {
            rate(&numbers, state, kinds, (REQUEST, 32)) * (REQUEST * 512) as f64 / 1e6
        });
        println!("| {name} | {link} | {rated} | {reads:.0} | {writes:.0} | {both:.0} |");
    }
}

/// Prints thousand reads of 4 KiB a second at some depths, at random places and in order, of filled
/// drives; and of one that was written at random, which lie apart.
pub fn small() {
    let depths = [1, 2, 4, 8, 32, 128];
    let head = depths.map(|depth| depth.to_string()).join(" | ");
    println!("| drive | reads of 4 KiB | {head} |");
    println!("|---|---|{}", "---|".repeat(depths.len()));
    for (name, state) in [
        ("pm9a3", State::Filled),
        ("pm9a3", State::Steady),
        ("p5520", State::Filled),
        ("970pro", State::Filled),
        ("980pro", State::Filled),
        ("pm883", State::Filled),
        ("870evo", State::Filled),
    ] {
        let numbers = preset(name);
        let random = depths.map(|depth| {
            let [reads, _] = closed_loop(&mut drive(&numbers, state), depth, 100, 0.25, 0.25);
            reads.count() as f64 / 0.25
        });
        let in_order =
            depths.map(|depth| rate(&numbers, state, &[CommandKind::Read], (BLOCK, depth)));
        for (what, rates) in [("random", random), ("in order", in_order)] {
            let cells = rates.map(|rate| format!("{:.1}", rate / 1e3)).join(" | ");
            println!("| {name}, {} | {what} | {cells} |", state.name());
        }
    }
}
