//! The progress of a run's shards, told from the files of a folder.
//!
//! Files of whole shards are opened. Those of shards that are not whole are not: another machine
//! may be writing them, and over a network file system two machines must not have one database
//! open. Only the time of their last write is used.

use crate::failure::{Failure, Kind};
use crate::merge::Refused;
use crate::submission::Submission;
use raidlab_store::text::visible_path;
use raidlab_store::{Shard, Store, StoreError};
use raidlab_units::reasons;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The progress of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The shard's file is there, with so many experiments, and ended at this time, RFC
    /// 3339 in UTC.
    Whole(usize, String),
    /// The shard was begun, and last wrote something so long ago.
    Begun(Duration),
    /// A file with the shard's name is not such a shard, for this reason.
    Broken(String),
    /// There is no file of the shard.
    Missing,
}

/// The help for names that are none of a run.
pub(crate) const THE_FOLDER: &str = "name the folder that `raidlab run --shard` writes into";

/// The states of all shards of the run in a folder, in their order.
///
/// # Errors
/// When there are no shards, they are of several runs, or the folder cannot be read.
pub fn status(folder: &Path) -> Result<Vec<(Shard, State)>, Failure> {
    if let Some(states) = states(folder, None)? {
        return Ok(states);
    }
    // The shards were submitted, and none has begun.
    let submitted = Submission::of(folder)?.map(|submission| {
        let count = submission.shards;
        let all = (0..count.get()).filter_map(|index| Shard::new(index, count));
        all.map(|shard| (shard, State::Missing)).collect()
    });
    submitted.ok_or_else(|| {
        let words = format!("there is no shard in {}", visible_path(folder));
        Failure::words(Kind::Input, words).help(THE_FOLDER)
    })
}

/// Returns the states as [`status()`] does; `None` where there is no file of any shard. `plan`: the
/// SHA-256 of the plan that whole shards are to be of.
pub(crate) fn states(
    folder: &Path,
    plan: Option<&str>,
) -> Result<Option<Vec<(Shard, State)>>, Failure> {
    let unreadable = |error: io::Error| {
        let error = match error.kind() {
            ErrorKind::NotADirectory => io::Error::new(error.kind(), "it is not a folder"),
            _ => error,
        };
        Failure::read_file(folder, error).help(THE_FOLDER)
    };
    let mut states = BTreeMap::new();
    let mut count: Option<NonZero<u32>> = None;
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some((shard, whole)) = named(&path) else {
            continue;
        };
        if *count.get_or_insert(shard.count()) != shard.count() {
            let words = format!(
                "{} has shards of {} and of {}",
                visible_path(folder),
                count.map_or(0, NonZero::get),
                shard.count()
            );
            return Err(Failure::words(Kind::Input, words).help("give each run a folder"));
        }
        let state = match whole {
            true => look(&path, shard, plan),
            false => match path.metadata().and_then(|file| file.modified()) {
                Ok(time) => {
                    State::Begun(SystemTime::now().duration_since(time).unwrap_or_default())
                }
                // The shard has finished meanwhile, and its file has its name by now.
                Err(error) if error.kind() == ErrorKind::NotFound => match whole_one(&path) {
                    Some(whole) => look(&whole, shard, plan),
                    None => continue,
                },
                Err(error) => return Err(unreadable(error)),
            },
        };
        // A whole file decides the shard's state, whatever is left beside it; of unfinished files
        // the last written one decides.
        let state = match (states.remove(&shard), state) {
            (Some(State::Begun(age)), State::Begun(other)) => State::Begun(age.min(other)),
            (Some(other), State::Begun(_)) => other,
            (_, state) => state,
        };
        states.insert(shard, state);
    }
    let Some(count) = count else {
        return Ok(None);
    };
    let all = (0..count.get()).filter_map(|index| Shard::new(index, count));
    let all = all.map(|shard| (shard, states.remove(&shard).unwrap_or(State::Missing)));
    Ok(Some(all.collect()))
}

