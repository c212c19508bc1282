//! What computing costs in the guest, and where its kernel is charged for it.
//!
//! A parameter of the kernel's command line, `tt-charges=`, has the numbers of a processor
//! (`docs/reference/processors.md`), in the order of [`Charges::in_order`], which is that of
//! `enum raidlab_charge` in `edits/charges.h`. Without it nothing is charged.
//!
//! Each place says what it does and how often. That is *owed*, and *paid* by moving the
//! time, which lets events come, where the kernel could be interrupted: at the place itself
//! in a thread, or at the end of a system call for what is copied. What an interrupt owes,
//! whom it interrupts pays before it goes on, or the idle loop before it sleeps. So a
//! core that is busy gets later, and one that is idle has dealt with its interrupts
//! before it wakes somebody up.
//!
//! The scheduler's clock is the virtual time then, where it is otherwise that of the last
//! tick: the processor time of threads is as exact as the charges.

use crate::edits::{Edit, SYSCALL, TIME, place};

/// Few files read it: the charges can be changed without compiling all anew.
const TIME_HEADER: &str = "include/uapi/linux/um_timetravel.h";
const USER_COPIES: &str = "arch/um/kernel/skas/uaccess.c";
const SCHEDULER: &str = "kernel/sched/core.c";
const SCHEDULER_HEADER: &str = "kernel/sched/sched.h";
const SCHEDULER_CLOCK: &str = "kernel/sched/clock.c";
const IDLE: &str = "kernel/sched/idle.c";
const VIRTIO_BLK: &str = "drivers/block/virtio_blk.c";
const MD: &str = "drivers/md/md.c";
const MD_HEADER: &str = "drivers/md/md.h";
const MD_BITMAP: &str = "drivers/md/md-bitmap.c";
const RAID0: &str = "drivers/md/raid0.c";
const RAID5: &str = "drivers/md/raid5.c";
const XOR: &str = "crypto/async_tx/async_xor.c";
const PQ: &str = "crypto/async_tx/async_pq.c";
const COPY: &str = "crypto/async_tx/async_memcpy.c";

/// What a processor's computing costs the guest, in femtoseconds of one core: of the last
/// three for each byte, of the others each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charges {
    /// A change of threads.
    pub switch: u64,
    /// To wake a thread, for whoever does it.
    pub wake_call: u64,
    /// A command goes through the block layer's queue and the driver to a disk.
    pub dispatch: u64,
    /// An interrupt of a disk is entered and left.
    pub interrupt: u64,
    /// A command ends in it.
    pub complete: u64,
    /// An array takes a request.
    pub request: u64,
    /// An array ends a request.
    pub request_end: u64,
    /// An array makes a command to a member, and ends it.
    pub member: u64,
    /// The bitmap looks up and counts a bit.
    pub bitmap: u64,
    /// RAID 5 looks up a stripe for a request.
    pub find: u64,
    /// Its thread looks through a stripe once.
    pub handle: u64,
    /// A stripe is put into a list of those that are to be handled.
    pub release: u64,
    /// A byte of a block goes through XOR.
    pub xor: u64,
    /// A byte of a block goes through P and Q.
    pub pq: u64,
    /// A byte is copied between a program and the kernel, or a request and a stripe.
    pub copy: u64,
}

