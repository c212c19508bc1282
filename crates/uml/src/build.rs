//! The build of a kernel, step by step: unpack, change, configure, compile,
//! put in place.
//!
//! Each step leaves a stamp in the build's folder, so that a build that was interrupted goes on
//! where it was; `make` itself goes on within the longest one. The output of the steps goes to a
//! log, whose last lines an error shows.

mod run;
mod step;

pub use step::{Step, Watcher};

use crate::cache::{Cache, Kernel, remove_folder};
use crate::changes;
use crate::configuration::{FOR_ZFS, WITH_ZFS, lacking, lines};
use crate::edits;
use crate::error::{BuildError, SPACE};
use crate::needs;
use crate::packages::Packages;
use crate::source::{Release, Source, release};
use crate::zfs;
use raidlab_shell::{Command, Local, Target};
use raidlab_units::cannot;
use run::Runner;
use std::fs;
use std::path::{Path, PathBuf};

/// The file in a build's folder that says of what the tree is made.
const CHANGES: &str = "changes";

/// The first kernel that shares the time by memory, and the first that runs its programs
/// under seccomp(2) instead of ptrace(2).
const SHARED_MEMORY: (u32, u32) = (6, 11);
const SECCOMP: (u32, u32) = (6, 16);

/// The number of lines that tar prints for the archive of 6.12, one for each 1000 records
/// of 10 KiB.
const CHECKPOINTS: u64 = 155;

/// The number of lines that `make linux` prints for 6.12; other kernels come near.
const LINES: u64 = 1750;

/// A kernel to be built.
#[derive(Debug)]
pub struct Build {
    cache: Cache,
    source: Source,
    /// The source of OpenZFS, to be built in.
    zfs: Option<zfs::Source>,
    name: String,
    jobs: usize,
}

