//! JSON of several runs of fio in one file, as a script's `>>` leaves it.
//!
//! With `status-interval` one run has several documents too, each with the counts since the
//! start. The two are told apart by the time at which fio began: the time of a document less
//! the whole seconds that had passed by then, rounded up. Another run begins when the one
//! before it has ended.

use super::json::{next_document, without_nan};
use serde_json::{Deserializer, Value};

/// The error of a computed beginning, milliseconds; twice as much where times are in whole seconds.
const ROUNDED_MS: u64 = 1000;

/// The time in which no job need run between two reports of one run, milliseconds: less than
/// another fio takes to begin.
const IDLE_MS: u64 = 200;

/// The names of counts that grow during a run.
const COUNTS: [&str; 3] = ["total_ios", "io_bytes", "runtime"];
const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// The text of each run, after as many empty lines as there are lines before it in the file, so
/// that errors name the file's lines. An incomplete document stays with the run before it.
#[must_use]
pub fn runs(text: &str) -> Vec<String> {
    let first = next_document(text).unwrap_or(text.len());
    let clean = format!("{}{}", &text[..first], without_nan(&text[first..]));
    let mut starts = vec![0];
    let mut before: Option<Value> = None;
    let mut end = 0;
    while let Some(start) = next_document(&clean[end..]) {
        let mut documents = Deserializer::from_str(&clean[end + start..]).into_iter::<Value>();
        let Some(Ok(document)) = documents.next() else {
            break;
        };
        if !jobs(&document).is_empty() {
            if before.is_some_and(|before| !goes_on(&before, &document)) {
                starts.push(end);
            }
            before = Some(document);
        }
        end += start + documents.byte_offset();
    }
    if starts.len() == 1 {
        return vec![text.to_owned()];
    }
    let ends = starts[1..].iter().copied().chain([clean.len()]);
    let run = |(&start, end): (&usize, usize)| {
        let lines = clean[..start].matches('\n').count();
        "\n".repeat(lines) + &clean[start..end]
    };
    starts.iter().zip(ends).map(run).collect()
}

fn jobs(document: &Value) -> &[Value] {
    let all = ["jobs", "client_stats"].into_iter();
    let mut all = all.filter_map(|name| document.get(name)?.as_array());
    all.next().map_or(&[], Vec::as_slice)
}

/// Whether a document may be the next one of the same run.
fn goes_on(before: &Value, after: &Value) -> bool {
    let (old, new) = (jobs(before), jobs(after));
    let is_same = |name: &str| {
        let of_new = new.iter().map(|job| job.get(name));
        old.iter().map(|job| job.get(name)).eq(of_new)
    };
    is_same("jobname")
        && is_same("job options")
        && before.get("global options") == after.get("global options")
        && match (Times::of(before), Times::of(after)) {
            (Some(one), Some(other)) if one.is_sure() => one.has_begun_before(&other),
            (Some(one), Some(other)) => {
                counts_up(old, new) && one.has_run_until(&other, gained(old, new))
            }
            _ => counts_up(old, new),
        }
}

/// The longest time by which the run time of a job has grown, milliseconds.
fn gained(old: &[Value], new: &[Value]) -> u64 {
    let time = |job: &Value, direction: &str| job.get(direction)?.get("runtime")?.as_u64();
    let gains = old.iter().zip(new).flat_map(|(old, new)| {
        DIRECTIONS.map(|direction| {
            let before = time(old, direction).unwrap_or(0);
            time(new, direction).unwrap_or(0).saturating_sub(before)
        })
    });
    gains.max().unwrap_or(0)
}

/// Whether no count has become less. With `ramp_time` counts restart once, so this is used only
/// where times do not decide.
fn counts_up(old: &[Value], new: &[Value]) -> bool {
    old.iter().zip(new).all(|(old, new)| {
        let mut counts = DIRECTIONS.iter().flat_map(|direction| {
            let of = move |job: &Value, count| job.get(direction)?.get(count)?.as_f64();
            COUNTS
                .iter()
                .map(move |count| (of(old, count), of(new, count)))
        });
        counts.all(|(old, new)| old <= new)
    })
}

/// The times in a document, milliseconds.
struct Times {
    at: u64,
    /// The time that fio had run, rounded up.
    elapsed: u64,
    rounded: u64,
}

impl Times {
    /// Reads the times; `None` where the document has none.
    fn of(document: &Value) -> Option<Self> {
        let number = |name| document.get(name)?.as_u64();
        let (at, rounded) = match number("timestamp_ms") {
            Some(at) => (at, ROUNDED_MS),
            None => (number("timestamp")?.checked_mul(1000)?, 2 * ROUNDED_MS),
        };
        let elapsed = jobs(document).iter();
        let elapsed = elapsed
            .filter_map(|job| job.get("elapsed")?.as_u64())
            .max()?;
        let elapsed = elapsed.checked_mul(1000)?;
        Some(Self {
            at,
            elapsed,
            rounded,
        })
    }

