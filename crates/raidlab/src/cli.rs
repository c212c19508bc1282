//! The command line as a whole; each command's own arguments stand with it.

use crate::failure::EXIT_CODES;
use clap::{Parser, Subcommand};
use std::fmt::Write;

/// What `raidlab --help` says below the commands.
fn after_help() -> String {
    let mut text = String::from(
        "\
Examples:
  raidlab run mirror-2015          the RAID 1 comparison of 2015, on modelled disks
  raidlab run mirror-2015 --json   the same, one JSON object per measurement
  raidlab run ./jobs.fio           your own fio job file on a modelled mirror
  raidlab report                   the last run's tables again
  raidlab suites mirror-2015       what a suite does, step by step

Exit codes:",
    );
    for one in &EXIT_CODES {
        let _ = write!(text, "\n  {:<3}  {}", one.code, one.says);
    }
    text
}

/// A laboratory for software RAID.
#[derive(Debug, Parser)]
#[command(
    name = "raidlab",
    version,
    about,
    long_about = "\
A laboratory for software RAID. It runs suites of fio jobs and events (a disk is \
taken out, put back, rebuilt) on subjects (md, gmirror, gflash, ZFS and others) over \
modelled disks in virtual time, and shows who is fastest at what, how it compares \
with published figures, and how far to trust it.",
    after_help = after_help(),
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `raidlab` can be told to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a suite or a fio job file and show who is fastest at what.
    Run(Box<crate::run::Arguments>),
    /// Go on with a run that was interrupted or killed.
    Resume(crate::resume::Arguments),
    /// Put shards of a run, made on many machines, together.
    Merge(crate::merge::Arguments),
    /// Say how far the shards of a run are.
    Status(crate::status::Arguments),
    /// Hand the shards of a run to a scheduler.
    Submit(crate::submit::Arguments),
    /// Remove what a killed run has left on a machine.
    Cleanup(crate::cleanup::Arguments),
    /// Build the kernel for `run --on kernel`, list and remove such kernels.
    Kernel(crate::kernel::Arguments),
    /// Read others' results, logs and figures of articles as a run.
    Import(crate::import::Arguments),
    /// Say which of a run's numbers to believe, and why not the others.
    Audit(crate::audit::Arguments),
    /// Show, export, list or delete runs of a store.
    Report(crate::report::Arguments),
    /// Say where the time of a job's requests went.
    Explain(crate::explain::Arguments),
    /// Say which of an article's sentences hold of what was measured.
    Claims(crate::claims::Arguments),
    /// Say what is better, worse or cannot be told between runs.
    Compare(crate::compare::Arguments),
    /// Make an array of files or devices, in md's format.
    Create(crate::array::create::Arguments),
    /// Put an array together and serve it in the background.
    Assemble(crate::array::assemble::Arguments),
    /// Serve an array, a file or a modelled disk over NBD.
    Serve(Box<crate::array::serve::Arguments>),
    /// Show an array that is being served.
    Detail(crate::array::control::DetailArguments),
    /// Change a served array: fail, remove, add, re-add, check.
    Manage(crate::array::control::ManageArguments),
    /// Show a served array second by second.
    Watch(crate::array::watch::Arguments),
    /// Wait until no sync runs on a served array.
    Wait(crate::array::control::WaitArguments),
    /// Stop a served array cleanly.
    Stop(crate::array::control::StopArguments),
    /// Print what the md metadata of files or devices says.
    Examine(crate::array::examine::Arguments),
    /// Break raidlab's own array in virtual time, and see whether it keeps its
    /// promises.
    Simulate(crate::simulate::Arguments),
    /// Erase the md superblocks of files or devices.
    ZeroSuperblock(crate::array::zero_superblock::Arguments),
    /// List the suites, or show one in full.
    Suites(crate::suites::Arguments),
    /// List the subjects, or show one with every setting and its source.
    Subjects(crate::subjects::Arguments),
    /// List the disk presets, or show one with every parameter and its source.
    Disks(crate::disks::Arguments),
    /// List the processors of modelled hosts, or show one with every charge and its source.
    Processors(crate::processors::Arguments),
    /// Fit a disk preset to its facts, or check how well it fits them.
    Fit(crate::fit::Arguments),
    /// Measure what each feature of the model is worth by leaving it out.
    Ablations(crate::ablations::Arguments),
    /// Print a page for man(1).
    Manual(crate::manual::Arguments),
    /// Print a completion script for a shell.
    Completions(crate::completions::Arguments),
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_example_can_be_typed() {
        let mut all = Cli::command();
        let helps: Vec<String> = std::iter::once(all.clone())
            .chain(all.get_subcommands_mut().map(|command| command.clone()))
            .filter_map(|command| command.get_after_help().map(ToString::to_string))
            .collect();
        assert_eq!(helps.len(), 33, "each command has examples");
        let mut examples = 0;
        for line in helps.iter().flat_map(|help| help.lines()) {
            let Some(place) = line.find("raidlab ") else {
                continue;
            };
            // Redirections, pipes and explanations follow the command.
            let typed = line[place..]
                .split(['>', '|', ')'])
                .next()
                .unwrap_or_default();
            let typed = typed.split("   ").next().unwrap_or_default();
            let parsed = Cli::try_parse_from(typed.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
            examples += 1;
        }
        assert!(examples > 25, "{examples}");
    }
}
