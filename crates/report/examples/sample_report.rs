//! Writes the report of a made-up run, to look at:
//! `cargo run -p raidlab-report --example sample_report -- FILE.html`

#[path = "../tests/sample/mod.rs"]
mod made_up;

use raidlab_report::{RunData, Style, html, terminal};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let data = RunData {
        run: made_up::run(),
        settings: made_up::settings(),
        measurements: made_up::measurements(),
        notes: made_up::notes(),
    };
    std::fs::write(&path, html(&data)?)?;
    println!("{}", terminal(&data, &Style::default()));
    println!("{path}");
    Ok(())
}
