//! Statistics of measured numbers: confidence intervals, verdicts, steady state.
//!
//! Everything here is a pure function of numbers. Values enter through
//! [`Sample`], which refuses what is not finite, so nothing later can meet a
//! NaN. Functions that draw at random take a [`raidlab_random::Stream`]: the
//! same values and the same stream give the same interval.
//!
//! Where a question has no answer, the answer says why ([`NoInterval`],
//! [`CannotTell`]) instead of giving a number that means nothing.

mod autocorrelation;
mod batch_means;
mod best;
mod bootstrap;
mod changepoint;
mod compare;
mod counts;
mod distributions;
mod interval;
mod multiple;
mod outliers;
mod prediction;
mod quantile;
mod sample;
mod steady;
mod verdict;

pub use autocorrelation::{Autocorrelation, autocorrelation};
pub use batch_means::{BatchMeans, batch_means};
pub use best::{Change, Direction};
pub use bootstrap::estimate;
pub use changepoint::{ChangePoint, Cliff, change_point, cliff};
pub use compare::{Comparison, Measured, Question, compare_measured, compare_samples};
pub use counts::relative_standard_error;
pub use interval::{Confidence, ConfidenceError, Estimate, Interval, NoInterval};
pub use multiple::{Correction, correct_table};
pub use outliers::outliers;
pub use prediction::next_value;
pub use sample::{Sample, SampleError};
pub use steady::SteadyState;
pub use verdict::{CannotTell, Verdict};
