//! Streams of drives on each link, beside their makers' ratings.

use crate::load::{drive, preset};
use raidlab_disk::medium::flash::translation::State;
use raidlab_disk::{Command, CommandKind, DiskParameters};
use raidlab_units::{Nanos, Sectors};

/// Sectors of a request of 1 MiB.
const REQUEST: u64 = 2048;

/// The megabytes per second of sequential requests of 1 MiB, 32 of each of these kinds in flight,
/// in the second half of half a second.
fn rate(numbers: &DiskParameters, state: State, kinds: &[CommandKind]) -> f64 {
    let mut disk = drive(numbers, state);
    let places = disk.parameters().capacity.0 / REQUEST / 2;
    let mut next = vec![0; kinds.len()];
    let mut submit = |disk: &mut raidlab_disk::Disk, now, tag: u64| {
        let stream = tag as usize % kinds.len();
        let place = next[stream] % places + places * stream as u64;
        next[stream] += 1;
        let (kind, start, count) = (kinds[stream], Sectors(place * REQUEST), Sectors(REQUEST));
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
    (0..32 * kinds.len() as u64).for_each(|tag| submit(&mut disk, Nanos::ZERO, tag));
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
    done as f64 * (REQUEST * 512) as f64 / 0.25 / 1e6
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
        let reads = rate(&numbers, State::Filled, &[CommandKind::Read]);
        let writes = rate(&numbers, State::Fresh, &[CommandKind::Write]);
        let both = rate(
            &numbers,
            State::Filled,
            &[CommandKind::Read, CommandKind::Write],
        );
        println!("| {name} | {link} | {rated} | {reads:.0} | {writes:.0} | {both:.0} |");
    }
}
