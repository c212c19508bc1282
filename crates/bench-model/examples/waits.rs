//! A measurement of the costs of waiting: seconds of processor time for a minute of virtual time
//! while an array is synced, and for a whole rebuild, level by level.
//!
//!     cargo run --release -p raidlab-bench-model --example waits -- [simulated] [SUBJECT]...
//!
//! With subjects only these are looked at. With `simulated` nothing is leapt over, and whole
//! rebuilds are left out, as each would take the better part of an hour. Disks are of 4 TB; RAID 1
//! has two of them and the other levels four, RAID 6 a second time eight. Linux only: the processor
//! time is that of /proc/thread-self/schedstat.

use raidlab_bench_model::ModelBench;
use raidlab_lab::{Bench, Choices, Experiment, Observer, Progress, Suite};
use raidlab_store::{CellResult, Records};
use std::error::Error;
use std::fmt::Write;

/// The subjects, each with the suite's word for its members, and whether its first resync is
/// looked at too.
const SUBJECTS: [(&str, usize, bool); 10] = [
    ("md-raid1-clean", 2, false),
    ("md-raid5-clean", 4, false),
    ("md-raid6-clean", 4, false),
    ("md-raid6-clean", 8, false),
    ("md-raid10-clean", 4, false),
    ("md-raid1", 2, true),
    ("md-raid5", 4, true),
    ("md-raid6", 4, true),
    ("md-raid10", 4, true),
    ("zfs", 2, false),
];

const REBUILD: &str =
    "[[step]]\nevent = \"remove\"\nmember = 1\n[[step]]\nevent = \"insert\"\nmember = 1\n";

/// The length of the measured wait in minutes.
const MINUTES: u32 = 10;

/// An observer that keeps the last time.
#[derive(Default)]
struct Clock(Progress);

impl Observer for Clock {
    fn progress(&mut self, progress: Progress) {
        self.0 = progress;
    }
    fn record(&mut self, _: Records) {}
    fn cell(&mut self, _: CellResult) {}
}

fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = schedstat.split_whitespace().next().unwrap_or_default();
    Ok(nanoseconds.parse::<f64>()? / 1e9)
}

fn experiment(
    subject: &str,
    members: usize,
    steps: &str,
    without: &[String],
) -> Result<Experiment, Box<dyn Error>> {
    let disks = vec!["\"wd4000fyyz\""; members].join(", ");
    let mut text = format!(
        "schema = 1\nname = \"waits\"\ntitle = \"waits\"\ndescription = \"waits\"\n\
         source = \"this example\"\nbegin = \"as-created\"\ndisks = [{disks}]\nsubjects = [\"{subject}\"]\n{steps}"
    );
    write!(
        text,
        "[[step]]\njob = \"a\"\ntitle = \"a\"\nclass = \"a\"\n\
         fio = \"--rw=read --bs=4k --size=4k --direct=1\"\n"
    )?;
    let path = std::env::temp_dir().join(format!("raidlab-waits-{}.toml", std::process::id()));
    std::fs::write(&path, text)?;
    let suite = Suite::load(&path.to_string_lossy());
    std::fs::remove_file(&path)?;
    let suite = suite?;
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        without: without.to_vec(),
        ..Choices::default()
    };
    let mut experiments = suite.experiments(&suite.subjects, &choices);
    Ok(experiments.swap_remove(0))
}

/// Returns processor seconds and virtual seconds.
fn cost(experiment: &Experiment) -> Result<(f64, f64), Box<dyn Error>> {
    let mut clock = Clock::default();
    let before = processor_seconds()?;
    ModelBench::default().run(experiment, &mut clock)?;
    Ok((processor_seconds()? - before, clock.0.clock.as_secs_f64()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let simulated = wanted.first().is_some_and(|word| word == "simulated");
    wanted.drain(..usize::from(simulated));
    let without: Vec<String> = simulated.then(|| "leaps".to_owned()).into_iter().collect();
    println!(
        "| subject | members | processor s per virtual minute | whole sync: processor s | virtual h |"
    );
    println!("|---|---|---|---|---|");
    let is_wanted = |subject| wanted.is_empty() || wanted.iter().any(|it| it == subject);
    for (subject, members, first) in SUBJECTS.into_iter().filter(|row| is_wanted(row.0)) {
        let begin = if first { "" } else { REBUILD };
        let wait = format!("{begin}[[step]]\nwait = \"{MINUTES}m\"\n");
        let (a_while, _) = cost(&experiment(subject, members, &wait, &without)?)?;
        print!(
            "| {subject} | {members} | {:.3} ",
            a_while / f64::from(MINUTES)
        );
        if simulated {
            println!("| | |");
            continue;
        }
        let whole = format!("{begin}[[step]]\nwait = \"sync-done\"\nat_most = \"96h\"\n");
        let (all, virtually) = cost(&experiment(subject, members, &whole, &without)?)?;
        println!("| {all:.2} | {:.3} |", virtually / 3600.0);
    }
    Ok(())
}
