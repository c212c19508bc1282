//! Arrival processes: when the requests of a job with a rate are due.
//!
//! A closed job sends a request when one has ended. A job with a rate (fio `rate`, `rate_iops`) has
//! times at which its requests are due, regardless of earlier ones, given by an *arrival process*.
//! With `io_submit_mode=offload` the job is an open loop: a request is held back only by its time
//! and the job's depth, and the latency of one that waits for a place in the depth counts from when
//! it was due.
//!
//! A process is a module here and one line in the registry at the end of this file.

use raidlab_random::Stream;
use raidlab_units::Nanos;
use std::fmt::Debug;

/// The interface of an arrival process. Times count from the job's beginning.
trait ArrivalTimes: Debug + Clone {
    /// Creates a process of so many bytes per second, in requests of `smallest` bytes;
    /// neither is 0.
    fn new(bytes_per_second: u64, smallest: u64) -> Self;

    /// The time at which the next request is due.
    fn due(&self) -> Nanos;

    /// Notes that the next request, of so many bytes, has been sent.
    fn sent(&mut self, bytes: u64, random: &mut Stream);

    /// Leaves out a time that does not count.
    fn skip(&mut self, time: Nanos);
}

/// Defines the modules and the enumerations of all processes.
macro_rules! processes {
    ($($(#[$documentation:meta])* $process:ident $module:ident $name:literal,)+) => {
        $(mod $module;)+

        /// The arrival processes (fio `rate_process`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ArrivalProcess {
            $($(#[$documentation])* $process,)+
        }

        impl ArrivalProcess {
            /// All processes with fio's names.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$process, $name)),+];

            /// The names, each followed by a comma.
            const NAMES: &'static str = concat!($($name, ", "),+);

            /// Begins the arrivals of a job of so many bytes per second, in requests of `smallest`
            /// bytes; neither is 0.
            #[must_use]
            pub fn begin(self, bytes_per_second: u64, smallest: u64) -> Arrivals {
                match self {
                    $(Self::$process => {
                        Arrivals::$process(ArrivalTimes::new(bytes_per_second, smallest))
                    })+
                }
            }
        }

        /// An arrival process in progress. Times count from the job's beginning.
        #[derive(Debug, Clone)]
        pub enum Arrivals {
            $($(#[$documentation])* $process($module::Times),)+
        }

        impl Arrivals {
            /// The time at which the next request is due.
            #[must_use]
            pub fn due(&self) -> Nanos {
                match self { $(Self::$process(own) => own.due()),+ }
            }

            /// Notes that the next request, of so many bytes, has been sent.
            pub fn sent(&mut self, bytes: u64, random: &mut Stream) {
                match self { $(Self::$process(own) => own.sent(bytes, random)),+ }
            }

            /// Leaves out a time that does not count (fio `rate_ignore_thinktime`).
            pub fn skip(&mut self, time: Nanos) {
                match self { $(Self::$process(own) => own.skip(time)),+ }
            }
        }
    };
}

impl Default for ArrivalProcess {
    /// fio's default, the first in the registry.
    fn default() -> Self {
        Self::ALL[0].0
    }
}

impl ArrivalProcess {
    /// The names of all processes, for errors.
    pub(crate) fn names() -> &'static str {
        Self::NAMES.trim_end_matches(", ")
    }
}

// The registry of arrival processes, and fio's names for them.
processes! {
    /// A request is due when the bytes before it are, at a constant rate.
    Linear linear "linear",
    /// The times between requests are exponentially distributed.
    Poisson poisson "poisson",
}

#[cfg(test)]
mod tests;
