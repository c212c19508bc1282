//! No text makes a reader panic, whole, cut, mixed or random.

use crate::{Format, Tool, detect, fio};
use proptest::prelude::*;

const SAMPLES: [(&str, Option<Format>); 15] = [
    (
        include_str!("fio/data/fio-3.33-two-jobs.json"),
        Some(crate::fio::JSON),
    ),
    (
        include_str!("fio/data/fio-3.33-steady-state.json"),
        Some(crate::fio::JSON),
    ),
    (
        include_str!("fio/data/fio-3.33-v3.terse"),
        Some(crate::fio::TERSE),
    ),
    (
        include_str!("fio/data/fio-3.33-v5.terse"),
        Some(crate::fio::TERSE),
    ),
    (
        include_str!("fio/data/fio-3.33.txt"),
        Some(crate::fio::HUMAN),
    ),
    (
        include_str!("fio/data/md-2015.log"),
        Some(crate::fio::HUMAN),
    ),
    (
        include_str!("fio/data/gmirror-2015.log"),
        Some(crate::fio::HUMAN),
    ),
    (
        include_str!("bonnie/data/2.00a-x2.csv"),
        Some(crate::bonnie::CSV),
    ),
    (
        include_str!("bonnie/data/2.00a-fast.txt"),
        Some(crate::bonnie::CSV),
    ),
    (
        include_str!("iozone/data/3.489-subset.txt"),
        Some(crate::iozone::TEXT),
    ),
    (
        include_str!("iozone/data/3.489-excel.txt"),
        Some(crate::iozone::TEXT),
    ),
    (
        include_str!("iozone/data/3.489-throughput.txt"),
        Some(crate::iozone::TEXT),
    ),
    (
        include_str!("dd/data/gnu-9.1-ru.txt"),
        Some(crate::dd::TEXT),
    ),
    (
        include_str!("dd/data/gnu-9.1-fr.txt"),
        Some(crate::dd::TEXT),
    ),
    ("Linux ubuntu 3.16.0\n1+1=2\n", None),
];

#[test]
fn every_sample_is_known_for_what_it_is() {
    for (text, format) in SAMPLES {
        let found = detect(text);
        assert_eq!(found, format, "{text}");
        if let Some(format) = format {
            let result = (format.parse)(text).expect("a sample");
            assert_eq!((result.tool, result.format), (format.tool, format));
            let by_tool = format.tool.parse(text).expect("a sample");
            assert_eq!(by_tool, result);
            assert!(result.parts.iter().all(|part| {
                let rates = [part.bytes_per_second, part.operations_per_second];
                rates
                    .iter()
                    .flatten()
                    .all(|rate| rate.is_finite() && *rate > 0.0)
            }));
        }
    }
}

fn read_as_everything(text: &str) {
    for format in Tool::all().iter().flat_map(|tool| tool.formats()) {
        // An error is as good as a result; a panic is not.
        let _ = (format.parse)(text);
    }
    let _ = detect(text);
    let _ = fio::human::find_all(text);
    let _ = fio::asked_options(&text.split(' ').collect::<Vec<_>>());
}

/// A sample with some of its letters replaced, cut out or doubled.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (
        any::<prop::sample::Index>(),
        0_usize..40,
        ".{0,6}|[0-9+.,;:%=\"{}\\[\\]\n-]{0,12}",
    );
    (0..SAMPLES.len(), prop::collection::vec(edit, 1..6)).prop_map(|(sample, edits)| {
        let mut letters: Vec<char> = SAMPLES[sample].0.chars().collect();
        for (place, length, text) in edits {
            if letters.is_empty() {
                break;
            }
            let start = place.index(letters.len());
            let end = (start + length).min(letters.len());
            letters.splice(start..end, text.chars());
        }
        letters.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_text_is_survived(text in any::<String>()) {
        read_as_everything(&text);
    }

    #[test]
    fn random_lines_of_numbers_are_survived(
        text in "([0-9]{0,22}[+,;:=./ %a-zA-Z\"()\\[\\]-]{0,3}){0,60}"
    ) {
        read_as_everything(&text);
    }

    #[test]
    fn mutated_samples_are_survived(text in mutated()) {
        read_as_everything(&text);
    }
}
