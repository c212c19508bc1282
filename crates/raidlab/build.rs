//! Tells the program which commit it was made of, so that a failing seed can be
//! run again on the same source. Outside of a checkout it is "unknown".

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=RAIDLAB_COMMIT={}", commit.trim());
    // The log of HEAD grows with every commit and checkout.
    let log = Path::new("../../.git/logs/HEAD");
    let watched = if log.exists() {
        log
    } else {
        Path::new("build.rs")
    };
    println!("cargo:rerun-if-changed={}", watched.display());
}
