//! The kinds of media, and the properties of each.
//!
//! A medium is a module here and one line in the registry at the end of this file. Its `Parameters`
//! hold the numbers that only it has, with their names in preset files, and build its mechanism,
//! which takes commands and completes them. Code that depends on differences between media uses its
//! [`Facts`], and names no medium.

pub mod parameters;

use crate::command::{Command, Completion};
use crate::surface::Surface;
use parameters::{DiskParameters, ParameterError};
use platters::PlatterParameters;
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use serde::Deserialize;
use std::fmt::Debug;

/// The properties of all disks of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Whether the disk rotates: then the arm's position matters, and several streams are
    /// slower than one.
    pub rotational: bool,
    /// The medium whose band is used for a load for which this one has none.
    pub like: Option<Medium>,
    /// The names of parameters that it needs and other media have too, in the order of listings.
    pub shared_names: &'static [&'static str],
    /// The names of parameters by which a preset file is recognized as one of this medium.
    pub own_names: &'static [&'static str],
}

/// The number of commands at each place within a disk. All others are with its medium: they wait
/// for an arm or a die, or are being served by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inside {
    /// Commands that wait for the controller, or for its firmware.
    pub controller: usize,
    /// Commands whose data wait for the link, or cross it.
    pub link: usize,
    /// Commands that wait for room in the write buffer.
    pub buffer: usize,
}

/// A number of a preset file, convertible from the units that names of parameters can end with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    /// The number as in the file, in the unit at the end of the name.
    pub(crate) value: f64,
}

impl Number {
    /// The integer part; negative values count as 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate, and 0 is the smallest value of all parameters"
    )]
    pub(crate) const fn whole(self) -> u64 {
        self.value as u64
    }

    /// The value of a number that counts things.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what does not fit is refused by its limits anyway"
    )]
    pub(crate) const fn count(self) -> usize {
        self.whole() as usize
    }

    pub(crate) fn milliseconds(self) -> Nanos {
        Nanos::from_secs_f64(self.value / 1e3)
    }

    pub(crate) fn microseconds(self) -> Nanos {
        Nanos::from_secs_f64(self.value / 1e6)
    }
}

/// The interface of a medium's parameters.
pub(crate) trait MediumKind: Debug + Clone + PartialEq {
    /// The mechanism of a disk with these parameters.
    type Mechanism: Mechanism;

    const FACTS: Facts;

    /// The names of the states in which such a disk can begin; empty where there is only one.
    const STATES: &'static [&'static str] = &[];

    /// Creates parameters that are not valid until each has been set.
    fn blank() -> Self;

    /// Sets a parameter by its name in preset files; returns false if there is none of that name.
    fn set(&mut self, name: &str, value: Number) -> bool;

    /// Checks the parameters; the error names the first invalid field.
    fn validate(&self, disk: &DiskParameters) -> Result<(), ParameterError>;

    /// A disk at rest. `angle` is the angle of the platters at time zero, if there are any.
    fn build(&self, disk: &DiskParameters, angle: Nanos, random: Stream) -> Self::Mechanism;

    /// The parameters of arm and platters; `None` where the medium has none.
    fn platters(&self) -> Option<&PlatterParameters> {
        None
    }

    /// The parameters of arm and platters, to be changed; `None` where the medium has none.
    fn platters_mut(&mut self) -> Option<&mut PlatterParameters> {
        None
    }

    /// The index in [`Self::STATES`] of the state in which it begins, if there are any.
    fn state(&self) -> Option<usize> {
        None
    }

    /// Sets the state in which it begins, by its index in [`Self::STATES`].
    fn set_state(&mut self, _state: usize) {}

    /// Whether it is an NVMe drive.
    fn is_nvme(&self) -> bool {
        false
    }

    /// Whether acknowledged data survive the loss of power.
    fn is_protected(&self) -> bool {
        false
    }
}

/// The mechanism of a disk, in virtual time of nanoseconds.
pub(crate) trait Mechanism: Debug + Clone {
    /// Takes a command at time `now`, which is not earlier than that of any call before.
    fn submit(&mut self, now: u64, command: &Command);

    /// The time at which [`Self::advance`] next has something to do; `u64::MAX` for never.
    fn next_event(&self) -> u64;

    /// Does everything due at `now` and appends the completed commands.
    fn advance(&mut self, now: u64, completions: &mut Vec<Completion>);

    /// Whether no command waits, no data are dirty, and nothing is in progress.
    fn is_quiet(&self) -> bool;

    /// The number of its commands at each place within the disk.
    fn inside(&self) -> Inside {
        Inside::default()
    }

    /// Leaps over hours in which the host continued as before, up to `sector`.
    fn leap(&mut self, _surface: &Surface, _sector: Sectors) {}

    /// Whether it would behave in the same way for hours if the host does.
    fn is_steady(&self) -> bool {
        true
    }
}

