//! The facts that built-in disk presets were fitted to, and those of disks that were not
//! fitted.

use raidlab_bench_model::presets;
use raidlab_fit::{LeftOut, LeftOutError};

/// The facts that a built-in preset was fitted to; `None` where it was not fitted.
pub fn facts(disk: &str) -> Option<&'static str> {
    let preset = presets::names().contains(&disk);
    raidlab_data::text("facts", disk).filter(|_| preset)
}

/// The facts about disks that were left out of every fit.
///
/// # Errors
/// Never for the file as it is built in, which a test reads.
pub fn left_out() -> Result<LeftOut, LeftOutError> {
    let text = raidlab_data::text("facts", "left-out").unwrap_or_default();
    LeftOut::parse("facts/left-out.toml", text)
}

#[cfg(test)]
mod tests {
    use super::{facts, left_out};
    use raidlab_bench_model::presets;
    use raidlab_fit::Facts;

    #[test]
    fn left_out_disks_have_a_built_in_donor() {
        let facts = left_out().unwrap();
        let donor = presets::load(&facts.donor).unwrap();
        assert!(donor.is_fitted(&facts.set).unwrap());
    }

    /// A number of the PE8110 was chosen by one figure of such a drive. Its others are borrowed.
    #[test]
    fn one_built_in_disk_is_fitted_and_the_others_have_bands() {
        for name in presets::names() {
            let preset = presets::load(name).expect(name);
            for set in preset.set_names() {
                let fitted = preset.is_fitted(set).expect("it has this set");
                assert_eq!(fitted, name == "wd4000fyyz", "{name}, {set}");
            }
        }
    }

    #[test]
    fn facts_are_of_built_in_presets() {
        assert!(facts("wd4000fyyz").is_some(), "the one that is fitted");
        assert!(facts("bands").is_none(), "no preset");
        for entry in raidlab_data::entries("facts") {
            let Some(text) = facts(entry.name) else {
                assert!(
                    ["bands", "left-out"].contains(&entry.name),
                    "{}",
                    entry.name
                );
                continue;
            };
            let facts = Facts::parse(entry.name, text).expect(entry.name);
            assert_eq!(facts.disk, entry.name);
        }
    }
}
