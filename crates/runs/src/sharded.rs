//! A shard of a run: which experiments it has, the file that it writes, and how it goes
//! on.
//!
//! A shard's file is a store with one run, of which it has its own experiments only. It is written
//! beside its place, as `FILE.part`, and gets its name when the shard has come to its end and all
//! of it is on the disk. When the shard is started again, a whole file is left alone, and a
//! `.part` is continued.

use crate::failure::{Failure, Kind};
use crate::keeper;
use crate::merge;
use crate::notes::STORE;
use crate::planned;
use crate::ready::Ready;
use raidlab_lab::{Before, cut};
use raidlab_store::text::visible_path;
use raidlab_store::{RunId, Shard, Store};
use raidlab_units::count;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file of a shard: the named file, a file in the named folder, or, with the default store, a
/// file of the shard's own in the working directory.
#[must_use]
pub fn file_of(shard: Shard, store: &Path) -> PathBuf {
    if store == Path::new(STORE) {
        PathBuf::from(shard.file_name())
    } else if store.is_dir() || store.as_os_str().as_encoded_bytes().ends_with(b"/") {
        store.join(shard.file_name())
    } else {
        store.to_owned()
    }
}

impl Ready<'_> {
    /// The positions of a shard's experiments.
    pub(crate) fn own(&self, shard: Shard) -> BTreeSet<usize> {
        let experiments = self.experiments();
        let shards = cut::cut(experiments, &self.listed, shard.count());
        (0..experiments.len())
            .filter(|&position| shards[position] == shard.index())
            .collect()
    }

    /// A description of what a shard would do.
    pub(crate) fn shard_in_words(&self, shard: Shard) -> String {
        let mut text = String::new();
        let own = self.own(shard);
        for &position in &own {
            text.push_str(&self.prepared.label(position));
            text.push('\n');
        }
        let all = self.experiments().len();
        text.push_str(&format!(
            "shard {shard}: {} of {}; nothing was run or written\n",
            own.len(),
            count(all, "experiment", "experiments")
        ));
        text
    }

    /// The shard that is to be done, with its file; `None` for a whole run.
    #[must_use]
    pub fn shard(&self) -> Option<(Shard, &Path)> {
        let here = &self.task.here;
        here.shard.map(|shard| (shard, here.store.as_path()))
    }

    /// Whether the shard's file is there, whole.
    ///
    /// # Errors
    /// When something else has the file's name, or it is damaged.
    pub fn is_there(&self) -> Result<bool, Failure> {
        let here = &self.task.here;
        let Some(shard) = here.shard.filter(|_| here.store.exists()) else {
            return Ok(false);
        };
        let store = Store::open_to_read(&here.store)?;
        match self.find(&store, shard)? {
            Some((run, _, true)) if store.is_sealed(run)? => Ok(true),
            Some((_, _, true)) => {
                let refused = merge::Refused::Damaged(here.store.clone(), shard);
                Err(Failure::input(refused).help("move it away, and start the shard again"))
            }
            _ => Err(self.other(&here.store, shard)),
        }
    }

    /// The shard's run in a store: its number and name, and whether it is whole.
    fn find(&self, store: &Store, shard: Shard) -> Result<Option<(RunId, String, bool)>, Failure> {
        let runs = store.runs()?;
        let [summary] = runs.as_slice() else {
            return match runs.is_empty() {
                true => Ok(None),
                false => Err(self.other(store.path(), shard)),
            };
        };
        let kept = store.plan(summary.id)?;
        let is_it = kept.is_some_and(|kept| kept.shard == Some(shard))
            && summary.run.plan_hash == self.plan().sha256()?
            && summary.run.raidlab_version == env!("CARGO_PKG_VERSION");
        if !is_it {
            return Err(self.other(store.path(), shard));
        }
        let (run, whole) = (&summary.run, summary.run.finished.is_some());
        Ok(Some((summary.id, run.name.clone(), whole)))
    }

    fn other(&self, path: &Path, shard: Shard) -> Failure {
        let words = format!(
            "{} is there, and is not shard {shard} of this plan by this version of raidlab",
            visible_path(path)
        );
        Failure::words(Kind::Input, words).help("move it away, or name another file with --store")
    }

    /// Begins or resumes a shard's run. Returns its number and name, and what is not to
    /// be run again.
    pub(crate) fn begin_shard(
        &self,
        shard: Shard,
        store: &mut Store,
    ) -> Result<(RunId, String, Before), Failure> {
        let (bench, prepared) = (self.bench(), &self.prepared);
        let all = prepared.experiments.len();
        let (run, name, mut before) = match self.find(store, shard)? {
            Some((run, name, _)) => {
                planned::go_on(&store.run_by_name(&name)?, store, self.task.front)?;
                let before = keeper::before(store, run, all, bench.repeats_exactly())?;
                (run, name, before)
            }
            None => {
                let plan = self.plan();
                let begun = keeper::begin(bench.name(), prepared, &plan, Some(shard), store)?;
                (begun.0, begun.1, Before::default())
            }
        };
        let own = self.own(shard);
        let others = (0..all).filter(|position| !own.contains(position));
        before.ended.extend(others);
        Ok((run, name, before))
    }
}
