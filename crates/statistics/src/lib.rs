//! How sure a number is: confidence intervals, verdicts, steady state.
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
mod sample;
mod steady;
mod summary;
mod trend;
mod verdict;

pub use autocorrelation::{Autocorrelation, autocorrelation};
pub use batch_means::{BatchMeans, NoBatchMeans, batch_means};
pub use best::{Change, Direction, Standing, ratio_to_best};
pub use bootstrap::{Bootstrap, Centre, estimate, estimate_ratio};
pub use changepoint::{ChangePoint, Cliff, change_point, cliff};
pub use compare::{Comparison, Measured, Question, compare_measured, compare_samples};
pub use counts::{common_step, count_estimate, relative_resolution, relative_standard_error};
pub use interval::{
    Confidence, ConfidenceError, Estimate, Interval, Method, NoInterval, Percentile,
};
pub use multiple::{Correction, adjusted_p_values, correct_table};
pub use outliers::{Outlier, OutlierReason, outliers};
pub use prediction::next_value;
pub use sample::{MAX_MAGNITUDE, Sample, SampleError};
pub use steady::{
    SteadyCriteria, SteadyReport, SteadyState, Window, fio_deviation_holds, fio_slope_holds,
    fio_slope_limit_percent, first_steady, window,
};
pub use summary::{Summary, quantile, summary};
pub use trend::{NoTrend, Trend, trend};
pub use verdict::{CannotTell, Verdict};
