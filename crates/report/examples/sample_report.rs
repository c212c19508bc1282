//! Writes the reports of two made-up runs, to look at:
//! `cargo run -p raidlab-report --example sample_report -- FOLDER`

#[path = "../tests/sample/mod.rs"]
mod made_up;

use raidlab_report::{RunData, Style, html, terminal};
use std::error::Error;
use std::path::Path;

fn model() -> RunData {
    RunData {
        run: made_up::run(),
        settings: made_up::settings(),
        measurements: made_up::measurements(),
        notes: made_up::notes(),
        observations: Vec::new(),
        commands: Vec::new(),
        events: Vec::new(),
        series: Vec::new(),
        findings: Vec::new(),
    }
}

fn bench() -> RunData {
    use made_up::bench;
    RunData {
        run: bench::run(),
        settings: Vec::new(),
        measurements: bench::measurements(),
        notes: bench::notes(),
        observations: bench::observations(),
        commands: bench::commands(),
        events: bench::events(),
        series: bench::series(),
        findings: bench::findings(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("name the folder to write to")?;
    let folder = Path::new(&folder);
    for (name, data) in [("model", model()), ("bench", bench())] {
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, html(&data)?)?;
        println!("{}", terminal(&data, &Style::default()));
        println!("{}", path.display());
    }
    Ok(())
}
