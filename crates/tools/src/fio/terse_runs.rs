//! Terse output of several runs of fio in one file, as a script's `>>` leaves it.
//!
//! A line does not name its run, and every run's first group is 0. But each line of a report
//! repeats the counters of all disks, and no other run has the same, unless the disks did nothing.
//! With `status-interval` one run has several reports, each with the counts since the start: the
//! last one counts. Where a file is in memory they may have the same counters, too: then a report
//! begins where the first job comes again with more of everything.

use super::terse::Whose;

/// The least time between two reports of a run, milliseconds: repetitions of a job with a time
/// limit differ by less.
const LATER_MS: f64 = 50.0;

/// A report: the lines that fio printed at one time.
struct Report<'text> {
    lines: Vec<(usize, Whose<'text>)>,
}

impl<'text> Report<'text> {
    /// Whether a line belongs to this report, too.
    fn has(&self, line: &Whose<'text>) -> bool {
        let group = |line: &Whose<'_>| line.job.1.parse::<u64>().ok();
        let comes_again = self.lines.first().is_some_and(|(_, first)| {
            let mut figures = first.highest.iter().zip(&line.highest);
            first.job == line.job
                && figures.all(|(one, other)| one <= other)
                && have_gone_on(more(first, line))
        });
        let last = self.lines.last();
        let is_next =
            |last: &Whose<'_>| last.end == line.end && group(last) <= group(line) && !comes_again;
        last.is_none_or(|(_, last)| is_next(last))
    }

    /// Whether `later` may be a report of the same run: its jobs have advanced, or had ended.
    fn goes_on_in(&self, later: &Self) -> bool {
        let pairs = || self.lines.iter().zip(&later.lines);
        self.lines.len() == later.lines.len()
            && pairs().all(|((_, one), (_, other))| one.job == other.job)
            && have_gone_on(pairs().flat_map(|((_, one), (_, other))| more(one, other)))
    }
}

/// The KiB and milliseconds that each direction of a line has more in another one.
fn more(one: &Whose<'_>, other: &Whose<'_>) -> Vec<(f64, f64)> {
    let counts = one.counts.iter().zip(&other.counts);
    let more = counts.map(|(one, other)| (other.0 - one.0, other.1 - one.1));
    more.collect()
}

/// Whether some directions have advanced, and all others had ended.
fn have_gone_on(more: impl IntoIterator<Item = (f64, f64)>) -> bool {
    let has_gone_on = |(kibibytes, ms): (f64, f64)| kibibytes > 0.0 && ms >= LATER_MS;
    let mut any = false;
    let all = more.into_iter().all(|more| {
        any |= has_gone_on(more);
        more == (0.0, 0.0) || has_gone_on(more)
    });
    all && any
}

/// The text of each run, after as many empty lines as there are lines before it in the file, so
/// that errors name the file's lines; and notes on how the runs were told apart. Other lines stay
/// with the run before them.
#[must_use]
pub fn runs(text: &str) -> (Vec<String>, Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut reports: Vec<Report<'_>> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(whose) = Whose::of(line) else {
            continue;
        };
        match reports.last_mut().filter(|report| report.has(&whose)) {
            Some(report) => report.lines.push((index, whose)),
            None => reports.push(Report {
                lines: vec![(index, whose)],
            }),
        }
    }
    let mut notes = Vec::new();
    let mut outdated = vec![false; lines.len()];
    let mut starts = vec![0];
    for pair in reports.windows(2) {
        if pair[0].goes_on_in(&pair[1]) {
            pair[0]
                .lines
                .iter()
                .for_each(|(index, _)| outdated[*index] = true);
        } else {
            starts.push(pair[1].lines[0].0);
        }
    }
    for Report { lines } in &reports {
        if let [(first, one), .., (last, _)] = lines.as_slice()
            && !one.has_disks()
        {
            notes.push(format!(
                "lines {} to {} have no counters of disks above 0, which would tell runs of fio apart: \
                 jobs of one group there are taken to have run at the same time",
                first + 1,
                last + 1
            ));
        }
    }
    let ends = starts[1..].iter().copied().chain([lines.len()]);
    let run = |(&start, end): (&usize, usize)| {
        let kept = (start..end).map(|index| if outdated[index] { "" } else { lines[index] });
        "\n".repeat(start) + &kept.collect::<Vec<_>>().join("\n")
    };
    (starts.iter().zip(ends).map(run).collect(), notes)
}

