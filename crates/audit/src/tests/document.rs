//! The page `docs/reference/audit.md`, which the rules are read from.

use crate::rules;
use crate::rules::GROUPS;
use std::collections::BTreeSet;

#[test]
fn every_row_of_the_page_has_a_check_and_every_check_a_row() {
    let page = include_str!("../../../../docs/reference/audit.md");
    let rows = page.lines().filter_map(|line| {
        let id = line.strip_prefix("| ")?.split(" | ").next()?;
        let number = id.strip_prefix(|letter: char| letter.is_ascii_uppercase())?;
        number.parse::<u32>().is_ok().then_some(id)
    });
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rules().map(|rule| rule.id).collect::<Vec<_>>(), rows);
    let all = GROUPS.concat();
    let checks: BTreeSet<&str> = all.iter().map(|(id, _)| *id).collect();
    assert_eq!(checks.len(), all.len());
    assert_eq!(checks, rows.into_iter().collect());
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
