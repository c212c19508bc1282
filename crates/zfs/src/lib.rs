//! A simple model of a ZFS mirror with a zvol, above the array core's read policies.
