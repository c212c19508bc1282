//! The costs of computing in the guest, and the places where its kernel is charged for it.
//!
//! A parameter of the kernel's command line, `tt-charges=`, has the numbers of a processor
//! (`docs/reference/processors.md`), in the order of [`Charges::in_order`], which is that of
//! `enum raidlab_charge` in `edits/charges.h`. Without it nothing is charged.
//!
//! The places are edits of the source, `edits/charges.edits`. Each says its work and how often it
//! is done. That is *owed*, and *paid* by moving the time, which lets events come, where the kernel
//! could be interrupted: at the place itself in a thread, or at the end of a system call for copied
//! bytes. The debt of an interrupt is paid by the interrupted thread before it goes on, or by the
//! idle loop before it sleeps. So a core that is busy gets later, and one that is idle has dealt
//! with its interrupts before it wakes a thread up.
//!
//! The scheduler's clock is the virtual time then, where it is otherwise that of the last
//! tick: the processor time of threads is as exact as the charges.

/// The costs of a processor's computing in the guest, in femtoseconds of one core: the last three
/// for each byte, the others each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charges {
    /// The cost of a change of threads.
    pub switch: u64,
    /// The cost of waking a thread, for the one that does it.
    pub wake_call: u64,
    /// The cost of a command's way through the block layer's queue and the driver to a disk.
    pub dispatch: u64,
    /// The cost of entering and leaving an interrupt of a disk.
    pub interrupt: u64,
    /// The cost of a command's end in it.
    pub complete: u64,
    /// The cost of an array's taking a request.
    pub request: u64,
    /// The cost of an array's ending a request.
    pub request_end: u64,
    /// The cost of an array's making a command to a member, and ending it.
    pub member: u64,
    /// The cost of the bitmap's looking up and counting a bit.
    pub bitmap: u64,
    /// The cost of RAID 5's looking up a stripe for a request.
    pub find: u64,
    /// The cost of its thread's looking through a stripe once.
    pub handle: u64,
    /// The cost of putting a stripe into a list of those that are to be handled.
    pub release: u64,
    /// The cost of XOR for a byte of a block.
    pub xor: u64,
    /// The cost of P and Q for a byte of a block.
    pub pq: u64,
    /// The cost of copying a byte between a program and the kernel, or a request and a stripe.
    pub copy: u64,
}

impl Charges {
    /// All charges with their names, in the order of the parameter.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edits::tests::tree;
    use crate::edits::{CHARGES, Edit, KERNEL, SHARED_MEMORY, apply};
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
        let all: Vec<&[Edit]> = vec![&KERNEL, &SHARED_MEMORY, &CHARGES];
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
