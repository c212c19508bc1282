//! The `raidlab` command: arguments in, tables, files and exit codes out.
//!
//! Each command is a module with its arguments and a function that carries it
//! out; what can go wrong comes back as a [`failure::Failure`], and only here
//! is it printed and turned into an exit code.

mod ablations;
mod array;
mod audit;
mod claims;
mod cleanup;
mod cli;
mod compare;
mod completions;
mod data;
mod disks;
mod explain;
mod failure;
mod fit;
mod help;
mod import;
mod interrupt;
mod kernel;
mod manual;
mod merge;
mod output;
mod processors;
mod report;
mod resume;
mod run;
mod simulate;
mod status;
mod subjects;
mod submit;
mod suites;
mod usage;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The kernel of a guest gives its first program arguments of its own choice.
    if raidlab_runs::serve_guest() {
        return ExitCode::SUCCESS;
    }
    let command = match parsed() {
        Ok(cli) => cli.command,
        Err(code) => return code,
    };
    let done = match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Resume(arguments) => resume::command(&arguments),
        Command::Merge(arguments) => merge::command(&arguments),
        Command::Status(arguments) => status::command(&arguments),
        Command::Submit(arguments) => submit::command(&arguments),
        Command::Cleanup(arguments) => cleanup::command(&arguments),
        Command::Kernel(arguments) => kernel::command(&arguments),
        Command::Claims(arguments) => claims::command(&arguments),
        Command::Compare(arguments) => compare::command(&arguments),
        Command::Import(arguments) => import::command(&arguments),
        Command::Audit(arguments) => audit::command(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Create(arguments) => array::create::command(&arguments),
        Command::Assemble(arguments) => array::assemble::command(&arguments),
        Command::Serve(arguments) => array::serve::command(&arguments),
        Command::Simulate(arguments) => simulate::command(&arguments),
        Command::Detail(arguments) => array::control::detail(&arguments),
        Command::Manage(arguments) => array::control::manage(&arguments),
        Command::Watch(arguments) => array::watch::command(&arguments),
        Command::Wait(arguments) => array::control::wait(&arguments),
        Command::Stop(arguments) => array::control::stop(&arguments),
        Command::Examine(arguments) => array::examine::command(&arguments),
        Command::ZeroSuperblock(arguments) => array::zero_superblock::command(&arguments),
        Command::Suites(arguments) => suites::suites(&arguments),
        Command::Subjects(arguments) => subjects::subjects(&arguments),
        Command::Disks(arguments) => disks::disks(&arguments),
        Command::Explain(arguments) => explain::command(&arguments),
        Command::Processors(arguments) => processors::processors(&arguments),
        Command::Fit(arguments) => fit::fit(&arguments),
        Command::Ablations(arguments) => ablations::ablations(&arguments),
        Command::Manual(arguments) => manual::manual(&arguments, Cli::command()),
        Command::Completions(arguments) => {
            completions::completions(&arguments, &mut Cli::command())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure::report(&failure),
    }
}

/// Parses the command line; where it is wrong or asks for help, prints that and returns the code
/// with which the program ends.
fn parsed() -> Result<Cli, ExitCode> {
    let words: Vec<_> = std::env::args_os().collect();
    Cli::try_parse_from(&words).map_err(|error| {
        if let Some(failure) = usage::failure(&error, &words) {
            return failure::report(&failure);
        }
        match error.print() {
            // Requested help must reach its reader as any other output.
            Err(lost) if !error.use_stderr() => failure::report(&Failure::write_output(lost)),
            // A failure of standard error itself cannot be reported.
            _ => u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
        }
    })
}
