//! Jobs, in fio's terms, and the requests that they make.
//!
//! A [`JobSpec`] describes a job, its [`RequestStream`] makes the requests of one clone, its
//! [`StopClock`] decides when a job with a `runtime` stops. Nothing here reads a clock or touches a
//! device: a driver asks for the next request and passes the time. [`FioJobs`] are jobs as people
//! write them for fio: read, edited, modelled and printed.

mod arrivals;
mod fio;
mod job;
mod offsets;
mod permutation;
mod shape;
mod stop_clock;
mod stream;
mod zones;

pub use arrivals::{ArrivalProcess, Arrivals};
pub use fio::{
    Class, FioJob, FioJobs, FioOption, Honoured, Includes, JobFile, JobFileError, Note,
    OptionError, OptionFacts, Permission, PermissionError, Place, Target, Unit, canonical_name,
    fio_options, is_program_option, shapes_load, unit,
};
pub use job::{Engine, JobError, JobGroup, JobSpec, Pattern, Percents, group_jobs};
pub use shape::{
    Distribution, ExitWhat, Flow, LatencyTarget, Rate, Runs, Sizes, SteadyMeasure, SteadyState,
    Strides, Thinking, Verify, ZoneRules,
};
pub use stop_clock::StopClock;
pub use stream::{Direction, IoUnit, RequestStream};
pub use zones::{Placed, ZonedDevice};