/// Defines the modules, the kinds, the parameters and the mechanisms of all media.
macro_rules! media {
    ($($(#[$documentation:meta])* $medium:ident $module:ident $name:literal,)+) => {
        $(pub mod $module;)+

        /// The kinds of disks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        pub enum Medium {
            $($(#[$documentation])* #[serde(rename = $name)] $medium,)+
        }

        impl Medium {
            /// All media, in order.
            pub const ALL: &'static [Self] = &[$(Self::$medium),+];

            /// The medium's name in files of bands.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$medium => $name),+ }
            }

            /// The properties of all disks of this medium.
            #[must_use]
            pub const fn facts(self) -> Facts {
                match self { $(Self::$medium => <$module::Parameters as MediumKind>::FACTS),+ }
            }

            pub(crate) const fn states(self) -> &'static [&'static str] {
                match self { $(Self::$medium => <$module::Parameters as MediumKind>::STATES),+ }
            }

            pub(crate) fn blank(self) -> MediumParameters {
                match self {
                    $(Self::$medium => MediumParameters::$medium(MediumKind::blank())),+
                }
            }
        }

        /// The parameters of a disk that are specific to its medium.
        #[derive(Debug, Clone, PartialEq)]
        pub enum MediumParameters {
            $($(#[$documentation])* $medium($module::Parameters),)+
        }

        impl MediumParameters {
            /// The medium of these parameters.
            #[must_use]
            pub const fn medium(&self) -> Medium {
                match self { $(Self::$medium(_) => Medium::$medium),+ }
            }

            /// The parameters of arm and platters; `None` where the medium has none.
            #[must_use]
            pub fn platters(&self) -> Option<&PlatterParameters> {
                match self { $(Self::$medium(own) => own.platters()),+ }
            }

            /// The parameters of arm and platters, to be changed; `None` where the medium has none.
            pub fn platters_mut(&mut self) -> Option<&mut PlatterParameters> {
                match self { $(Self::$medium(own) => own.platters_mut()),+ }
            }

            pub(crate) fn state(&self) -> Option<usize> {
                match self { $(Self::$medium(own) => own.state()),+ }
            }

            pub(crate) fn set_state(&mut self, state: usize) {
                match self { $(Self::$medium(own) => own.set_state(state)),+ }
            }

            pub(crate) fn is_nvme(&self) -> bool {
                match self { $(Self::$medium(own) => own.is_nvme()),+ }
            }

            pub(crate) fn is_protected(&self) -> bool {
                match self { $(Self::$medium(own) => own.is_protected()),+ }
            }

            pub(crate) fn set(&mut self, name: &str, value: Number) -> bool {
                match self { $(Self::$medium(own) => own.set(name, value)),+ }
            }

            pub(crate) fn validate(&self, disk: &DiskParameters) -> Result<(), ParameterError> {
                match self { $(Self::$medium(own) => own.validate(disk)),+ }
            }

            pub(crate) fn build(
                &self,
                disk: &DiskParameters,
                angle: Nanos,
                random: Stream,
            ) -> AnyMechanism {
                match self {
                    $(Self::$medium(own) => AnyMechanism::$medium(own.build(disk, angle, random))),+
                }
            }
        }

        /// The mechanism of any medium.
        #[derive(Debug, Clone)]
        pub(crate) enum AnyMechanism {
            $($medium(<$module::Parameters as MediumKind>::Mechanism),)+
        }

        impl Mechanism for AnyMechanism {
            fn submit(&mut self, now: u64, command: &Command) {
                match self { $(Self::$medium(own) => own.submit(now, command)),+ }
            }

            #[inline]
            fn next_event(&self) -> u64 {
                match self { $(Self::$medium(own) => own.next_event()),+ }
            }

            fn advance(&mut self, now: u64, completions: &mut Vec<Completion>) {
                match self { $(Self::$medium(own) => own.advance(now, completions)),+ }
            }

            fn is_quiet(&self) -> bool {
                match self { $(Self::$medium(own) => own.is_quiet()),+ }
            }

            fn inside(&self) -> Inside {
                match self { $(Self::$medium(own) => own.inside()),+ }
            }

            fn leap(&mut self, surface: &Surface, sector: Sectors) {
                match self { $(Self::$medium(own) => own.leap(surface, sector)),+ }
            }

            fn is_steady(&self) -> bool {
                match self { $(Self::$medium(own) => own.is_steady()),+ }
            }
        }
    };
}

impl Medium {
    /// The medium of a preset file with these names of parameters: the last one in the registry
    /// that has one of them as its own.
    pub(crate) fn of_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let has_own = |medium: &&Self| {
            let own = medium.facts().own_names;
            names.clone().any(|name| own.contains(&name))
        };
        *Self::ALL
            .iter()
            .rev()
            .find(has_own)
            .unwrap_or(&Self::ALL[0])
    }

    /// The names of all parameters that its disks need, in the order of listings.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        let facts = self.facts();
        facts.shared_names.iter().chain(facts.own_names).copied()
    }
}

// The registry of media, with their names in files.
media! {
    /// Platters and an arm.
    Platters platters "platters",
    /// Platters and an arm, with tracks that overlap as shingles do.
    Shingles shingles "shingles",
    /// Flash chips behind a controller, whatever the plug: SATA or NVMe.
    Flash flash "flash",
    /// A constant time for each access: a disk whose times can be computed by hand.
    Constant constant "constant",
}
