//! Everything a report computes. No number in a report is written by hand: percents, errors, bands
//! and shares are all made here from measurements.

pub(crate) mod accuracy;
pub(crate) mod balance;
pub(crate) mod bound;
pub(crate) mod certainty;
pub(crate) mod column;
pub(crate) mod doubt;
pub(crate) mod environment;
pub(crate) mod facts;
pub(crate) mod findings;
pub(crate) mod fold;
pub(crate) mod headline;
pub(crate) mod matrix;
pub(crate) mod rate;
pub(crate) mod shape;
pub(crate) mod standing;
pub(crate) mod states;
pub(crate) mod sync;
pub(crate) mod timeline;
pub(crate) mod trust;
pub(crate) mod view;
