//! The kinds of media, and what each says of itself.
//!
//! A medium is a module here and one line in the registry at the end of this file. Its
//! `Parameters` hold the numbers that only it has, say what preset files call them, and
//! build its mechanism, which takes commands and completes them. Whoever must know of
//! a difference between media asks for its [`Facts`]; nobody else names a medium.

pub mod parameters;

use crate::command::{Command, Completion};
use crate::surface::Surface;
use parameters::{DiskParameters, ParameterError};
use platters::PlatterParameters;
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use serde::Deserialize;
use std::fmt::Debug;

/// What holds for all disks of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Something turns: where the arm is makes a difference, and several streams are not
    /// as fast as one.
    pub rotational: bool,
    /// The medium whose band is taken for a load that this one has no band of.
    pub like: Option<Medium>,
    /// Names of parameters that it needs and other media have too, in the order in which
    /// they are listed.
    pub shared_names: &'static [&'static str],
    /// Names of parameters by which a preset file is known to be of this medium.
    pub own_names: &'static [&'static str],
}

/// Where the commands that a disk has are. All others are with its medium: they wait for
/// an arm or a die, or are served by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inside {
    /// They wait for the controller, or its firmware is at work.
    pub controller: usize,
    /// Their data wait for the link, or cross it.
    pub link: usize,
    /// They wait for room in the write buffer.
    pub buffer: usize,
}

/// A number of a preset file, in the units that names of parameters can end with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    /// The number as it stands in the file, in the unit that the name ends with.
    pub(crate) value: f64,
}

impl Number {
    /// Without its fraction; negative values count as 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate, and 0 is the smallest value of all parameters"
    )]
    pub(crate) const fn whole(self) -> u64 {
        self.value as u64
    }

    /// A number that counts things and is whole.
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

/// What a medium's parameters do for the others.
pub(crate) trait MediumKind: Debug + Clone + PartialEq {
    /// The disk at work that these parameters make.
    type Mechanism: Mechanism;

    const FACTS: Facts;

    /// Names of the states in which such a disk can begin; none where there is but one.
    const STATES: &'static [&'static str] = &[];

    /// Parameters that are not valid before each has been set.
    fn blank() -> Self;

    /// Sets one by its name in preset files; false if it has none of that name.
    fn set(&mut self, name: &str, value: Number) -> bool;

    /// The first field that no such medium can have.
    fn validate(&self, disk: &DiskParameters) -> Result<(), ParameterError>;

    /// A disk at rest. `angle` is where the platters are at time zero, if there are any.
    fn build(&self, disk: &DiskParameters, angle: Nanos, random: Stream) -> Self::Mechanism;

    /// The numbers of arm and platters, if it has such.
    fn platters(&self) -> Option<&PlatterParameters> {
        None
    }

    /// The parameters of arm and platters, to be changed; `None` where the medium has none.
    fn platters_mut(&mut self) -> Option<&mut PlatterParameters> {
        None
    }

    /// Which of [`Self::STATES`] it begins in, if there are any.
    fn state(&self) -> Option<usize> {
        None
    }

    /// It begins in this one of [`Self::STATES`].
    fn set_state(&mut self, _state: usize) {}

    /// Whether it is an NVMe drive.
    fn is_nvme(&self) -> bool {
        false
    }

    /// Whether what it has acknowledged survives the loss of power.
    fn is_protected(&self) -> bool {
        false
    }
}

/// A medium at work, in virtual time of nanoseconds.
pub(crate) trait Mechanism: Debug + Clone {
    /// Takes a command at time `now`, which is not earlier than that of any call before.
    fn submit(&mut self, now: u64, command: &Command);

    /// When [`Self::advance`] next has something to do; `u64::MAX` for never.
    fn next_event(&self) -> u64;

    /// Does what is due at `now` and appends the commands that completed.
    fn advance(&mut self, now: u64, completions: &mut Vec<Completion>);

    /// Nothing waits, nothing is dirty, nothing is under way.
    fn is_quiet(&self) -> bool;

    /// How many of its commands are at which place within the disk.
    fn inside(&self) -> Inside {
        Inside::default()
    }

    /// Hours have passed in which the host did what it did before, up to `sector`.
    fn leap(&mut self, _surface: &Surface, _sector: Sectors) {}

    /// Whether it goes on for hours as it does now, if the host does.
    fn is_steady(&self) -> bool {
        true
    }
}

/// Makes the modules, the kinds, the parameters and the mechanisms of all media.
macro_rules! media {
    ($($(#[$documentation:meta])* $medium:ident $module:ident $name:literal,)+) => {
        $(pub mod $module;)+

        /// The kinds of disks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        pub enum Medium {
            $($(#[$documentation])* #[serde(rename = $name)] $medium,)+
        }

        impl Medium {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$medium),+];

            /// The medium's name in files of bands.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$medium => $name),+ }
            }

            /// What holds for all disks of this medium.
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

        /// The numbers that a disk has of its medium.
        #[derive(Debug, Clone, PartialEq)]
        pub enum MediumParameters {
            $($(#[$documentation])* $medium($module::Parameters),)+
        }

        impl MediumParameters {
            /// Which medium it is.
            #[must_use]
            pub const fn medium(&self) -> Medium {
                match self { $(Self::$medium(_) => Medium::$medium),+ }
            }

            /// The numbers of arm and platters, if it has such.
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

        /// A medium at work, whichever it is.
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
    /// The medium that a preset file with these names of parameters is of: the last one in
    /// the registry that has one of them as its own.
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

    /// Every name of a parameter that its disks need, in the order of listings.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        let facts = self.facts();
        facts.shared_names.iter().chain(facts.own_names).copied()
    }
}

// The registry of media, and the names that files call them by.
media! {
    /// Platters and an arm.
    Platters platters "platters",
    /// Platters and an arm, with tracks that overlap as shingles do.
    Shingles shingles "shingles",
    /// Flash chips behind a controller, whatever the plug: SATA or NVMe.
    Flash flash "flash",
    /// A constant time for each access: a disk to compute by hand.
    Constant constant "constant",
}
