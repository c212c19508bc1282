//! Prints the mutation table: `cargo run --release -p raidlab-faults --features mutations --example
//! mutants [-- MOST-SEEDS [NAME-PART [FIRST-SEED]]]`. With `driver` for a part of the name: all
//! bugs of the driver.

#[path = "../tests/mutants/mod.rs"]
mod hunting;

use hunting::{filter_for, hunt};
use raidlab_array::mutation::Mutation;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let most = arguments
        .next()
        .and_then(|most| most.parse().ok())
        .unwrap_or(2000);
    let part = arguments.next().unwrap_or_default();
    let first = arguments
        .next()
        .and_then(|first| first.parse().ok())
        .unwrap_or(0);
    std::panic::set_hook(Box::new(|_| {}));
    println!("| bug | what it does | seeds | found as |");
    println!("|---|---|---|---|");
    for mutation in Mutation::ALL {
        let is_wanted = match part.as_str() {
            "driver" => mutation.is_of_driver(),
            part => mutation.name().contains(part),
        };
        if is_wanted {
            let hunted = hunt(&filter_for(*mutation), *mutation, first, most);
            println!("{hunted}");
        }
    }
}
