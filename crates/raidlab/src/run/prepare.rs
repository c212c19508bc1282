//! From arguments to experiments: which suite, subjects, disks and fits.

use super::Arguments;
use crate::failure::{Failure, Kind};
use crate::{report, subjects, suites};
use raidlab_disk::Preset;
use raidlab_lab::catalogue;
use raidlab_lab::{
    Choices, Experiment, FioText, Job, LoadError, Step, Subject, SubjectKind, Suite, Work,
};
use raidlab_model::presets;
use raidlab_store::AccuracyNote;
use raidlab_units::{Nanos, parse_duration};
use std::fmt::Write;
use std::path::Path;

/// What a job file runs on when nothing is said.
const JOB_FILE_DISKS: [&str; 2] = ["wd4000fyyz", "wd4000fyyz"];
/// The subject of a job file when none is said.
const JOB_FILE_SUBJECT: &str = "md";
/// How long a job is under `--quick`: a tenth of the usual minute.
const QUICK: Nanos = Nanos::from_secs(6);

/// A run with everything decided.
pub struct Prepared {
    /// The suite, with the disks that were chosen.
    pub suite: Suite,
    /// In the order of the rows.
    pub experiments: Vec<Experiment>,
    /// What the reader of the results must know.
    pub remarks: Vec<AccuracyNote>,
}

/// Reads everything and decides.
///
/// # Errors
/// When a file is missing or wrong, or names do not go together.
pub fn prepare(arguments: &Arguments) -> Result<Prepared, Failure> {
    let mut suite = load(arguments)?;
    let mut subjects = chosen_subjects(&suite, &arguments.subjects)?;
    let unmodelled = leave_out_unmodelled(arguments, &mut subjects);
    let moved = choose_host(arguments, &mut subjects)?;
    choose_disks(&mut suite, &arguments.disks)?;
    let mut fits = chosen_fits(&suite.disks, &arguments.fit)?;
    if arguments.quick {
        fits.truncate(1);
        shorten(&mut suite);
    }
    let choices = Choices {
        fits,
        seed: arguments.seed,
        without: arguments.without.clone(),
        ..Choices::default()
    };
    let mut remarks = remarks(arguments, &suite);
    remarks.extend(unmodelled);
    remarks.extend(moved);
    if let Some(words) = foreign_figures(&suite) {
        suite.published = None;
        remarks.push(remark("Other disks", words));
    }
    Ok(Prepared {
        experiments: suite.experiments(&subjects, &choices),
        suite,
        remarks,
    })
}

/// Of a suite whose subjects nobody chose, those that have a model run; the
/// reader is told of the others. Without any that has, nothing is left out, and
/// the bench refuses.
fn leave_out_unmodelled(
    arguments: &Arguments,
    subjects: &mut Vec<Subject>,
) -> Option<AccuracyNote> {
    let is_modelled = |subject: &Subject| subject.kind != SubjectKind::System;
    if !arguments.subjects.is_empty() || !subjects.iter().any(is_modelled) {
        return None;
    }
    let (modelled, others): (Vec<_>, Vec<_>) = subjects.drain(..).partition(is_modelled);
    *subjects = modelled;
    let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let statement = format!(
            "Left out, as only real systems build them: {}.",
            names.join(", ")
        );
        remark("Not modelled", statement)
    })
}

/// Models all subjects on the host that was asked for.
fn choose_host(
    arguments: &Arguments,
    subjects: &mut [Subject],
) -> Result<Option<AccuracyNote>, Failure> {
    let Some(name) = &arguments.model_host else {
        return Ok(None);
    };
    let host = catalogue::host(name)
        .map_err(|error| Failure::from(error).help("`raidlab subjects --hosts` lists the hosts"))?;
    for subject in subjects {
        subject.move_to(&host);
    }
    let statement = format!(
        "All subjects are modelled on {}: {}.",
        host.name, host.title
    );
    Ok(Some(remark("Another host", statement)))
}

/// Whether the argument is a fio job file: any path that is no suite's.
fn is_job_file(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.map_or_else(|| name.contains('/'), |extension| extension != "toml")
}

/// The suite that was named.
///
/// # Errors
/// When there is none of this name, or its file is wrong.
pub fn load(arguments: &Arguments) -> Result<Suite, Failure> {
    let name = &arguments.suite;
    if is_job_file(name) {
        let disks = JOB_FILE_DISKS.map(str::to_owned).to_vec();
        let subject = Subject::load(JOB_FILE_SUBJECT)?;
        let suite = Suite::from_job_file(Path::new(name), disks, vec![subject]);
        return Ok(suite?);
    }
    Suite::load(name).map_err(|error| {
        let help = match error {
            LoadError::Read { .. } => "a suite's name ends in .toml, a job file's in .fio",
            _ => suites::HELP,
        };
        Failure::from(error).help(help)
    })
}

