//! What examples have in common that print published figures beside the model's.

#[path = "../../tests/bench/rows.rs"]
pub mod rows;

use std::error::Error;
use std::path::PathBuf;

/// Writes a file into a folder of this process, and gives its path.
pub fn write(name: &str, text: &str) -> Result<String, Box<dyn Error>> {
    let folder: PathBuf =
        std::env::temp_dir().join(format!("raidlab-figures-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

/// Prints how far the model is from the published figures; `ratios`: of the larger one to the
/// smaller one, so none is below 1.
pub fn print_errors(figures: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let (middle, worst) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    println!(
        "\nOf {} {figures} the ratio is {middle:.2} in the middle and {worst:.2} at worst.",
        ratios.len()
    );
}
