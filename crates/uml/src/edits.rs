//! The edits of the kernel's source.
//!
//! Four parameters on the kernel's command line, none of which does anything
//! unless it is given:
//!
//! - `tt-clock-cost=NS`: the virtual time that reading the clock takes, instead
//!   of 256 ns. Programs that read the clock in a loop for a while of real time
//!   (fio's start does) otherwise need hundreds of thousands of readings.
//! - `tt-syscall-cost=NS`: the virtual time that each system call takes. It is
//!   a crude model of a processor, and lets programs that poll come to an end.
//! - `tt-clock-call-cost=NS`: that of a system call that reads the clock, where it is
//!   not that of any other.
//! - `tt-seed=N`: the seed from which entropy comes, instead of the host's getrandom(2).
//!
//! A disk of virtio says how many commands it queues, as one of SATA does: throttling of writes goes
//! by that number (`block/blk-wbt.c`).
//!
//! And one number: kernels before 6.16 keep 2696 bytes for a program's floating
//! point state. On a processor with AMX it has 11008 bytes, and ptrace(2) takes
//! all or nothing.
//!
//! Where the kernel shares the time by memory with the calendar (6.11 and later), two
//! more things, which save stops and messages and change no time (the costs of computing
//! are in [`crate::charges`]):
//!
//! - Programs read the clock without the kernel. Below the vDSO each has a page with the time, how
//!   far it may be moved (to the next event of the kernel's or the calendar's), and the
//!   timekeeper's numbers. The vDSO moves it by the cost of the reading and the call; a reading
//!   that would come to an event is left to the system call. The kernel takes the time from the
//!   page when the program stops.
//! - Kicks and interrupts of the disks are entries in the calendar's memory instead of
//!   messages that wait for an answer each. After a kick the kernel waits for the calendar
//!   before its time moves; interrupts take effect when it is run.
//!
//! Where OpenZFS is built in, three things. As it starts it measures for a millisecond each how
//! fast its checksums and parities are computed, and takes the fastest; computing takes no virtual
//! time here, so only the readings of the clock would end that, after minutes of real time. Each
//! is run once instead, and of equals the first is taken. And its Lua jumps out of an error by a
//! `longjmp` of its own with one argument; the kernel's, which takes its place, has a second one,
//! the value that `setjmp` then returns. And a thread that finds no free memory spends 10 us on
//! its search: OpenZFS's cache promises to give some back later, by a thread that never runs if no
//! time passes meanwhile.
//!
//! An edit replaces a text that must be in its file exactly once, so that a kernel in which the
//! place looks different is refused instead of broken. The edits stand in files, `edits/*.edits`.
//! After a line that begins with `=== ` and names the file, behind `optional` where versions
//! without the place do not need the change, comes the text, then a line `--->`, then what takes
//! its place, up to the next such line or the end. A last line `\` says that the text ends without
//! a line end. A line `@NAME` is the file of that name beside it. The text behind a colon in the
//! head is a remark.

use raidlab_units::{PathError, cannot};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// An edit of a place of the source.
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Whether versions without the place do not need the change.
    pub(crate) optional: bool,
}

impl Edit {
    /// All texts of which the edit consists.
    pub(crate) fn texts(&self) -> [&str; 4] {
        let optional = if self.optional { "optional" } else { "" };
        [self.file, &self.from, &self.to, optional]
    }
}

/// Edits that are made together.
pub(crate) type Edits = LazyLock<Vec<Edit>>;

/// The edits of the kernel itself.
pub(crate) static KERNEL: Edits = LazyLock::new(|| read(include_str!("edits/kernel.edits")));

/// The edits for a kernel that shares the time by memory, since 6.11: programs read the clock
/// without it, and its disks are kicked and interrupt without messages.
pub(crate) static SHARED_MEMORY: Edits =
    LazyLock::new(|| read(include_str!("edits/shared_memory.edits")));

/// The edits by which kernels since 6.11 are charged for computing.
pub(crate) static CHARGES: Edits = LazyLock::new(|| read(include_str!("edits/charges.edits")));

/// The edits of OpenZFS, below the kernel's tree, and of the kernel for it.
pub(crate) static OPENZFS: Edits = LazyLock::new(|| read(include_str!("edits/openzfs.edits")));