/// Those of the suite, or those that were named.
///
/// # Errors
/// When a name leads nowhere or is given twice.
pub fn chosen_subjects(suite: &Suite, named: &[String]) -> Result<Vec<Subject>, Failure> {
    let mut subjects: Vec<Subject> = Vec::new();
    for name in named {
        let subject = suite
            .subject(name)
            .map_err(|error| Failure::from(error).help(subjects::HELP))?;
        if subjects.iter().any(|known| known.name == subject.name) {
            let words = format!("subject `{}` is named twice", subject.name);
            return Err(Failure::words(Kind::Usage, words).help("name each subject once"));
        }
        subjects.push(subject);
    }
    if subjects.is_empty() {
        subjects.clone_from(&suite.subjects);
    }
    Ok(subjects)
}

/// Those of the suite, one for all of its members, or one for each member, which
/// may then be more or fewer than the suite's own.
///
/// # Errors
/// When there are fewer than the suite speaks of.
pub fn choose_disks(suite: &mut Suite, named: &[String]) -> Result<(), Failure> {
    match named {
        [] => {}
        [one] => suite.use_disks(vec![one.clone(); suite.disks.len()]),
        many if many.len() >= suite.fewest_disks() => suite.use_disks(many.to_vec()),
        few => {
            let words = format!(
                "{} disks are named, but suite `{}` speaks of member {}",
                few.len(),
                suite.name,
                suite.fewest_disks() - 1
            );
            return Err(Failure::words(Kind::Usage, words).help(
                "give --disk once for all members, or once for each member; members count from 0",
            ));
        }
    }
    Ok(())
}

/// The parameter sets that every disk has, in the first one's order.
///
/// # Errors
/// When a preset is wrong, or lacks the set that is asked for.
pub fn chosen_fits(disks: &[String], asked: &str) -> Result<Vec<String>, Failure> {
    let presets = disks
        .iter()
        .map(|disk| presets::load(disk))
        .collect::<Result<Vec<Preset>, _>>()?;
    let Some((first, others)) = presets.split_first() else {
        return Err(Failure::words(Kind::Input, "the suite names no disks"));
    };
    let common: Vec<String> = first
        .set_names()
        .into_iter()
        .filter(|set| others.iter().all(|other| other.set_names().contains(set)))
        .map(str::to_owned)
        .collect();
    if asked == "all" {
        if common.is_empty() {
            let words = "the disks have no parameter set in common";
            return Err(Failure::words(Kind::Input, words)
                .help("`raidlab disks PRESET` shows the sets of a preset"));
        }
        return Ok(common);
    }
    if common.iter().any(|set| set == asked) {
        return Ok(vec![asked.to_owned()]);
    }
    let words = format!("the disks have no parameter set `{asked}`");
    let known = common.join(", ");
    Err(Failure::words(Kind::Usage, words).help(format!("use one of: {known}, all")))
}

/// Lets no job that ends by time run longer than [`QUICK`]. Jobs that end by
/// size stay whole: what comes after them relies on what they wrote.
pub fn shorten(suite: &mut Suite) {
    for step in &mut suite.steps {
        if let Step::Job(Job {
            work: Work::Fio {
                group: Ok(group), ..
            },
            ..
        }) = step
        {
            for spec in &mut group.jobs {
                spec.runtime = spec.runtime.map(|runtime| runtime.min(QUICK));
            }
        }
    }
}

