//! Plans of runs: made, written to files, read from files and from the store, and compared with
//! the present files.

use crate::asked::{Asked, On};
use crate::failure::{Failure, Kind};
use crate::front::Front;
use crate::notes;
use crate::prepared::Prepared;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use raidlab_lab::plan::{Listed, PLAN_SCHEMA, PlanError, sha256_of};
use raidlab_lab::{Files, Plan, files};
use raidlab_store::text::visible_path;
use raidlab_store::{RunSummary, Store, read_bytes};
use raidlab_units::{hexadecimal, text_of};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The largest size of a plan's file, in bytes: the data files of a suite take a
/// few hundred kibibytes.
const LONGEST: u64 = 64 << 20;

/// The plan of a task; `experiments`: those that are prepared, in their order.
pub fn of(
    asked: &Asked,
    files: &Files,
    prepared: &Prepared,
    experiments: Vec<Listed>,
) -> Plan<Asked> {
    Plan {
        schema: PLAN_SCHEMA,
        // The number of the draw stands in the plan also where it is the default.
        asked: Asked {
            draw: prepared.suite.draw,
            typed: Vec::new(),
            ..asked.clone()
        },
        experiments,
        files: files.texts(),
    }
}

/// The plan in the file that stands in the place of a suite, if it is one.
///
/// # Errors
/// When the plan cannot be read, or other things are asked for beside it.
pub fn from_file(asked: &Asked) -> Result<Option<Plan<Asked>>, Failure> {
    let Some(plan) = in_file(Path::new(&asked.suite))? else {
        return Ok(None);
    };
    let beside = asked.options();
    if !beside.is_empty() {
        let words = format!(
            "{} decides this already: {}",
            asked.suite,
            beside.join(", ")
        );
        return Err(Failure::words(Kind::Usage, words)
            .help("leave it out, or plan the suite again with it: `--plan-only`"));
    }
    Ok(Some(plan))
}

/// The plan in a file; `None` if the file's name is not that of a plan.
///
/// # Errors
/// When the plan cannot be read, or is one for real machines.
pub fn in_file(path: &Path) -> Result<Option<Plan<Asked>>, Failure> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(None);
    }
    let name = visible_path(path);
    let plan = read(&name, &text(path)?)?;
    if plan.asked.on == On::Host {
        let words = format!("{name} is a plan for real machines");
        return Err(Failure::words(Kind::Input, words)
            .help("such a plan is made where it is run: `raidlab run SUITE --on host`"));
    }
    Ok(Some(plan))
}

