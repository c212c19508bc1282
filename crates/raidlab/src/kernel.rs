//! The command `raidlab kernel`: it builds, lists and removes kernels of the kernel bench.

use crate::failure::{Failure, Kind};
use crate::{interrupt, output};
use clap::{Args, Subcommand};
use console::Term;
use indicatif::ProgressBar;
use raidlab_store::text::visible_path;
use raidlab_uml::{Build, BuildError, Cache, CacheError, Changes, Kernel, Step, Watcher};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Arguments of `raidlab kernel`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Action {
    /// Build a kernel, or go on with a build that was interrupted.
    Build(BuildArguments),
    /// List the kernels that are built.
    Status,
    /// Remove a kernel and what was left of its build.
    Remove(RemoveArguments),
}

/// Arguments of `raidlab kernel build`.
#[derive(Debug, Args)]
struct BuildArguments {
    /// The version of an installed package `linux-source-VERSION`, or the folder of an
    /// unpacked tree, which is copied. Linux 6.16 and later run faster than older ones.
    /// Default: the newest package that is installed.
    #[arg(long, value_name = "VERSION|DIR")]
    source: Option<String>,

    /// Build OpenZFS in, from the source of the package `zfs-dkms`. Such a
    /// kernel must not be passed on.
    #[arg(long)]
    zfs: bool,

    /// Fetch missing packages without root. apt downloads them and what they need into
    /// raidlab's own cache, where they are unpacked. Nothing is installed.
    #[arg(long)]
    fetch: bool,

    /// Build the kernel again even if it is built already.
    #[arg(long)]
    again: bool,
}

/// Arguments of `raidlab kernel remove`.
#[derive(Debug, Args)]
struct RemoveArguments {
    /// The kernel's name, as `raidlab kernel status` shows it.
    name: String,
}

/// Carries out `raidlab kernel`.
///
/// # Errors
/// When a build fails or the cache cannot be used.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Build(arguments) => build(arguments),
        Action::Status => status(),
        Action::Remove(arguments) => remove(arguments),
    }
}

/// The failure of a build, with its remedy.
fn failed(error: BuildError) -> Failure {
    let help = error.help();
    let kind = match error {
        BuildError::Cancelled => Kind::Interrupted,
        BuildError::Source(_) => Kind::Input,
        BuildError::Space { .. } | BuildError::Full { .. } => Kind::Output,
        _ => Kind::Run,
    };
    Failure::new(kind, error).maybe_help(help)
}

fn build(arguments: &BuildArguments) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let cache = Cache::of_user()?;
    let wanted = arguments.source.as_deref();
    let new = || Build::new(cache.clone(), wanted, arguments.zfs);
    let build = match new() {
        Err(BuildError::Packages { packages }) if arguments.fetch => {
            output::say(&format!("fetching {}", packages.join(", ")));
            let mut bar = Bar::new(stop);
            let fetched = Build::fetch(&cache, &packages, &mut bar);
            bar.bar.finish_and_clear();
            fetched.map_err(failed)?;
            new()
        }
        build => build,
    };
    let build = build.map_err(failed)?;
    if let Some(kernel) = cache.kernel(build.name())?
        && !arguments.again
    {
        let mut text = format!(
            "kernel {} is built already: {}\n`--again` builds it anew\n",
            kernel.name,
            visible_path(&kernel.program)
        );
        if kernel.made_with() == Changes::Older {
            text.push_str("it was made by an older raidlab, with other changes\n");
        }
        return output::print(&text);
    }
    let kernel = carry_out(&build, stop)?;
    output::print(&format!(
        "kernel {} ({}) was built: {}\n",
        kernel.name,
        kernel.release,
        visible_path(&kernel.program)
    ))
}

/// Carries out a build, with messages on how far it is.
fn carry_out(build: &Build, stop: &'static AtomicBool) -> Result<Kernel, Failure> {
    output::say(&format!(
        "kernel {} of {}: 7 to 20 minutes on two processors, and up to 4 GB for as long; log: {}",
        build.name(),
        build.source(),
        visible_path(&build.log())
    ));
    let mut bar = Bar::new(stop);
    let built = build.run(&mut bar);
    bar.bar.finish_and_clear();
    let kernel = built.map_err(failed)?;
    let took = in_words(bar.begun.elapsed());
    output::say(&format!("kernel {} took {took}", kernel.name));
    Ok(kernel)
}

/// Offers to build the newest kernel where there is none, if there is a terminal and its user wants
/// that; `None` if not.
///
/// # Errors
/// When the build fails.
pub fn offer(cache: &Cache, with_zfs: bool) -> Result<Option<Kernel>, Failure> {
    let terminal = Term::stderr();
    if !terminal.is_term() {
        return Ok(None);
    }
    // Missing tools are reported before the user is asked.
    let build = Build::new(cache.clone(), None, with_zfs).map_err(failed)?;
    output::say(&format!(
        "no kernel has been built for the kernel bench. One of {} takes 7 to 20 minutes, once, \
         and up to 4 GB meanwhile; it needs no root and stays in {}. Type `yes` to build it now:",
        build.source(),
        cache.kernel_folder(build.name()).display()
    ));
    match terminal.read_line() {
        Ok(answer) if answer.trim() == "yes" => carry_out(&build, interrupt::listen()?).map(Some),
        _ => Ok(None),
    }
}

