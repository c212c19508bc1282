//! What is changed in the kernel's source, and where.
//!
//! Three parameters on the kernel's command line, none of which does anything
//! unless it is given:
//!
//! - `tt-clock-cost=NS`: the virtual time that reading the clock takes, instead
//!   of 256 ns. Programs that read the clock in a loop for a while of real time
//!   (fio's start does) otherwise need hundreds of thousands of readings.
//! - `tt-syscall-cost=NS`: the virtual time that each system call takes. It is
//!   a crude model of a processor, and lets programs that poll come to an end.
//! - `tt-seed=N`: where entropy comes from, instead of the host's getrandom(2).
//!
//! And one number: kernels before 6.16 keep 2696 bytes for a program's floating
//! point state. On a processor with AMX it has 11008 bytes, and ptrace(2) takes
//! all or nothing.
//!
//! Where OpenZFS is built in, three things. As it starts it measures for a
//! millisecond each how fast its checksums and parities are computed, and takes
//! the fastest; computing takes no virtual time here, so only the readings of the
//! clock would end that, after minutes of real time. Each is run once instead, and
//! of equals the first is taken. And its Lua jumps out of an error by a `longjmp`
//! of its own with one argument; the kernel's, which takes its place, has a second
//! one, what `setjmp` then returns. And a thread that finds no free memory spends
//! 10 us on its search: OpenZFS's cache promises to give some back later, by a
//! thread that never runs if no time passes meanwhile.
//!
//! An edit replaces a text that must be in its file exactly once, so that a
//! kernel in which the place looks different is refused instead of broken.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One place that changes.
pub(crate) struct Edit {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    /// Versions without the place do not need the change.
    optional: bool,
}

impl Edit {
    /// All that it consists of, as texts.
    pub(crate) const fn texts(&self) -> [&'static str; 4] {
        let optional = if self.optional { "optional" } else { "" };
        [self.file, self.from, self.to, optional]
    }
}

const TIME: &str = "arch/um/kernel/time.c";
const SYSCALL: &str = "arch/um/kernel/skas/syscall.c";
const UTIL: &str = "arch/um/os-Linux/util.c";
const OFFSETS: &str = "arch/x86/um/user-offsets.c";
const CHECKSUMS: &str = "fs/zfs/zfs/zfs_chksum.c";
const FLETCHER: &str = "fs/zfs/zcommon/zfs_fletcher.c";
const RAIDZ: &str = "fs/zfs/zfs/vdev_raidz_math.c";
const LUA: &str = "fs/zfs/lua/ldo.c";
const PAGES: &str = "mm/page_alloc.c";

/// What changes in the kernel itself.
pub(crate) const KERNEL: [Edit; 6] = [
    Edit {
        file: TIME,
        from: "static u64 timer_read(struct clocksource *cs)\n{\n",
        to: include_str!("edits/clock_cost.c"),
        optional: false,
    },
    Edit {
        file: TIME,
        from: "\t\t\ttime_travel_update_time_rel(TIMER_MULTIPLIER);\n",
        to: "\t\t\ttime_travel_update_time_rel(raidlab_clock_cost);\n",
        optional: false,
    },
    Edit {
        file: SYSCALL,
        from: "void handle_syscall(struct uml_pt_regs *r)\n{\n",
        to: include_str!("edits/syscall_cost.c"),
        optional: false,
    },
    Edit {
        file: SYSCALL,
        from: "out:\n\tsyscall_trace_leave(regs);\n",
        to: include_str!("edits/syscall_charge.c"),
        optional: false,
    },
    Edit {
        file: UTIL,
        from: "ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)\n{\n\
               \treturn getrandom(buf, len, flags);\n",
        to: include_str!("edits/seed.c"),
        optional: false,
    },
    Edit {
        file: OFFSETS,
        from: "\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n",
        to: "\tDEFINE_LONGS(HOST_FP_SIZE, 12288);\n",
        optional: true,
    },
];

/// What changes in OpenZFS, below the kernel's tree, and in the kernel for it. 2.1
/// measures no checksums other than Fletcher's.
pub(crate) const OPENZFS: [Edit; 8] = [
    Edit {
        file: CHECKSUMS,
        from: "\t} while (run_time_ns < MSEC2NSEC(1));\n",
        to: "\t} while (0);\n",
        optional: true,
    },
    Edit {
        // Below this speed the larger sizes are left out.
        file: CHECKSUMS,
        from: "#define\tLIMIT_PERF_MBS\t300\n",
        to: "#define\tLIMIT_PERF_MBS\t(~0ULL)\n",
        optional: true,
    },
    Edit {
        file: FLETCHER,
        from: "#define\tFLETCHER_4_BENCH_NS\t(MSEC2NSEC(1))",
        to: "#define\tFLETCHER_4_BENCH_NS\t(0)",
        optional: false,
    },
    Edit {
        file: RAIDZ,
        from: "#define\tBENCH_NS\tMSEC2NSEC(1)",
        to: "#define\tBENCH_NS\t(0)",
        optional: false,
    },
    Edit {
        file: LUA,
        from: "void ASMABI longjmp(label_t *);\n",
        to: "void ASMABI longjmp(label_t *, int);\n",
        optional: false,
    },
    Edit {
        file: LUA,
        from: "longjmp(&(c)->b)\n",
        to: "longjmp(&(c)->b, 1)\n",
        optional: false,
    },
    Edit {
        file: PAGES,
        from: "#include <linux/stddef.h>\n",
        to: "#include <linux/delay.h>\n#include <linux/stddef.h>\n",
        optional: false,
    },
    Edit {
        file: PAGES,
        from: "\tcond_resched();\n\n\t/* We now go into synchronous reclaim */\n",
        to: "\tcond_resched();\n\tudelay(10);\n\n\t/* We now go into synchronous reclaim */\n",
        optional: false,
    },
];

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
                    Err(source) => return Err(EditError::File { file: path, source }),
                };
                files.push((path, text));
                files.len() - 1
            }
        };
        let text = &mut files[at].1;
        *text = changed(text, edit)?;
    }
    for (file, text) in files {
        fs::write(&file, text).map_err(|source| EditError::File { file, source })?;
    }
    Ok(())
}

