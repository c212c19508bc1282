//! The options of the sizes of requests.
//!
//! fio stores the values of `bs`, `bsrange` and `bssplit` separately, for each direction, whichever
//! comes last: a size is drawn by `bssplit` where there is one, else by `bsrange`, else it is that
//! of `bs` (`fixup_options` of init.c, `get_next_buflen` of io_u.c). A place that is left empty, as
//! in `bs=,8k`, changes nothing.

use super::super::value::size;
use super::lists::{by_direction, fill_up, shares};
use super::{Draft, Noted, choice, needed};
use crate::shape::Sizes;
use raidlab_units::Bytes;

/// The sizes of reads, writes and discards in a section.
#[derive(Debug, Clone, Default)]
pub(super) struct SizeDraft {
    fixed: [Option<Sizes>; 3],
    ranges: [Option<Sizes>; 3],
    splits: [Option<Sizes>; 3],
}

/// Stores the given sizes; an empty place keeps the earlier one.
fn take_over(kept: &mut [Option<Sizes>; 3], given: [Option<Sizes>; 3]) -> Noted {
    for (kept, given) in kept.iter_mut().zip(given) {
        *kept = given.or(kept.take());
    }
    Ok(None)
}

pub(super) fn set_block_sizes(draft: &mut Draft, value: Option<&str>) -> Noted {
    let base = draft.kilo_base;
    let sizes = by_direction(needed(value)?, |text| size(text, base).map(Sizes::One))?;
    take_over(&mut draft.sizes.fixed, sizes)
}

/// Reads `1k-4k`, also for reads and writes.
pub(super) fn set_block_size_range(draft: &mut Draft, value: Option<&str>) -> Noted {
    let base = draft.kilo_base;
    let range = |text: &str| {
        let (least, most) = text
            .split_once(['-', ':'])
            .ok_or_else(|| choice(text, "ranges such as 4k-16k"))?;
        let (least, most) = (size(least, base)?, size(most, base)?);
        if least == most {
            return Ok(Sizes::One(least));
        }
        if least > most || least == Bytes(0) {
            return Err(choice(text, "ranges such as 4k-16k"));
        }
        Ok(Sizes::Range { least, most })
    };
    let sizes = by_direction(needed(value)?, range)?;
    take_over(&mut draft.sizes.ranges, sizes)
}

/// Reads `4k/10:64k/50:32k/40`, also for reads and writes; sizes without a share divide the rest.
pub(super) fn set_block_size_split(draft: &mut Draft, value: Option<&str>) -> Noted {
    let base = draft.kilo_base;
    let split = |text: &str| {
        let entries = shares(text, |text| size(text, base))?;
        let mut sizes = Vec::new();
        for (size, share) in fill_up(text, entries)? {
            if size == Bytes(0) {
                return Err(choice(text, "sizes above 0, as 4k/60:64k/40"));
            }
            if share > 0 {
                sizes.push((size, share));
            }
        }
        Ok(match sizes.as_slice() {
            [(size, _)] => Sizes::One(*size),
            _ => Sizes::Split(sizes),
        })
    };
    let sizes = by_direction(needed(value)?, split)?;
    take_over(&mut draft.sizes.splits, sizes)
}

/// Applies the sizes of the directions that the job uses. Those of others count where fio keeps a
/// map of blocks, whose blocks have the smallest size of all.
pub(super) fn settle(draft: &mut Draft) {
    let SizeDraft {
        fixed,
        ranges,
        splits,
    } = &draft.sizes;
    let spec = &mut draft.spec;
    let sizes: [Sizes; 3] = std::array::from_fn(|index| {
        let said = [splits, ranges, fixed].into_iter();
        let mut said = said.filter_map(|sizes| sizes[index].clone());
        said.next().unwrap_or(Sizes::One(spec.block_size))
    });
    // fio keeps its random map beside the alignment that it has anyway (`fixup_options` of init.c).
    let aligned = sizes.each_ref().map(Sizes::least);
    spec.alignment.take_if(|given| *given == aligned);
    let used: Vec<&Sizes> = spec
        .pattern
        .directions()
        .into_iter()
        .zip(&sizes)
        .filter_map(|(used, sizes)| used.then_some(sizes))
        .collect();
    let first = used[0];
    let least = used.iter().map(|sizes| sizes.least()).min();
    let smallest = sizes.iter().map(Sizes::least).min();
    let maps_smaller = spec.random_map && spec.pattern.is_random() && smallest < least;
    let alike = matches!(first, Sizes::One(_)) && used.iter().all(|sizes| *sizes == first);
    let alike = alike && !maps_smaller;
    spec.block_size = least.unwrap_or(spec.block_size);
    spec.sizes = (!alike).then_some(sizes);
}
