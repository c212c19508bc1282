//! Makes the tables of docs/notes/flash.md: `cargo run --release -p raidlab-disk --example flash`,
//! or one of them, given by its name.

mod amplification;
mod latency;
mod load;
mod others;
mod speed;
mod streams;

fn main() {
    let tables: [(&str, fn()); 8] = [
        ("amplification", amplification::print),
        ("latency", latency::print),
        ("streams", streams::print),
        ("small", streams::small),
        ("depth", others::depth),
        ("cliff", others::cliff),
        ("flush", others::flush),
        ("speed", speed::print),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (name, print) in tables {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            println!("## {name}\n");
            print();
            println!();
        }
    }
}
