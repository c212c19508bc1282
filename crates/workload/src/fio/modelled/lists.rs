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

/// Completes the missing shares; all add up to 100. fio divides what is left by their number in
/// whole percent and draws what comes last of all, the largest share and of equal ones the last,
/// also for the remainder (`get_next_buflen` of io_u.c).
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
    let fill = |(what, share): (T, Option<u32>)| (what, share.unwrap_or(left / count.max(1)));
    let mut all: Vec<(T, u32)> = entries.into_iter().map(fill).collect();
    if let Some((_, share)) = all.iter_mut().max_by_key(|(_, share)| *share) {
        *share += left.checked_rem(count).unwrap_or(0);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{fill_up, shares};

    /// As fio 3.33 draws the sizes of `bssplit`.
    #[test]
    fn the_last_of_the_largest_shares_has_the_remainder() {
        for (text, expected) in [
            ("a:b:c", "33 33 34"),
            ("a:b:c:d:e:f", "16 16 16 16 16 20"),
            ("a/50:b:c:d", "52 16 16 16"),
            ("a/10:b:c", "10 45 45"),
            ("a/0:b", "50 50"),
        ] {
            let entries = shares(text, |name| Ok(name.to_owned())).expect(text);
            let all = fill_up(text, entries).expect(text);
            let found: Vec<String> = all.iter().map(|(_, share)| share.to_string()).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
