//! Arrays that remember themselves, with real bytes on disks that lose what
//! was not flushed.

mod bad_blocks;
mod branches;
mod copies;
mod crash;
mod endings;
mod first_resync;
mod harness;
mod life;
mod linux_6_1;
mod misfits;
mod more_life;
mod passes;
mod replace;
mod restarts;
mod spares;
mod twins;
