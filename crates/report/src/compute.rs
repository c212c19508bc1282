//! Everything a report computes. No number in a report is typed: percents,
//! errors, bands and shares are all made here from measurements.

pub(crate) mod accuracy;
pub(crate) mod balance;
pub(crate) mod headline;
pub(crate) mod standing;
pub(crate) mod sync;
pub(crate) mod view;
