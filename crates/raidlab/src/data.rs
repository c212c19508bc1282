//! The facts that built-in disk presets were fitted to, and those of disks that were not
//! fitted.

use raidlab_fit::{LeftOut, LeftOutError};

/// One for each preset with a fitted set: the disk's name, and the text.
const FACTS: [(&str, &str); 1] = [("wd4000fyyz", include_str!("../../../facts/wd4000fyyz.toml"))];

/// What is built in for a disk.
pub fn facts(disk: &str) -> Option<&'static str> {
    let found = FACTS.iter().find(|(name, _)| *name == disk);
    found.map(|(_, text)| *text)
}

/// What is known of disks that were left out of every fit.
///
/// # Errors
/// Never for the file as it is built in, which a test reads.
pub fn left_out() -> Result<LeftOut, LeftOutError> {
    LeftOut::parse("facts/left-out.toml", LEFT_OUT)
}

const LEFT_OUT: &str = include_str!("../../../facts/left-out.toml");

#[cfg(test)]
mod tests {
    use super::{FACTS, left_out};
    use raidlab_fit::Facts;
    use raidlab_model::presets;

    #[test]
    fn left_out_disks_have_a_built_in_donor() {
        let facts = left_out().unwrap();
        let donor = presets::load(&facts.donor).unwrap();
        assert!(donor.is_fitted(&facts.set).unwrap());
    }

    #[test]
    fn facts_are_of_built_in_presets() {
        for (name, text) in FACTS {
            assert!(presets::names().contains(&name), "{name}");
            let facts = Facts::parse(name, text).expect(name);
            assert_eq!(facts.disk, name);
        }
    }
}
