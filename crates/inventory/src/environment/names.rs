//! The names of all facts, from the table in `names.txt`.

use raidlab_units::table;
use std::sync::LazyLock;

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The name; `<device>` stands for a kernel name such as `sdb`.
    pub name: &'static str,
    /// The value's unit; empty for text and counts.
    pub unit: &'static str,
    /// Whether a run may not be carried on once it has changed.
    pub stable: bool,
    /// The file that is its value on Linux; empty where it takes more to find out.
    pub file: &'static str,
    /// The variable of `sysctl` that is its value on FreeBSD; empty as well.
    pub variable: &'static str,
}

/// All names, in the order in which facts are told.
pub static NAMES: LazyLock<Vec<Known>> = LazyLock::new(|| {
    table(include_str!("names.txt"), |row: [&str; 6]| {
        let [stable, name, unit, file, variable, _] = row.map(|w| if w == "-" { "" } else { w });
        let stable = match stable {
            "stable" => true,
            "passing" => false,
            _ => return None,
        };
        Some(Known {
            name,
            unit,
            stable,
            file,
            variable,
        })
    })
});

/// The entry for a fact's name; a device's own name stands where the entry has
/// `<device>`.
#[must_use]
pub fn known(name: &str) -> Option<&'static Known> {
    NAMES
        .iter()
        .find(|known| match known.name.strip_prefix("disk.<device>.") {
            Some(field) => name
                .strip_prefix("disk.")
                .and_then(|rest| rest.strip_suffix(field))
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|device| !device.is_empty() && !device.contains('.')),
            None => known.name == name,
        })
}
