//! What is changed in the kernel's source, and where.
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
//! - `tt-seed=N`: where entropy comes from, instead of the host's getrandom(2).
//!
//! And one number: kernels before 6.16 keep 2696 bytes for a program's floating
//! point state. On a processor with AMX it has 11008 bytes, and ptrace(2) takes
//! all or nothing.
//!
//! Where the kernel shares the time by memory with the calendar (6.11 and later), two more
//! things, which save stops and messages and change no time (what computing costs is in
//! [`crate::charges`]):
//!
//! - Programs read the clock without the kernel. Below the vDSO each has a page with the
//!   time, how far it may be moved (to the next event of the kernel's or the calendar's),
//!   and the timekeeper's numbers. The vDSO moves it by what the reading and the call cost;
//!   what would come to an event is left to the system call. The kernel takes the time from
//!   the page when the program stops.
//! - Kicks and interrupts of the disks are entries in the calendar's memory instead of
//!   messages that wait for an answer each. After a kick the kernel waits for the calendar
//!   before its time moves; interrupts take effect when it is run.
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

/// A place of the source that is changed.
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    /// Versions without the place do not need the change.
    pub(crate) optional: bool,
}

impl Edit {
    /// All that it consists of, as texts.
    pub(crate) const fn texts(&self) -> [&'static str; 4] {
        let optional = if self.optional { "optional" } else { "" };
        [self.file, self.from, self.to, optional]
    }
}

/// A place that every kernel has.
pub(crate) const fn place(file: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit {
        file,
        from,
        to,
        optional: false,
    }
}

pub(crate) const TIME: &str = "arch/um/kernel/time.c";
const PROCESS: &str = "arch/um/os-Linux/skas/process.c";
const VDSO: &str = "arch/x86/um/vdso/um_vdso.c";
const VDSO_MAPPING: &str = "arch/x86/um/vdso/vma.c";
const DISKS: &str = "arch/um/drivers/virtio_uml.c";
pub(crate) const SYSCALL: &str = "arch/um/kernel/skas/syscall.c";
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

/// What changes where the kernel shares the time by memory, since 6.11: programs read the
/// clock without it, and its disks are kicked and interrupt without messages.
pub(crate) const SHARED_MEMORY: [Edit; 22] = [
    place(
        TIME,
        "#include <linux/um_timetravel.h>\n",
        concat!(
            "#include <linux/um_timetravel.h>\n#include <linux/pvclock_gtod.h>\n\
             #include <linux/timekeeper_internal.h>\n\n",
            include_str!("edits/clock_page.h")
        ),
    ),
    place(
        TIME,
        "void read_persistent_clock64(struct timespec64 *ts)\n{\n",
        include_str!("edits/clock_time.c"),
    ),
    place(
        PROCESS,
        "#include <skas.h>\n",
        "#include <skas.h>\n\nvoid raidlab_enter_user(void);\nvoid raidlab_leave_user(void);\n",
    ),
    place(
        PROCESS,
        "\t\tcurrent_mm_sync();\n",
        "\t\tcurrent_mm_sync();\n\t\traidlab_enter_user();\n",
    ),
    place(
        PROCESS,
        "\t\tUPT_SYSCALL_NR(regs) = -1; /* Assume: It's not a syscall */\n",
        "\t\traidlab_leave_user();\n\
         \t\tUPT_SYSCALL_NR(regs) = -1; /* Assume: It's not a syscall */\n",
    ),
    place(
        VDSO,
        "#include <asm/unistd.h>\n",
        concat!(
            include_str!("edits/clock_page.h"),
            include_str!("edits/clock_read.c")
        ),
    ),
    place(
        VDSO,
        "\tasm(\"syscall\"\n\t\t: \"=a\" (ret)\n\
         \t\t: \"0\" (__NR_clock_gettime), \"D\" (clock), \"S\" (ts)\n",
        include_str!("edits/clock_gettime.c"),
    ),
    place(
        VDSO,
        "\tasm(\"syscall\"\n\t\t: \"=a\" (ret)\n\
         \t\t: \"0\" (__NR_gettimeofday), \"D\" (tv), \"S\" (tz)\n",
        include_str!("edits/clock_gettimeofday.c"),
    ),
    place(
        VDSO_MAPPING,
        "int arch_setup_additional_pages(struct linux_binprm *bprm, int uses_interp)\n{\n",
        include_str!("edits/clock_map.c"),
    ),
    place(
        VDSO_MAPPING,
        "\tvma = _install_special_mapping(mm, um_vdso_addr, PAGE_SIZE,\n",
        include_str!("edits/clock_install.c"),
    ),
    place(
        TIME,
        "static void time_travel_setup_shm(int fd, u16 id)\n{\n",
        include_str!("edits/disks_shared.c"),
    ),
    place(
        TIME,
        "\t/* always look at that free_until from now on */\n",
        include_str!("edits/disks_setup.c"),
    ),
    place(
        TIME,
        "static void time_travel_ext_wait(bool idle)\n{\n",
        "static void raidlab_interrupts(void);\n\n\
         static void time_travel_ext_wait(bool idle)\n{\n",
    ),
    place(
        TIME,
        "\t\twhile (os_poll(1, &time_travel_ext_fd) != 0) {\n",
        "\t\t/* Reading waits too. */\n\
         \t\twhile (!raidlab_shared && os_poll(1, &time_travel_ext_fd) != 0) {\n",
    ),
    place(
        TIME,
        "\t\tret = os_read_file(time_travel_ext_fd, msg, sizeof(*msg));\n",
        "\t\tdo {\n\
         \t\t\tret = os_read_file(time_travel_ext_fd, msg, sizeof(*msg));\n\
         \t\t} while (ret == -EINTR);\n",
    ),
    place(
        TIME,
        "\t/* we might request more stuff while polling - reset when we run */\n\
         \ttime_travel_ext_prev_request_valid = false;\n",
        "\t/* we might request more stuff while polling - reset when we run */\n\
         \ttime_travel_ext_prev_request_valid = false;\n\traidlab_interrupts();\n",
    ),
    place(
        TIME,
        "static void __time_travel_update_time(unsigned long long ns, bool idle)\n{\n",
        include_str!("edits/disks_wait_on.c"),
    ),
    place(
        TIME,
        "\t\ttime_travel_ext_wait(idle);\n",
        "\t\tdo {\n\t\t\ttime_travel_ext_wait(idle);\n\t\t} while (raidlab_waits_on(ns));\n",
    ),
    place(
        TIME,
        "void time_travel_add_event_rel(struct time_travel_event *e,\n",
        include_str!("edits/disks_time.c"),
    ),
    place(
        DISKS,
        "static irqreturn_t vu_req_interrupt(int irq, void *data)\n{\n",
        include_str!("edits/disks_interrupt.c"),
    ),
    place(
        DISKS,
        "\tvu_dev->irq = rc;\n",
        include_str!("edits/disks_register.c"),
    ),
    place(
        DISKS,
        "\t\treturn vhost_user_set_vring_state(vu_dev, VHOST_USER_VRING_KICK,\n",
        include_str!("edits/disks_kick.c"),
    ),
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
         source is not among those that can be changed (kernels 6.1, 6.12 and 7.3 and OpenZFS 2.3.2 were tried)"
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
pub(crate) mod tests;
