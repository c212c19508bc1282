//! The command line as a whole; each command's own arguments stand in its module.

use crate::failure::EXIT_CODES;
use crate::help;
use clap::{Parser, Subcommand};
use std::fmt::Write;

/// The text that `raidlab --help` shows below the commands.
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
taken out, put back, rebuilt) on arrays (md, gmirror, gflash, ZFS and others): on \
modelled disks in virtual time, on the real Linux kernel over modelled disks, or on \
real machines. It shows which array is fastest at what, sets published figures beside \
its own, and says which figures to believe.",
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
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    use clap::{Arg, Command, CommandFactory, Error, Parser};

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

    /// What can be typed after `raidlab`: each command without commands of its own.
    fn leaves<'a>(
        command: &'a Command,
        path: &[String],
        all: &mut Vec<(Vec<String>, &'a Command)>,
    ) {
        for own in command.get_subcommands() {
            let path = [path, &[own.get_name().to_owned()]].concat();
            if own.has_subcommands() {
                leaves(own, &path, all);
            } else {
                all.push((path, own));
            }
        }
    }

    /// An argument with a value that it takes.
    fn typed(argument: &Arg, is_taken: impl Fn(&[String]) -> bool) -> Vec<String> {
        let option = argument.get_long().map(|name| format!("--{name}"));
        if !argument.get_action().takes_values() {
            return option.into_iter().collect();
        }
        let possible = argument.get_possible_values();
        let possible = possible.iter().map(|one| one.get_name().to_owned());
        let usual = "1 x 1s 1g 0/2 ram=16GiB 127.0.0.1:1 1.0 md-6.9 none nbd://h/n \
                     00000000:00000000:00000000:00000000";
        let usual = usual.split_whitespace().map(str::to_owned);
        let values = possible.chain(usual);
        let many = argument
            .get_num_args()
            .map_or(1, |range| range.min_values().max(1));
        let words = |value: String| -> Vec<String> {
            option.iter().cloned().chain(vec![value; many]).collect()
        };
        let taken = values.map(words).find(|words| is_taken(words));
        taken.unwrap_or_else(|| panic!("no value for {argument}"))
    }

    /// clap does not ask for what an option needs where something is named that rules the needed
    /// one out: the option would do nothing, and nobody would say so.
    #[test]
    fn an_option_that_needs_another_does_not_stand_without_it() {
        let mut root = Cli::command();
        root.build();
        let parse = |words: &[String]| -> Result<(), Error> {
            let line = std::iter::once("raidlab").chain(words.iter().map(String::as_str));
            root.clone().try_get_matches_from(line).map(|_| ())
        };
        let (mut commands, mut needy, mut alone) = (Vec::new(), 0, Vec::new());
        leaves(&root, &[], &mut commands);
        // What `serve` serves is asked for when all is read, by the command itself.
        commands.retain(|(path, _)| *path != ["serve"]);
        for (path, command) in commands {
            let arguments: Vec<&Arg> = command.get_arguments().collect();
            let is_value = |argument: &Arg, words: &[String]| {
                let error = parse(&[path.as_slice(), words].concat()).err();
                let wrong = [ErrorKind::ValueValidation, ErrorKind::InvalidValue];
                let name = ContextValue::String(argument.to_string());
                // Another one's value may be wrong: positions before this one are empty.
                !error.is_some_and(|error| {
                    wrong.contains(&error.kind())
                        && error.get(ContextKind::InvalidArg) == Some(&name)
                })
            };
            let words = |argument: &&Arg| typed(argument, |words| is_value(argument, words));
            let required = arguments.iter().filter(|one| one.is_required_set());
            let base = [path.clone(), required.flat_map(words).collect()].concat();
            let free = arguments.iter().filter(|one| !one.is_required_set());
            let free: Vec<(&Arg, Vec<String>)> = free.map(|one| (*one, words(one))).collect();
            for (argument, own) in &free {
                let line = [base.as_slice(), own].concat();
                let Err(error) = parse(&line) else {
                    continue;
                };
                let needed = match error.get(ContextKind::InvalidArg) {
                    Some(ContextValue::Strings(names))
                        if error.kind() == ErrorKind::MissingRequiredArgument =>
                    {
                        names.join(" ")
                    }
                    _ => continue,
                };
                needy += 1;
                let others = free.iter().filter(|(other, _)| other != argument);
                // A position is `<NAME>` where it is needed, and `[NAME]` elsewhere.
                let others = others.filter(|(other, _)| {
                    let name = other.to_string();
                    !needed.contains(name.trim_matches(['[', ']', '.']))
                });
                for (_, other) in others {
                    let line = [line.as_slice(), other].concat();
                    if parse(&line).is_ok() {
                        alone.push(line.join(" "));
                    }
                }
            }
        }
        assert!(needy > 10, "{needy}");
        assert!(alone.is_empty(), "{alone:#?}");
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
