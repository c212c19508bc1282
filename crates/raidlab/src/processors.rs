//! `raidlab processors`: what computing can cost on a modelled host.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use raidlab_bench_model::presets;
use raidlab_lab::Files;

/// Arguments of `raidlab processors`.
#[derive(Debug, Args)]
#[command(
    long_about = "\
Lists the built-in processors of modelled hosts, or shows one: its cores, and what each thing \
costs that they do for a request, with its basis and its source; units are in the names. A number \
was measured or published, or is inferred from what was, or assumed. With --toml it prints the \
processor's file, a start for one of your own; `raidlab run SUITE --processor ./own.toml` uses that.",
    after_help = "\
Examples:
  raidlab processors
  raidlab processors server-2021
  raidlab processors server-2021 --toml > own.toml"
)]
pub struct Arguments {
    /// A built-in processor, or the path of one (.toml).
    name: Option<String>,

    /// Print the processor's file.
    #[arg(long, requires = "name")]
    toml: bool,
}

/// Lists or shows.
///
/// # Errors
/// When there is no such processor, or its file is wrong.
pub fn processors(arguments: &Arguments) -> Result<(), Failure> {
    let files = Files::default();
    let Some(name) = &arguments.name else {
        let mut rows = Vec::new();
        for name in presets::processor_names() {
            let preset = presets::processor(&files, name)?;
            let numbers = &preset.numbers;
            let [cores, speed] = [numbers.cores, numbers.speed].map(|it| it.to_string());
            rows.push(vec![preset.name, cores, speed, preset.title]);
        }
        let head = ["processor", "cores", "speed", "title"];
        return output::print(&output::table(&head, &[1, 2], rows));
    };
    if arguments.toml {
        return output::print(&presets::processor_text(name)?);
    }
    let preset = presets::processor(&files, name)?;
    let rows = preset.sources.into_iter();
    let rows = rows.map(|one| vec![one.name, one.value, one.basis, one.source]);
    let head = ["number", "value", "basis", "source"];
    output::print(&format!(
        "{}: {}\n\n{}\n\n{}",
        preset.name,
        preset.title,
        preset.description.trim(),
        output::table(&head, &[], rows.collect())
    ))
}
