//! `raidlab kernel`: the kernel of the kernel bench is built, listed, removed.

pub mod agent;

use crate::failure::{Failure, Kind};
use crate::{interrupt, output};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use raidlab_uml::{Build, BuildError, Cache, CacheError, Changes, Kernel, Source, Step, Watcher};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Arguments of `raidlab kernel`.
#[derive(Debug, Args)]
#[command(
    long_about = "\
Builds the kernel that `raidlab run --on kernel` needs: a User-Mode Linux, which is a \
Linux kernel that is an ordinary program, from the distribution's own source package. \
It runs in virtual time over modelled disks. It is kept in the user's cache folder, \
needs no root, and nothing else of raidlab needs it.",
    after_help = "\
Examples:
  raidlab kernel build
  raidlab kernel build --source 6.1
  raidlab kernel build --source /usr/src/linux
  raidlab kernel status
  raidlab kernel remove 6.1"
)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Action {
    /// Build a kernel; an interrupted build goes on.
    Build(BuildArguments),
    /// List the kernels that are built.
    Status,
    /// Remove a kernel and what was left of its build.
    Remove(RemoveArguments),
}

/// Arguments of `raidlab kernel build`.
#[derive(Debug, Args)]
struct BuildArguments {
    /// The version of an installed package `linux-source-VERSION`, or the
    /// folder of an unpacked tree, which is copied. Default: the newest
    /// package that is installed.
    #[arg(long, value_name = "VERSION|DIR")]
    source: Option<String>,

    /// Build OpenZFS in, from the source of the package `zfs-dkms`. Such a
    /// kernel must not be passed on.
    #[arg(long)]
    zfs: bool,

    /// Build again what is built already.
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

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::NotBuilt { .. } => {
                Self::new(Kind::Run, error).help("`raidlab kernel build` builds one")
            }
            CacheError::Write { .. } => Self::new(Kind::Output, error),
            _ => Self::new(Kind::Run, error),
        }
    }
}

/// A failure of a build with its remedy.
fn failed(error: BuildError) -> Failure {
    let help = error.help();
    let kind = match error {
        BuildError::Cancelled => Kind::Interrupted,
        BuildError::Source(_) => Kind::Input,
        BuildError::Space { .. } | BuildError::Full { .. } => Kind::Output,
        _ => Kind::Run,
    };
    let failure = Failure::new(kind, error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn build(arguments: &BuildArguments) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let cache = Cache::of_user()?;
    let source = Source::find(arguments.source.as_deref())
        .map_err(|error| failed(BuildError::Source(error)))?;
    let described = source.describe();
    let build = Build::new(cache.clone(), source, arguments.zfs).map_err(failed)?;
    if let Some(kernel) = cache.kernel(build.name())?
        && !arguments.again
    {
        let mut text = format!(
            "kernel {} is built already: {}\n`--again` builds it anew\n",
            kernel.name,
            kernel.program.display()
        );
        if kernel.made_with() == Changes::Older {
            text.push_str("it was made by an older raidlab, with other changes\n");
        }
        return output::print(&text);
    }
    output::say(&format!(
        "kernel {} of {described}; log: {}",
        build.name(),
        build.log().display()
    ));
    let mut bar = Bar::new(stop);
    let built = build.run(&mut bar);
    bar.bar.finish_and_clear();
    let kernel = built.map_err(failed)?;
    output::print(&format!(
        "kernel {} ({}) was built in {} s: {}\n",
        kernel.name,
        kernel.release,
        bar.begun.elapsed().as_secs(),
        kernel.program.display()
    ))
}

/// The bar of a build; where standard error is no terminal, a line for each
/// step.
struct Bar {
    bar: ProgressBar,
    stop: &'static AtomicBool,
    begun: Instant,
}

impl Bar {
    fn new(stop: &'static AtomicBool) -> Self {
        let bar = ProgressBar::new(1000);
        if let Ok(style) =
            ProgressStyle::with_template("{msg:30} {bar:30} {percent:>3} %  {elapsed}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self {
            bar,
            stop,
            begun: Instant::now(),
        }
    }
}

impl Watcher for Bar {
    fn step(&mut self, step: Step) {
        self.bar.set_position(0);
        self.bar.set_message(step.title());
        if self.bar.is_hidden() {
            output::say(step.title());
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1"
    )]
    fn share(&mut self, share: f64) {
        self.bar.set_position((share * 1000.0) as u64);
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
            kernel.program.display().to_string(),
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
            folder.display()
        );
    }
    output::print(&text)
}

fn remove(arguments: &RemoveArguments) -> Result<(), Failure> {
    let cache = Cache::of_user()?;
    let name = &arguments.name;
    let known = |names: &[String]| names.contains(name);
    let kernels: Vec<String> = cache
        .kernels()?
        .into_iter()
        .map(|kernel| kernel.name)
        .collect();
    if !known(&kernels) && !known(&cache.builds()?) {
        let error = CacheError::NotBuilt {
            name: Some(name.clone()),
            known: kernels,
        };
        let help = "`raidlab kernel status` lists what is there";
        return Err(Failure::new(Kind::Usage, error).help(help));
    }
    cache.remove(name)?;
    output::print(&format!("kernel {name} was removed\n"))
}
