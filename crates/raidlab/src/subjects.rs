//! The command `raidlab subjects`: it lists and shows the arrays, pools and disks that
//! can be measured.

use crate::failure::Failure;
use crate::output;
use crate::suites::source;
use clap::Args;
use raidlab_lab::built_in;
use raidlab_lab::catalogue::{self, Kind};
use raidlab_lab::{Files, Subject, SubjectKind};
use raidlab_runs::SUBJECTS;
use raidlab_store::Setting;

/// Arguments of `raidlab subjects`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A built-in subject, or the path of one (.toml).
    name: Option<String>,

    /// Print the subject's file.
    #[arg(long, requires = "name")]
    toml: bool,

    /// List the hosts on which subjects are modelled, or with NAME show one.
    #[arg(long, conflicts_with = "toml")]
    hosts: bool,
}

/// Lists the subjects, or shows one.
///
/// # Errors
/// When there is no such subject or its file is wrong.
pub fn subjects(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.hosts {
        return hosts(arguments.name.as_deref());
    }
    let Some(name) = &arguments.name else {
        let rows = built_in::subjects()?.into_iter().map(|subject| {
            let kind = kind(subject.kind).to_owned();
            let host = subject.host.map_or_else(String::new, |host| host.name);
            vec![subject.name, kind, host, subject.title]
        });
        let head = ["subject", "kind", "host", "title"];
        return output::print(&output::table(&head, &[], rows.collect()));
    };
    let subject = Subject::load(name).map_err(|error| Failure::from(error).or_help(SUBJECTS))?;
    if arguments.toml {
        return output::print(&source(Kind::Subject, name)?);
    }
    let text = format!(
        "{}: {}\n{}\n\nkind  {}\nhost  {}\n\n{}",
        subject.name,
        subject.title,
        subject.description.trim(),
        kind(subject.kind),
        subject
            .host
            .as_ref()
            .map_or("real systems only".to_owned(), |host| format!(
                "{}, {}",
                host.name, host.title
            )),
        settings(&subject.settings)
    );
    output::print(&text)
}

/// Lists the hosts, or shows one.
fn hosts(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        let hosts = catalogue::hosts()?;
        let rows = hosts.into_iter().map(|host| vec![host.name, host.title]);
        return output::print(&output::table(&["host", "title"], &[], rows.collect()));
    };
    let host = catalogue::host(&Files::default(), name)?;
    output::print(&format!(
        "{}: {}\n\n{}",
        host.name,
        host.title,
        settings(&host.settings)
    ))
}

/// A kind of subject in words.
const fn kind(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::Disk => "disk",
        SubjectKind::System => "system",
        SubjectKind::Mirror => "mirror",
        SubjectKind::Array => "array",
        SubjectKind::ZfsMirror => "ZFS mirror",
    }
}

/// Prints settings with their sources.
fn settings(settings: &[Setting]) -> String {
    let rows = settings.iter().map(|setting| {
        vec![
            setting.scope.clone(),
            setting.name.clone(),
            setting.value.clone(),
            setting.source.clone(),
        ]
    });
    let head = ["scope", "setting", "value", "source"];
    output::table(&head, &[], rows.collect())
}
