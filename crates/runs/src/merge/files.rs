//! The choice of the files to be merged.

use super::Refused;
use crate::failure::Failure;
use crate::status::{State, THE_FOLDER, states};
use crate::typed;
use raidlab_store::{Shard, Store, StoreError};
use std::path::{Path, PathBuf};

/// The remedy where a shard is only begun.
pub(super) const BEGUN: &str =
    "start it again with its command; or `--partial` takes what there is";

/// The files to be merged: those of folders in the order of their names. With `partial` also those
/// of unfinished shards, if they may hold a row.
pub(super) fn files(named: &[PathBuf], partial: bool) -> Result<Vec<PathBuf>, Failure> {
    let begun = |file: &Path, name: &str| {
        let whole = name.strip_suffix(".part").filter(|_| partial);
        let is_there = whole.is_none_or(|whole| file.with_file_name(whole).exists());
        !is_there && may_hold_a_row(file)
    };
    let mut all = Vec::new();
    for path in named {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let unreadable = |error| Failure::read_file(path, error);
        let mut inside = Vec::new();
        for entry in path.read_dir().map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let is_whole = name.ends_with(".db");
            if name.starts_with("shard-") && (is_whole || begun(&file, &name)) {
                inside.push(file);
            }
        }
        if inside.is_empty() {
            return Err(none_in(path, partial));
        }
        inside.sort();
        all.extend(inside);
    }
    Ok(all)
}

/// Whether the file of an unfinished shard may hold a row. One that cannot be read may: it is
/// refused by its name later, as its rows would be left out without a word.
fn may_hold_a_row(file: &Path) -> bool {
    match Store::open_to_read(file).and_then(|store| store.runs()) {
        Ok(runs) => !runs.is_empty(),
        // It has no tables yet, or the shard has finished meanwhile.
        Err(StoreError::NoRuns { .. } | StoreError::Missing { .. }) => false,
        Err(_) => true,
    }
}

/// The failure for a folder without a shard that could be merged.
fn none_in(folder: &Path, partial: bool) -> Failure {
    let all = match states(folder, None) {
        Ok(all) => all.unwrap_or_default(),
        Err(failure) => return failure,
    };
    let is_begun = |(_, state): &&(Shard, State)| matches!(state, State::Begun(_));
    let path = folder.to_owned();
    match all.iter().filter(is_begun).count() {
        0 => Failure::input(Refused::NoShards(path)).help(THE_FOLDER),
        begun => {
            let taken = match partial {
                true => "there is no row in them yet",
                false => "`--partial` takes what there is",
            };
            let folder = typed::in_shell(folder.as_os_str());
            let help = format!("`raidlab status {folder}` says how far they are; {taken}");
            Failure::input(Refused::OnlyBegun(path, begun)).help(help)
        }
    }
}

/// The failure for a file that is not there.
pub(super) fn nothing(path: &Path) -> Failure {
    let part = Shard::part_of(path);
    match part.exists() {
        // Of a file that is named `--partial` takes that one, and no other beside it.
        true => {
            let named = typed::in_shell(part.as_os_str());
            let help = format!(
                "start it again with its command; or name {named} with `--partial`, which takes \
                 what there is"
            );
            Failure::input(Refused::Begun(path.to_owned(), part)).help(help)
        }
        false => Failure::input(Refused::Nothing(path.to_owned())).help(
            "name the files of the shards or the folder that holds them; `raidlab run --shard` \
             makes them",
        ),
    }
}
