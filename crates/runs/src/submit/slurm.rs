//! Slurm's scripts (sbatch(1), scontrol(1)).

use super::{Profile, word};
use crate::asked::Asked;
use crate::failure::{Failure, Kind};
use raidlab_bench_kernel::BESIDE;
use raidlab_store::Shard;
use raidlab_store::text::visible_path;
use raidlab_units::{Bytes, parse_bytes};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// The memory of a task of the model bench, and of a merge: at one thread the whole of
/// `mirror-2015` takes 0.22 GiB, as `/usr/bin/time -v raidlab run mirror-2015` says.
const MODEL_MEMORY: Bytes = Bytes(1 << 30);
/// The memory for the disks' contents in a task of the kernel bench; anything above
/// goes into files.
const STORAGE_MEMORY: Bytes = Bytes(2 << 30);
/// The time limit of a task where the profile does not say.
const MINUTES: u64 = 60;
/// The number of times that a task is started again where the profile does not say.
const RESTARTS: u32 = 50;

/// The parts that the scripts are made of.
pub struct Job<'a> {
    pub plan: &'a Asked,
    pub on_kernel: bool,
    pub count: NonZero<u32>,
    pub missing: &'a [Shard],
    pub folder: &'a Path,
    /// The plan's file and the store of the merged run.
    pub paths: [PathBuf; 2],
    pub profile: &'a Profile,
}

impl Job<'_> {
    /// The script of a shard's task.
    pub fn shard(&self) -> Result<String, Failure> {
        let profile = self.profile;
        let processors = u32::from(profile.processors.map_or(1, NonZero::get));
        let memory = match profile.memory {
            Some(memory) => memory,
            None if self.on_kernel => self.kernel_memory(processors)?,
            None => MODEL_MEMORY,
        };
        let minutes = self.minutes();
        // Slurm checks limits twice a minute, and programs before raidlab take some time.
        let seconds = minutes * 60;
        let stop = seconds - (seconds / 10).clamp(20, 300);
        let storage = match self.on_kernel {
            true => format!(" --storage-memory {}", STORAGE_MEMORY.0),
            false => String::new(),
        };
        let head = self.head(
            "shards",
            &[
                format!("--array={}", self.indices()),
                format!("--output={}", log(self.folder, "%a")),
                "--requeue".to_owned(),
                format!("--cpus-per-task={processors}"),
                format!("--mem={}", megabytes(memory)),
                format!("--time={minutes}"),
            ],
        );
        let (raidlab, plan) = (self.raidlab(), word(&self.paths[0]));
        // With a slash at its end it is a folder also where it is not there, as in a container that
        // lacks it: the shard's file would have the folder's name.
        let (count, folder) = (self.count, word(&self.folder.join("")));
        let restarts = profile.restarts.unwrap_or(RESTARTS);
        Ok(format!(
            "{head}\
             code=0\n\
             {raidlab} run {plan} --shard \"$SLURM_ARRAY_TASK_ID/{count}\" --store {folder} \
             --threads {processors}{storage} --stop-after {stop}s || code=$?\n\
             # 75: stopped before its end. It goes on where it was, so often and not more.\n\
             if ((code == 75 && ${{SLURM_RESTART_COUNT:-0}} < {restarts})); then\n    \
             # Slurm ends this script; it does not come to its own end before that.\n    \
             scontrol requeue \"$SLURM_JOB_ID\" && sleep 600\n\
             fi\n\
             exit $code\n"
        ))
    }

    /// The script of the merge.
    pub fn merge(&self) -> String {
        // The audit of a large run takes more memory than a task, and sites ask for a time limit.
        let memory = self
            .profile
            .memory
            .map_or(MODEL_MEMORY, |memory| memory.max(MODEL_MEMORY));
        let head = self.head(
            "merge",
            &[
                format!("--output={}", log(self.folder, "merge")),
                format!("--mem={}", megabytes(memory)),
                format!("--time={}", self.minutes()),
            ],
        );
        let (raidlab, folder) = (self.raidlab(), word(self.folder));
        let [plan, store] = self.paths.each_ref().map(|path| word(path));
        format!("{head}exec {raidlab} merge {plan} {folder} --store {store}\n")
    }

    fn head(&self, what: &str, options: &[String]) -> String {
        let name = format!("--job-name=raidlab-{what}");
        let all = [name, "--open-mode=append".to_owned()];
        let all = all.iter().chain(options).chain(&self.profile.sbatch);
        let mut text = format!("#!/bin/bash\n{}\n", raidlab_store::output::SCRIPT);
        for option in all {
            text.push_str(&format!("#SBATCH {option}\n"));
        }
        for line in &self.profile.before {
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    /// The numbers of the shards, as ranges where they are consecutive, and the cap.
    fn indices(&self) -> String {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for index in self.missing.iter().map(|shard| shard.index()) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == index => *last = index,
                _ => ranges.push((index, index)),
            }
        }
        let ranges = ranges.into_iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let ranges: Vec<String> = ranges.collect();
        let cap = self.profile.at_most;
        let cap = cap.map(|most| format!("%{most}")).unwrap_or_default();
        format!("{}{cap}", ranges.join(","))
    }

    /// The time limit of a task, and of the merge.
    fn minutes(&self) -> u64 {
        self.profile.minutes.map_or(MINUTES, NonZero::get)
    }

    fn raidlab(&self) -> String {
        let words = match self.profile.raidlab.as_slice() {
            [] => vec![std::env::current_exe().unwrap_or_else(|_| PathBuf::from("raidlab"))],
            words => words.iter().map(PathBuf::from).collect(),
        };
        let words: Vec<String> = words.iter().map(|one| word(one)).collect();
        words.join(" ")
    }

    /// The memory of a task of the kernel bench: a guest for each processor, with its overhead.
    fn kernel_memory(&self, guests: u32) -> Result<Bytes, Failure> {
        let guest = parse_bytes(&self.plan.kernel.memory).map_err(Failure::input)?;
        let guests = (guest.0.saturating_add(BESIDE.0)).saturating_mul(guests.into());
        Ok(Bytes(guests.saturating_add(STORAGE_MEMORY.0)))
    }
}

/// A size in mebibytes, as sbatch takes it.
fn megabytes(memory: Bytes) -> String {
    format!("{}M", memory.0.div_ceil(1 << 20))
}

/// The file for a task's output. A percent sign begins one of Slurm's own patterns.
fn log(folder: &Path, task: &str) -> String {
    let folder = folder.to_string_lossy().replace('%', "%%");
    // As in a shell, a blank would end the path, and a quotation mark the word.
    let folder = folder.trim_end_matches('/').replace('"', "\\\"");
    format!("\"{folder}/slurm-{task}.log\"")
}

/// Refuses a folder that Slurm cannot use for the tasks' logs: with a backslash in the path it does
/// not insert the tasks' numbers.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Failure> {
    let name = folder.to_str();
    if name.is_some_and(|name| !name.contains(|one: char| one == '\\' || one.is_control())) {
        return Ok(());
    }
    let words = format!("{} cannot be told to Slurm", visible_path(folder));
    Err(Failure::words(Kind::Usage, words)
        .help("name a folder without backslashes, control characters and bytes that are no UTF-8"))
}
