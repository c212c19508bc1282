//! The parameters that the kernel gets of an export before its block device appears.

use super::UblkError;
use super::request::Shape;
use super::wire::{Parameters, attribute, part};
use raidlab_units::SECTOR_BYTES;

/// The longest read or write, in bytes. The block layer seldom makes longer ones
/// (`max_sectors_kb`), and each tag may take as much memory.
const MAXIMUM_REQUEST_BYTES: u32 = 1 << 20;

/// The driver's lower limit of the longest request, and its largest logical block: a page.
const PAGE_BYTES: u32 = 4096;

/// The longest discard, in sectors (1 GiB).
const MAXIMUM_DISCARD_SECTORS: u32 = (1 << 30) / SECTOR_BYTES as u32;

/// The longest zeroing, in sectors (64 MiB). An array writes zeroes; longer ones would
/// delay a stop.
const MAXIMUM_ZEROES_SECTORS: u32 = (64 << 20) / SECTOR_BYTES as u32;

/// Returns the longest read or write of a device over an export, in bytes.
///
/// # Errors
/// When the export's longest request is shorter than a page.
pub(super) fn maximum_request_bytes(shape: &Shape) -> Result<u32, UblkError> {
    let most = shape.sizes.maximum.min(MAXIMUM_REQUEST_BYTES);
    match most / PAGE_BYTES * PAGE_BYTES {
        0 => Err(UblkError::Short(shape.sizes.maximum)),
        bytes => Ok(bytes),
    }
}

/// Returns the parameters of a device over an export.
///
/// # Errors
/// When a block device cannot have the export's blocks, or would be empty.
pub(super) fn parameters(shape: &Shape) -> Result<Parameters, UblkError> {
    let logical = shape.sizes.minimum.max(SECTOR_BYTES as u32);
    if !logical.is_power_of_two() || logical > PAGE_BYTES {
        return Err(UblkError::Blocks(shape.sizes.minimum));
    }
    let physical = shape.sizes.preferred.max(logical).next_power_of_two();
    // Bytes behind the last whole block cannot be accessed.
    let size_bytes = shape.size_bytes / u64::from(logical) * u64::from(logical);
    if size_bytes == 0 {
        return Err(UblkError::Empty(shape.size_bytes));
    }
    let features = shape.features;
    let attributes = [
        (features.read_only, attribute::READ_ONLY),
        (features.rotational, attribute::ROTATIONAL),
        (features.flush, attribute::VOLATILE_CACHE),
        (features.flush, attribute::FORCE_UNIT_ACCESS),
    ];
    let attributes = attributes.iter().filter(|(is_so, _)| *is_so);
    // The binary logarithm of a power of two below 2^32.
    let shift = |bytes: u32| bytes.trailing_zeros() as u8;
    let mut parameters = Parameters {
        length: Parameters::LENGTH,
        parts: part::BASIC,
        attributes: attributes.fold(0, |sum, (_, bit)| sum | bit),
        logical_block_shift: shift(logical),
        physical_block_shift: shift(physical),
        optimal_request_shift: shift(physical),
        minimum_request_shift: shift(physical),
        maximum_sectors: maximum_request_bytes(shape)? / SECTOR_BYTES as u32,
        device_sectors: size_bytes / SECTOR_BYTES,
        ..Parameters::default()
    };
    if !features.read_only && (features.trim || features.write_zeroes) {
        parameters.parts |= part::DISCARD;
        parameters.discard_granularity = physical;
    }
    if !features.read_only && features.trim {
        parameters.maximum_discard_sectors = MAXIMUM_DISCARD_SECTORS;
        parameters.maximum_discard_segments = 1;
    }
    if !features.read_only && features.write_zeroes {
        parameters.maximum_zeroes_sectors = MAXIMUM_ZEROES_SECTORS;
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::{BlockSizes, Features, MemoryExport};

    fn shape(minimum: u32, preferred: u32, maximum: u32) -> Shape {
        Shape {
            size_bytes: 10 << 20,
            features: Features::default(),
            sizes: BlockSizes {
                minimum,
                preferred,
                maximum,
            },
        }
    }

    #[test]
    fn an_export_that_can_everything() {
        let export = MemoryExport::new(3 << 20).unwrap();
        let parameters = parameters(&Shape::of(&export)).unwrap();
        let attributes = attribute::VOLATILE_CACHE | attribute::FORCE_UNIT_ACCESS;
        assert_eq!(parameters.attributes, attributes);
        assert_eq!(parameters.parts, part::BASIC | part::DISCARD);
        // A block device has no smaller blocks than sectors.
        assert_eq!(parameters.logical_block_shift, 9);
        assert_eq!(parameters.physical_block_shift, 12);
        assert_eq!(parameters.maximum_sectors, 2048);
        assert_eq!(parameters.device_sectors, 6144);
        assert_eq!(parameters.discard_granularity, 4096);
        assert_eq!(parameters.maximum_discard_segments, 1);
        assert_eq!(parameters.maximum_discard_sectors, 1 << 21);
        assert_eq!(parameters.maximum_zeroes_sectors, 1 << 17);
    }

    #[test]
    fn a_read_only_export_that_rotates() {
        let mut shape = shape(512, 4096, 1 << 20);
        shape.features = Features {
            read_only: true,
            rotational: true,
            trim: true,
            write_zeroes: true,
            ..Features::default()
        };
        let parameters = parameters(&shape).unwrap();
        let attributes = attribute::READ_ONLY | attribute::ROTATIONAL;
        assert_eq!(parameters.attributes, attributes);
        assert_eq!(parameters.parts, part::BASIC);
        assert_eq!(parameters.maximum_discard_sectors, 0);
        assert_eq!(parameters.maximum_zeroes_sectors, 0);
    }

    #[test]
    fn zeroes_alone_need_a_granularity_too() {
        let mut shape = shape(512, 512, 1 << 20);
        shape.features.write_zeroes = true;
        let parameters = parameters(&shape).unwrap();
        assert_eq!(parameters.parts, part::BASIC | part::DISCARD);
        assert_eq!(parameters.discard_granularity, 512);
        assert_eq!(parameters.maximum_discard_sectors, 0);
        assert_eq!(parameters.maximum_discard_segments, 0);
    }

    #[test]
    fn blocks_and_requests_keep_to_the_drivers_bounds() {
        let of = |shape: &Shape| parameters(shape);
        let large = of(&shape(4096, 65536, 32 << 20)).unwrap();
        assert_eq!(large.logical_block_shift, 12);
        assert_eq!(large.physical_block_shift, 16);
        assert_eq!(large.maximum_sectors, 2048);
        assert_eq!(of(&shape(1, 512, 5000)).unwrap().maximum_sectors, 8);
        let refused = of(&shape(8192, 8192, 1 << 20));
        assert!(matches!(refused, Err(UblkError::Blocks(8192))));
        let refused = of(&shape(512, 512, 2048));
        assert!(matches!(refused, Err(UblkError::Short(2048))));
    }

    #[test]
    fn the_size_is_whole_blocks() {
        let mut shape = shape(4096, 4096, 1 << 20);
        shape.size_bytes = 3 * 4096 + 4095;
        assert_eq!(parameters(&shape).unwrap().device_sectors, 24);
        shape.size_bytes = 4095;
        let refused = parameters(&shape);
        assert!(matches!(refused, Err(UblkError::Empty(4095))));
    }
}
