//! Write amplification under uniform random writes, beside theory.

use raidlab_disk::medium::flash::translation::{Shape, State, Translation};
use raidlab_disk::medium::flash::victims::Victims;
use raidlab_random::Stream;

/// The number of logical pages of the drives: as many as are kept for a drive of any size.
const PAGES: u32 = 1 << 20;

/// The write amplification of so many random writes per logical page, after as many to warm up.
fn measure(mut drive: Translation, warm: u64, measured: u64) -> f64 {
    let mut random = Stream::new(1).fork("writes", 0);
    let mut write = |times: u64| {
        let before = drive.counts();
        for _ in 0..times * u64::from(PAGES) {
            let page = random.below(u64::from(PAGES));
            drive.write(u32::try_from(page).expect("below 2^20"), &mut random);
        }
        let after = drive.counts();
        let copied = (after.copied - before.copied) as f64;
        1.0 + copied / (after.written - before.written) as f64
    };
    write(warm);
    write(measured)
}

/// Prints a row for each over-provisioning.
pub fn print() {
    let head = Victims::ALL.map(|(_, name)| name).join(" | ");
    println!("| physical / logical | theory | {head} | greedy, drawn steady state |");
    println!("|---|---|---|---|---|---|---|");
    for percent in [107, 110, 115, 120, 125, 128, 130, 135, 140] {
        let over_provisioning = f64::from(percent) / 100.0;
        let shape = Shape::new(PAGES, over_provisioning, 256);
        let mut random = Stream::new(1).fork("drive", 0);
        let theory = Translation::amplification(over_provisioning);
        let mut row = format!("| {over_provisioning:.2} | {theory:.2} |");
        let cell = |found: f64| format!(" {found:.2} ({:+.1} %) |", (found / theory - 1.0) * 100.0);
        for (victims, _) in Victims::ALL {
            let drive = Translation::new(shape, victims, State::Filled, &mut random);
            row += &cell(measure(drive, 4, 2));
        }
        let drive = Translation::new(shape, Victims::Greedy, State::Steady, &mut random);
        row += &cell(measure(drive, 0, 1));
        println!("{row}");
    }
}
