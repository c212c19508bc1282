//! Text that nobody would write is read or refused, and never more.

use super::*;

/// Lines that are almost right, so that the readers of values are reached.
fn any_line() -> impl Strategy<Value = String> {
    let options = prop_oneof![
        Just("bs"),
        Just("size"),
        Just("io_size"),
        Just("filesize"),
        Just("offset"),
        Just("offset_increment"),
        Just("rw"),
        Just("iodepth"),
        Just("numjobs"),
        Just("loops"),
        Just("runtime"),
        Just("thinktime"),
        Just("rwmixread"),
        Just("rwmixwrite"),
        Just("fsync"),
        Just("kb_base"),
        Just("time_based"),
        Just("number_ios"),
        Just("randseed"),
        Just("bsrange"),
        Just("name"),
        Just("filename"),
        Just("[global]"),
        Just("[job]"),
    ];
    let values = prop_oneof![
        "[0-9]{1,20}[kmgtpKMGTP]?[iI]?[bB]?",
        "[0-9.]{1,9}(us|ms|s|m|h|d|usec)?",
        "[a-z]{1,9}",
        ".{0,9}",
    ];
    (options, values).prop_map(|(option, value)| {
        if option.starts_with('[') {
            option.to_owned()
        } else {
            format!("{option}={value}")
        }
    })
}

/// What must hold for whatever was read.
fn check(result: Result<JobFile, JobFileError>) -> Result<(), TestCaseError> {
    match result {
        Ok(file) => {
            prop_assert!(!file.groups.is_empty());
            for job in file.groups.iter().flat_map(|group| &group.jobs) {
                prop_assert_eq!(job.validate(), Ok(()));
            }
        }
        Err(error) => prop_assert!(!in_one_line(&error).is_empty()),
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        check(read_job_file("jobs.fio", &text))?;
        check(read_job_file("jobs.fio", &format!("[a]\n{text}")))?;
    }

    #[test]
    fn any_lines_are_read_or_refused(lines in proptest::collection::vec(any_line(), 0..6)) {
        check(read_job_file("jobs.fio", &format!("[a]\n{}", lines.join("\n"))))?;
        let arguments: Vec<String> = lines.iter().map(|line| format!("--{line}")).collect();
        check(parse_command_line_options("x", &arguments))?;
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        text in prop_oneof![Just(STREAMS), Just(SWEEP)],
        damage in proptest::collection::vec((any::<prop::sample::Index>(), "\\PC?"), 1..8),
    ) {
        let mut letters: Vec<char> = text.chars().collect();
        for (place, letter) in damage {
            let place = place.index(letters.len());
            letters.splice(place..=place, letter.chars());
        }
        let damaged: String = letters.into_iter().collect();
        check(read_job_file("jobs.fio", &damaged))?;
    }
}
