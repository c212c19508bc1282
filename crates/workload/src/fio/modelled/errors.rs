//! The options for what a job does after a failed request.
//!
//! A request of a modelled job fails only where its array has lost the data or the member, with an
//! input or output error; nothing is ever full, and data read back are not compared.

use super::{Draft, Noted, choice, needed};

/// The only error of a modelled request, by name and number.
const INPUT_OUTPUT: [&str; 2] = ["EIO", "5"];

/// The values of the options on errors in a section, for reads and for all others, before all of
/// it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ErrorDraft {
    continues: [bool; 2],
    /// Whether the list of ignored errors has that one, if there is a list.
    listed: [Option<bool>; 2],
}

/// Reads `read`, `write`, `io`, `verify`, `all` or `none`.
pub(super) fn set_continue_on_error(draft: &mut Draft, value: Option<&str>) -> Noted {
    draft.errors.continues = match needed(value)? {
        "none" | "0" | "verify" => [false; 2],
        "read" => [true, false],
        "write" => [false, true],
        "io" | "all" | "1" => [true; 2],
        text => return Err(choice(text, "none, read, write, io, verify, all")),
    };
    Ok(None)
}

/// Reads lists of errors for reads, writes and reading back: `EIO,EIO:ENOSPC`. After these
/// a job continues.
pub(super) fn set_ignore_error(draft: &mut Draft, value: Option<&str>) -> Noted {
    let text = needed(value)?;
    let letters = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit();
    for (place, list) in text.split(',').enumerate() {
        let errors: Vec<&str> = list.split(':').map(str::trim).collect();
        if list.trim().is_empty() && place < 3 {
            continue;
        }
        let known = |error: &&str| !error.is_empty() && error.chars().all(letters);
        if place > 2 || !errors.iter().all(known) {
            return Err(choice(text, "lists of errors: EIO:ENOSPC,EIO"));
        }
        if let Some(listed) = draft.errors.listed.get_mut(place) {
            *listed = Some(errors.iter().any(|error| INPUT_OUTPUT.contains(error)));
            draft.errors.continues[place] = true;
        }
    }
    Ok(None)
}

/// Applies these options when all of a job's options are known. fio counts a discard
/// among the writes.
pub(super) fn settle(draft: &mut Draft) {
    let ErrorDraft { continues, listed } = draft.errors;
    let [reads, others] = [0, 1].map(|kind| continues[kind] && listed[kind].unwrap_or(true));
    draft.spec.tolerates_errors = [reads, others, others];
}
