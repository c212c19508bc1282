//! Shards of a run put together into one store.
//!
//! First every file is looked at, one after the other: that it is a shard, whole, of the same plan
//! by the same version of raidlab on the same kernel, and that none is missing. Only then is
//! anything written, in one transaction. The result is the run that one machine would have made,
//! whatever the number of shards and the order of their files.

mod files;
mod refused;

use crate::asked::Asked;
use crate::failure::{Failure, Kind};
use crate::front::Front;
use crate::notes::remark;
use crate::planned;
use crate::ready::lock_store;
use crate::typed;
use raidlab_bench_kernel::PROCESSOR;
use raidlab_lab::Plan;
use raidlab_shell::Lock;
use raidlab_store::output::{check_distinct, remove_database};
use raidlab_store::{AccuracyNote, KeptPlan, Observation, Run, RunId, Shard, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use files::{files, nothing};
pub(crate) use refused::Refused;

/// Facts of the guest that must be the same in all shards.
const KERNEL: [&str; 2] = ["guest.kernel", "guest.openzfs"];
/// The number of commands for missing shards that a message lists.
const TOLD: usize = 8;

/// The remedy where a file is damaged.
const AGAIN: &str = "move it away; what is missing is then told with the command that makes it";

/// The arguments of a merge.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The plan that all shards must be of; `None`: that of the first shard.
    pub plan: Option<PathBuf>,
    /// Files of shards, or folders that hold them.
    pub shards: Vec<PathBuf>,
    /// The store that the merged run goes into.
    pub store: PathBuf,
    /// Whether to merge although shards are missing.
    pub partial: bool,
}

/// A run that was merged from shards.
pub struct Merged {
    /// The store of the merged run, opened by this process alone.
    pub store: Store,
    /// The name of the merged run.
    pub name: String,
    /// The number of shards whose files are in it.
    pub shards: usize,
    /// The number of experiments in its plan.
    pub experiments: u32,
    /// The shards that are missing, where that is allowed.
    pub missing: Vec<Shard>,
    run: RunId,
    ended: String,
    /// Held until the run has been audited and finished.
    _lock: Option<Lock>,
}

/// A shard's file and what it says about itself.
struct Found {
    path: PathBuf,
    run: Run,
    id: RunId,
    kept: KeptPlan,
    shard: Shard,
}

/// The findings about all files that were looked at.
struct Looked {
    first: Found,
    /// The file of each shard, and whether the shard in it is whole.
    files: BTreeMap<u32, (PathBuf, bool)>,
    /// Facts of the guests, each with the file that said it first.
    kernel: BTreeMap<String, (String, PathBuf)>,
    /// The kinds of processors that guests ran on.
    processors: BTreeSet<String>,
    notes: Vec<AccuracyNote>,
    started: String,
    ended: String,
    another_build: bool,
}

/// Merges shards into one store.
///
/// # Errors
/// With the first file that is no shard, or with what is missing and the commands that make it; or
/// when the store cannot be written.
pub fn merge(asked: &Merge, front: &dyn Front) -> Result<Merged, Failure> {
    Store::check_place(&asked.store)?;
    let files = files(&asked.shards, asked.partial)?;
    for path in &files {
        check_distinct(&[("a shard", path), ("--store", &asked.store)])?;
    }
    let mut files = files.into_iter();
    let Some(first) = files.next() else {
        let words = "no shard is named";
        return Err(Failure::words(Kind::Usage, words).help("name their files, or a folder"));
    };
    let mut looked = Looked::begin(&first)?;
    looked.check_plan(asked.plan.as_deref())?;
    looked.add(looked_at(&first)?, asked.partial)?;
    for path in files {
        looked.add(looked_at(&path)?, asked.partial)?;
    }
    let missing = looked.missing();
    if !missing.is_empty() && !asked.partial {
        return Err(looked.refuse_missing(asked, &missing));
    }
    if looked.another_build {
        front.say("warning: shards are of different builds of this version of raidlab");
    }
    if let Some(words) = looked.unlike_processors() {
        front.say(&format!("warning: {words}"));
    }
    // Only who has the lock knows that nobody else begins the store meanwhile.
    let lock = lock_store(&asked.store)?;
    let begins = !asked.store.exists();
    match looked.write(asked, missing) {
        Ok(merged) => Ok(Merged {
            _lock: Some(lock),
            ..merged
        }),
        Err(failure) => {
            if begins {
                // The file holds no run, and may be large where the disk is full.
                remove_database(&asked.store);
            }
            Err(failure)
        }
    }
}

