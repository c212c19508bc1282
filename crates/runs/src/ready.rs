//! A task made ready on its bench: everything decided, nothing run; and the running.

use crate::asked::{Asked, Here, On};
use crate::failure::{Failure, Kind};
use crate::front::{Front, KeepError, Watcher};
use crate::host::HostRun;
use crate::keeper::{self, Keeper};
use crate::kept::Kept;
use crate::prepared::{CannotRun, LEFT_OUT, Prepared};
use crate::task::{Task, holder, threads};
use crate::{host, kernel, planned, prepare};
use raidlab_bench_kernel::KernelBench;
use raidlab_bench_model::{ModelBench, commands};
use raidlab_lab::{
    Before, Bench, Experiment, Files, Finish, Plan, RunError, RunOptions, SubjectKind,
    plan::Listed, run_suite,
};
use raidlab_shell::{Lock, LockError, lock_file};
use raidlab_store::output::OutputError;
use raidlab_store::{RunId, RunSummary, Shard, Store};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

impl Task {
    /// The task that is asked for; where the suite's place names a plan, the plan's task.
    ///
    /// # Errors
    /// When the plan cannot be read, or an option does nothing on its bench.
    pub fn new(asked: Asked, here: Here, front: &'static dyn Front) -> Result<Self, Failure> {
        match planned::from_file(&asked)? {
            Some(plan) => Self::of_plan(plan, None, here, front),
            None => {
                let allow_fio = prepare::with_values(&asked.allow_fio);
                let asked = Asked { allow_fio, ..asked };
                Self::of(asked, Files::default(), None, None, here, front)
            }
        }
    }

    /// The task of resuming a run that did not finish.
    ///
    /// # Errors
    /// When the run has no plan that can be resumed, or is a shard, which is started again instead.
    pub fn resume(run: RunSummary, here: Here, front: &'static dyn Front) -> Result<Self, Failure> {
        let kept = Store::open_existing(&here.store)?.plan(run.id)?;
        if let Some(shard) = kept.and_then(|kept| kept.shard) {
            let words = format!("run {} is only shard {shard} of a run", run.run.name);
            let help = format!(
                "the shard goes on as it was begun: `{}`",
                run.run.command_line
            );
            return Err(Failure::words(Kind::Usage, words).help(help));
        }
        let plan = planned::from_store(&here.store, &run, front)?;
        Self::of_plan(plan, Some(run), here, front)
    }

    /// The task of doing a kept run once more.
    ///
    /// # Errors
    /// When the run has no plan.
    pub fn again(run: RunSummary, here: Here, front: &'static dyn Front) -> Result<Self, Failure> {
        let plan = planned::from_store(&here.store, &run, front)?;
        Self::of_plan(plan, None, here, front)
    }

    fn of_plan(
        plan: Plan<Asked>,
        resumed: Option<RunSummary>,
        here: Here,
        front: &'static dyn Front,
    ) -> Result<Self, Failure> {
        let files = Files::brought(plan.files.clone());
        Self::of(plan.asked.clone(), files, Some(plan), resumed, here, front)
    }

    fn of(
        asked: Asked,
        files: Files,
        planned: Option<Plan<Asked>>,
        resumed: Option<RunSummary>,
        here: Here,
        front: &'static dyn Front,
    ) -> Result<Self, Failure> {
        let permission = prepare::permission(&asked.allow_fio)?;
        Store::check_place(&here.store)?;
        asked.check(&here.typed)?;
        if asked.on == On::Host && here.shard.is_some() {
            let why = "real machines are not cut into shards: each has its own disks";
            let help = "run each machine by itself with `--machine`, on as many as there are";
            return Err(Failure::words(Kind::Usage, why).help(help));
        }
        Ok(Self {
            files: Arc::new(files.allowing(permission)),
            asked,
            here,
            front,
            planned,
            resumed,
        })
    }

    /// Decides everything and makes the bench ready; where a killed run of real machines is
    /// resumed, its leftovers are removed first.
    ///
    /// # Errors
    /// When a part of the run cannot be run, or is not what was planned.
    pub fn prepare(&self) -> Result<Ready<'_>, Failure> {
        let (on, prepared, threads) = match self.asked.on {
            On::Model => {
                let prepared = prepare::for_model(self)?;
                let bench = ModelBench {
                    commands: self.here.disk_commands.clone(),
                    files: Arc::clone(&self.files),
                    explains: false,
                };
                (OnBench::Model(bench), prepared, threads(self.here.threads))
            }
            On::Kernel => {
                let (bench, prepared, threads) = kernel::prepare(self)?;
                (OnBench::Kernel(Box::new(bench)), prepared, threads)
            }
            On::Host => {
                // From here on an interruption must be noticed, so that the trial
                // disks are removed.
                self.front.listen()?;
                let (host, prepared) = host::prepare(self)?;
                let machines = prepared.machines();
                (OnBench::Host(Box::new(host)), prepared, machines)
            }
        };
        let listed = Listed::all(&prepared.experiments, prepared.suite.repetitions);
        if let Some(plan) = &self.planned {
            planned::check(plan, &listed)?;
        }
        if let Some(folder) = &self.here.disk_commands {
            commands::check(folder, &prepared.experiments)?;
        }
        let ready = Ready {
            task: self,
            on,
            prepared,
            listed,
            threads,
        };
        ready.check()?;
        Ok(ready)
    }
}