/// The files that edits name.
const FILES: [(&str, &str); 20] = [
    ("charges.c", include_str!("edits/charges.c")),
    ("charges.h", include_str!("edits/charges.h")),
    ("clock_cost.c", include_str!("edits/clock_cost.c")),
    ("clock_gettime.c", include_str!("edits/clock_gettime.c")),
    (
        "clock_gettimeofday.c",
        include_str!("edits/clock_gettimeofday.c"),
    ),
    ("clock_install.c", include_str!("edits/clock_install.c")),
    ("clock_map.c", include_str!("edits/clock_map.c")),
    ("clock_page.h", include_str!("edits/clock_page.h")),
    ("clock_read.c", include_str!("edits/clock_read.c")),
    ("clock_time.c", include_str!("edits/clock_time.c")),
    ("disks_interrupt.c", include_str!("edits/disks_interrupt.c")),
    ("disks_kick.c", include_str!("edits/disks_kick.c")),
    ("disks_register.c", include_str!("edits/disks_register.c")),
    ("disks_setup.c", include_str!("edits/disks_setup.c")),
    ("disks_shared.c", include_str!("edits/disks_shared.c")),
    ("disks_time.c", include_str!("edits/disks_time.c")),
    ("disks_wait_on.c", include_str!("edits/disks_wait_on.c")),
    ("seed.c", include_str!("edits/seed.c")),
    ("syscall_charge.c", include_str!("edits/syscall_charge.c")),
    ("syscall_cost.c", include_str!("edits/syscall_cost.c")),
];

fn read(edits: &'static str) -> Vec<Edit> {
    let edits = edits.trim_end_matches('\n').split("\n=== ").skip(1);
    edits.filter_map(edit).collect()
}

/// Parses one edit, from its file's name on.
fn edit(text: &'static str) -> Option<Edit> {
    let (head, texts) = text.split_once('\n')?;
    let (from, to) = texts.split_once("\n--->\n")?;
    let head = head.split(':').next()?;
    let file = head.strip_prefix("optional ");
    let to = whole(to);
    let to = to.split_inclusive('\n').map(|line| {
        let name = line.strip_prefix('@').map(str::trim_end);
        let file = FILES.iter().find(|(known, _)| Some(*known) == name);
        file.map_or(line, |(_, text)| text)
    });
    Some(Edit {
        file: file.unwrap_or(head),
        from: whole(from),
        to: to.collect(),
        optional: file.is_some(),
    })
}

/// A text with its last line end, or without where it says so.
fn whole(text: &str) -> String {
    match text.strip_suffix("\n\\") {
        Some(text) => text.to_owned(),
        None => format!("{text}\n"),
    }
}

/// Makes the changes. Files that have them already stay as they are, so that an
/// interrupted build can go on.
///
/// # Errors
/// When a place does not look as expected, or a file cannot be written. Nothing
/// is written unless every place was found.
pub(crate) fn apply(tree: &Path, edits: &[Edit]) -> Result<(), EditError> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for edit in edits {
        let path = tree.join(edit.file);
        let at = match files.iter().position(|(known, _)| *known == path) {
            Some(at) => at,
            None => {
                let text = match fs::read_to_string(&path) {
                    Ok(text) => text,
                    Err(_) if edit.optional && !path.exists() => continue,
                    Err(source) => return Err(cannot("change", &path)(source).into()),
                };
                files.push((path, text));
                files.len() - 1
            }
        };
        let text = &mut files[at].1;
        *text = changed(text, edit)?;
    }
    for (file, text) in files {
        replace(&file, &text).map_err(cannot("change", &file))?;
    }
    Ok(())
}

/// Writes a file of the source anew, whole or not at all: half a file, as a full disk leaves
/// it, would be taken for another kernel's by the build that goes on.
pub(crate) fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut new = file.as_os_str().to_owned();
    new.push(".raidlab-new");
    let new = PathBuf::from(new);
    let written = fs::write(&new, text)
        .and_then(|()| fs::set_permissions(&new, fs::metadata(file)?.permissions()))
        .and_then(|()| fs::rename(&new, file));
    if written.is_err() {
        fs::remove_file(&new).ok();
    }
    written
}

fn changed(text: &str, edit: &Edit) -> Result<String, EditError> {
    if text.contains(&edit.to) {
        return Ok(text.to_owned());
    }
    match text.matches(&edit.from).count() {
        1 => Ok(text.replacen(&edit.from, &edit.to, 1)),
        0 if edit.optional => Ok(text.to_owned()),
        found => Err(EditError::Place {
            file: edit.file,
            place: edit
                .from
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
            found,
        }),
    }
}

/// The error of a kernel that cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// A file is missing or cannot be written.
    #[error(transparent)]
    File(#[from] PathError),
    /// A place looks different in this kernel.
    #[error(
        "{file} has {found} places that look like `{place}`, where one was expected: this \
         source is not among those that can be changed (kernels 6.1, 6.12 and 7.3 and OpenZFS 2.3.2 were tried)"
    )]
    Place {
        /// The file below the source tree.
        file: &'static str,
        /// The first line of the text that was looked for.
        place: String,
        /// The number of times that it is there.
        found: usize,
    },
}

#[cfg(test)]
pub(crate) mod tests;