/// Opens a shard's file for a look.
fn looked_at(path: &Path) -> Result<(Store, Found), Failure> {
    let refuse = || Failure::input(Refused::NoShard(path.to_owned()));
    let store = Store::open_to_read(path).map_err(|error| match error {
        StoreError::NoRuns { .. } => refuse(),
        StoreError::Missing { .. } => nothing(path),
        error => damaged(error),
    })?;
    let mut runs = store.runs().map_err(damaged)?;
    let (Some(summary), true) = (runs.pop(), runs.is_empty()) else {
        return Err(refuse());
    };
    let kept = store.plan(summary.id).map_err(damaged)?;
    let kept = kept.ok_or_else(refuse)?;
    let shard = kept.shard.ok_or_else(refuse)?;
    let found = Found {
        path: path.to_owned(),
        run: summary.run,
        id: summary.id,
        kept,
        shard,
    };
    Ok((store, found))
}

/// The failure for a file that cannot be read as it was written.
fn damaged(error: StoreError) -> Failure {
    Failure::from(error).help(AGAIN)
}

impl Looked {
    fn begin(first: &Path) -> Result<Self, Failure> {
        let (_, first) = looked_at(first)?;
        Ok(Self {
            started: first.run.started.clone(),
            ended: String::new(),
            first,
            files: BTreeMap::new(),
            kernel: BTreeMap::new(),
            processors: BTreeSet::new(),
            notes: Vec::new(),
            another_build: false,
        })
    }

    /// Checks that the plan that was named is that of the shards.
    fn check_plan(&self, plan: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = plan else { return Ok(()) };
        let hash = (planned::in_file(path)?.map(|plan| plan.sha256())).transpose()?;
        if hash.as_ref() == Some(&self.first.run.plan_hash) {
            return Ok(());
        }
        let (shard, plan) = (self.first.path.clone(), path.to_owned());
        Err(Failure::input(Refused::OtherPlan(shard, plan)))
    }

