//! From arguments to experiments: which suite, subjects, disks and fits.

mod disks;

pub(crate) use disks::choose_disks;

use crate::asked::{ALL_FITS, Asked, On};
use crate::failure::{Failure, Kind, SUBJECTS, listing};
use crate::notes::remark;
use crate::prepared::{Prepared, on_options, what_is_missing};
use crate::task::Task;
use raidlab_bench_model::presets::{self, ProcessorPreset};
use raidlab_disk::Preset;
use raidlab_lab::catalogue;
use raidlab_lab::{
    Choices, FIRST_DRAW, Files, Job, LoadError, MOST_REPETITIONS, Permission, Published, Step,
    Subject, SubjectKind, Suite, Work, unaligned,
};
use raidlab_store::AccuracyNote;
use raidlab_units::{Nanos, count};
use std::path::Path;

/// The default disks of a job file.
const JOB_FILE_DISKS: [&str; 2] = ["wd4000fyyz", "wd4000fyyz"];
/// The default subject of a job file.
const JOB_FILE_SUBJECT: &str = "md";
/// The length of a job under `--quick`: a tenth of the usual minute.
const QUICK: Nanos = Nanos::from_secs(6);

/// The remedy where a suite cannot be loaded.
pub const SUITES: &str =
    "`raidlab suites` lists the suites; `raidlab suites mirror-2015 --toml` prints a complete one";

/// Loads what every bench begins with: the suite as it is asked for, and its subjects.
///
/// # Errors
/// When a file is missing or wrong, or names do not go together.
pub fn chosen(task: &Task) -> Result<(Suite, Vec<Subject>), Failure> {
    let suite = load(&task.asked, &task.files)?;
    let subjects = chosen_subjects(&suite, &task.files, &task.asked.subjects)?;
    task.check_targets(&subjects)?;
    if let Some(error) = unaligned(&suite, &subjects) {
        let help = "give a multiple of 512, or leave out `direct=1`";
        return Err(Failure::new(Kind::Input, error).help(help));
    }
    Ok((suite, subjects))
}

/// Reads all files and decides everything, for the model bench.
///
/// # Errors
/// When a file is missing or wrong, or names do not go together.
pub(crate) fn for_model(task: &Task) -> Result<Prepared, Failure> {
    let (asked, files) = (&task.asked, &task.files);
    let (mut suite, mut subjects) = chosen(task)?;
    let unmodelled = leave_out_unmodelled(asked, &mut subjects);
    let moved = choose_host(asked, files, &mut subjects)?;
    choose_disks(&mut suite, &asked.disks)?;
    let mut fits = chosen_fits(files, &suite, &asked.fit)?;
    let left_out = asked.quick && fits.len() > 1;
    if left_out {
        fits.truncate(1);
    }
    processor(files, asked.processor.as_deref(), &suite)?;
    let choices = Choices {
        fits,
        seed: asked.seed,
        without: asked.without.clone(),
        processor: asked.processor.clone(),
        ..Choices::default()
    };
    let mut remarks = remarks(asked, &mut suite);
    remarks.extend(unmodelled);
    remarks.extend(moved);
    remarks.extend(without_a_page_cache(&suite));
    if left_out {
        let statement = "Only the first parameter set of the disks was used.";
        remarks.push(remark("One parameter set", statement.to_owned()));
    }
    let experiments = suite.experiments(&subjects, &choices);
    remarks.extend(on_options(task, &experiments));
    remarks.extend(what_is_missing(task, &suite, &experiments, Vec::new())?);
    Ok(Prepared {
        experiments,
        suite,
        remarks,
    })
}

