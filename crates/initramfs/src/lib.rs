//! A first file system for a Linux kernel, made of the programs of its host.
//!
//! An [`Initramfs`] is programs of this machine (mdadm, fio, lvm, mkfs) with the libraries that
//! they need, at their own paths, and a first program that runs a job. An [`Archive`] is its
//! form, which the kernel unpacks. Where the kernel ended, its text on the console says why:
//! [`reason`] and [`excerpt`].

mod console;
mod elf;
mod initramfs;
mod libraries;
mod newc;

pub use console::{Reason, excerpt, reason};
pub use elf::ElfError;
pub use initramfs::{Initramfs, InitramfsError, find_program, missing_packages, package_of};
pub use libraries::LibraryError;
pub use newc::{Archive, ArchiveError, Node};