fn changed(text: &str, edit: &Edit) -> Result<String, EditError> {
    if text.contains(edit.to) {
        return Ok(text.to_owned());
    }
    match text.matches(edit.from).count() {
        1 => Ok(text.replacen(edit.from, edit.to, 1)),
        0 if edit.optional => Ok(text.to_owned()),
        found => Err(EditError::Place {
            file: edit.file,
            place: edit.from.lines().next().unwrap_or_default().trim(),
            found,
        }),
    }
}

/// A kernel that cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// A file is missing or cannot be written.
    #[error("cannot change {}", file.display())]
    File {
        /// The file that could not be used.
        file: PathBuf,
        /// What the operating system answered.
        #[source]
        source: io::Error,
    },
    /// A place looks different in this kernel.
    #[error(
        "{file} has {found} places that look like `{place}`, where one was expected: this \
         source is not among those that can be changed (kernels 6.1 to 6.12 and OpenZFS 2.3.2 were tried)"
    )]
    Place {
        /// The file below the source tree.
        file: &'static str,
        /// The first line of what was looked for.
        place: &'static str,
        /// How often it is there.
        found: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree that has only the places, each between lines of its own.
    fn tree(edits: &[Edit]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in edits.iter().map(|edit| edit.file) {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            let places: String = edits
                .iter()
                .filter(|edit| edit.file == name)
                .map(|edit| format!("/* before */\n{}/* after */\n", edit.from))
                .collect();
            fs::write(file, places).expect("written");
        }
        folder
    }

    fn texts(tree: &Path) -> Vec<String> {
        let read = |name: &str| fs::read_to_string(tree.join(name)).expect("there");
        [TIME, SYSCALL, UTIL, OFFSETS].map(read).to_vec()
    }

    #[test]
    fn every_place_is_changed_once_however_often_it_is_asked() {
        let tree = tree(&KERNEL);
        let before = texts(tree.path());
        apply(tree.path(), &KERNEL).expect("the places are there");
        let after = texts(tree.path());
        for (before, after) in before.iter().zip(&after) {
            assert_ne!(before, after);
        }
        for parameter in ["tt-clock-cost=", "tt-syscall-cost=", "tt-seed="] {
            let all = after.concat();
            let found = all.matches(&format!("setup(\"{parameter}\"")).count();
            assert_eq!(found, 1, "{parameter}");
        }
        apply(tree.path(), &KERNEL).expect("they are changed already");
        assert_eq!(texts(tree.path()), after);
    }

    #[test]
    fn a_change_that_newer_kernels_do_not_need_is_left_out() {
        let tree = tree(&KERNEL);
        fs::write(tree.path().join(OFFSETS), "/* another way */\n").expect("written");
        apply(tree.path(), &KERNEL).expect("the others are there");
        assert_eq!(texts(tree.path())[3], "/* another way */\n");
    }

    #[test]
    fn openzfs_is_changed_and_one_that_measures_less_too() {
        let tree = tree(&OPENZFS);
        let text = |name: &str| fs::read_to_string(tree.path().join(name)).expect("there");
        apply(tree.path(), &OPENZFS).expect("the places are there");
        assert!(text(LUA).contains("longjmp(&(c)->b, 1)"));
        assert!(text(RAIDZ).contains("BENCH_NS\t(0)"));
        let after = text(CHECKSUMS);
        assert!(!after.contains("MSEC2NSEC"), "{after}");
        apply(tree.path(), &OPENZFS).expect("they are changed already");
        assert_eq!(text(CHECKSUMS), after);
        fs::remove_file(tree.path().join(CHECKSUMS)).expect("removed");
        apply(tree.path(), &OPENZFS).expect("2.1 does without");
    }

    #[test]
    fn a_kernel_that_looks_different_is_left_as_it_is() {
        let tree = tree(&KERNEL);
        let file = tree.path().join(UTIL);
        fs::write(&file, "int os_getrandom(void);\n").expect("written");
        let before = texts(tree.path());
        let error = apply(tree.path(), &KERNEL).expect_err("a place is missing");
        assert!(error.to_string().contains("util.c has 0 places"), "{error}");
        assert_eq!(texts(tree.path()), before);
        fs::remove_file(file).expect("removed");
        let error = apply(tree.path(), &KERNEL).expect_err("a file is missing");
        assert!(matches!(error, EditError::File { .. }), "{error}");
    }
}