/// A run that can begin.
pub struct Ready<'a> {
    pub(crate) task: &'a Task,
    on: OnBench,
    pub(crate) prepared: Prepared,
    /// The experiments in the form of the plan.
    pub(crate) listed: Vec<Listed>,
    threads: usize,
}

enum OnBench {
    Model(ModelBench),
    Kernel(Box<KernelBench>),
    Host(Box<HostRun>),
}

/// A run that has ended.
pub struct Ended {
    /// The store that keeps the run, opened by this process alone.
    pub store: Store,
    /// The name of the run.
    pub name: String,
    /// The failure of an experiment, if one failed; the others ended well.
    pub failure: Option<Failure>,
    run: RunId,
    lock: Lock,
}

impl Ended {
    /// Records that the run is complete, as the last thing of all: until then it can be resumed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if self.failure.is_none() {
            let now = keeper::seconds(jiff::Timestamp::now());
            self.store.finish_run(self.run, &now)?;
        }
        Ok(())
    }

    /// Records that a shard is complete; its file then gets its name.
    ///
    /// # Errors
    /// As [`Self::finish`], and the failure of its experiments: the shard is not whole then.
    pub fn finish_shard(mut self, file: &Path) -> Result<(), Failure> {
        self.finish()?;
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.store.seal(self.run)?;
        self.store.move_to(file)?;
        drop(self.lock);
        Ok(())
    }
}

