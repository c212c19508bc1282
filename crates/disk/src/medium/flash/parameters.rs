//! The parameters of a solid-state disk, and their names in preset files.

use super::link::GENERATIONS;
use super::translation::State;
use super::victims::Victims;
use crate::medium::Number;
use crate::medium::parameters::{DiskParameters, ParameterError, check};
use raidlab_units::{Bytes, BytesPerSecond, Nanos};

/// Parameters of a solid-state disk.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// The number of dies that work in parallel, 1 to 4096.
    pub dies: usize,
    /// The number of channels that the dies share, the first die on the first channel.
    pub channels: usize,
    /// The data rate of a channel.
    pub channel_rate: BytesPerSecond,
    /// The size of a page of one plane: whole logical pages of 4 KiB.
    pub page: Bytes,
    /// The number of planes of a die, whose pages are programmed together.
    pub planes: u32,
    /// The number of bits in a cell, 1 to 4, which are programmed together.
    pub bits: u32,
    /// The time of sensing the fastest kind of page.
    pub read: Nanos,
    /// The additional time of each further sensing level.
    pub read_step: Nanos,
    /// The time of programming a unit: all planes, all bits.
    pub program: Nanos,
    /// The time of erasing a block.
    pub erase: Nanos,
    /// The bytes that a die programs between two erasures.
    pub block: Bytes,
    /// The time of interrupting a program or an erasure.
    pub suspend: Nanos,
    /// The remaining time below which a program or an erasure is not interrupted.
    pub suspend_left: Nanos,
    /// The number of reads that may go before work which a die has begun or could begin.
    pub suspend_reads: u32,
    /// The time of a read in the controller before its die.
    pub read_overhead: Nanos,
    /// The time of a write in the controller for each of its pages.
    pub page_overhead: Nanos,
    /// The time for which a command occupies the controller.
    pub command: Nanos,
    /// The time for which a command occupies the link beside its data.
    pub link_command: Nanos,
    /// The generation of PCI Express; 0 for SATA.
    pub generation: usize,
    /// The number of lanes of PCI Express.
    pub lanes: u32,
    /// Whether reads go before writes that wait for the buffer.
    pub reads_pass: bool,
    /// Whether the buffer's contents survive the loss of power.
    pub protected: bool,
    /// The time of a flush beside the programs that it waits for.
    pub flush: Nanos,
    /// The number of physical pages for each logical one, 1 to 16.
    pub over_provisioning: f64,
    /// The choice of the block whose valid pages are copied before it is erased.
    pub victims: Option<Victims>,
    /// The amount of owed copies at which they are made; 0 spreads them evenly over writes.
    pub burst: Bytes,
    /// The fixed part of the cache of one bit a cell, bytes.
    pub slc: Bytes,
    /// The additional part of that cache on an empty drive, shrinking to none on a full one, bytes.
    pub slc_dynamic: Bytes,
    /// The time of programming one bit a cell: a page of each plane.
    pub slc_program: Nanos,
    /// The idle time after which the drive empties that cache.
    pub slc_idle: Nanos,
    /// The drive's history before the first command; set by a suite, not by the preset.
    pub state: State,
}

/// Defines the names of the parameters in preset files, and what the value of each sets.
macro_rules! numbers {
    ($self:ident, $value:ident: $($name:literal => $set:expr,)+) => {
        impl Parameters {
            /// The names of the parameters in preset files.
            pub(super) const NAMES: &'static [&'static str] = &[$($name),+];

            /// Sets a parameter by its name; returns false if there is none of that name.
            pub(super) fn set_number(&mut $self, name: &str, $value: Number) -> bool {
                match name {
                    $($name => $set,)+
                    _ => return false,
                }
                true
            }
        }
    };
}

numbers! { self, value:
    "flash_dies" => self.dies = value.count(),
    "flash_channels" => self.channels = value.count(),
    "flash_channel_bytes_per_second" => self.channel_rate = BytesPerSecond(value.value),
    "flash_page_bytes" => self.page = size(value),
    "flash_planes" => self.planes = count(value),
    "flash_bits_per_cell" => self.bits = count(value),
    "flash_read_us" => self.read = value.microseconds(),
    "flash_read_step_us" => self.read_step = value.microseconds(),
    "flash_program_us" => self.program = value.microseconds(),
    "flash_erase_us" => self.erase = value.microseconds(),
    "flash_block_bytes" => self.block = size(value),
    "flash_suspend_us" => self.suspend = value.microseconds(),
    "flash_suspend_left_us" => self.suspend_left = value.microseconds(),
    "flash_suspend_reads" => self.suspend_reads = count(value),
    "flash_read_overhead_us" => self.read_overhead = value.microseconds(),
    "flash_page_overhead_us" => self.page_overhead = value.microseconds(),
    "flash_commands_per_second" => self.command = Nanos::from_secs_f64(1.0 / value.value.max(1.0)),
    "flash_link_command_us" => self.link_command = value.microseconds(),
    "flash_pcie_generation" => self.generation = value.count(),
    "flash_pcie_lanes" => self.lanes = count(value),
    "flash_reads_pass" => self.reads_pass = value.whole() != 0,
    "flash_power_loss_protection" => self.protected = value.whole() != 0,
    "flash_flush_us" => self.flush = value.microseconds(),
    "flash_over_provisioning" => self.over_provisioning = value.value,
    "flash_victims" => self.victims = Victims::of_number(value.count()),
    "flash_burst_bytes" => self.burst = size(value),
    "flash_slc_bytes" => self.slc = size(value),
    "flash_slc_dynamic_bytes" => self.slc_dynamic = size(value),
    "flash_slc_program_us" => self.slc_program = value.microseconds(),
    "flash_slc_idle_ms" => self.slc_idle = value.milliseconds(),
}

