//! Values that are lists: one for each direction, or parts with their shares.

use super::super::error::OptionError;
use super::{choice, percent};

/// Reads `8k`, `8k,32k` (reads, writes) or `8k,32k,4k` (and discards); a missing value is as the
/// one before, and an empty place is `None`.
pub(super) fn by_direction<T>(
    text: &str,
    one: impl Fn(&str) -> Result<T, OptionError>,
) -> Result<[Option<T>; 3], OptionError> {
    let place = |text: &str| match text.trim() {
        "" => Ok(None),
        text => one(text).map(Some),
    };
    let mut parts = text.split(',');
    let reads = parts.next().unwrap_or_default();
    let writes = parts.next().unwrap_or(reads);
    let trims = parts.next().unwrap_or(writes);
    if parts.next().is_some() {
        return Err(choice(text, "values for reads, writes and discards"));
    }
    Ok([place(reads)?, place(writes)?, place(trims)?])
}

/// Reads `what/percent:what/percent`; a share may be missing, which is also the meaning of
/// 0 in fio.
pub(super) fn shares<T>(
    text: &str,
    what: impl Fn(&str) -> Result<T, OptionError>,
) -> Result<Vec<(T, Option<u32>)>, OptionError> {
    let entry = |text: &str| {
        let (first, share) = match text.split_once('/') {
            Some((first, share)) => (first, share.trim().trim_end_matches('%')),
            None => (text, ""),
        };
        let share = match share {
            "" => None,
            share => Some(percent(Some(share))?).filter(|&share| share > 0),
        };
        Ok((what(first)?, share))
    };
    text.split(':').map(entry).collect()
}

/// Completes the missing shares; all add up to 100.
pub(super) fn fill_up<T>(
    text: &str,
    entries: Vec<(T, Option<u32>)>,
) -> Result<Vec<(T, u32)>, OptionError> {
    let given: u32 = entries.iter().filter_map(|(_, share)| *share).sum();
    let missing = entries.iter().filter(|(_, share)| share.is_none()).count();
    let wrong = || choice(text, "shares that make 100 percent");
    let left = 100_u32.checked_sub(given).ok_or_else(wrong)?;
    let count = u32::try_from(missing).map_err(|_| wrong())?;
    if count == 0 && left > 0 {
        return Err(wrong());
    }
    // The remainder of the division goes to the first.
    let mut rest = left.checked_rem(count).unwrap_or(0);
    let fill = |(what, share): (T, Option<u32>)| {
        let share = share.unwrap_or_else(|| left / count.max(1) + std::mem::take(&mut rest));
        (what, share)
    };
    Ok(entries.into_iter().map(fill).collect())
}
