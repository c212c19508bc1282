//! What is said of fio's options that do not do what their words say.

use super::{HEAD, parse};
use crate::document::Document;
use crate::experiment::{Choices, option_notes};
use crate::files::Files;
use crate::suite::{FIRST_DRAW, Suite};
use raidlab_workload::Permission;
use std::path::Path;

/// The notes on the options of jobs with these lines on these subjects.
fn notes(subjects: &str, queue: &str, lines: &[&str], modelled: bool) -> Vec<String> {
    let mut text = HEAD.replace("\"md\"", subjects);
    for (index, line) in lines.iter().enumerate() {
        text += &format!(
            "[[step]]\njob = \"{}\"\ntitle = \"t\"\nclass = \"c\"\nqueue = \"{queue}\"\n{line}\n",
            index + 1
        );
    }
    let file = "own.toml".to_owned();
    let mut permission = Permission::default();
    permission.allow("filename", |_| None).expect("an option");
    let files = Files::default().allowing(permission);
    let suite = Suite::read(&files, &Document { file, text }, Path::new(""), FIRST_DRAW);
    let suite = suite.expect("valid");
    let choices = Choices {
        fits: vec!["strict".to_owned(), "joint".to_owned()],
        ..Choices::default()
    };
    option_notes(&suite.experiments(&suite.subjects, &choices), modelled)
}

#[test]
fn options_without_effect_are_told_once_and_only_of_models() {
    let lines = [
        "fio = \"--rw=read --hipri=1\"",
        "fio = [\"--rw=read\", \"--rw=read --runtime=1 --hipri\"]",
        "fio_job = \"\"\"\n[a]\nrw=read\nhipri\n\"\"\"",
    ];
    let told = notes("\"md\", \"gmirror\"", "host", &lines, true);
    let why = "the host's cost of a request is a setting of the experiment, not of the job";
    assert_eq!(
        told,
        [format!("job 3, line 3 and 2 more places: `hipri`: {why}")]
    );
    let real = notes("\"md\"", "host", &lines, false);
    assert_eq!(real, [""; 0]);
}

/// What was left out when the text was read is told on every bench.
#[test]
fn a_place_that_is_left_out_is_told_on_every_bench() {
    let lines = ["fio_job = \"\"\"\n[a]\nrw=read\nfilename=/dev/nosuch\n\"\"\""];
    for modelled in [false, true] {
        let told = notes("\"md\"", "fio", &lines, modelled);
        let words = "job 1, line 3: `filename`: the array takes its place, for all jobs alike";
        assert_eq!(told, [words]);
    }
}

#[test]
fn a_limit_of_each_thread_is_told_where_threads_make_up_a_depth() {
    let limit = |line: &str, queue: &str, subject: &str| {
        let line = format!("fio = \"--rw=randread --iodepth={line}\"");
        notes(subject, queue, &[&line], false)
    };
    let words = |option: &str| {
        vec![format!(
            "job 1, argument 3: `{option}`: counts for each of the threads that make up the \
             depth, as in fio"
        )]
    };
    for option in [
        "number_ios=8",
        "io_size=1m",
        "size=1m",
        "rate=1m",
        "rate_iops=9",
    ] {
        let name = option.split('=').next().expect("a name");
        let line = format!("4 --{option}");
        assert_eq!(limit(&line, "threads", "\"md\""), words(name));
        assert_eq!(limit(&line, "host", "\"gmirror\""), words(name));
        // One queue counts once, and so does a depth of one.
        assert_eq!(limit(&line, "host", "\"md\""), [""; 0]);
        assert_eq!(limit(&line, "fio", "\"gmirror\""), [""; 0]);
        let alone = format!("1 --{option}");
        assert_eq!(limit(&alone, "threads", "\"md\""), [""; 0]);
    }
    // Where a time ends the job, the size says where it works.
    let timed = limit("4 --size=1m --runtime=9", "threads", "\"md\"");
    assert_eq!(timed, [""; 0]);
}

/// On a host that makes threads of a depth there can be more than fio has.
#[test]
fn more_threads_than_fio_has_are_not_modelled() {
    let text = format!(
        "{HEAD}[[step]]\njob = \"1\"\ntitle = \"t\"\nclass = \"c\"\nfio = \"--rw=randread --iodepth=5000\"\n"
    );
    let text = text.replace("\"md\"", "\"md\", \"gmirror\"");
    let suite = parse(&text).expect("valid");
    let groups: Vec<_> = suite
        .experiments(&suite.subjects, &Choices::default())
        .iter()
        .map(|one| one.jobs().next().expect("a job").work.group().cloned())
        .collect();
    assert!(groups[0].is_ok());
    let error = groups[1].as_ref().expect_err("too many");
    let words = "5000 clones that run together: more than 4096";
    assert!(error.ends_with(words), "{error}");
}