fn count(number: Number) -> u32 {
    u32::try_from(number.whole()).unwrap_or(u32::MAX)
}

fn size(number: Number) -> Bytes {
    Bytes(number.whole())
}

impl Parameters {
    /// Checks the parameters; the error names the first invalid one.
    pub(super) fn check(&self, disk: &DiskParameters) -> Result<(), ParameterError> {
        self.check_chips()?;
        check(
            &self
                .times()
                .map(|(name, time)| (name, time < Nanos::SECOND, "must be below 1 s")),
        )?;
        check(&[
            (
                "flash_commands_per_second",
                self.command < Nanos::SECOND,
                "must be above 1",
            ),
            (
                "flash_pcie_generation",
                self.generation <= GENERATIONS && (self.generation == 0 || self.lanes > 0),
                "must be 0 for SATA, or 1 to 5 with at least one lane",
            ),
            (
                "flash_pcie_lanes",
                self.lanes <= 16,
                "must be at most 16",
            ),
            (
                "flash_over_provisioning",
                (1.0..=16.0).contains(&self.over_provisioning),
                "must be 1 to 16",
            ),
            (
                "flash_victims",
                self.victims.is_some(),
                "must be 0 (greedy), 1 (oldest), 2 (best of ten drawn) or 3 (drawn)",
            ),
            (
                "flash_slc_bytes",
                self.slc.0.saturating_add(self.slc_dynamic.0) <= disk.capacity.to_bytes().0,
                "and flash_slc_dynamic_bytes must be at most the capacity",
            ),
        ])
    }

    /// Checks the parameters of the chips; the error names the first invalid one.
    fn check_chips(&self) -> Result<(), ParameterError> {
        check(&[
            (
                "flash_dies",
                (1..=4096).contains(&self.dies),
                "must be 1 to 4096",
            ),
            (
                "flash_channels",
                (1..=self.dies).contains(&self.channels),
                "must be 1 to the number of dies",
            ),
            (
                "flash_channel_bytes_per_second",
                (1e6..1e11).contains(&self.channel_rate.0),
                "must be 1 MB/s to 100 GB/s",
            ),
            (
                "flash_page_bytes",
                (4096..=1 << 20).contains(&self.page.0) && self.page.0.is_multiple_of(4096),
                "must be whole 4 KiB, up to 1 MiB",
            ),
            (
                "flash_planes",
                (1..=16).contains(&self.planes),
                "must be 1 to 16",
            ),
            (
                "flash_bits_per_cell",
                (1..=4).contains(&self.bits),
                "must be 1 to 4",
            ),
            (
                "flash_block_bytes",
                self.block.0 >= self.page.0,
                "must be at least a page",
            ),
        ])
    }

    /// All times of the chips, the drive and its link, with their names in preset files.
    fn times(&self) -> [(&'static str, Nanos); 11] {
        [
            ("flash_read_us", self.read),
            ("flash_read_step_us", self.read_step),
            ("flash_program_us", self.program),
            ("flash_erase_us", self.erase),
            ("flash_suspend_us", self.suspend),
            ("flash_suspend_left_us", self.suspend_left),
            ("flash_read_overhead_us", self.read_overhead),
            ("flash_page_overhead_us", self.page_overhead),
            ("flash_link_command_us", self.link_command),
            ("flash_flush_us", self.flush),
            ("flash_slc_program_us", self.slc_program),
        ]
    }

    /// The bytes of a unit; a `cached` one has one bit in a cell.
    pub(super) fn unit_bytes(&self, cached: bool) -> u64 {
        let bits = if cached { 1 } else { u64::from(self.bits) };
        self.page.0 * u64::from(self.planes) * bits
    }

    /// The time of sensing a kind of page: that of bit 0 needs one level, each further bit twice as
    /// many as the one before.
    pub(super) fn sense_time(&self, bit: u32) -> u64 {
        self.read.0 + self.read_step.0 * ((1 << bit) - 1)
    }

    /// The time of a transfer of so many bytes on a channel.
    pub(super) fn channel_time(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.channel_rate.0 * 1e9) as u64
    }
}