impl Build {
    /// Looks for the source, a version or a folder, the newest that is installed where `wanted` is
    /// `None`, and plans the build.
    ///
    /// # Errors
    /// When the source that is named is none, or packages that a build and its guests need are
    /// missing: all of them are named.
    pub fn new(cache: Cache, wanted: Option<&str>, with_zfs: bool) -> Result<Self, BuildError> {
        let packages = Packages::of(&cache);
        let found = needs::find(wanted, with_zfs, &packages)?;
        let needs::Found { source, zfs } =
            found.map_err(|packages| BuildError::Packages { packages })?;
        let mut name = source.name()?;
        if zfs.is_some() {
            name.push_str("-zfs");
        }
        let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Self {
            cache,
            source,
            zfs,
            name,
            jobs,
        })
    }

    /// Fetches the packages of [`BuildError::Packages`] into the cache, without root.
    ///
    /// # Errors
    /// When apt does not find or get a package, or one cannot be unpacked.
    pub fn fetch(
        cache: &Cache,
        packages: &[String],
        watcher: &mut dyn Watcher,
    ) -> Result<(), BuildError> {
        let fetched = Packages::of(cache);
        let log = fetched.log();
        let folder = cache.packages_folder();
        fs::create_dir_all(&folder).map_err(cannot("use", &folder))?;
        watcher.step(Step::Fetch);
        let runner = Runner::new(log, Vec::new());
        fetched.fetch(packages, &mut |command| runner.run(command, 0, watcher))
    }

    /// The name that the kernel will have.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The origin of its source, in words.
    #[must_use]
    pub fn source(&self) -> String {
        self.source.describe()
    }

    /// The path of the log of all programs that are run.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder().join("build.log")
    }

    fn folder(&self) -> PathBuf {
        self.cache.build_folder(&self.name)
    }

    fn tree(&self) -> PathBuf {
        self.folder().join("linux")
    }

    /// Builds, and removes the tree afterwards.
    ///
    /// # Errors
    /// When a step fails; the finished work stays, and the next build goes on with it.
    pub fn run(&self, watcher: &mut dyn Watcher) -> Result<Kernel, BuildError> {
        let folder = self.folder();
        let _alone = self.cache.lock(&self.name)?;
        self.begin()?;
        self.check_space()?;
        let runner = Runner::new(self.log(), Packages::of(&self.cache).environment());
        let mut steps = vec![Step::Unpack, Step::Change, Step::Configure];
        if self.zfs.is_some() {
            steps.push(Step::Zfs);
        }
        steps.push(Step::Compile);
        for step in steps {
            let stamp = folder.join(step.stamp());
            if stamp.is_file() {
                continue;
            }
            if watcher.cancelled() {
                return Err(BuildError::Cancelled);
            }
            watcher.step(step);
            self.step(step, &runner, watcher)?;
            fs::write(&stamp, "").map_err(cannot("use", &stamp))?;
        }
        watcher.step(Step::Install);
        let release = release(&self.tree())?;
        let kernel = self.kernel(release);
        self.confirm(&kernel.program)?;
        let program = self.cache.install(&kernel)?;
        watcher.step(Step::Remove);
        remove_slowly(&folder, watcher)?;
        Ok(Kernel { program, ..kernel })
    }

    /// Makes the build's folder. One that another raidlab has begun, or that was begun of
    /// another source, is of no use: its tree is another one.
    fn begin(&self) -> Result<(), BuildError> {
        let folder = self.folder();
        let (file, changes) = (folder.join(CHANGES), self.made_of());
        if folder.exists() && fs::read_to_string(&file).is_ok_and(|known| known == changes) {
            return Ok(());
        }
        remove_folder(&folder)?;
        fs::create_dir_all(&folder).map_err(cannot("use", &folder))?;
        Ok(fs::write(&file, changes).map_err(cannot("use", &file))?)
    }

    /// The description of all that decides the contents of the tree: the changes, and the sources.
    fn made_of(&self) -> String {
        let zfs = self.zfs.as_ref().map_or("none", zfs::Source::version);
        let (changes, source) = (self.changes(), self.source.state());
        format!("{changes}\n{source}\nOpenZFS {zfs}\n")
    }

    fn changes(&self) -> String {
        changes::digest(self.zfs.is_some())
    }

    fn step(
        &self,
        step: Step,
        runner: &Runner,
        watcher: &mut dyn Watcher,
    ) -> Result<(), BuildError> {
        match step {
            Step::Unpack => self.unpack(runner, watcher),
            Step::Change => self.change(),
            Step::Configure => self.configure(runner, watcher),
            Step::Zfs => match &self.zfs {
                Some(zfs) => {
                    zfs.put_into(&self.tree(), &self.folder(), &mut |command| {
                        runner.run(command, 0, watcher)
                    })?;
                    edits::apply(&self.tree(), &edits::OPENZFS)?;
                    check_configuration(&self.read_configuration()?, WITH_ZFS)
                }
                None => Ok(()),
            },
            Step::Compile => {
                let jobs = format!("-j{}", self.jobs);
                runner.run(&self.make(&[&jobs, "linux"]), LINES, watcher)
            }
            Step::Fetch | Step::Install | Step::Remove => Ok(()),
        }
    }

    fn change(&self) -> Result<(), BuildError> {
        let tree = self.tree();
        edits::apply(&tree, &edits::KERNEL)?;
        if release(&tree)?.since(SHARED_MEMORY) {
            edits::apply(&tree, &edits::SHARED_MEMORY)?;
            edits::apply(&tree, &edits::CHARGES)?;
        }
        Ok(())
    }

    fn kernel(&self, release: Release) -> Kernel {
        Kernel {
            name: self.name.clone(),
            release: release.to_string(),
            source: self.source.describe(),
            zfs: self.zfs.as_ref().map(|zfs| zfs.version().to_owned()),
            shared_memory: release.since(SHARED_MEMORY),
            seccomp: release.since(SECCOMP),
            changes: Some(self.changes()),
            program: self.tree().join("linux"),
        }
    }

    /// Refuses at its beginning a build that could not end.
    fn check_space(&self) -> Result<(), BuildError> {
        let folder = self.folder();
        if self.tree().exists() {
            return Ok(());
        }
        match needs::free_bytes(&folder) {
            Some(free) if free < SPACE => Err(BuildError::Space { folder, free }),
            _ => Ok(()),
        }
    }

    /// Unpacks beside the tree's place, so that half a tree is never taken for
    /// a whole one.
    fn unpack(&self, runner: &Runner, watcher: &mut dyn Watcher) -> Result<(), BuildError> {
        let (tree, fresh) = (self.tree(), self.folder().join("linux.new"));
        remove_folder(&tree)?;
        remove_folder(&fresh)?;
        fs::create_dir(&fresh).map_err(cannot("use", &fresh))?;
        let into = fresh.to_string_lossy();
        let command = match &self.source {
            Source::Archive { file, .. } => {
                let file = file.to_string_lossy();
                let words = ["-xJf", &file, "--strip-components=1", "-C", &into];
                let told = ["--checkpoint=1000", "--checkpoint-action=echo"];
                Command::changes("tar", words.into_iter().chain(told))
            }
            Source::Tree(from) => {
                let from = from.join(".").to_string_lossy().into_owned();
                Command::changes("cp", ["-a", &from, &into])
            }
        };
        runner.run(&command, CHECKPOINTS, watcher)?;
        if matches!(self.source, Source::Tree(_)) {
            // Objects of another configuration may lie in it.
            let clean = ["-C", &into, "ARCH=um", "mrproper"];
            runner.run(&Command::changes("make", clean), 0, watcher)?;
        }
        Ok(fs::rename(&fresh, &tree).map_err(cannot("use", &tree))?)
    }

    fn configure(&self, runner: &Runner, watcher: &mut dyn Watcher) -> Result<(), BuildError> {
        let more = if self.zfs.is_some() { FOR_ZFS } else { "" };
        runner.run(&self.make(&["defconfig"]), 0, watcher)?;
        let file = self.tree().join(".config");
        let config = self.read_configuration()? + &lines(more);
        fs::write(&file, config).map_err(cannot("use", &file))?;
        runner.run(&self.make(&["olddefconfig"]), 0, watcher)?;
        check_configuration(&self.read_configuration()?, more)
    }

    fn read_configuration(&self) -> Result<String, BuildError> {
        let file = self.tree().join(".config");
        Ok(fs::read_to_string(&file).map_err(cannot("use", &file))?)
    }

    /// Asks the kernel itself what it was built with: the tree may have changed
    /// since it was configured.
    fn confirm(&self, program: &Path) -> Result<(), BuildError> {
        let program = program.to_string_lossy();
        let config = Local::new().run(&Command::reads(&program, ["--showconfig"]))?;
        let more = if self.zfs.is_some() { WITH_ZFS } else { "" };
        check_configuration(&config.stdout, more)
    }

    /// A command of `make` for User-Mode Linux. The kernel's statements on its build are the same
    /// wherever and whenever it is built.
    fn make(&self, words: &[&str]) -> Command {
        let tree = self.tree().to_string_lossy().into_owned();
        let fixed = [
            "-C",
            &tree,
            "ARCH=um",
            "KBUILD_BUILD_TIMESTAMP=1970-01-01",
            "KBUILD_BUILD_USER=raidlab",
            "KBUILD_BUILD_HOST=raidlab",
        ];
        Command::changes("make", fixed.iter().chain(words).copied())
    }
}