    /// Whether fio had run long enough to distinguish its own later documents from those
    /// of another run.
    const fn is_sure(&self) -> bool {
        self.elapsed >= 2 * self.rounded
    }

    /// Whether the run of a later document began before this one was written.
    const fn has_begun_before(&self, later: &Self) -> bool {
        let began = later.at.saturating_sub(later.elapsed);
        began.saturating_add(later.rounded) <= self.at
    }

    /// Whether some job has run from this document to a later one, in which its run time is
    /// longer by `gained` milliseconds.
    const fn has_run_until(&self, later: &Self, gained: u64) -> bool {
        let idle = IDLE_MS + later.rounded - ROUNDED_MS;
        later.at <= self.at.saturating_add(gained).saturating_add(idle)
    }
}

#[cfg(test)]
mod tests {
    use super::runs;
    use proptest::prelude::*;

    /// A document of fio 3.33, as far as it matters here.
    fn document(at_ms: u64, elapsed: u64, ios: u64) -> String {
        format!(
            "{{\n\"fio version\" : \"fio-3.33\", \"timestamp_ms\" : {at_ms},\n\"jobs\" : [ \
             {{ \"jobname\" : \"x\", \"elapsed\" : {elapsed}, \"usr_cpu\" : -nan,\n\
             \"read\" : {{ \"total_ios\" : {ios}, \"runtime\" : {elapsed} }} }} ]\n}}\n"
        )
    }

    /// The times are those of `fio --runtime=2`, twice with `>>`,
    /// and once with `--status-interval=1`.
    #[test]
    fn runs_are_told_apart_and_reports_of_one_are_not() {
        let first = document(1_795_716_465_169, 3, 8262);
        let second = document(1_795_716_473_426, 3, 8291);
        let text = format!("noise\n{first}between\n{second}{{ \"cut");
        let found = runs(&text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("noise") && found[0].contains("8262"));
        assert!(found[1].trim_start().starts_with("between"));
        assert!(found[1].ends_with("cut") && found[1].contains("8291"));
        let line = |text: &str, part: &str| {
            let mut lines = text.lines();
            lines.position(|line| line.contains(part))
        };
        assert_eq!(line(&found[1], "8291"), line(&text, "8291"));
        let reports = [
            document(1_795_716_480_635, 2, 2721),
            document(1_795_716_481_642, 3, 7604),
            document(1_795_716_481_790, 3, 8194),
        ];
        assert_eq!(runs(&reports.concat()), [reports.concat()]);
        // What happens in ramp time, here of 2 s, is forgotten at its end.
        let ramp = document(1_795_720_522_915, 2, 5990) + &document(1_795_720_524_034, 4, 2844);
        assert_eq!(runs(&ramp).len(), 1);
        // So short that both seem to begin at once: counts do not go back.
        let short = document(1_000_100, 1, 80) + &document(1_000_700, 1, 70);
        assert_eq!(runs(&short).len(), 2);
    }

    /// fio 3.33 with `--size=8m`, three times with `>>`, and twice with another block size.
    #[test]
    fn short_runs_are_told_apart() {
        let run = |at_ms: u64, block: &str, ios: u64, runtime: u64| {
            format!(
                "{{\n\"timestamp_ms\" : {at_ms}, \"jobs\" : [ {{ \"jobname\" : \"q\", \
                 \"elapsed\" : 1, \"job options\" : {{ \"bs\" : \"{block}\" }}, \"read\" : {{ \
                 \"io_bytes\" : 8388608, \"total_ios\" : {ios}, \"runtime\" : {runtime} }} }} ] }}\n"
            )
        };
        let repeated = [
            run(1_796_098_867_260, "4k", 2048, 98),
            run(1_796_098_867_827, "4k", 2048, 105),
            run(1_796_098_868_512, "4k", 2048, 146),
        ];
        assert_eq!(runs(&repeated.concat()).len(), 3);
        let unlike = run(1_796_098_868_876, "64k", 128, 7) + &run(1_796_098_868_900, "4k", 2048, 9);
        assert_eq!(runs(&unlike).len(), 2);
        let reports =
            run(1_796_098_868_000, "4k", 900, 1003) + &run(1_796_098_868_640, "4k", 2048, 1627);
        assert_eq!(runs(&reports).len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_up_without_loss(text in "([a-z{}\"\\[\\]:, \n]|\"jobs\":\\[\\{\\}\\]){0,60}") {
            let letters = |text: &str| text.chars().filter(|letter| *letter != '\n').count();
            let found = runs(&text);
            let all: usize = found.iter().map(|one| letters(one)).sum();
            prop_assert!(all >= letters(&text));
        }
    }
}
