//! The command `raidlab processors`: it lists, shows and measures the costs of computing on
//! a modelled host.

use crate::failure::{Failure, Kind};
use crate::output;
use clap::Args;
use raidlab_bench_model::calibrate;
use raidlab_bench_model::presets::{self, ProcessorPreset};
use raidlab_lab::Files;
use raidlab_store::output::{Format, PROCESSOR, check_writable, write};
use raidlab_store::text::visible_path;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `raidlab processors`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A built-in processor, or the path of one (.toml).
    name: Option<String>,

    /// Print the processor's file.
    #[arg(long, requires = "name")]
    toml: bool,

    /// Measure this machine, and write its processor into this file. What cannot be measured
    /// is taken from the processor that is named.
    #[arg(
        long,
        value_name = "FILE.toml",
        requires = "name",
        conflicts_with = "toml"
    )]
    calibrate: Option<PathBuf>,

    /// With --calibrate: also measure direct reads of this file, which must be larger than
    /// 4 KiB. It is only read.
    #[arg(
        long,
        value_name = "FILE",
        requires = "calibrate",
        conflicts_with = "toml"
    )]
    reads_from: Option<PathBuf>,
}

/// Lists the processors, or shows one.
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
    if let Some(file) = &arguments.calibrate {
        return write_own(&preset, file, arguments.reads_from.as_deref());
    }
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

/// A number of a processor as it would stand there if its speed were 1.
fn at_speed_one(base: &ProcessorPreset, name: &str) -> f64 {
    let numbers = base.numbers.named();
    let value = numbers.iter().find(|number| number.0 == name);
    let value = value.map_or(0.0, |number| number.1);
    let speed = base.numbers.speed;
    match name {
        "speed" => 1.0,
        _ if name.ends_with("_ns") => value / speed,
        _ if name.ends_with("_per_second") => value * speed,
        _ => value,
    }
}

/// Measures this machine, and writes its file.
fn write_own(
    base: &ProcessorPreset,
    file: &Path,
    reads_from: Option<&Path>,
) -> Result<(), Failure> {
    let name = file.file_stem().and_then(|stem| stem.to_str());
    let name = name.ok_or_else(|| Failure::words(Kind::Usage, "the file has no name in UTF-8"))?;
    check_writable(file, Format::Processor)?;
    let measured = calibrate::measure(reads_from).map_err(Failure::run)?;
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let description = format!(
        "Measured by `raidlab processors {} --calibrate` where it says so; all else is taken over.",
        base.name
    );
    let mut text = format!(
        "{PROCESSOR}\nschema = 1\nname = {}\ntitle = {}\ndescription = {}\n\n[numbers]\n",
        quoted(name),
        quoted(&format!("This machine, based on {}", base.name)),
        quoted(&description),
    );
    for one in &base.sources {
        let own = measured.iter().find(|it| it.name == one.name);
        let (value, basis, source) = match own {
            Some(own) => (own.value, "measured", own.how.clone()),
            None => (
                at_speed_one(base, &one.name),
                "assumed",
                format!("as {}, not measured here: {}", base.name, one.source),
            ),
        };
        let source = quoted(&source);
        let _ = writeln!(
            text,
            "{} = {{ value = {value}, basis = \"{basis}\", source = {source} }}",
            one.name
        );
    }
    let shown = visible_path(file);
    ProcessorPreset::parse(&shown, &text).map_err(Failure::run)?;
    write(file, Format::Processor, text.as_bytes())?;
    let rows = measured.into_iter();
    let rows = rows.map(|own| vec![own.name.to_owned(), own.value.to_string(), own.how]);
    let head = ["number", "measured", "how"];
    output::print(&output::table(&head, &[1], rows.collect()))
}