#[cfg(test)]
mod tests {
    use super::runs;

    const LINE: &str = include_str!("data/fio-3.33-v3.terse");

    /// A line of a job that has read `kibibytes` in `ms`, with a disk that did `ios`.
    fn line(job: &str, kibibytes: u64, ms: u64, ios: u64) -> String {
        let mut fields: Vec<String> = LINE.trim_end().split(';').map(str::to_owned).collect();
        job.clone_into(&mut fields[2]);
        fields[5] = kibibytes.to_string();
        fields[8] = ms.to_string();
        for unused in [46, 49] {
            "0".clone_into(&mut fields[unused]);
        }
        fields[122] = ios.to_string();
        fields.join(";")
    }

    fn cut(lines: &[String]) -> Vec<String> {
        let (runs, notes) = runs(&lines.join("\n"));
        assert_eq!(notes, [""; 0]);
        runs
    }

    /// The figures are of fio 3.33: `numjobs=3`, then three runs with `>>`, then
    /// `numjobs=2` with `status-interval=1`.
    #[test]
    fn runs_are_told_apart_and_reports_of_one_are_not() {
        let clones = [68820, 50752, 68588].map(|kibibytes| line("a", kibibytes, 2001, 42814));
        assert_eq!(cut(&clones), [clones.join("\n")]);
        let appended = [
            line("a", 41900, 2001, 9921),
            "a script says".to_owned(),
            line("a", 117_792, 2001, 13897),
            line("b", 252_720, 2001, 14768),
        ];
        let found = cut(&appended);
        assert_eq!(found.len(), 3);
        assert!(found[0].ends_with("says"), "{found:?}");
        assert_eq!(found[1], format!("\n\n{}", appended[2]));
        let reports = [
            line("a", 17336, 871, 11092),
            line("a", 26916, 875, 11092),
            line("a", 69812, 3871, 41866),
            line("a", 105_452, 3874, 41866),
            line("a", 71880, 4001, 44655),
            line("a", 109_396, 4001, 44655),
        ];
        assert_eq!(
            cut(&reports),
            [format!("\n\n\n\n{}", reports[4..].join("\n"))]
        );
        // Repetitions of a job with a time limit, and of one with a size.
        let timed = [line("a", 41900, 2001, 9921), line("a", 42100, 2003, 9971)];
        assert_eq!(cut(&timed).len(), 2);
        let sized = [line("a", 16384, 1500, 4096), line("a", 16384, 1700, 4097)];
        assert_eq!(cut(&sized).len(), 2);
    }

    /// fio 3.33 with `numjobs=2` and `status-interval=1` on a file in memory, with an idle disk.
    #[test]
    fn reports_with_the_same_counters_are_told_apart() {
        let reports = [
            line("a", 176_240, 2892, 41866),
            line("a", 180_192, 2888, 41866),
            line("a", 181_040, 3001, 41866),
            line("a", 188_492, 3001, 41866),
        ];
        assert_eq!(cut(&reports), [format!("\n\n{}", reports[2..].join("\n"))]);
    }

    #[test]
    fn what_cannot_be_told_apart_is_said() {
        let bare = |job: &str, ms| {
            let line = line(job, 41900, ms, 0);
            line.split(';').take(121).collect::<Vec<_>>().join(";")
        };
        let (found, notes) = runs(&[bare("a", 2001), bare("b", 2010)].join("\n"));
        assert_eq!(found.len(), 1);
        let [note] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(
            note.starts_with("lines 1 to 2 have no counters of disks"),
            "{note}"
        );
        // Three runs on a file in memory have nothing else to tell.
        let idle = line("a", 8192, 4, 0);
        let mut fields: Vec<&str> = idle.split(';').collect();
        fields[122..129].fill("0");
        let idle = fields.join(";");
        let (found, notes) = runs(&[idle.as_str(); 3].join("\n"));
        assert_eq!((found.len(), notes.len()), (1, 1), "{notes:?}");
    }
}
