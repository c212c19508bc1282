//! Virtual time for User-Mode Linux, and disks in it.
//!
//! A kernel for ARCH=um in external time-travel mode has no clock of its own: it
//! asks a *calendar* when it may run. Its disks are vhost-user-blk devices. Here
//! both are one: a [`Calendar`] that knows when each modelled disk will answer, and
//! lets the guest run exactly between the answers. The guest computes in no time,
//! waits for its disks as long as the model says, and sleeps through an hour in a
//! moment; the same guest with the same disks does the same to the nanosecond.
//!
//! ```text
//!              REQUEST, WAIT, UPDATE ...        Calendar
//!   User-Mode  ------------------------->  clock   |  devices
//!   Linux      <-------------------------          |  disk 0: queue, faults, model
//!              RUN, FREE_UNTIL                     |          pages
//!     |  |                                         |  disk 1: ...
//!     |  +------ vhost-user: set-up, kicks --------+
//!     +--------- interrupts -----------------------+
//! ```
//!
//! [`Calendar::bind`] makes the sockets; the caller starts the guest on them and calls
//! [`Calendar::run`], which takes one thread and serves one message at a time. The end is an
//! [`Outcome`]; a failure is a [`CalendarError`]. An [`Observer`] gets the disks' counters each
//! virtual second and every command that has ended.
//!
//! A guest of raidlab's own kernels shares kicks and interrupts by memory beside the time;
//! they take no messages then, and mean the same.
//!
//! The protocols, and the parts of Linux that speak them: [`time_travel`] and the shared memory of
//! newer kernels (`arch/um/kernel/time.c`), [`vhost_user`] (`arch/um/drivers/virtio_uml.c`).

mod block;
mod calendar;
mod channel;
mod clock;
mod config;
mod device;
mod drive;
mod error;
mod faults;
mod halt;
mod memory;
mod shared_time;
mod sparse;
mod starvation;
mod storage;
pub mod time_travel;
mod trace;
pub mod vhost_user;

pub use calendar::{Calendar, Observer};
pub use channel::ChannelError;
pub use config::{DeviceConfig, DiskModel, Options, Protocol};
pub use drive::{DiskCounters, DiskOperation};
pub use error::{CalendarError, ClockError, DeviceError, Outcome};
pub use faults::{Fault, ScheduledFault};
pub use memory::MemoryError;
pub use storage::{Storage, StorageError};
pub use trace::{TraceDigest, TraceRecord};
