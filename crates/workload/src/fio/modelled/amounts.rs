//! The options of a job's amount and region.

use super::super::error::OptionError;
use super::super::value::count_in;
use super::zones::{InZones, in_zones};
use super::{Draft, ModelledOption, needed, option, percent, plain_size};
use raidlab_units::Bytes;

/// The largest number of loops.
const MOST_LOOPS: u32 = 1_000_000;

pub(super) const OPTIONS: &[ModelledOption] = &[
    option("size", |draft, value| {
        if !in_zones(draft, InZones::Size, value)? {
            (draft.spec.size, draft.spec.percents.size) = amount(draft, value)?;
        }
        Ok(None)
    }),
    option("io_size|io_limit", |draft, value| {
        if !in_zones(draft, InZones::IoSize, value)? {
            (draft.spec.io_size, draft.spec.percents.io_size) = amount(draft, value)?;
        }
        Ok(None)
    }),
    option("filesize", |draft, value| {
        draft.spec.file_size = Some(plain_size(draft, value)?);
        Ok(None)
    }),
    option("offset|fileoffset", |draft, value| {
        if !in_zones(draft, InZones::Offset, value)? {
            (draft.spec.offset, draft.spec.percents.offset) = place(draft, value)?;
        }
        Ok(None)
    }),
    option("offset_increment", |draft, value| {
        if !in_zones(draft, InZones::OffsetIncrement, value)? {
            let (increment, percent) = place(draft, value)?;
            draft.spec.offset_increment = increment;
            draft.spec.percents.offset_increment = percent;
        }
        Ok(None)
    }),
    option("offset_align", |draft, value| {
        draft.spec.offset_align = Some(plain_size(draft, value)?);
        Ok(None)
    }),
    option("loops", |draft, value| {
        draft.spec.loops = count_in(needed(value)?, 1..=MOST_LOOPS)?;
        Ok(None)
    }),
    option("number_ios", |draft, value| {
        // fio takes 0 for no limit.
        let limit = plain_size(draft, value)?.0;
        draft.spec.request_limit = Some(limit).filter(|&limit| limit > 0);
        Ok(None)
    }),
];

/// Reads bytes or percent; `size=100%` and `size=0%` are fio's behaviour without `size`.
fn amount(draft: &Draft, value: Option<&str>) -> Result<(Option<Bytes>, Option<u32>), OptionError> {
    if let Some(percent) = in_percent(value)? {
        return Ok((
            None,
            Some(percent).filter(|percent| (1..100).contains(percent)),
        ));
    }
    let bytes = plain_size(draft, value)?;
    // fio takes 0 as if the option was not given.
    Ok((Some(bytes).filter(|&bytes| bytes > Bytes(0)), None))
}

/// Reads bytes or percent of the device.
fn place(draft: &Draft, value: Option<&str>) -> Result<(Bytes, Option<u32>), OptionError> {
    match in_percent(value)? {
        Some(percent) => Ok((Bytes(0), Some(percent).filter(|&percent| percent > 0))),
        None => Ok((plain_size(draft, value)?, None)),
    }
}

/// Reads `20%`; `None` where it is something else.
fn in_percent(value: Option<&str>) -> Result<Option<u32>, OptionError> {
    let number = needed(value)?.strip_suffix('%');
    number.map(|number| percent(Some(number))).transpose()
}
