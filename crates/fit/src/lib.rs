//! Fitting the disk model to single-disk facts, deterministically.
//!
//! A facts file has the knowledge of a disk: measured jobs that one disk served alone, each with
//! its source; priors to fall back on where the facts leave a parameter free; and which parameters
//! may move, in which range. A fit is a Nelder-Mead search for the parameters of least squared
//! error, in units of tolerance, every fact simulated with the same seed at each step: the same
//! file gives the same parameters on every machine.
//!
//! How good the model is of disks that were never fitted is another question, answered by
//! [`LeftOut`]: such disks, predicted from their data sheets, beside their real figures.

mod evaluate;
mod facts;
mod left_out;
mod search;
mod simplex;

pub use evaluate::FitError;
pub use facts::{Counted, Fact, Facts, FactsError, Free, Prior, Quantity};
pub use left_out::{
    DONOR_SEEK_MS, DataSheet, LeftOut, LeftOutBand, LeftOutError, LeftOutRow, bands_file,
    left_out_bands,
};
pub use search::{FactRow, FitOutcome, Progress, check, fit};