    /// Adds a file to the others.
    fn add(&mut self, (store, found): (Store, Found), partial: bool) -> Result<(), Failure> {
        let whole = found.run.finished.is_some();
        if whole && !store.is_sealed(found.id).map_err(damaged)? {
            let refused = Refused::Damaged(found.path, found.shard);
            return Err(Failure::input(refused).help(AGAIN));
        }
        self.check(&found)?;
        if !whole && !partial {
            let refused = Refused::Unfinished(found.path, found.shard);
            return Err(Failure::input(refused).help(files::BEGUN));
        }
        self.check_kernel(&found.path, &store.observations(found.id)?)?;
        for note in store.notes_of_the_whole(found.id)? {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.another_build |= found.kept.program != self.first.kept.program;
        if found.run.started < self.started {
            self.started.clone_from(&found.run.started);
        }
        if let Some(ended) = found.run.finished.as_ref().filter(|one| **one > self.ended) {
            self.ended.clone_from(ended);
        }
        let index = found.shard.index();
        match self.files.get(&index) {
            Some((other, true)) if whole => compare(&store, &found, other)?,
            Some((_, true)) => {}
            Some((other, false)) if !whole && !has_more(&store, &found, other)? => {}
            _ => {
                self.files.insert(index, (found.path, whole));
            }
        }
        Ok(())
    }

    /// Checks that a shard is of the same plan, version and number of shards as the first.
    fn check(&self, found: &Found) -> Result<(), Failure> {
        let first = &self.first;
        let (path, other) = (found.path.clone(), first.path.clone());
        let (own, its) = (&found.run.raidlab_version, &first.run.raidlab_version);
        let refused = if found.run.plan_hash != first.run.plan_hash {
            Refused::OtherPlan(path, other)
        } else if own != its {
            Refused::OtherVersion(path, own.clone(), other, its.clone())
        } else if found.shard.count() != first.shard.count() {
            Refused::OtherCount(path, found.shard, other, first.shard)
        } else {
            return Ok(());
        };
        Err(Failure::input(refused).help("leave it out, or merge it with others of its kind"))
    }

    fn check_kernel(&mut self, path: &Path, observations: &[Observation]) -> Result<(), Failure> {
        let kinds = observations.iter().filter(|one| one.name == PROCESSOR);
        self.processors.extend(kinds.map(|one| one.value.clone()));
        let facts = observations
            .iter()
            .filter(|one| KERNEL.iter().any(|begin| one.name.starts_with(begin)));
        for fact in facts {
            let said = (fact.value.clone(), path.to_owned());
            let known = self.kernel.entry(fact.name.clone()).or_insert(said);
            if known.0 != fact.value {
                let (name, value) = (fact.name.clone(), fact.value.clone());
                let (other, at) = known.clone();
                let refused = Refused::OtherKernel(path.to_owned(), name, value, at, other);
                let help =
                    "build one kernel and take it to every machine: docs/guide/many-machines.md";
                return Err(Failure::input(refused).help(help));
            }
        }
        Ok(())
    }

    /// The remark to make where guests ran on unlike processors.
    fn unlike_processors(&self) -> Option<String> {
        let kinds: Vec<&str> = self.processors.iter().map(String::as_str).collect();
        (kinds.len() > 1).then(|| {
            format!(
                "Shards ran on unlike processors, by which libraries in the guest choose their \
                 code, so the same shard may have other rows elsewhere: {}.",
                kinds.join("; ")
            )
        })
    }

    /// The shards without a whole file.
    fn missing(&self) -> Vec<Shard> {
        let count = self.first.shard.count();
        let whole = |index: &u32| self.files.get(index).is_some_and(|(_, whole)| *whole);
        (0..count.get())
            .filter(|index| !whole(index))
            .filter_map(|index| Shard::new(index, count))
            .collect()
    }

    fn refuse_missing(&self, asked: &Merge, missing: &[Shard]) -> Failure {
        let more = more_than_told(missing);
        let count = self.first.shard.count().get();
        let commands: Vec<String> = (missing.iter().take(TOLD))
            .map(|shard| format!("`{}`", self.command(asked, *shard)))
            .collect();
        let makes = if missing.len() == 1 {
            "makes it"
        } else {
            "make them"
        };
        let help = format!(
            "{}{more} {makes}; `--partial` takes what there is",
            commands.join(", ")
        );
        Failure::input(Refused::Missing(count, some_of(missing))).help(help)
    }

    /// The command that makes a shard: the first shard's command, with this number and file.
    fn command(&self, asked: &Merge, shard: Shard) -> String {
        let folder = self.first.path.parent().unwrap_or(Path::new(""));
        let file = typed::in_shell(folder.join(shard.file_name()).as_os_str());
        if let Some(plan) = &asked.plan {
            let plan = typed::in_shell(plan.as_os_str());
            return format!("raidlab run {plan} --shard {shard} --store {file}");
        }
        let line = &self.first.run.command_line;
        let mut words: Vec<String> = typed::words(line).into_iter().map(str::to_owned).collect();
        set_option(&mut words, "--shard", &shard.to_string());
        set_option(&mut words, "--store", &file);
        words.join(" ")
    }

    /// The run whose parts the shards are; its beginning is the time of the merge.
    fn whole(&self) -> Run {
        let first = &self.first.run;
        let mut stamp = self.started.clone();
        stamp.retain(|one| !matches!(one, '-' | ':'));
        Run {
            name: format!("{stamp}-{}", first.suite),
            started: self.started.clone(),
            finished: None,
            command_line: typed::command_line(),
            ..first.clone()
        }
    }

    /// Writes everything into the store.
    fn write(mut self, asked: &Merge, missing: Vec<Shard>) -> Result<Merged, Failure> {
        let kept = &self.first.kept;
        let plan: Plan<Asked> = planned::read("the plan of the shards", &kept.json)?;
        let experiments = u32::try_from(plan.experiments.len()).unwrap_or(u32::MAX);
        let mut run = self.whole();
        if self.another_build {
            let statement = "The shards are of different builds of this version of raidlab.";
            self.notes
                .push(remark("Another build", statement.to_owned()));
        }
        let unlike = self.unlike_processors();
        (self.notes).extend(unlike.map(|words| remark("Unlike processors", words)));
        let kept = KeptPlan {
            shard: None,
            ..self.first.kept.clone()
        };
        let mut store = Store::open(&asked.store)?;
        let mut merging = store.merge(&mut run, &kept, &self.notes)?;
        for (path, _) in self.files.values() {
            let (shard, found) = looked_at(path)?;
            merging.add(&shard, found.id).map_err(|error| match error {
                error @ StoreError::CellExists { .. } => Failure::input(error).help(AGAIN),
                error => error.into(),
            })?;
        }
        let id = merging.finish()?;
        let ended: BTreeSet<u32> = store.ended_experiments(id)?.into_iter().collect();
        let lacking: Vec<u32> = (0..experiments)
            .filter(|one| !ended.contains(one))
            .collect();
        if let Some(&position) = lacking.first() {
            let statement = format!(
                "{} of {experiments} experiments are missing; shards that were not whole: {}.",
                lacking.len(),
                some_of(&missing)
            );
            // The remark names an experiment that is missing, so that resuming the run deletes it.
            let note = remark("Only a part", statement);
            store.add_notes(id.experiment(position), &[note])?;
            if missing.is_empty() {
                store.delete_run(id)?;
                let words = format!(
                    "the shards lack {} experiments of their plan",
                    lacking.len()
                );
                return Err(Failure::words(Kind::Input, words).help("make them again"));
            }
        }
        Ok(Merged {
            store,
            name: run.name,
            shards: self.files.len(),
            experiments,
            missing: if lacking.is_empty() {
                Vec::new()
            } else {
                missing
            },
            run: id,
            ended: self.ended,
            _lock: None,
        })
    }
}

/// Sets an option among the words of a command line, `--option VALUE` or `--option=VALUE`. If it is
/// not there, it is added.
fn set_option(words: &mut Vec<String>, option: &str, value: &str) {
    let begin = format!("{option}=");
    // A word that is no UTF-8, or has blanks, is quoted as a whole.
    let joined = |word: &String| word.trim_start_matches(['$', '\'']).starts_with(&begin);
    if let Some(place) = words.iter().position(|word| word == option) {
        words.splice(place + 1..words.len().min(place + 2), [value.to_owned()]);
    } else if let Some(word) = words.iter_mut().find(|word| joined(word)) {
        *word = begin + value;
    } else {
        words.extend([option.to_owned(), value.to_owned()]);
    }
}

/// The first of these shards, and whether there are more.
fn some_of(shards: &[Shard]) -> String {
    let names: Vec<String> = shards.iter().take(TOLD).map(Shard::to_string).collect();
    names.join(", ") + more_than_told(shards)
}

fn more_than_told(shards: &[Shard]) -> &'static str {
    if shards.len() > TOLD { " ..." } else { "" }
}