/// The same for fio's own words, where fio itself is to run.
pub fn shorten_text(suite: &mut Suite) {
    let shorter = |line: &str| {
        let words = line.split(' ').map(|word| {
            let time = word.strip_prefix("--runtime=").and_then(|text| {
                // fio takes a plain number for seconds.
                let seconds = text.parse().ok().map(Nanos::from_secs);
                seconds.or_else(|| parse_duration(text).ok())
            });
            match time {
                Some(time) if time > QUICK => format!("--runtime={}", QUICK.0 / 1_000_000_000),
                _ => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    for step in &mut suite.steps {
        if let Step::Job(Job {
            work:
                Work::Fio {
                    text: FioText::Options(lines),
                    ..
                },
            ..
        }) = step
        {
            for line in lines {
                *line = shorter(line);
            }
        }
    }
}

/// A remark on the whole run.
pub fn remark(title: &str, statement: String) -> AccuracyNote {
    AccuracyNote {
        class: report::REMARK.to_owned(),
        title: title.to_owned(),
        statement,
        ..AccuracyNote::default()
    }
}

/// Figures that were measured on other disks compare with nothing here.
pub fn foreign_figures(suite: &Suite) -> Option<String> {
    let published = suite.published.as_ref()?;
    (published.disks != suite.disks).then(|| {
        format!(
            "The published figures are of {}; this run is on {}, so nothing is compared.",
            published.disks.join(", "),
            suite.disks.join(", ")
        )
    })
}

/// What the reader must know of the suite and the options.
pub fn remarks(arguments: &Arguments, suite: &Suite) -> Vec<AccuracyNote> {
    let mut remarks = Vec::new();
    if !suite.remarks.is_empty() {
        let statement = suite.remarks.join("; ");
        remarks.push(remark("Remarks on the suite", statement));
    }
    if arguments.quick {
        let statement = "Jobs that end by time were cut at 6 s of virtual time, and one \
                         parameter set was used: figures are noisier and have no band.";
        remarks.push(remark("A first look", statement.to_owned()));
    }
    if !arguments.without.is_empty() {
        let statement = format!(
            "The model ran without: {}. The declared accuracy is that of the whole model.",
            arguments.without.join(", ")
        );
        remarks.push(remark("An ablation", statement));
    }
    remarks
}

impl Prepared {
    /// How many rows there will be; `None` where a job is not one that is read
    /// beforehand, whose rows are known once it has run: bonnie++, iozone, or
    /// options that only a real fio understands.
    pub fn rows(&self) -> Option<usize> {
        let mut jobs = self.experiments.iter().flat_map(Experiment::jobs);
        jobs.try_fold(0, |rows, job| {
            job.work.group().ok()?;
            Some(rows + job.operations().len())
        })
    }

    /// Whether a subject is a real system that no model stands for.
    pub fn needs_real_systems(&self) -> bool {
        let mut kinds = self.experiments.iter().map(|one| one.subject.kind);
        kinds.any(|kind| kind == SubjectKind::System)
    }

    /// How many machines there are.
    pub fn machines(&self) -> usize {
        let hosts = self.experiments.iter().map(|one| one.host.as_str());
        hosts.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// An experiment in a word or two: `md, strict`.
    pub fn label(&self, index: usize) -> String {
        let Some(experiment) = self.experiments.get(index) else {
            return String::new();
        };
        let repetition = match self.suite.repetitions {
            0 | 1 => String::new(),
            _ => format!("repetition {}", experiment.repetition + 1),
        };
        [
            experiment.subject.name.clone(),
            experiment.fit.clone(),
            experiment.filesystem_label(),
            experiment.host.clone(),
            repetition,
        ]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
    }

    /// Changes when the suite, its subjects or how it is run change; not when
    /// disks get other names. FNV-1a, 64 bits.
    pub fn hash(&self) -> String {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut add = |text: &str| {
            for byte in text.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        add(&self.suite.plan());
        for (index, experiment) in self.experiments.iter().enumerate() {
            add(&self.label(index));
            add(&experiment.seed.to_string());
            for setting in &experiment.subject.settings {
                add(&setting.name);
                add(&setting.value);
            }
            add(&format!("{:?}", experiment.filesystem));
            add(&experiment.disks.len().to_string());
            for feature in &experiment.without {
                add(feature);
            }
        }
        format!("{hash:016x}")
    }

    /// The parameter sets, in order.
    fn fits(&self) -> Vec<&str> {
        let mut fits: Vec<&str> = Vec::new();
        for experiment in &self.experiments {
            if !fits.contains(&experiment.fit.as_str()) {
                fits.push(&experiment.fit);
            }
        }
        fits
    }

    /// What would be done, in words. Fits differ in numbers only, so each
    /// subject is shown once.
    pub fn plan(&self) -> String {
        let fits = self.fits();
        let mut text = String::new();
        for experiment in &self.experiments {
            if Some(&experiment.fit.as_str()) == fits.first() {
                let _ = writeln!(text, "{}", experiment.plan());
            }
        }
        let rows = self.rows().map_or_else(
            || "rows as the programs report".to_owned(),
            |rows| format!("{rows} rows"),
        );
        let _ = writeln!(
            text,
            "{} experiments with the parameter sets {}; {rows}; nothing was run or written",
            self.experiments.len(),
            fits.join(", "),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Prepared, is_job_file};
    use raidlab_lab::{Choices, Suite, catalogue};

    /// What a run is gone on with must be what it was begun with.
    #[test]
    fn the_hash_knows_the_subjects_host_and_what_is_left_out() {
        let suite = Suite::load("md-degraded").expect("built in");
        let hash = |host: &str, without: &[&str]| {
            let mut subjects = suite.subjects.clone();
            let host = catalogue::host(host).expect("built in");
            subjects
                .iter_mut()
                .for_each(|subject| subject.move_to(&host));
            let choices = Choices {
                without: without.iter().map(|&name| name.to_owned()).collect(),
                ..Choices::default()
            };
            let prepared = Prepared {
                experiments: suite.experiments(&subjects, &choices),
                suite: suite.clone(),
                remarks: Vec::new(),
            };
            prepared.hash()
        };
        let own = hash("linux-6.9", &[]);
        assert_eq!(own, hash("linux-6.9", &[]));
        assert_ne!(own, hash("kernel-bench", &[]));
        assert_ne!(own, hash("linux-6.9", &["rpo"]));
    }

    #[test]
    fn suites_and_job_files_are_told_apart_by_name() {
        for suite in ["mirror-2015", "own.toml", "./own.toml", "/srv/own.toml"] {
            assert!(!is_job_file(suite), "{suite}");
        }
        for job_file in ["own.fio", "own.ini", "./own", "/srv/jobs/own"] {
            assert!(is_job_file(job_file), "{job_file}");
        }
    }
}
