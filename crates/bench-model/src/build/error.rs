//! The error of an experiment that cannot be run on the model.

use super::UnknownAblation;
use crate::md_array::MdError;
use crate::presets::LoadPresetError;
use crate::wiring::WiringError;
use raidlab_array::{ConfigError, ReadPolicyError};
use raidlab_disk::{PresetError, StateError, UnknownOrder};
use raidlab_lab::CapacityError;
use raidlab_units::Bytes;
use thiserror::Error;

/// The reason why an experiment cannot be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A disk that the suite names has no preset, or one that cannot be read.
    #[error("disk `{disk}` cannot be had")]
    Preset {
        /// The name of the preset, as the suite has it.
        disk: String,
        /// The reason why the preset cannot be loaded.
        #[source]
        source: LoadPresetError,
    },
    /// The processor's file is wrong, or there is none.
    #[error("the modelled host's processor cannot be had")]
    Processor(#[source] LoadPresetError),
    /// A parameter set cannot be used for a disk.
    #[error("parameter set `{set}` cannot be used")]
    Set {
        /// The name of the set that was asked for.
        set: String,
        /// The reason why the set cannot be used.
        #[source]
        source: PresetError,
    },
    /// A disk cannot begin in the state that the suite asks for.
    #[error("disk `{disk}` of the suite cannot be had")]
    State {
        /// The name of the disk, as the suite has it.
        disk: String,
        /// The mistake in the state.
        #[source]
        source: StateError,
    },
    /// A member's part of a drive cannot be as the suite says.
    #[error("the suite's disks cannot be had")]
    Wiring(#[from] WiringError),
    /// The jobs reach behind the end of the array.
    #[error("the jobs do not fit on the array")]
    Capacity(#[source] CapacityError),
    /// The read policy of a subject is unknown or does not fit its array.
    #[error("the subject's read policy cannot be used")]
    ReadPolicy(#[source] ReadPolicyError),
    /// The order of the host's queue is unknown.
    #[error("the scheduler of the modelled host cannot be used")]
    Scheduler(#[source] UnknownOrder),
    /// The array core refuses the subject's settings.
    #[error("the array cannot be set up")]
    Array(#[source] ConfigError),
    /// An array of md cannot be modelled.
    #[error(transparent)]
    Md(#[from] MdError),
    /// The model of ZFS refuses the subject's settings.
    #[error("the pool cannot be set up")]
    Pool(#[source] raidlab_zfs::ConfigError),
    /// A pool may keep more in its cache than the host has memory.
    #[error("a cache of {cache} is more than the {memory} of memory of host `{host}`")]
    Cache {
        /// The most that the pool's cache may hold.
        cache: Bytes,
        /// The name of the host.
        host: String,
        /// The host's memory.
        memory: Bytes,
    },
    /// A feature that is to be left out does not exist.
    #[error(transparent)]
    Ablation(#[from] UnknownAblation),
    /// The experiment has something that only real systems do.
    #[error("the model has no {what}")]
    NotModelled {
        /// The thing that the model does not have, and what to write instead where
        /// there is something.
        what: String,
    },
    /// One of the experiment's steps is refused.
    #[error("{place}: {refusal}")]
    Step {
        /// The place of the step in the suite's file: `own.toml:14: step[2]`.
        place: String,
        /// The reason why the step cannot be run.
        refusal: Box<BuildError>,
    },
    /// Discards are not taken: a real fio's job would end with an error.
    #[error("job `{job}` discards blocks, and {why}")]
    Discards {
        /// The name of the job that discards.
        job: String,
        /// The thing that does not take discards, in words.
        why: &'static str,
    },
    /// A subject file lacks something that its kind needs.
    #[error("subject `{subject}` has no {what}")]
    Incomplete {
        /// The subject whose file lacks something.
        subject: String,
        /// The table or field that the subject's file lacks.
        what: &'static str,
    },
}

impl BuildError {
    /// The same error for the step that stands at this place in the suite's file.
    pub(super) fn at(self, place: &str) -> Self {
        Self::Step {
            place: place.to_owned(),
            refusal: Box::new(self),
        }
    }
}
