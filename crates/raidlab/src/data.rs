//! The texts of built-in disk presets and of the facts they were fitted to.

/// A file built into the program.
pub struct Entry {
    /// The preset's name.
    pub name: &'static str,
    /// The preset, comments included.
    pub preset: &'static str,
    /// The facts, comments included.
    pub facts: &'static str,
}

/// One for each built-in preset.
const ENTRIES: [Entry; 1] = [Entry {
    name: "wd4000fyyz",
    preset: include_str!("../../../disks/wd4000fyyz.toml"),
    facts: include_str!("../../../facts/wd4000fyyz.toml"),
}];

/// What is built in for a disk.
pub fn disk(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::ENTRIES;
    use raidlab_disk::Preset;
    use raidlab_fit::Facts;
    use raidlab_model::presets;

    #[test]
    fn every_built_in_preset_has_its_text_and_its_facts() {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names, presets::names());
        for entry in &ENTRIES {
            let preset = Preset::parse(entry.name, entry.preset).expect(entry.name);
            assert_eq!(preset, presets::load(entry.name).expect(entry.name));
            let facts = Facts::parse(entry.name, entry.facts).expect(entry.name);
            assert_eq!(facts.disk, entry.name);
        }
    }
}
