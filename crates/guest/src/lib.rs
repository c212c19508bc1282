//! A throw-away virtual machine with the tools of its host.
//!
//! Many machines that raidlab is developed and tested on have a kernel without md or device mapper,
//! or disks that must not be touched. A [`Guest`] boots Debian's kernel for virtual machines in
//! QEMU with a first file system made of this host's own programs (mdadm, fio, lvm, mkfs and what
//! they need) and kernel modules, runs one command over empty disks, and hands back its output and
//! the files it left. It needs no root, and no network beyond the kernel's one download. QEMU ends
//! with its caller, however that ends; only a caller that was killed leaves a folder of sparse
//! files in the temporary one.
//!
//! Without KVM QEMU translates the guest's instructions: then its times are no
//! measurements of anything but the disks' own limits, if those are slow.

mod boot;
mod frames;
mod guest;
mod kernel;
mod machine;
mod modules;
mod run;
mod tools;

pub use frames::FrameError;
pub use guest::{Finished, Guest, GuestError, Job, Stream};
pub use kernel::{Kernel, KernelError};
pub use machine::{Accelerator, Bus, Disk, Export, Machine};
pub use modules::ModuleError;
pub use tools::{ToolsError, host_tools};
