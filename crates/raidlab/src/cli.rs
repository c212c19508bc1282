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

/// What `raidlab` can be told to do. A doc comment of a command would take the place of the
/// `long_about` that stands with its arguments, so each has an `about`.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(about = "Run a suite or a fio job file and show who is fastest at what")]
    Run(Box<crate::run::Arguments>),
    #[command(about = "Go on with a run that was interrupted or killed")]
    Resume(crate::resume::Arguments),
    #[command(about = "Put shards of a run, made on many machines, together")]
    Merge(crate::merge::Arguments),
    #[command(about = "Say how far the shards of a run are")]
    Status(crate::status::Arguments),
    #[command(about = "Hand the shards of a run to a scheduler")]
    Submit(crate::submit::Arguments),
    #[command(about = "Remove what a killed run has left on a machine")]
    Cleanup(crate::cleanup::Arguments),
    #[command(about = "Build the kernel for `run --on kernel`, list and remove such kernels")]
    Kernel(crate::kernel::Arguments),
    #[command(about = "Read others' results, logs and figures of articles as a run")]
    Import(crate::import::Arguments),
    #[command(about = "Say which of a run's numbers to believe, and why not the others")]
    Audit(crate::audit::Arguments),
    #[command(about = "Show, export, list or delete runs of a store")]
    Report(crate::report::Arguments),
    #[command(about = "Say where the time of a job's requests went")]
    Explain(crate::explain::Arguments),
    #[command(about = "Say which of an article's sentences hold of what was measured")]
    Claims(crate::claims::Arguments),
    #[command(about = "Say what is better, worse or cannot be told between runs")]
    Compare(crate::compare::Arguments),
    #[command(about = "Make an array of files or devices, in md's format")]
    Create(crate::array::create::Arguments),
    #[command(about = "Put an array together and serve it in the background")]
    Assemble(crate::array::assemble::Arguments),
    #[command(about = "Serve an array, a file or a modelled disk over NBD")]
    Serve(Box<crate::array::serve::Arguments>),
    #[command(about = "Show an array that is being served")]
    Detail(crate::array::control::DetailArguments),
    #[command(about = "Change a served array: fail, remove, add, re-add, check")]
    Manage(crate::array::control::ManageArguments),
    #[command(about = "Show a served array second by second")]
    Watch(crate::array::watch::Arguments),
    #[command(about = "Wait until no sync runs on a served array")]
    Wait(crate::array::control::WaitArguments),
    #[command(about = "Stop a served array cleanly")]
    Stop(crate::array::control::StopArguments),
    #[command(about = "Print what the md metadata of files or devices says")]
    Examine(crate::array::examine::Arguments),
    #[command(
        about = "Break raidlab's own array in virtual time, and see whether it keeps its promises"
    )]
    Simulate(crate::simulate::Arguments),
    #[command(about = "Erase the md superblocks of files or devices")]
    ZeroSuperblock(crate::array::zero_superblock::Arguments),
    #[command(about = "List the suites, or show one in full")]
    Suites(crate::suites::Arguments),
    #[command(about = "List the subjects, or show one with every setting and its source")]
    Subjects(crate::subjects::Arguments),
    #[command(about = "List the disk presets, or show one with every parameter and its source")]
    Disks(crate::disks::Arguments),
    #[command(
        about = "List the processors of modelled hosts, or show one with every charge and its source"
    )]
    Processors(crate::processors::Arguments),
    #[command(about = "Fit a disk preset to its facts, or check how well it fits them")]
    Fit(crate::fit::Arguments),
    #[command(about = "Measure what each feature of the model is worth by leaving it out")]
    Ablations(crate::ablations::Arguments),
    #[command(about = "Print a page for man(1)")]
    Manual(crate::manual::Arguments),
    #[command(about = "Print a completion script for a shell")]
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

    /// A sentence on a command that a list has room for does not hide what is said at length.
    #[test]
    fn what_is_said_at_length_is_shown() {
        for command in Cli::command().get_subcommands_mut() {
            let said = command.get_long_about().map(ToString::to_string);
            let said = said.unwrap_or_else(|| panic!("{}", command.get_name()));
            let first = said.split_whitespace().next().unwrap_or_default();
            let help = command.render_long_help().to_string();
            assert!(help.starts_with(first), "{help}");
        }
    }

    /// Arguments after a flattened group stand below the heading of that group, unless they name
    /// a heading of their own.
    #[test]
    fn every_option_stands_below_its_own_heading() {
        let root = Cli::command();
        let heading = |command: &str, option: &str| {
            let command = root.find_subcommand(command).expect("a command");
            let mut all = command.get_arguments();
            let argument = all.find(|one| one.get_id() == option).expect(option);
            argument.get_help_heading().map(str::to_owned)
        };
        for command in ["serve", "assemble"] {
            assert_eq!(heading(command, "devices"), None);
            assert_eq!(heading(command, "force").as_deref(), Some("The array"));
        }
        assert_eq!(heading("assemble", "dry_run"), None);
        assert_eq!(heading("serve", "control"), None);
        assert_eq!(heading("serve", "connections").as_deref(), Some("Clients"));
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
