//! Writes the reports of two made-up runs and a comparison, to look at:
//! `cargo run -p raidlab-report --example sample_report -- FOLDER`

#[path = "../tests/sample/mod.rs"]
mod made_up;

use raidlab_report::{RunData, Style, compare, html, markdown, terminal};
use std::error::Error;
use std::path::Path;

/// The same bench with faster reads.
fn upgraded() -> RunData {
    let mut data = made_up::bench::data();
    data.run.name = "20261128T061500Z-bench-sample".to_owned();
    for m in &mut data.measurements {
        let noise = 1.0 + 0.002 * f64::from(m.repetition + m.sequence % 3);
        let factor = if m.op.only_reads() { 1.1 } else { 1.0 };
        m.iops *= factor * noise;
        m.bytes_per_second *= factor * noise;
    }
    for observation in &mut data.observations {
        if observation.name == "os.release" {
            observation.value = "6.12.5-amd64".to_owned();
        }
    }
    data
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("name the folder to write to")?;
    let folder = Path::new(&folder);
    for (name, data) in [
        ("model", made_up::data()),
        ("bench", made_up::bench::data()),
    ] {
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, html(&data)?)?;
        std::fs::write(folder.join(format!("{name}.md")), markdown(&data))?;
        println!("{}", terminal(&data, &Style::default()));
        println!("{}", path.display());
    }
    let compared = compare(&[made_up::bench::data(), upgraded()])?;
    std::fs::write(folder.join("compare.html"), compared.html()?)?;
    println!("{}", compared.text(&Style::default()));
    Ok(())
}
