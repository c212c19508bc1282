//! The facts that built-in disk presets were fitted to.

/// One for each preset with a fitted set: the disk's name, and the text.
const FACTS: [(&str, &str); 1] = [("wd4000fyyz", include_str!("../../../facts/wd4000fyyz.toml"))];

/// What is built in for a disk.
pub fn facts(disk: &str) -> Option<&'static str> {
    let found = FACTS.iter().find(|(name, _)| *name == disk);
    found.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::FACTS;
    use raidlab_fit::Facts;
    use raidlab_model::presets;

    #[test]
    fn facts_are_of_built_in_presets() {
        for (name, text) in FACTS {
            assert!(presets::names().contains(&name), "{name}");
            let facts = Facts::parse(name, text).expect(name);
            assert_eq!(facts.disk, name);
        }
    }
}