/// Leaves out the subjects without a model where the user chose none, with a note to the reader. If
/// none has a model, nothing is left out, and the bench refuses.
fn leave_out_unmodelled(asked: &Asked, subjects: &mut Vec<Subject>) -> Option<AccuracyNote> {
    let is_modelled = |subject: &Subject| subject.kind != SubjectKind::System;
    if !asked.subjects.is_empty() || !subjects.iter().any(is_modelled) {
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

/// The remark on jobs that do not ask for direct I/O: a real kernel would answer them from the
/// memory that caches its files.
fn without_a_page_cache(suite: &Suite) -> Option<AccuracyNote> {
    let is_buffered = |job: &&Job| match &job.work {
        Work::Fio { jobs, .. } => !jobs.are_direct(),
        Work::Tool { .. } => false,
    };
    let buffered = suite.jobs().filter(is_buffered).count();
    (buffered > 0).then(|| {
        let statement = format!(
            "{buffered} of {} say no `direct=1`. The model has no page cache and runs all jobs as \
             with it; a real kernel would not.",
            count(suite.jobs().count(), "job", "jobs")
        );
        remark("Without a page cache", statement)
    })
}

/// Models all subjects on the host that was asked for.
fn choose_host(
    asked: &Asked,
    files: &Files,
    subjects: &mut [Subject],
) -> Result<Option<AccuracyNote>, Failure> {
    let Some(name) = &asked.model_host else {
        return Ok(None);
    };
    let host = catalogue::host(files, name)
        .map_err(|error| Failure::from(error).or_help(listing("host")))?;
    for subject in subjects {
        subject.move_to(&host);
    }
    let statement = format!(
        "All subjects are modelled on {}: {}.",
        host.name, host.title
    );
    Ok(Some(remark("Another host", statement)))
}

/// Whether the argument is a fio job file: any path that is not a suite's.
fn is_job_file(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.map_or_else(|| name.contains('/'), |extension| extension != "toml")
}

/// Loads the suite that was named, as it is asked for.
///
/// # Errors
/// When there is no suite of this name, or its file is wrong.
pub fn load(asked: &Asked, files: &Files) -> Result<Suite, Failure> {
    let mut suite = named(asked, files)?;
    if let Some(repetitions) = asked.host.repetitions {
        suite.repetitions = repetitions.get();
        if suite.repetitions > MOST_REPETITIONS {
            let words = format!("{repetitions} repetitions are more than anybody waits for");
            let help = format!("`--repetitions` is at most {MOST_REPETITIONS}");
            return Err(Failure::words(Kind::Usage, words).help(help));
        }
    }
    if asked.quick {
        shorten(&mut suite);
    }
    Ok(suite)
}

fn named(asked: &Asked, files: &Files) -> Result<Suite, Failure> {
    let name = &asked.suite;
    if is_job_file(name) {
        refuse_draw(asked)?;
        let disks = JOB_FILE_DISKS.map(str::to_owned).to_vec();
        let subject = Subject::load_from(files, JOB_FILE_SUBJECT)?;
        let suite = Suite::from_job_file(files, Path::new(name), disks, vec![subject]);
        return suite.map_err(|error| {
            // An ending that job files have is no guess once the file is read.
            let is_read = !matches!(error, LoadError::Read(_));
            let is_plain = (is_read && name.ends_with(".fio")) || error.is_in_a_job_file();
            let failure = Failure::from(error);
            let taken = format!(
                "`{name}` is taken for a fio job file: a suite's file ends in .toml, a plan's in .json"
            );
            match is_plain {
                true => failure,
                false => failure.or_help(&taken),
            }
        });
    }
    let number = asked.draw.unwrap_or(FIRST_DRAW);
    let suite = Suite::load_draw(files, name, number);
    let suite = suite.map_err(|error| Failure::from(error).or_help(SUITES))?;
    if suite.draw.is_none() {
        refuse_draw(asked)?;
    }
    Ok(suite)
}

/// Refuses a draw for a suite that draws nothing.
fn refuse_draw(asked: &Asked) -> Result<(), Failure> {
    if asked.draw.is_none() {
        return Ok(());
    }
    let words = format!(
        "`--draw` does nothing: `{}` has nothing to draw",
        asked.suite
    );
    Err(Failure::words(Kind::Usage, words)
        .help("leave it out; it is for suites that say `draw`, as md-held"))
}

/// The permission for what this run's files may ask of fio beside its load.
///
/// # Errors
/// When there is no such option or variable.
pub fn permission(allowed: &[String]) -> Result<Permission, Failure> {
    let mut permission = Permission::default();
    for text in allowed {
        permission
            .allow(text, |name| std::env::var(name).ok())
            .map_err(|error| {
                Failure::new(Kind::Usage, error).help(
                    "--allow-fio takes an option of fio's, `include`, or a variable as '${NAME}'",
                )
            })?;
    }
    Ok(permission)
}

/// The allowed options, with the value of each variable that is allowed by name alone: a resumed
/// run and a guest may have another environment.
pub(crate) fn with_values(allowed: &[String]) -> Vec<String> {
    let valued = |text: &String| {
        let name = text.strip_prefix("${");
        let name = name.and_then(|rest| rest.strip_suffix('}'));
        match name.and_then(|name| std::env::var(name).ok()) {
            Some(value) => format!("{text}={value}"),
            None => text.clone(),
        }
    };
    allowed.iter().map(valued).collect()
}

/// The subjects of the suite, or those that were named.
///
/// # Errors
/// When a name leads nowhere or is given twice.
pub(crate) fn chosen_subjects(
    suite: &Suite,
    files: &Files,
    named: &[String],
) -> Result<Vec<Subject>, Failure> {
    let mut subjects: Vec<Subject> = Vec::new();
    for name in named {
        let subject = suite
            .subject_from(files, name)
            .map_err(|error| Failure::from(error).or_help(SUBJECTS))?;
        if suite.subjects.iter().any(|own| own.steps.is_some()) && subject.steps.is_none() {
            let words = format!(
                "suite `{}` says of each of its subjects what is done with it; `{}` is none of them",
                suite.name, subject.name
            );
            let help = format!("`raidlab run {} --dry-run` shows its subjects", suite.name);
            return Err(Failure::words(Kind::Usage, words).help(help));
        }
        let lower = subject.name.to_lowercase();
        let mut known = subjects.iter().map(|known| &known.name);
        if let Some(known) = known.find(|known| known.to_lowercase() == lower) {
            let (words, help) = match *known == subject.name {
                true => (
                    format!("subject `{known}` is named twice"),
                    "name each subject once",
                ),
                false => (
                    format!(
                        "subjects `{known}` and `{}` differ in capital letters alone",
                        subject.name
                    ),
                    "give one of them another name in its file",
                ),
            };
            return Err(Failure::words(Kind::Usage, words).help(help));
        }
        subjects.push(subject);
    }
    if subjects.is_empty() {
        subjects.clone_from(&suite.subjects);
    }
    Ok(subjects)
}

/// The processor that was asked for, or else the suite's.
///
/// # Errors
/// When there is no processor of that name, or its file is wrong.
pub fn processor(
    files: &Files,
    asked: Option<&str>,
    suite: &Suite,
) -> Result<Option<ProcessorPreset>, Failure> {
    let (name, place) = match (asked, &suite.processor) {
        (Some(asked), _) => (asked, None),
        (None, Some(own)) => (own.as_str(), suite.places.processor.as_ref()),
        (None, None) => return Ok(None),
    };
    let found = presets::processor(files, name);
    found
        .map(Some)
        .map_err(|error| Failure::of_preset(place, error))
}

/// The parameter sets that every disk has, in the order of the first disk with a choice: a disk
/// with a single set uses that one, whatever the others use.
///
/// # Errors
/// When a preset is wrong, or lacks the set that is asked for.
pub(crate) fn chosen_fits(
    files: &Files,
    suite: &Suite,
    asked: &str,
) -> Result<Vec<String>, Failure> {
    let mut places = suite.places.disks.iter();
    let presets = suite.disks.iter().map(|disk| {
        let place = places.next();
        presets::load_from(files, disk).map_err(|error| Failure::of_preset(place, error))
    });
    let presets = presets.collect::<Result<Vec<Preset>, _>>()?;
    let Some(first) = presets.first() else {
        return Err(Failure::words(Kind::Input, "the suite names no disks"));
    };
    let choosing = presets.iter().find(|preset| preset.set_names().len() > 1);
    let names = choosing.unwrap_or(first).set_names().into_iter();
    let common: Vec<String> = names
        .filter(|set| {
            let mut presets = presets.iter();
            presets.all(|preset| preset.parameters(preset.set_beside(set)).is_ok())
        })
        .map(str::to_owned)
        .collect();
    if asked == ALL_FITS {
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

/// Shortens jobs that end by time to [`QUICK`], on any bench. Jobs that end by size stay whole:
/// later jobs rely on what they wrote.
fn shorten(suite: &mut Suite) {
    let jobs = suite.steps.iter_mut().flat_map(|step| match step {
        Step::Job(job) => std::slice::from_mut(job),
        Step::Rounds(rounds) => rounds.jobs.as_mut_slice(),
        Step::Event(_) | Step::Check | Step::Wait(_) => &mut [],
    });
    for job in jobs {
        job.work.edit_fio(|jobs| jobs.shorten(QUICK));
    }
}

/// The remarks on the suite and the options that the reader must know. Published figures of other
/// disks compare with nothing here, and are dropped.
pub fn remarks(asked: &Asked, suite: &mut Suite) -> Vec<AccuracyNote> {
    let mut remarks = Vec::new();
    let real = asked.on == On::Host;
    let disks = &suite.disks;
    let elsewhere = real || suite.figures_of != suite.regions;
    let foreign = |figures: &mut Published| elsewhere || figures.disks != *disks;
    if let Some(figures) = suite.published.take_if(foreign) {
        let here = match (real, figures.disks == *disks) {
            (true, _) => "other disks".to_owned(),
            (false, true) => "other parts of them".to_owned(),
            (false, false) => disks.join(", "),
        };
        let statement = format!(
            "The published figures are of {}; this run is on {here}, so nothing is compared.",
            figures.disks.join(", ")
        );
        remarks.push(remark("Other disks", statement));
    }
    if let Some(figures) = suite.published.as_ref().filter(|it| it.classes.is_empty()) {
        let statement = format!(
            "{}: {}. Another kernel and another machine measured them; what else differs is said \
             at the top of the suite's file, which `raidlab suites {} --toml` prints.",
            figures.title, figures.source, suite.name
        );
        remarks.push(remark("The published figures", statement));
    }
    if !suite.remarks.is_empty() {
        let statement = suite.remarks.join("; ");
        remarks.push(remark("Remarks on the suite", statement));
    }
    if asked.quick {
        let statement = "Jobs that end by time were cut at 6 s of virtual time, so figures \
                         are noisier.";
        remarks.push(remark("A first look", statement.to_owned()));
    }
    if !asked.without.is_empty() {
        let statement = format!(
            "The model ran without: {}. The declared accuracy is that of the whole model.",
            asked.without.join(", ")
        );
        remarks.push(remark("An ablation", statement));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::{chosen_fits, is_job_file};
    use raidlab_lab::{Files, Suite};

    #[test]
    fn a_disk_with_one_set_joins_others_in_theirs() {
        let chosen = |disks: &[&str], asked: &str| {
            let mut suite = Suite::load("quick").expect("built in");
            suite.use_disks(disks.iter().map(|disk| (*disk).to_owned()).collect());
            chosen_fits(&Files::default(), &suite, asked).map_err(|error| error.to_string())
        };
        let both = ["strict", "joint"].map(str::to_owned).to_vec();
        for disks in [["wd4000fyyz", "ssd950pro"], ["ssd950pro", "wd4000fyyz"]] {
            assert_eq!(chosen(&disks, "all"), Ok(both.clone()));
            assert_eq!(chosen(&disks, "joint"), Ok(both[1..].to_vec()));
            assert!(
                chosen(&disks, "rated").is_err(),
                "one of the two has it alone"
            );
        }
        let rated = Ok(vec!["rated".to_owned()]);
        assert_eq!(chosen(&["ssd950pro", "sp1614n"], "all"), rated);
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