impl Ready<'_> {
    /// Checks that the model bench can run what is to be run here, or that the kernel bench has the
    /// programs for it. Benches other than the model's have already left out the experiments that
    /// they cannot run.
    fn check(&self) -> Result<(), Failure> {
        let own = self.own_experiments();
        match &self.on {
            OnBench::Model(bench) => {
                // All repetitions are alike, so one of each is checked.
                let mut seen = BTreeSet::new();
                let own = own.into_iter().map(|(_, experiment)| experiment);
                for experiment in own.filter(|one| seen.insert(one.label(1))) {
                    let checked = bench.check(experiment);
                    checked.map_err(|source| {
                        let refused = CannotRun::new(experiment, source);
                        let failure = Failure::new(Kind::Input, refused);
                        match experiment.subject.kind {
                            SubjectKind::System => failure.help(
                                "real systems build it: `--on kernel` over modelled disks, `--on \
                                 host` over real ones",
                            ),
                            _ => failure,
                        }
                    })?;
                }
            }
            OnBench::Kernel(bench) if !own.is_empty() && !self.task.here.plan_only => {
                bench.image().map_err(Failure::run)?;
            }
            OnBench::Kernel(_) | OnBench::Host(_) => {}
        }
        Ok(())
    }

    /// The experiments, in the order of the rows.
    #[must_use]
    pub fn experiments(&self) -> &[Experiment] {
        &self.prepared.experiments
    }

    /// The experiments to be run here, with their positions: all, or those of a shard.
    #[must_use]
    pub fn own_experiments(&self) -> Vec<(usize, &Experiment)> {
        let own = self.task.here.shard.map(|shard| self.own(shard));
        let all = self.experiments().iter().enumerate();
        all.filter(|(position, _)| own.as_ref().is_none_or(|own| own.contains(position)))
            .collect()
    }

    /// The experiments that this machine cannot run, one per line, each with the reason.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        let remarks = self.prepared.remarks.iter();
        let left_out = remarks.filter(|remark| remark.title == LEFT_OUT);
        left_out.map(|remark| remark.statement.as_str())
    }

    /// A description of what would be done.
    ///
    /// # Errors
    /// When an experiment cannot run.
    pub fn words(&self) -> Result<String, Failure> {
        if let Some(shard) = self.task.here.shard {
            return Ok(self.shard_in_words(shard));
        }
        match &self.on {
            OnBench::Host(host) => host.words(&self.prepared),
            OnBench::Model(_) | OnBench::Kernel(_) => Ok(self.prepared.words()),
        }
    }

    /// The plan of what would be done, as data.
    #[must_use]
    pub fn plan(&self) -> Plan<Asked> {
        planned::of(
            &self.task.asked,
            &self.task.files,
            &self.prepared,
            self.listed.clone(),
        )
    }

    /// Asks for consent to the loss of data before anything is lost, and records what may be lost.
    ///
    /// # Errors
    /// When there is no consent, or a run cannot be resumed on this machine.
    pub fn consent(&self) -> Result<(), Failure> {
        match &self.on {
            OnBench::Host(host) => host.begin(self.task),
            OnBench::Model(_) | OnBench::Kernel(_) => Ok(()),
        }
    }

    pub(crate) const fn bench(&self) -> &dyn Bench {
        match &self.on {
            OnBench::Model(bench) => bench,
            OnBench::Kernel(bench) => &**bench,
            OnBench::Host(host) => &host.bench,
        }
    }

    /// Runs the experiments into the store.
    ///
    /// # Errors
    /// When results cannot be kept, or the run is interrupted.
    pub fn run(&self, watcher: &mut dyn Watcher) -> Result<Ended, Failure> {
        let (task, prepared, bench) = (self.task, &self.prepared, self.bench());
        let shard = task.here.shard;
        let path = &match shard {
            Some(_) => Shard::part_of(&task.here.store),
            None => task.here.store.clone(),
        };
        let lock = self.lock(path)?;
        let mut store = Store::open(path)?;
        let cancel = task.front.listen()?;
        let (run, name, before) = self.begin(&mut store)?;
        let ended_before = store.ended_experiments(run)?.len();
        let keeper = Keeper::new(&mut store, run, &before, watcher);
        let mut keeper = keeper.map_err(KeepError::into_failure)?;
        let options = RunOptions {
            threads: self.threads,
            cancel,
            published: prepared.suite.published.as_ref(),
            before: &before,
        };
        let end = run_suite(bench, &prepared.experiments, options, &mut keeper);
        let last = keeper.finish();
        let rows = store.measurements(run)?;
        let kept = Kept {
            run: &name,
            store: path,
            shard,
            planned: if shard.is_none() {
                prepared.rows()
            } else {
                None
            },
            // Only the rows of jobs are known beforehand.
            rows: rows.iter().filter(|row| !row.op.is_background()).count(),
            begun_before: task.resumed.is_some(),
            advanced: store.ended_experiments(run)?.len() > ended_before,
        };
        let end = match end {
            Ok(end) => end,
            Err(RunError::Sink(error)) => return Err(kept.broken_off(error.into_failure())),
            Err(error @ RunError::Check { .. }) => {
                let failure = Failure::input(error);
                let real = task.asked.on != On::Host && prepared.needs_real_systems();
                let help = "`--on host` runs real systems; `--subject` names modelled ones";
                return Err(if real { failure.help(help) } else { failure });
            }
        };
        last.map_err(|error| kept.broken_off(error.into_failure()))?;
        if end.finish == Finish::Cancelled {
            if kept.rows == 0 && !kept.begun_before {
                // A run without a row is not worth keeping.
                store.delete_run(run)?;
            }
            return Err(kept.interrupted());
        }
        keeper::failures(&mut store, run, &end, prepared)?;
        let failure = kept.failed(end, prepared);
        Ok(Ended {
            failure,
            store,
            name,
            run,
            lock,
        })
    }

    /// Locks the store for this run before opening it: an open shard's file would keep another
    /// process from giving it its name.
    fn lock(&self, path: &Path) -> Result<Lock, Failure> {
        let lock = match lock_store(path) {
            // The store itself reports better why nothing can be written there.
            Err(failure) if failure.kind() == Kind::Output => {
                Store::open(path)?;
                return Err(failure);
            }
            lock => lock?,
        };
        // Between the first look and the lock another process may have finished the shard.
        if self.is_there()? {
            let words = "another process has just made the shard";
            let help = "start it again with the same command; it says that it is whole";
            return Err(Failure::words(Kind::StartAgain, words).help(help));
        }
        Ok(lock)
    }

    /// Begins or finds the run in the store: its number and name, and what it had finished before.
    fn begin(&self, store: &mut Store) -> Result<(RunId, String, Before), Failure> {
        if let Some(shard) = self.task.here.shard {
            return self.begin_shard(shard, store);
        }
        let (bench, prepared) = (self.bench(), &self.prepared);
        let Some(run) = &self.task.resumed else {
            let (run, name) = keeper::begin(bench.name(), prepared, &self.plan(), None, store)?;
            return Ok((run, name, Before::default()));
        };
        planned::go_on(run, store, self.task.front)?;
        let experiments = prepared.experiments.len();
        let before = keeper::before(store, run.id, experiments, bench.repeats_exactly())?;
        Ok((run.id, run.run.name.clone(), before))
    }
}

/// Locks a store, which one run at a time writes into; the lock ends with this process.
///
/// # Errors
/// When another run is writing, or no lock can be taken.
pub fn lock_store(store: &Path) -> Result<Lock, Failure> {
    // Links are resolved: a store has one lock, whatever name leads to it.
    let store = match store.is_symlink() {
        true => std::fs::canonicalize(store).unwrap_or_else(|_| store.to_owned()),
        false => store.to_owned(),
    };
    let folder = store
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(OutputError::NoFolder { path: store }.into());
    }
    let mut path = store.into_os_string();
    path.push(".lock");
    lock_file(Path::new(&path), &holder()).map_err(|error| match error {
        LockError::Held { .. } => {
            Failure::run(error).help("wait until it has ended, or name another file with --store")
        }
        error => Failure::new(Kind::Output, error),
    })
}
