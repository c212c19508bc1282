//! The number of requests per second of one core that a bare drive in steady state simulates.

use crate::load::{closed_loop, drive, preset};
use raidlab_disk::medium::flash::translation::State;

/// The processor time of this process, seconds: user time in `/proc/self/stat`, in hundredths
/// (proc(5)). The clock of a shared machine would include the work of others.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().nth(11);
    ticks
        .and_then(|ticks| ticks.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 100.0
}

/// Prints a row for each load.
pub fn print() {
    println!("| drive, depth 32 | millions of requests a second of a core |");
    println!("|---|---|");
    for (reads, seconds) in [(100, 12.0), (70, 12.0), (0, 40.0)] {
        let mut disk = drive(&preset("p5520"), State::Steady);
        let before = processor();
        let found = closed_loop(&mut disk, 32, reads, 0.0, seconds);
        let count = found[0].count() + found[1].count();
        let time = processor() - before;
        let rate = count as f64 / time / 1e6;
        println!("| p5520, {reads} % reads | {rate:.2} ({count} in {time:.2} s) |");
    }
}
