//! What is asked of one bench alone.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Above what only real machines have.
pub const REAL: &str = "On real machines (--on host)";
/// Above what only the kernel bench has.
pub const KERNEL: &str = "On the kernel bench (--on kernel)";

/// The folder for trial disks where none is named.
pub const TRIAL_FOLDER: &str = "/var/tmp";

/// What is asked of real machines alone.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[command(next_help_heading = REAL)]
pub struct HostAsked {
    /// A machine behind ssh, `root@store1`; may be repeated. All of them use
    /// disks of the same names. Default: this machine.
    #[arg(long = "machine", value_name = "DESTINATION")]
    pub(in crate::run) machines: Vec<String>,

    /// Machines with their own disks, from a file with `[[machine]]` tables.
    #[arg(long, value_name = "FILE.toml", conflicts_with = "machines")]
    pub(in crate::run) machine_file: Option<PathBuf>,

    /// A command to put before every command on machines behind ssh, such as `sudo -n`.
    #[arg(long, value_name = "WORDS")]
    pub(in crate::run) elevate: Option<String>,

    /// Without --disk: loop devices of this size, on sparse files, for a trial.
    #[arg(long, value_name = "SIZE")]
    pub(in crate::run) trial_size: Option<String>,

    /// The folder for the trial's files.
    #[arg(long, value_name = "FOLDER", default_value = TRIAL_FOLDER)]
    pub(in crate::run) trial_folder: PathBuf,

    /// Use disks that hold file systems, arrays or partition tables which
    /// nobody uses now. They are lost.
    #[arg(long)]
    pub(in crate::run) wipe_signatures: bool,

    /// Measure everything this many times, whatever the suite says.
    #[arg(long, value_name = "N")]
    pub(in crate::run) repetitions: Option<std::num::NonZero<u32>>,
}

impl HostAsked {
    /// How often everything is to be done, where that is said.
    pub fn repetitions(&self) -> Option<u32> {
        self.repetitions.map(std::num::NonZero::get)
    }
}

/// What is asked of the kernel bench alone.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[command(next_help_heading = KERNEL)]
pub struct KernelAsked {
    /// The kernel, as `raidlab kernel status` calls it. Default: the newest; one
    /// with OpenZFS if a subject is a pool, one without it otherwise.
    #[arg(long, value_name = "NAME")]
    pub(in crate::run) kernel: Option<String>,

    /// Use this much of each disk, its outermost part, or all of it (`whole`). A rebuild
    /// or a fill really moves all of these bytes, at one to two gigabytes in a second of
    /// real time: seconds for 4 GiB, about an hour for 4 TB.
    #[arg(long, value_name = "SIZE|whole", default_value = "4g")]
    pub(in crate::run) member_size: String,

    /// The guest's memory: what a file system's cache can take of.
    #[arg(long, value_name = "SIZE", default_value = "512m")]
    pub(in crate::run) memory: String,

    /// Virtual time of a system call in the guest, nanoseconds.
    #[arg(long, value_name = "NS", default_value_t = 1000)]
    pub(in crate::run) call_cost: u32,

    /// Something happens to a disk: its place among the members, the virtual
    /// time, and `dies`, `hangs` or `returns`: `1:40s:dies`; or sectors go bad:
    /// `1:40s:unreadable=1g+64k` (until they are written), `unreadable-for-good`,
    /// `unwritable`. May be repeated.
    #[arg(long = "disk-fault", value_name = "DISK:TIME:WHAT")]
    pub(in crate::run) faults: Vec<String>,
}
