//! The common parts of examples that print published figures beside the model's.

#[path = "../../tests/bench/rows.rs"]
pub mod rows;

use raidlab_lab::{Choices, Experiment, Files, Suite, catalogue};
use std::error::Error;
use tempfile::TempDir;

/// Writes a file into a folder, which goes with its owner, and returns its path.
pub fn write(folder: &TempDir, name: &str, text: &str) -> Result<String, Box<dyn Error>> {
    let path = folder.path().join(name);
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

/// The experiment of a suite's first subject with the numbers of data sheets, on a built-in host or
/// on the subject's own.
pub fn experiment(
    folder: &TempDir,
    suite: &str,
    host: Option<&str>,
) -> Result<Experiment, Box<dyn Error>> {
    let suite = Suite::load(&write(folder, "suite.toml", suite)?)?;
    let mut subjects = suite.subjects.clone();
    if let Some(host) = host {
        let host = catalogue::host(&Files::default(), host)?;
        subjects
            .iter_mut()
            .for_each(|subject| subject.move_to(&host));
    }
    let choices = Choices {
        fits: vec!["rated".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    Ok(suite.experiments(&subjects, &choices).swap_remove(0))
}

/// Prints how far the model is from the published figures; `ratios` are those of the larger one to
/// the smaller one, so none is below 1.
pub fn print_errors(figures: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let (middle, worst) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    println!(
        "\nOf {} {figures} the ratio is {middle:.2} in the middle and {worst:.2} at worst.",
        ratios.len()
    );
}
