//! The request that the command line of a run makes.

use clap::Args;
use raidlab_runs::notes::STORE;
use raidlab_runs::{Here, Typed};
use std::path::{Path, PathBuf};

/// How it is done here, of `run` and of `resume`: it changes no row.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Manner {
    /// What a run itself takes of it.
    #[command(flatten)]
    here: Typed<Here>,

    #[command(flatten)]
    pub(super) outputs: Outputs,
}

/// Where a run's results go, of `run` and of `resume`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Outputs {
    /// The file that keeps the rows. `raidlab run` makes it if it is not there.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    pub(super) store: PathBuf,

    /// The HTML report; an older one is replaced when the new one is whole.
    #[arg(long, value_name = "FILE", default_value = "raidlab-report.html")]
    pub(super) report: PathBuf,

    /// Write no HTML report.
    #[arg(long, conflicts_with = "report")]
    pub(super) no_report: bool,

    /// Print one JSON object per measurement on standard output, and nothing else
    /// there; progress and paths go to standard error.
    #[arg(long)]
    pub(super) json: bool,
}

impl Manner {
    /// The file that keeps the rows.
    pub fn store(&self) -> &Path {
        &self.outputs.store
    }

    /// The way in which a run is done here, in the form that it takes.
    pub fn here(&self, dry_run: bool) -> Here {
        Here {
            store: self.outputs.store.clone(),
            typed: self.here.options.clone(),
            dry_run,
            ..self.here.arguments.clone()
        }
    }
}
