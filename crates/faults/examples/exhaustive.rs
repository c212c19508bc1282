//! Cuts the power at every event of short scripts on small arrays:
//! `cargo run --release -p raidlab-faults --example exhaustive [-- NAME-PART]`.

use raidlab_faults::exhaustive::{Enumerated, Small};
use raidlab_faults::md::Md;
use std::collections::BTreeMap;

fn main() {
    let part = std::env::args().nth(1).unwrap_or_default();
    let mut table: BTreeMap<&str, (Enumerated, u64)> = BTreeMap::new();
    for small in Small::all() {
        if !small.name.contains(&part) {
            continue;
        }
        let enumerated = small.enumerate(&Md);
        if let Some((place, violation)) = &enumerated.violation {
            let actions: Vec<_> = small.script.iter().map(|step| step.action).collect();
            let bitmap = small.options.bitmap_chunk;
            println!(
                "{}, bitmap {bitmap:?}, {actions:?}: {place}: {violation}",
                small.name
            );
        }
        let (sum, scripts) = table.entry(small.name).or_default();
        *sum = std::mem::take(sum).with(enumerated);
        *scripts += 1;
    }
    println!("| array | scripts | crash points | cases | |");
    println!("|---|---|---|---|---|");
    for (name, (sum, scripts)) in table {
        let result = if sum.violation.is_some() {
            "violated"
        } else {
            "all right"
        };
        println!(
            "| {name} | {scripts} | {} | {} | {result} |",
            sum.crash_points, sum.cases
        );
    }
}
