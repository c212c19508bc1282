//! When the requests of a job with a rate are due.
//!
//! A closed job sends a request when one has ended. A job with a rate (fio `rate`,
//! `rate_iops`) has times at which its requests are due, whatever happened to those before:
//! an *arrival process* says which. With `io_submit_mode=offload` the job is an open loop:
//! nothing holds a request back but its time and the job's depth, and a request that had to
//! wait for a place in the depth has waited since it was due.
//!
//! A process is a module here and one line in the registry at the end of this file.

use raidlab_random::Stream;
use raidlab_units::Nanos;
use std::fmt::Debug;

/// What a process does for the others. Times count from the job's beginning.
trait ArrivalTimes: Debug + Clone {
    /// A process of so many bytes a second, in requests of `smallest` bytes; neither is 0.
    fn new(bytes_per_second: u64, smallest: u64) -> Self;

    /// When the next request is due.
    fn due(&self) -> Nanos;

    /// The next request, of so many bytes, has been sent.
    fn sent(&mut self, bytes: u64, random: &mut Stream);

    /// So long a time does not count.
    fn skip(&mut self, time: Nanos);
}

/// Makes the modules and the enumerations of all processes.
macro_rules! processes {
    ($($(#[$documentation:meta])* $process:ident $module:ident $name:literal,)+) => {
        $(mod $module;)+

        /// The processes by which requests can be due (fio `rate_process`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ArrivalProcess {
            $($(#[$documentation])* $process,)+
        }

        impl ArrivalProcess {
            /// Every one with fio's name for it.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$process, $name)),+];

            /// The names, each followed by a comma.
            const NAMES: &'static str = concat!($($name, ", "),+);

            /// The arrivals of a job of so many bytes a second, in requests of `smallest`
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

        /// A process on its way. Times count from the job's beginning.
        #[derive(Debug, Clone)]
        pub enum Arrivals {
            $($(#[$documentation])* $process($module::Times),)+
        }

        impl Arrivals {
            /// When the next request is due.
            #[must_use]
            pub fn due(&self) -> Nanos {
                match self { $(Self::$process(own) => own.due()),+ }
            }

            /// The next request, of so many bytes, has been sent.
            pub fn sent(&mut self, bytes: u64, random: &mut Stream) {
                match self { $(Self::$process(own) => own.sent(bytes, random)),+ }
            }

            /// So long a time does not count (fio `rate_ignore_thinktime`).
            pub fn skip(&mut self, time: Nanos) {
                match self { $(Self::$process(own) => own.skip(time)),+ }
            }
        }
    };
}

impl Default for ArrivalProcess {
    /// fio's own, the first in the registry.
    fn default() -> Self {
        Self::ALL[0].0
    }
}

impl ArrivalProcess {
    /// The names of all, for errors.
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