/// Whether an unfinished shard has more experiments than another file of it.
fn has_more(store: &Store, found: &Found, other: &Path) -> Result<bool, Failure> {
    let (its, at) = looked_at(other)?;
    let (own, theirs) = (
        store.ended_experiments(found.id)?,
        its.ended_experiments(at.id)?,
    );
    Ok(own.len() > theirs.len())
}

/// Checks that two files of one shard say the same.
fn compare(store: &Store, found: &Found, other: &Path) -> Result<(), Failure> {
    let (its, at) = looked_at(other)?;
    let (own, theirs) = (found.id, at.id);
    let differ = if store.measurements(own)? != its.measurements(theirs)? {
        "rows"
    } else if store.ended_experiments(own)? != its.ended_experiments(theirs)? {
        "experiments"
    } else if store.settings(own)? != its.settings(theirs)? {
        "settings"
    } else if store.observations(own)? != its.observations(theirs)? {
        "facts"
    } else if store.events(own)? != its.events(theirs)? {
        "events"
    } else if store.commands(own)? != its.commands(theirs)? {
        "commands"
    } else if store.series(own)? != its.series(theirs)? {
        "samples"
    } else {
        return Ok(());
    };
    let (path, other) = (found.path.clone(), other.to_owned());
    let refused = Refused::Doubled(other, path, found.shard, differ);
    Err(Failure::input(refused).help("find out which machine gave which, and leave one out"))
}

impl Merged {
    /// Shows every row, experiment by experiment, as the run itself would have.
    ///
    /// # Errors
    /// When the store cannot be read, or a row cannot be shown.
    pub fn rows(
        &self,
        mut show: impl FnMut(&raidlab_store::Measurement) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for position in 0..self.experiments {
            let rows = self.store.measurements_of(self.run.experiment(position))?;
            rows.iter().try_for_each(&mut show)?;
        }
        Ok(())
    }

    /// Records that the run is complete, if nothing is missing; otherwise it can be resumed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if self.missing.is_empty() {
            self.store.finish_run(self.run, &self.ended)?;
        }
        Ok(())
    }
}
