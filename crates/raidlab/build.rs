//! A build script that tells the program which commit it was made of, so that a failing seed can be
//! run again on the same source. Outside of a checkout the commit is "unknown".

use std::path::Path;
use std::process::Command;

/// The output of git with these arguments; `None` without git, and outside of a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=RAIDLAB_COMMIT={commit}");
    // The log of HEAD grows with every commit and checkout. Each work tree has its own.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    let log = log.filter(|log| Path::new(log).exists());
    let watched = log.unwrap_or_else(|| "build.rs".to_owned());
    println!("cargo:rerun-if-changed={watched}");
}
