//! The mutation table: `cargo run --release -p raidlab-faults --features
//! mutations --example mutants [-- MOST-SEEDS [NAME-PART [FIRST-SEED]]]`.

use raidlab_array::mutation::Mutation;
use raidlab_faults::md::Md;
use raidlab_faults::mutants::{filter_for, hunt};

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
        if mutation.name().contains(&part) {
            let hunted = hunt(&Md, &filter_for(*mutation), *mutation, first, most);
            println!("{hunted}");
        }
    }
}
