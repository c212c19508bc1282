//! What a machine is and has: disks and who uses them, memory, caches, counters.
