//! The options in a command line of fio or dd, as facts.

use raidlab_store::fact;
use raidlab_tools::{Facts, dd};

/// Facts of a command line, each with its name, value and unit: dd's operands and what follows from
/// them, fio's options. Empty for other programs.
pub(super) fn facts(command: &str) -> Vec<(String, String, String)> {
    let mut words = command.split_whitespace();
    let program = words.find(|word| matches!(*word, "dd" | "fio"));
    match program {
        Some("dd") => {
            let words: Vec<String> = words.map(str::to_owned).collect();
            let mut facts = Facts::default();
            dd::TOOL.job_facts(&words, &mut facts);
            let all = facts.all.into_iter();
            all.map(|one| (one.name, one.value, one.unit)).collect()
        }
        Some("fio") => words
            .filter_map(|word| {
                let (name, value) = word.strip_prefix("--")?.split_once('=')?;
                Some((fact::fio_option(name), value.to_owned(), String::new()))
            })
            .collect(),
        _ => Vec::new(),
    }
}
