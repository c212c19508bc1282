//! The error of a guest's disks or its clock, which cannot be made, or have failed.

use raidlab_bench_model::presets::LoadPresetError;
use raidlab_bench_model::wiring::WiringError;
use raidlab_disk::{PresetError, StateError};
use raidlab_store::output::OutputError;
use raidlab_uml_calendar::CalendarError;

/// The reason why disks or clock cannot be made or have failed.
#[derive(Debug, thiserror::Error)]
pub enum DisksError {
    /// There is no such disk preset.
    #[error(transparent)]
    Load(#[from] LoadPresetError),
    /// A member is a part beyond its drive.
    #[error("the suite's disks cannot be had")]
    Wiring(#[from] WiringError),
    /// The preset has no such parameters.
    #[error("disk `{disk}` cannot be had")]
    Preset {
        /// The preset that was asked for.
        disk: String,
        /// The mistake in the preset's numbers.
        #[source]
        source: PresetError,
    },
    /// The drive has no such state.
    #[error("disk `{disk}` of the suite cannot be had")]
    State {
        /// The preset that was asked for.
        disk: String,
        /// The mistake in the state.
        #[source]
        source: StateError,
    },
    /// The guest's calendar of virtual time failed, or a disk on it.
    #[error("the guest's clock and disks have failed")]
    Calendar(#[from] CalendarError),
    /// The file of the disks' commands cannot be written.
    #[error(transparent)]
    Commands(#[from] OutputError),
    /// A thread cannot be started.
    #[error("no thread for the guest's clock and disks")]
    Thread(#[source] std::io::Error),
    /// The thread panicked, which is a defect of raidlab's.
    #[error("the thread of the guest's clock and disks has panicked")]
    Panicked,
    /// The end of the disks was told before.
    #[error("the guest's clock and disks have ended before")]
    Told,
}

impl DisksError {
    /// Whether the disks' contents could not be kept for want of room.
    pub(crate) const fn is_without_room(&self) -> bool {
        matches!(
            self,
            Self::Calendar(CalendarError::Storage(_) | CalendarError::StorageFull { .. })
        )
    }
}
