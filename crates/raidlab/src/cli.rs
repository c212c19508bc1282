//! The command line as a whole; each command's own arguments stand with it.

use crate::failure::EXIT_CODES;
use crate::help;
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
    mut_subcommands = help::told,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `raidlab` can be told to do; what each says of itself stands in `help.txt`.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<crate::run::Arguments>),
    Resume(crate::resume::Arguments),
    Merge(crate::merge::Arguments),
    Status(crate::status::Arguments),
    Submit(crate::submit::Arguments),
    Cleanup(crate::cleanup::Arguments),
    Kernel(crate::kernel::Arguments),
    Import(crate::import::Arguments),
    Audit(crate::audit::Arguments),
    Report(crate::report::Arguments),
    Explain(crate::explain::Arguments),
    Claims(crate::claims::Arguments),
    Compare(crate::compare::Arguments),
    Create(crate::array::create::Arguments),
    Assemble(crate::array::assemble::Arguments),
    Serve(Box<crate::array::serve::Arguments>),
    Detail(crate::array::control::DetailArguments),
    Manage(crate::array::control::ManageArguments),
    Watch(crate::array::watch::Arguments),
    Wait(crate::array::control::WaitArguments),
    Stop(crate::array::control::StopArguments),
    Examine(crate::array::examine::Arguments),
    Simulate(crate::simulate::Arguments),
    ZeroSuperblock(crate::array::zero_superblock::Arguments),
    Suites(crate::suites::Arguments),
    Subjects(crate::subjects::Arguments),
    Disks(crate::disks::Arguments),
    Processors(crate::processors::Arguments),
    Fit(crate::fit::Arguments),
    Ablations(crate::ablations::Arguments),
    Manual(crate::manual::Arguments),
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
