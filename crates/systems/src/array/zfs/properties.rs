//! Parsing of the output of `zfs get` and `zpool get`.

use crate::array::{Result, SystemError};
use raidlab_shell::{Command, Target};

/// A property of a pool, volume or data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The data set, volume or pool that it belongs to: `tpool/tvol`.
    pub owner: String,
    /// The property's name: `primarycache`.
    pub name: String,
    /// The value: `all`; sizes in bytes where these were requested (`-p`).
    pub value: String,
}

/// Reads `get -H`, whose columns are separated by tabs, and plain `get`, where each value begins
/// below its heading, `NAME PROPERTY VALUE SOURCE`: a value may hold blanks, such as a date.
///
/// # Errors
/// When there are columns too few, or no heading where there are no tabs.
pub fn parse_properties(source_name: &str, text: &str) -> Result<Vec<Property>> {
    let mut columns: Option<[usize; 3]> = None;
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if line.starts_with("NAME ") {
            let find = |heading| line.find(heading);
            columns = find(" PROPERTY")
                .zip(find(" VALUE"))
                .zip(find(" SOURCE"))
                .map(|((property, value), source)| [property, value, source]);
            continue;
        }
        let fields: Option<[&str; 4]> = if line.contains('\t') {
            let fields: Vec<&str> = line.split('\t').collect();
            fields.try_into().ok()
        } else {
            columns.and_then(|[property, value, source]| {
                Some([
                    line.get(..property)?,
                    line.get(property..value)?,
                    line.get(value..source)?,
                    line.get(source..)?,
                ])
            })
        };
        let Some([owner, name, value, _]) = fields else {
            return Err(SystemError::unreadable(
                source_name,
                index + 1,
                format!("expected name, property, value and source: `{line}`"),
            ));
        };
        all.push(Property {
            owner: owner.trim().to_owned(),
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
        });
    }
    Ok(all)
}

/// Reads all properties of `owner` by `zfs` or `zpool`; numbers are exact where the program knows
/// `-Hp` (`zpool` since 2013), else rounded as printed.
pub(super) fn read(target: &dyn Target, program: &str, owner: &str) -> Result<Vec<Property>> {
    let source = format!("{program} get");
    let exact = target.output(&Command::reads(program, ["get", "-Hp", "all", owner]))?;
    if exact.code == Some(0) {
        return parse_properties(&source, &exact.stdout);
    }
    let plain = target.run(&Command::reads(program, ["get", "all", owner]))?;
    parse_properties(&source, &plain.stdout)
}
