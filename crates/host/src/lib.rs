//! The bench of real machines: builds, measures, pulls disks, takes down.
