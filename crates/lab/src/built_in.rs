//! Readers of all suites and subjects that are built into the program.

use crate::catalogue::{Kind, LoadError};
use crate::subject::Subject;
use crate::suite::Suite;

/// Every built-in suite, by name.
///
/// # Errors
/// When a built-in file is wrong, which a test rules out.
pub fn suites() -> Result<Vec<Suite>, LoadError> {
    let names = Kind::Suite.entries().map(|entry| entry.name);
    names.map(Suite::load).collect()
}

/// Every built-in subject, by name.
///
/// # Errors
/// When a built-in file is wrong, which a test rules out.
pub fn subjects() -> Result<Vec<Subject>, LoadError> {
    let names = Kind::Subject.entries().map(|entry| entry.name);
    names.map(Subject::load).collect()
}

#[cfg(test)]
mod tests {
    use super::{subjects, suites};
    use crate::catalogue::{Kind, hosts};
    use crate::published::Published;
    use raidlab_systems::{FileSystemSpec, Member};
    use raidlab_units::Bytes;

    #[test]
    fn every_built_in_file_is_valid_and_goes_by_its_own_name() {
        let names = |kind: Kind| kind.entries().map(|entry| entry.name.to_owned());
        let suites = suites()
            .expect("suites")
            .into_iter()
            .map(|suite| suite.name);
        assert!(suites.eq(names(Kind::Suite)));
        let subjects = subjects()
            .expect("subjects")
            .into_iter()
            .map(|subject| subject.name);
        assert!(subjects.eq(names(Kind::Subject)));
        for name in names(Kind::Published) {
            assert_eq!(Published::load(&name).expect("figures").name, name);
        }
        assert!(hosts().expect("hosts").len() >= 3);
    }

    #[test]
    fn every_built_in_setting_has_a_source() {
        let of_subjects = subjects().expect("subjects").into_iter();
        let of_hosts = hosts().expect("hosts").into_iter();
        let settings = of_subjects
            .flat_map(|subject| subject.settings)
            .chain(of_hosts.flat_map(|host| host.settings));
        for setting in settings {
            let own_choice = setting.name == "kind";
            assert!(
                own_choice || !setting.source.is_empty(),
                "{}: {} has no source",
                setting.scope,
                setting.name
            );
        }
    }

    #[test]
    fn every_suites_subjects_can_be_built_of_its_disks() {
        let mut arrays = 0;
        for suite in suites().expect("suites") {
            let members: Vec<Member> = (0..suite.disks.len())
                .map(|disk| Member {
                    device: format!("/dev/disk{disk}"),
                    size: Bytes(4_000_787_030_016),
                    backing: None,
                    away: false,
                })
                .collect();
            for subject in &suite.subjects {
                let build = subject.build.as_ref().expect("a table of how it is built");
                let checked = build.check(&subject.choose(&members));
                assert!(
                    checked.is_ok(),
                    "{}: {}: {checked:?}",
                    suite.name,
                    subject.name
                );
                arrays += 1;
            }
            let own = suite
                .subjects
                .iter()
                .filter_map(|subject| subject.filesystems.as_ref());
            for filesystem in own.chain([&suite.filesystems]).flatten().flatten() {
                let checked = FileSystemSpec::check(filesystem);
                assert!(checked.is_ok(), "{}: {checked:?}", suite.name);
            }
        }
        assert!(arrays > 40);
    }
}
