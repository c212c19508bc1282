//! The command `raidlab completions`: it prints scripts that make a shell complete arguments.

use crate::failure::Failure;
use crate::output;
use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `raidlab completions`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The shell for which the script is written.
    shell: Shell,
}

/// Prints the script of a shell.
///
/// # Errors
/// When standard output does not take it.
pub fn completions(arguments: &Arguments, raidlab: &mut Command) -> Result<(), Failure> {
    // The generator panics where its writer fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, raidlab, "raidlab", &mut script);
    output::print_bytes(&script)
}
