//! The command `raidlab suites`: it lists and shows the suites that can be run.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use raidlab_lab::built_in;
use raidlab_lab::catalogue::{Kind, read_file};
use raidlab_lab::{Honoured, Suite, fio_options};
use raidlab_runs::SUITES;
use std::path::Path;

/// Arguments of `raidlab suites`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A built-in suite, or the path of one (.toml).
    name: Option<String>,

    /// Print the suite's file.
    #[arg(long, requires = "name", conflicts_with = "fio_options")]
    toml: bool,

    /// List fio's options: whether a suite or job file may give each without
    /// `--allow-fio`, and what the model makes of it.
    #[arg(long, conflicts_with = "name")]
    fio_options: bool,
}

/// Lists the suites, or shows one.
///
/// # Errors
/// When there is no such suite or its file is wrong.
pub fn suites(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.fio_options {
        return output::print(&options());
    }
    let Some(name) = &arguments.name else {
        let rows = built_in::suites()?.into_iter().map(|suite| {
            let jobs = suite.jobs().count().to_string();
            vec![suite.name, jobs, suite.title]
        });
        let table = output::table(&["suite", "jobs", "title"], &[1], rows.collect());
        return output::print(&table);
    };
    let suite = Suite::load(name).map_err(|error| Failure::from(error).or_help(SUITES))?;
    if arguments.toml {
        return output::print(&source(Kind::Suite, name)?);
    }
    let description = match suite.description.trim() {
        "" => String::new(),
        description => format!("\n{description}\n"),
    };
    output::print(&format!("{}{description}", suite.plan()))
}

/// A table of fio's options.
fn options() -> String {
    let rows = fio_options().into_iter().map(|option| {
        let model = match option.honoured {
            Honoured::Yes => "honoured".to_owned(),
            Honoured::NoEffect(reason) => format!("no effect: {reason}"),
            Honoured::No(reason) => format!("refused: {reason}"),
        };
        let class = option.class.in_words().to_owned();
        vec![option.names.join(", "), class, model]
    });
    output::table(&["option", "it", "in the model"], &[], rows.collect())
}

/// The text of a file that has just been read without complaint.
///
/// # Errors
/// When the file is gone.
pub fn source(kind: Kind, name: &str) -> Result<String, Failure> {
    match raidlab_data::text(kind.folder(), name) {
        Some(text) => Ok(text.to_owned()),
        None => Ok(read_file(Path::new(name))?),
    }
}
