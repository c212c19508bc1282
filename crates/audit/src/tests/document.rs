//! The catalogue for people, `docs/reference/audit.md`, is written from the rules.

use crate::{Family, Rule, rules};
use std::fmt::Write;
use std::path::Path;

/// How to read findings: the part that is written by hand.
const PROSE: &str = include_str!("document.md");

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn document() -> String {
    let mut text = PROSE.to_owned();
    let mut families: Vec<Family> = rules().map(|rule| rule.family).collect();
    families.sort();
    families.dedup();
    for family in families {
        let of: Vec<&Rule> = rules().filter(|rule| rule.family == family).collect();
        write!(text, "\n## {family}\n\n| id | what | how it is found | effect | remedy | met in |\n|---|---|---|---|---|---|\n")
            .expect("a string takes everything");
        for rule in of {
            let parts = [
                rule.title,
                rule.explanation,
                rule.effect,
                rule.remedy,
                rule.source,
            ];
            writeln!(text, "| {} | {} |", rule.id, parts.map(cell).join(" | "))
                .expect("a string takes everything");
        }
    }
    text
}

#[test]
fn the_catalogue_for_people_is_that_of_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/audit.md");
    let expected = document();
    if std::env::var_os("RAIDLAB_WRITE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/reference/audit.md can be written");
    }
    let found = std::fs::read_to_string(&path).expect("docs/reference/audit.md can be read");
    assert!(
        found == expected,
        "docs/reference/audit.md is stale: RAIDLAB_WRITE_DOCS=1 cargo test -p raidlab-audit"
    );
}

#[test]
fn every_rule_says_all_it_should() {
    for rule in rules() {
        for text in [rule.explanation, rule.effect, rule.remedy] {
            assert!(text.ends_with('.'), "{}: {text}", rule.id);
            assert!(!text.contains("  "), "{}: {text}", rule.id);
        }
        for text in [rule.title, rule.source] {
            assert!(
                !text.is_empty() && !text.ends_with('.'),
                "{}: {text}",
                rule.id
            );
        }
    }
}