/// The progress bar of a build; where standard error is no terminal, a line for each step
/// and each minute.
struct Bar {
    bar: ProgressBar,
    stop: &'static AtomicBool,
    begun: Instant,
    /// The step of the build that is under way.
    step: Step,
    /// The share of the whole that was done when this build began: one that goes on where it was
    /// has done something before.
    first: Option<f64>,
    told: Instant,
}

/// The time between two lines where there is no terminal.
const LINE: Duration = Duration::from_secs(60);

impl Bar {
    fn new(stop: &'static AtomicBool) -> Self {
        let form = "{prefix:30} {bar:30} {percent:>3} %  {elapsed}  {msg}";
        let bar = output::bar(1000, form);
        bar.enable_steady_tick(Duration::from_millis(500));
        Self {
            bar,
            stop,
            begun: Instant::now(),
            step: Step::Unpack,
            first: None,
            told: Instant::now(),
        }
    }

    fn left(&self, done: f64) -> Option<Duration> {
        left(self.first?, done, self.begun.elapsed())
    }
}

/// A share of the whole, on the bar.
// A share between 0 and 1.
fn position(done: f64) -> u64 {
    (done * 1000.0) as u64
}

/// Estimates the time that is left where a build that began at the share `first` has come to `done`
/// in `elapsed`; `None` as long as too little is done to tell.
fn left(first: f64, done: f64, elapsed: Duration) -> Option<Duration> {
    const ENOUGH: f64 = 0.04;
    let own = done - first;
    (own >= ENOUGH).then(|| elapsed.mul_f64((1.0 - done).max(0.0) / own))
}

/// A time in words, as precise as a waiting user wants it.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0..60 => "less than a minute".to_owned(),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// The remaining time in rough words.
fn left_in_words(left: Duration) -> String {
    let about = if left.as_secs() < 60 { "" } else { "about " };
    format!("{about}{} left", in_words(left))
}

impl Watcher for Bar {
    fn step(&mut self, step: Step) {
        self.step = step;
        self.bar.set_position(position(step.part().0));
        self.bar.set_prefix(step.title());
        self.told = Instant::now();
        if self.bar.is_hidden() {
            output::say(step.title());
        }
    }

    fn share(&mut self, share: f64) {
        let (begin, end) = self.step.part();
        let done = begin + share * (end - begin);
        self.first.get_or_insert(done);
        self.bar.set_position(position(done));
        let Some(left) = self.left(done) else {
            return;
        };
        let words = left_in_words(left);
        self.bar.set_message(words.clone());
        if self.bar.is_hidden() && self.told.elapsed() >= LINE {
            self.told = Instant::now();
            output::say(&format!(
                "{}: {:.0} %, {words}",
                self.step.title(),
                done * 100.0
            ));
        }
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn status() -> Result<(), Failure> {
    let cache = Cache::of_user()?;
    let kernels = cache.kernels()?;
    let rows = kernels.iter().map(|kernel| {
        vec![
            kernel.name.clone(),
            kernel.release.clone(),
            kernel.zfs.clone().unwrap_or_else(|| "-".to_owned()),
            kernel.made_with().made_by().to_owned(),
            kernel.source.clone(),
            visible_path(&kernel.program),
        ]
    });
    let mut text = if kernels.is_empty() {
        "no kernel is built; `raidlab kernel build` builds one\n".to_owned()
    } else {
        let head = [
            "kernel", "release", "OpenZFS", "made by", "source", "program",
        ];
        output::table(&head, &[], rows.collect())
    };
    for warning in kernels.iter().filter_map(Kernel::warning) {
        let _ = writeln!(text, "{warning}");
    }
    for name in cache.builds()? {
        let folder = cache.build_folder(&name);
        let _ = writeln!(
            text,
            "an unfinished build of {name} is in {}",
            visible_path(&folder)
        );
    }
    output::print(&text)
}

fn remove(arguments: &RemoveArguments) -> Result<(), Failure> {
    let cache = Cache::of_user()?;
    let name = &arguments.name;
    if !cache.removable()?.contains(name) {
        let kernels = cache.kernels()?.into_iter();
        let error = CacheError::NotBuilt {
            name: Some(name.clone()),
            known: kernels.map(|kernel| kernel.name).collect(),
        };
        let help = "`raidlab kernel status` lists what is there";
        return Err(Failure::new(Kind::Usage, error).help(help));
    }
    cache.remove(name)?;
    output::print(&format!("kernel {name} was removed\n"))
}

#[cfg(test)]
mod tests {
    use super::{in_words, left, left_in_words};
    use std::time::Duration;

    #[test]
    fn what_is_left_is_told_from_what_this_build_has_done() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert_eq!(left(0.0, 0.02, minutes(1)), None);
        assert_eq!(left(0.0, 0.25, minutes(2)), Some(minutes(6)));
        // One that went on: half of the whole in two minutes.
        assert_eq!(left(0.25, 0.75, minutes(2)), Some(minutes(1)));
        assert_eq!(left(0.0, 1.0, minutes(2)), Some(Duration::ZERO));
        assert_eq!(in_words(Duration::from_secs(59)), "less than a minute");
        assert_eq!(in_words(Duration::from_secs(61)), "2 min");
        let words = |seconds| left_in_words(Duration::from_secs(seconds));
        assert_eq!(words(59), "less than a minute left");
        assert_eq!(words(61), "about 2 min left");
    }
}