/// The file of the whole shard, if it is there, whose unfinished file or journal this was.
fn whole_one(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix("-wal").unwrap_or(name);
    let whole = path.with_file_name(name.strip_suffix(".part")?);
    whole.exists().then_some(whole)
}

/// The shard that a file's name is for, and whether the name is that of a whole shard.
fn named(path: &Path) -> Option<(Shard, bool)> {
    let name = path.file_name()?.to_str()?;
    let (stem, whole) = match name.strip_suffix(".db") {
        Some(stem) => (stem, true),
        // The shard's journal is written first.
        None => {
            let part = name.strip_suffix("-wal").unwrap_or(name);
            (part.strip_suffix(".db.part")?, false)
        }
    };
    let (index, count) = stem.strip_prefix("shard-")?.split_once("-of-")?;
    let shard = format!("{index}/{count}").parse().ok()?;
    Some((shard, whole))
}

/// The state of a file that has the name of a whole shard; `plan`: as of [`states()`].
fn look(path: &Path, shard: Shard, plan: Option<&str>) -> State {
    let read = || -> Result<Option<State>, StoreError> {
        let store = Store::open_to_read(path)?;
        for found in store.runs()? {
            let is_it = store.plan(found.id)?.and_then(|plan| plan.shard) == Some(shard);
            if let Some(end) = found.run.finished.filter(|_| is_it) {
                if !store.is_sealed(found.id)? {
                    return Ok(Some(State::Broken(
                        Refused::Damaged(path.to_owned(), shard).to_string(),
                    )));
                }
                if plan.is_some_and(|plan| found.run.plan_hash != plan) {
                    return Ok(Some(State::Broken("it is of another plan".to_owned())));
                }
                let experiments = store.ended_experiments(found.id)?.len();
                return Ok(Some(State::Whole(experiments, end)));
            }
        }
        Ok(None)
    };
    match read() {
        Ok(Some(state)) => state,
        Ok(None) => State::Broken(format!("it is not shard {shard}")),
        Err(error) => State::Broken(reasons(&error).join(": ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Rows go into the journal, and into the file itself only now and then.
    #[test]
    fn a_shard_was_last_written_when_its_journal_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let hour = Duration::from_secs(3600);
        for index in 0..8 {
            let mut files = [("-wal", Duration::ZERO), ("", hour)];
            if index % 2 == 0 {
                files.reverse();
            }
            for (ending, age) in files {
                let name = format!("shard-{index}-of-8.db.part{ending}");
                let file = File::create(folder.path().join(name)).expect("a file");
                file.set_modified(SystemTime::now() - age).expect("a time");
            }
        }
        let states = status(folder.path()).expect("eight shards");
        assert_eq!(states.len(), 8);
        for (shard, state) in states {
            let recent = matches!(state, State::Begun(age) if age < hour / 2);
            assert!(recent, "{shard}: {state:?}");
        }
    }

    /// A link to nowhere stands for a file that is no longer there when it is looked at.
    #[test]
    fn a_shard_that_comes_to_its_end_meanwhile_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["shard-0-of-3.db.part", "shard-1-of-3.db.part-wal"] {
            let link = folder.path().join(name);
            std::os::unix::fs::symlink("nowhere", link).expect("a link");
        }
        File::create(folder.path().join("shard-2-of-3.db.part")).expect("a file");
        let states = status(folder.path()).expect("three shards");
        let is = |index: usize, state: State| states[index].1 == state;
        assert!(is(0, State::Missing) && is(1, State::Missing), "{states:?}");
        assert!(matches!(states[2].1, State::Begun(_)), "{states:?}");
        // Its own file may have come behind the place to which the folder was read.
        let whole = folder.path().join("shard-0-of-3.db");
        File::create(&whole).expect("a file");
        let part = folder.path().join("shard-0-of-3.db.part");
        assert_eq!(whole_one(&part), Some(whole));
        assert_eq!(
            whole_one(&folder.path().join("shard-1-of-3.db.part-wal")),
            None
        );
    }
}
