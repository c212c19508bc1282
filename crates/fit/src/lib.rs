//! Fitting the disk model to single-disk facts, deterministically.
