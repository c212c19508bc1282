//! The command `raidlab disks`: it lists and shows the disks that members can be.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use raidlab_bench_model::presets;
use raidlab_disk::Preset;
use std::fmt::Write;

/// Arguments of `raidlab disks`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A built-in preset, or the path of one (.toml).
    name: Option<String>,

    /// The parameter set to show. Default: the preset's first.
    #[arg(long, value_name = "SET", requires = "name")]
    set: Option<String>,

    /// Print the preset's file.
    #[arg(long, requires = "name", conflicts_with = "set")]
    toml: bool,
}

/// Lists the disks, or shows one.
///
/// # Errors
/// When there is no such preset or set, or its file is wrong.
pub fn disks(arguments: &Arguments) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let mut rows = Vec::new();
        for name in presets::names() {
            let preset = presets::load(name)?;
            let names = preset.set_names();
            let sets = names.join(", ");
            let set = names.first().copied().unwrap_or_default();
            let fitted = preset.is_fitted(set).unwrap_or_default();
            let fitted = if fitted { "yes" } else { "no" }.to_owned();
            rows.push(vec![preset.name, preset.model, sets, fitted, preset.title]);
        }
        let head = ["disk", "model", "sets", "fitted", "title"];
        return output::print(&output::table(&head, &[], rows));
    };
    let preset = presets::load(name)?;
    if arguments.toml {
        return output::print(&presets::text(name)?);
    }
    let set = set(&preset, arguments.set.as_deref())?;
    output::print(&show(&preset, &set)?)
}

/// The parameter set that was asked for, or the preset's first.
///
/// # Errors
/// When the preset has no such set.
pub fn set(preset: &Preset, asked: Option<&str>) -> Result<String, Failure> {
    let names = preset.set_names();
    let set = asked.or(names.first().copied()).unwrap_or_default();
    preset.parameters(set).map_err(Failure::usage)?;
    Ok(set.to_owned())
}

fn show(preset: &Preset, set: &str) -> Result<String, Failure> {
    let mut text = format!(
        "{}: {}\nmodel  {}\n\n{}\n\n",
        preset.name,
        preset.title,
        preset.model,
        preset.description.trim()
    );
    for name in preset.set_names() {
        let description = preset.set_description(name).map_err(Failure::usage)?.trim();
        let shown = if name == set { " (shown below)" } else { "" };
        let _ = writeln!(text, "set {name}{shown}: {description}");
    }
    text.push('\n');
    let numbers = preset.provenance(set).map_err(Failure::usage)?;
    let rows = numbers.iter().map(|number| {
        vec![
            number.name.clone(),
            number.value.clone(),
            number.basis.name().to_owned(),
            number.source.clone(),
        ]
    });
    let head = ["parameter", "value", "basis", "source"];
    text.push_str(&output::table(&head, &[], rows.collect()));
    Ok(text)
}