fn text(path: &Path) -> Result<String, Failure> {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the plan {}", visible_path(.0))]
    struct ReadError(PathBuf, #[source] io::Error);

    read_bytes(path, LONGEST)
        .and_then(text_of)
        .map_err(|error| {
            Failure::new(Kind::Input, ReadError(path.to_owned(), error))
                .help("`raidlab run SUITE --plan-only FILE.json` writes a plan")
        })
}

/// Reads a plan from its text; `name`: the file or run that holds it.
///
/// # Errors
/// When the text is no plan, or one of another version.
pub fn read(name: &str, text: &str) -> Result<Plan<Asked>, Failure> {
    #[derive(Debug, thiserror::Error)]
    #[error("{0} cannot be used")]
    struct Unusable(String, #[source] PlanError);

    Plan::read(text).map_err(|error| {
        let help = match error {
            PlanError::Form(_) => "`raidlab run SUITE --plan-only FILE.json` writes a plan",
            PlanError::Schema { .. } => "use the raidlab that wrote it, or plan the suite again",
        };
        Failure::new(Kind::Input, Unusable(name.to_owned(), error)).help(help)
    })
}

/// The plan that a store keeps of a run. There is a message about every file that is another one
/// now, or is not there.
///
/// # Errors
/// When the run has no plan, or one of another version.
pub(crate) fn from_store(
    store: &Path,
    run: &RunSummary,
    front: &dyn Front,
) -> Result<Plan<Asked>, Failure> {
    let name = &run.run.name;
    let Some(kept) = Store::open_existing(store)?.plan(run.id)? else {
        let words = format!(
            "run {name} has no plan: it was imported, or begun by an older raidlab, which kept none"
        );
        let again = format!("its rows stay; begin it again: `{}`", run.run.command_line);
        return Err(Failure::words(Kind::Input, words).help(again));
    };
    let plan = read(&format!("the plan of run {name}"), &kept.json)?;
    for (file, text) in &plan.files {
        let now = now(file);
        if now.as_ref() != Some(text) {
            // The run may have been planned in another folder, or on another machine.
            let is = match now {
                Some(_) => "is another one now",
                None => "is not here",
            };
            front.say(&format!("{file} {is}: the run's own copy of it is used"));
        }
    }
    Ok(plan)
}

/// The present text of a file of a plan.
fn now(file: &str) -> Option<String> {
    match files::as_built_in(file) {
        Some((folder, name)) => raidlab_data::text(folder, name).map(str::to_owned),
        // The name may be a stranger's: a pipe would wait, and a device has no end.
        None => (std::fs::metadata(file).is_ok_and(|found| found.is_file()))
            .then(|| std::fs::read_to_string(file).ok())
            .flatten(),
    }
}

/// Resumes a run that did not finish. If this program is another one than the run's, that is said,
/// and kept with the run.
///
/// # Errors
/// When the store cannot be read or written.
pub fn go_on(run: &RunSummary, store: &mut Store, front: &dyn Front) -> Result<(), Failure> {
    let own = program();
    let other = store.plan(run.id)?.is_some_and(|kept| kept.program != own);
    if other {
        let statement = format!(
            "This run was begun by another build of raidlab and went on with build {own}: \
             the rows of experiments that had not come to their end are of the latter."
        );
        let note = notes::remark("Another build", statement);
        front.say(&format!("warning: {}", note.statement));
        if !store.notes(run.id)?.contains(&note) {
            store.add_notes(run.id, &[note])?;
        }
    }
    Ok(())
}

/// Refuses to mix two runs: what this raidlab makes of a plan, its `own` experiments,
/// must be what was planned.
///
/// # Errors
/// With the first experiment that differs.
pub fn check(plan: &Plan<Asked>, own: &[Listed]) -> Result<(), Failure> {
    if own == plan.experiments {
        return Ok(());
    }
    let find = |all: &[Listed], label: &str| all.iter().find(|one| one.label == label).cloned();
    let differs = plan
        .experiments
        .iter()
        .find_map(|planned| match find(own, &planned.label) {
            None => Some(format!("there is no `{}` any more", planned.label)),
            Some(now) if now != *planned => {
                Some(format!("`{}` has other steps or settings", planned.label))
            }
            Some(_) => None,
        });
    let differs = differs.unwrap_or_else(|| {
        let mut own = own.iter();
        match own.find(|one| find(&plan.experiments, &one.label).is_none()) {
            Some(more) => format!("`{}` was not planned", more.label),
            None => "the experiments come in another order".to_owned(),
        }
    });
    let words = format!("this raidlab would not run what was planned: {differs}");
    Err(Failure::words(Kind::Input, words)
        .help("use the raidlab that made the plan, or begin a new run and compare the two"))
}

/// The identity of this program, in hexadecimal digits: the build ID of its linker, or the SHA-256
/// of its file where there is none; empty where the file cannot be read. The linker derives the ID
/// from all that it writes, so another program has another ID. Reading it takes no time, whereas a
/// sum of the file takes longer than a short part of a run.
pub fn program() -> String {
    let file = || std::env::current_exe().and_then(File::open);
    let Ok(noted) = file().map(ReadCache::new) else {
        return String::new();
    };
    match build_id(&noted) {
        Ok(Some(id)) => id,
        _ => file().and_then(sha256_of).unwrap_or_default(),
    }
}

/// The build ID of a program, from the few pages that lead to it: `object::File` would read all of
/// the program's symbols first.
fn build_id(program: &ReadCache<File>) -> object::Result<Option<String>> {
    let header = FileHeader64::<Endianness>::parse(program)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, program)? {
        let Some(mut notes) = segment.notes(endian, program)? else {
            continue;
        };
        while let Some(note) = notes.next()? {
            if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
                return Ok(Some(hexadecimal(note.desc())));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::{program, sha256_of};
    use raidlab_units::hexadecimal;

    /// The ID's note is four bytes, its owner, and then the ID (elf(5), `NT_GNU_BUILD_ID`).
    #[test]
    fn a_program_is_known_by_its_build_id_or_by_its_bytes() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let own = program();
        let note = b"\x03\0\0\0GNU\0";
        let noted = bytes.windows(note.len()).enumerate();
        let mut noted = noted.filter(|(_, window)| *window == note);
        let is_noted = noted.any(|(at, _)| {
            let id = bytes.get(at + note.len()..at + note.len() + own.len() / 2);
            id.is_some_and(|id| hexadecimal(id) == own)
        });
        assert!(is_noted || own == sha256_of(&bytes[..]).unwrap(), "{own}");
        assert!(own.len() >= 16, "{own}");
    }
}
