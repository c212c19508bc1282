//! Fault simulation: the array core with real bytes over failing disks, in virtual time.