/// Removes a build's folder, which has about a hundred thousand files, and tells how far it is. A
/// user who does not want to wait stops it: the kernel is in its place, and [`Cache::remove`]
/// removes the rest.
fn remove_slowly(folder: &Path, watcher: &mut dyn Watcher) -> Result<(), BuildError> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    let mut next = 0;
    while let Some(path) = folders.get(next).cloned() {
        next += 1;
        let failed = cannot("use", &path);
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    for (number, file) in files.iter().enumerate() {
        if number % 256 == 0 {
            if watcher.cancelled() {
                return Ok(());
            }
            #[expect(clippy::cast_precision_loss, reason = "a share for a bar")]
            watcher.share(number as f64 / files.len() as f64);
        }
        fs::remove_file(file).map_err(cannot("use", file))?;
    }
    remove_folder(folder)?;
    Ok(())
}

/// Refuses a configuration without the wanted settings.
fn check_configuration(config: &str, more: &str) -> Result<(), BuildError> {
    let lacking = lacking(config, more);
    if lacking.is_empty() {
        return Ok(());
    }
    Err(BuildError::Configuration { lacking })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheError;
    use std::os::unix::fs::PermissionsExt;

    /// Keeps what it is told, and stops at once or never.
    struct Told {
        shares: Vec<f64>,
        stop: bool,
    }

    impl Watcher for Told {
        fn step(&mut self, _: Step) {}
        fn share(&mut self, share: f64) {
            self.shares.push(share);
        }
        fn cancelled(&self) -> bool {
            self.stop
        }
    }

    #[test]
    fn the_tree_goes_with_a_word_on_how_far_it_is_and_may_stay() {
        for stop in [true, false] {
            let folder = tempfile::tempdir().expect("a folder");
            let tree = folder.path().join("tree");
            for number in 0..600 {
                let below = tree.join(format!("{}/below", number % 7));
                fs::create_dir_all(&below).expect("made");
                fs::write(below.join(number.to_string()), "").expect("written");
            }
            let shares = Vec::new();
            let mut told = Told { shares, stop };
            remove_slowly(&tree, &mut told).expect("it goes");
            assert_eq!(tree.exists(), stop);
            assert_eq!(told.shares.len(), if stop { 0 } else { 3 });
            assert!(told.shares.is_sorted());
        }
    }

    fn build(folder: &Path, zfs: bool) -> Build {
        Build {
            cache: Cache::in_folder(folder.to_owned()),
            source: Source::Tree(folder.to_owned()),
            zfs: zfs.then(|| zfs::Source::of("2.3.2", folder)),
            name: "6.12".to_owned(),
            jobs: 1,
        }
    }

    /// What a step makes in the build's folder must never pass for a stamp: the
    /// step would be skipped when the build goes on.
    #[test]
    fn no_step_leaves_a_stamp_by_the_name_of_what_it_makes() {
        let made = ["linux", "linux.new", "build.log", CHANGES, zfs::COPY];
        for step in step::ALL {
            assert!(!made.contains(&step.stamp()), "{}", step.stamp());
        }
    }

    #[test]
    fn a_build_goes_on_unless_another_raidlab_has_begun_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let build = build(folder.path(), false);
        build.begin().expect("begun");
        let stamp = build.folder().join(Step::Unpack.stamp());
        fs::write(&stamp, "").expect("written");
        build.begin().expect("it goes on");
        assert!(stamp.exists());
        fs::write(build.folder().join(CHANGES), "0123456789abcdef").expect("written");
        build.begin().expect("begun anew");
        assert!(!stamp.exists());
        fs::write(&stamp, "").expect("written");
        fs::remove_file(build.folder().join(CHANGES)).expect("removed");
        build.begin().expect("begun anew");
        assert!(!stamp.exists());
    }

    #[test]
    fn a_kernel_is_built_by_one_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let build = build(folder.path(), false);
        let alone = build.cache.lock("6.12").expect("nobody else");
        let error = build.cache.lock("6.12").expect_err("it is being built");
        assert!(matches!(error, CacheError::Busy { .. }), "{error}");
        drop(alone);
        build.cache.lock("6.12").expect("nobody any more");
    }

    #[test]
    fn a_build_of_other_sources_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = folder.path().join("linux-source-6.12.tar.xz");
        fs::write(&archive, "6.12.117").expect("written");
        let of = |source: Source, zfs: &str| Build {
            source,
            zfs: Some(zfs::Source::of(zfs, folder.path())),
            ..build(folder.path(), true)
        };
        let version = "6.12".to_owned();
        let file = archive.clone();
        let package = Source::Archive { version, file };
        let first = of(package.clone(), "2.3.2");
        let stamp = first.folder().join(Step::Unpack.stamp());
        let goes_on = |one: &Build| {
            one.begin().expect("begun");
            let goes_on = stamp.exists();
            fs::write(&stamp, "").expect("written");
            goes_on
        };
        assert!(!goes_on(&first) && goes_on(&first));
        assert!(!goes_on(&of(package, "2.3.3")), "another OpenZFS");
        assert!(!goes_on(&of(Source::Tree("/usr/src/a".into()), "2.3.3")));
        assert!(!goes_on(&of(Source::Tree("/usr/src/b".into()), "2.3.3")));
        assert!(!goes_on(&first) && goes_on(&first));
        fs::write(&archive, "6.12.118 is longer").expect("written");
        assert!(!goes_on(&first), "the package was updated");
    }

    #[test]
    fn a_kernel_without_what_it_shall_have_is_not_put_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("linux");
        let write = |config: &str| {
            let script = format!("#!/bin/sh\ncat <<END\n{config}END\n");
            fs::write(&program, script).expect("written");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&program, mode).expect("set");
            program.clone()
        };
        let without = write(&lines(FOR_ZFS).replace("# CONFIG_MODULES is not set\n", ""));
        let build_with = build(folder.path(), true);
        let error = build_with.confirm(&without).expect_err("no OpenZFS");
        assert!(error.to_string().ends_with("CONFIG_ZFS=y"), "{error}");
        let with = write(&lines(WITH_ZFS).replace("# CONFIG_MODULES is not set\n", ""));
        build_with.confirm(&with).expect("it has all");
        let plain = write(&lines(""));
        build(folder.path(), false)
            .confirm(&plain)
            .expect("a kernel without OpenZFS");
    }
}
