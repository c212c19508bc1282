//! Virtual time: the calendar, the host layer and the statistics around subject and disks.
