//! The command `raidlab compare`: it says what is better, worse or cannot be told between runs.

use crate::failure::{Failure, Kind};
use crate::output;
use clap::Args;
use raidlab_import::load_option;
use raidlab_report::{Bound, RunComparison, RunData, compare};
use raidlab_runs::notes::STORE;
use raidlab_runs::open_store;
use raidlab_runs::typed::on_store;
use raidlab_store::Store;
use raidlab_store::output::Format;
use raidlab_store::text::visible;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Arguments of `raidlab compare`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run to compare with, by name or `latest`.
    #[arg(value_name = "RUN")]
    base: String,

    /// The runs to compare with the first one.
    #[arg(value_name = "OTHER", required = true)]
    others: Vec<String>,

    /// The file that keeps the runs.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,

    /// The file that keeps the other runs, if it is another one.
    #[arg(long, value_name = "FILE")]
    other_store: Option<PathBuf>,

    /// Also show how far each figure is from that of the first run, and count those within
    /// this bound; may be repeated. The bound is a percentage, or a class of jobs with its
    /// percentage, as in `random-read=3`. Figures beyond the widest bound are marked, or
    /// listed where the table has gaps. A table says what each member did in each row.
    #[arg(long, value_name = "BOUND")]
    within: Vec<Bound>,

    /// Write an HTML page, which works offline.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write Markdown; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Says what is better, worse or cannot be told between runs.
///
/// # Errors
/// When there is no such store or run, the runs have nothing in common, or a
/// file cannot be written.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let named: Vec<&str> = std::iter::once(&arguments.base)
        .chain(&arguments.others)
        .map(String::as_str)
        .collect();
    let store = open_store(&arguments.store, &named)?;
    let theirs = arguments.other_store.as_ref();
    let files = [
        ("--html", &arguments.html, Format::Page),
        ("--markdown", &arguments.markdown, Format::Markdown),
    ];
    let wanted = files.into_iter();
    let wanted =
        wanted.filter_map(|(option, path, format)| Some((option, path.as_deref()?, format)));
    let outputs: Vec<_> = wanted.collect();
    output::check(&outputs)?;
    let theirs = theirs.map(|path| {
        let opened = Store::open_existing(path).map_err(Failure::from);
        opened.map_err(|error| error.help("`--other-store FILE` names another store"))
    });
    let theirs = theirs.transpose()?;
    let mut runs = vec![RunData::load(&store, &arguments.base)?];
    for name in &arguments.others {
        runs.push(RunData::load(theirs.as_ref().unwrap_or(&store), name)?);
    }
    let stores = [Some(&arguments.store), arguments.other_store.as_ref()];
    let lists = stores.into_iter().flatten();
    let lists: Vec<String> = lists
        .map(|store| format!("`{}`", on_store("raidlab report --list", store)))
        .collect();
    let comparison = compare(&runs).map_err(|error| {
        let verb = if lists.len() > 1 { "list" } else { "lists" };
        Failure::new(Kind::Input, error).help(format!("{} {verb} the runs", lists.join(" and ")))
    })?;
    check_classes(&arguments.within, &comparison)?;
    let comparison = comparison.with_options(&runs, load_option);
    let comparison = comparison.within(&arguments.within);
    for (_, path, format) in &outputs {
        let text = match format {
            Format::Page => comparison.html().map_err(Failure::run)?,
            _ => comparison.markdown(),
        };
        output::write_or_print(path, *format, text.as_bytes())?;
    }
    if !outputs.is_empty() {
        return Ok(());
    }
    output::print(&comparison.text(&output::style()))
}

/// Checks that each class with a bound is a class of these runs.
fn check_classes(bounds: &[Bound], comparison: &RunComparison) -> Result<(), Failure> {
    let known: BTreeSet<&str> = comparison.rows.iter().map(|row| &*row.class).collect();
    let mut asked = bounds.iter().filter_map(|bound| bound.class.as_deref());
    let Some(unknown) = asked.find(|class| !known.contains(class)) else {
        return Ok(());
    };
    let known: Vec<_> = known
        .into_iter()
        .map(|class| format!("`{class}`"))
        .collect();
    let words = format!(
        "no row of these runs is of the class `{}`",
        visible(unknown)
    );
    let help = format!("their classes are {}", visible(&known.join(", ")));
    Err(Failure::words(Kind::Usage, words).help(help))
}