impl Charges {
    /// All of them with their names, in the order of the parameter.
    #[must_use]
    pub const fn in_order(&self) -> [(&'static str, u64); 15] {
        [
            ("switch", self.switch),
            ("wake_call", self.wake_call),
            ("dispatch", self.dispatch),
            ("interrupt", self.interrupt),
            ("complete", self.complete),
            ("request", self.request),
            ("request_end", self.request_end),
            ("member", self.member),
            ("bitmap", self.bitmap),
            ("find", self.find),
            ("handle", self.handle),
            ("release", self.release),
            ("xor", self.xor),
            ("pq", self.pq),
            ("copy", self.copy),
        ]
    }

    /// The word of the kernel's command line.
    pub(crate) fn word(&self) -> String {
        let numbers = self.in_order().map(|(_, charge)| charge.to_string());
        format!("tt-charges={}", numbers.join(","))
    }
}

/// What changes in kernels since 6.11. Each place is where the kernel does once what the
/// processor's number is for.
pub(crate) const CHARGES: &[Edit] = &[
    place(
        TIME_HEADER,
        "#endif /* _UAPI_LINUX_UM_TIMETRAVEL_H */\n",
        include_str!("edits/charges.h"),
    ),
    place(
        TIME,
        "void time_travel_sleep(void)\n{\n",
        include_str!("edits/charges.c"),
    ),
    place(
        TIME,
        "\n\tif (time_travel_mode == TT_MODE_BASIC)\n\t\tos_timer_disable(",
        "\n\tif (owed) {\n\t\ttime_travel_update_time_rel(owed);\n\t\treturn;\n\t}\n\
         \n\tif (time_travel_mode == TT_MODE_BASIC)\n\t\tos_timer_disable(",
    ),
    place(
        SYSCALL,
        "#include <linux/time-internal.h>\n",
        "#include <linux/time-internal.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        SYSCALL,
        "\tsyscall_trace_leave(regs);\n}\n",
        "\tsyscall_trace_leave(regs);\n\traidlab_pay();\n}\n",
    ),
    place(
        USER_COPIES,
        "#include <os.h>\n",
        "#include <os.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        USER_COPIES,
        "\tmemcpy((void *) to, (void *) from, len);\n\t*to_ptr += len;\n",
        "\tmemcpy((void *) to, (void *) from, len);\n\traidlab_owe(RAIDLAB_COPY, len);\n\
         \t*to_ptr += len;\n",
    ),
    place(
        USER_COPIES,
        "\tmemcpy((void *) to, (void *) from, len);\n\t*from_ptr += len;\n",
        "\tmemcpy((void *) to, (void *) from, len);\n\traidlab_owe(RAIDLAB_COPY, len);\n\
         \t*from_ptr += len;\n",
    ),
    place(
        SCHEDULER,
        "\tfinish_lock_switch(rq);\n\tfinish_arch_post_lock_switch();\n",
        "\tfinish_lock_switch(rq);\n\tif (!is_idle_task(current))\n\
         \t\traidlab_charge(RAIDLAB_SWITCH, 1);\n\tfinish_arch_post_lock_switch();\n",
    ),
    place(
        SCHEDULER,
        "\tactivate_task(rq, p, en_flags);\n",
        "\tactivate_task(rq, p, en_flags);\n\traidlab_owe(RAIDLAB_WAKE_CALL, 1);\n",
    ),
    place(
        SCHEDULER_HEADER,
        "#include <linux/sched/affinity.h>\n",
        "#include <linux/sched/affinity.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        IDLE,
        "\tflush_smp_call_function_queue();\n\tschedule_idle();\n",
        "\traidlab_pay();\n\
         \t/* Or the next thread's time is taken to begin when it was woken. */\n\
         \tif (raidlab_sched_clock())\n\t\trq_clock_cancel_skipupdate(this_rq());\n\
         \tflush_smp_call_function_queue();\n\tschedule_idle();\n",
    ),
    place(
        VIRTIO_BLK,
        "#include <linux/virtio.h>\n",
        "#include <linux/virtio.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        VIRTIO_BLK,
        "\tvbr->sg_table.nents = num;\n\n\tblk_mq_start_request(req);\n",
        "\tvbr->sg_table.nents = num;\n\n\traidlab_charge(RAIDLAB_DISPATCH, 1);\n\
         \tblk_mq_start_request(req);\n",
    ),
    place(
        VIRTIO_BLK,
        "\tspin_lock_irqsave(&vblk->vqs[qid].lock, flags);\n\tdo {\n",
        "\traidlab_owe(RAIDLAB_INTERRUPT, 1);\n\
         \tspin_lock_irqsave(&vblk->vqs[qid].lock, flags);\n\tdo {\n",
    ),
    place(
        VIRTIO_BLK,
        "\t\t\tif (likely(!blk_should_fake_timeout(req->q)))\n\
         \t\t\t\tblk_mq_complete_request(req);\n\t\t\treq_done = true;\n",
        "\t\t\traidlab_owe(RAIDLAB_COMPLETE, 1);\n\
         \t\t\tif (likely(!blk_should_fake_timeout(req->q)))\n\
         \t\t\t\tblk_mq_complete_request(req);\n\t\t\treq_done = true;\n",
    ),
    place(
        MD_HEADER,
        "#include <linux/blkdev.h>\n",
        "#include <linux/blkdev.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        MD_HEADER,
        "\tint faulty = test_bit(Faulty, &rdev->flags);\n\
         \tif (atomic_dec_and_test(&rdev->nr_pending) && faulty) {\n",
        "\tint faulty = test_bit(Faulty, &rdev->flags);\n\traidlab_owe(RAIDLAB_MEMBER, 1);\n\
         \tif (atomic_dec_and_test(&rdev->nr_pending) && faulty) {\n",
    ),
    place(
        MD,
        "\t/* bio could be mergeable after passing to underlayer */\n",
        "\traidlab_charge(RAIDLAB_REQUEST, 1);\n\
         \t/* bio could be mergeable after passing to underlayer */\n",
    ),
    place(
        MD,
        "static void md_end_clone_io(struct bio *bio)\n{\n",
        "static void md_end_clone_io(struct bio *bio)\n{\n\
         \traidlab_owe(RAIDLAB_REQUEST_END, 1);\n",
    ),
    place(
        MD_BITMAP,
        "\terr = md_bitmap_checkpage(bitmap, page, create, 0);\n",
        "\traidlab_owe(RAIDLAB_BITMAP, 1);\n\
         \terr = md_bitmap_checkpage(bitmap, page, create, 0);\n",
    ),
    place(
        RAID0,
        "\tmd_account_bio(mddev, &bio);\n",
        "\traidlab_charge(RAIDLAB_MEMBER, 1);\n\tmd_account_bio(mddev, &bio);\n",
    ),
    place(
        RAID5,
        "\t\tsector_t logical_sector, struct bio *bi)\n{\n\tconst int rw",
        "\t\tsector_t logical_sector, struct bio *bi)\n{\n\
         \traidlab_charge(RAIDLAB_FIND, 1);\n\tconst int rw",
    ),
    place(
        RAID5,
        "static void handle_stripe(struct stripe_head *sh)\n{\n",
        "static void handle_stripe(struct stripe_head *sh)\n{\n\
         \traidlab_charge(RAIDLAB_HANDLE, 1);\n",
    ),
    place(
        RAID5,
        "\tif (test_bit(STRIPE_HANDLE, &sh->state)) {\n\
         \t\tif (test_bit(STRIPE_DELAYED, &sh->state) &&\n",
        "\tif (test_bit(STRIPE_HANDLE, &sh->state)) {\n\t\traidlab_owe(RAIDLAB_RELEASE, 1);\n\
         \t\tif (test_bit(STRIPE_DELAYED, &sh->state) &&\n",
    ),
    place(
        XOR,
        "\t/* set destination address */\n",
        "\traidlab_charge(RAIDLAB_XOR, xor_src_cnt * len);\n\t/* set destination address */\n",
    ),
    place(
        XOR,
        "#include <linux/async_tx.h>\n",
        "#include <linux/async_tx.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        PQ,
        "\tif (submit->flags & ASYNC_TX_PQ_XOR_DST) {\n\t\tBUG_ON(!raid6",
        "\traidlab_charge(RAIDLAB_PQ, len * (submit->flags & ASYNC_TX_PQ_XOR_DST ?\n\
         \t\tstop - start + 1 : disks - 2));\n\
         \tif (submit->flags & ASYNC_TX_PQ_XOR_DST) {\n\t\tBUG_ON(!raid6",
    ),
    place(
        PQ,
        "#include <linux/async_tx.h>\n",
        "#include <linux/async_tx.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        COPY,
        "\t\tmemcpy(dest_buf, src_buf, len);\n",
        "\t\tmemcpy(dest_buf, src_buf, len);\n\t\traidlab_owe(RAIDLAB_COPY, len);\n",
    ),
    place(
        COPY,
        "#include <linux/async_tx.h>\n",
        "#include <linux/async_tx.h>\n#include <linux/um_timetravel.h>\n",
    ),
    place(
        SCHEDULER_CLOCK,
        "unsigned long long __weak sched_clock(void)\n{\n",
        "unsigned long long __weak sched_clock(void)\n{\n\
         \tif (raidlab_sched_clock())\n\t\treturn raidlab_sched_clock();\n",
    ),
    Edit {
        // Since 6.17 User-Mode Linux has one of its own.
        file: TIME,
        from: "notrace unsigned long long sched_clock(void)\n{\n",
        to: "notrace unsigned long long sched_clock(void)\n{\n\
             \tif (raidlab_sched_clock())\n\t\treturn raidlab_sched_clock();\n",
        optional: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edits::tests::tree;
    use crate::edits::{KERNEL, SHARED_MEMORY, apply};
    use std::fs;

    #[test]
    fn the_kernel_reads_the_charges_in_the_order_in_which_they_are_given() {
        let header = include_str!("edits/charges.h");
        let (_, list) = header
            .split_once("enum raidlab_charge {")
            .expect("the list");
        let (list, _) = list.split_once('}').expect("its end");
        let known: Vec<&str> = list.split(',').map(str::trim).collect();
        let named = Charges::default().in_order();
        let given = named.map(|(name, _)| format!("RAIDLAB_{}", name.to_uppercase()));
        assert_eq!(known[..known.len() - 1], given);
        assert_eq!(known[known.len() - 1], "RAIDLAB_CHARGES");
        let charges = Charges {
            switch: 1,
            copy: 83,
            ..Charges::default()
        };
        let word = "tt-charges=1,0,0,0,0,0,0,0,0,0,0,0,0,0,83";
        assert_eq!(charges.word(), word);
    }

    #[test]
    fn each_charge_has_a_place_and_all_edits_can_be_made_again() {
        let all: Vec<&[Edit]> = vec![&KERNEL, &SHARED_MEMORY, CHARGES];
        let tree = tree(all.iter().copied().flatten());
        let make = || {
            for edits in &all {
                apply(tree.path(), edits).expect("the places are there");
            }
            let mut files: Vec<&str> = all.iter().copied().flatten().map(|one| one.file).collect();
            files.sort_unstable();
            files.dedup();
            let read = |name: &str| fs::read_to_string(tree.path().join(name)).expect("there");
            files.into_iter().map(read).collect::<String>()
        };
        let text = make();
        for (name, _) in Charges::default().in_order() {
            let name = format!("(RAIDLAB_{}, ", name.to_uppercase());
            assert!(text.contains(&name), "{name}");
        }
        assert_eq!(make(), text);
    }
}
