//! Any text is read as an array's state, or refused with a line that it has.

use crate::text;
use raidlab_systems::SystemError;
use raidlab_systems::array::geom::parse_list;
use raidlab_systems::array::zfs::properties::parse_properties;
use raidlab_systems::array::zfs::status::parse_status;

/// Reads the text that these bytes begin with.
pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    let lines = text.lines().count();
    check(lines, parse_status(text));
    check(lines, parse_properties("fuzz", text));
    check(lines, parse_list("fuzz", text));
}

fn check<T>(lines: usize, read: Result<T, SystemError>) {
    if let Err(SystemError::Unreadable { line, .. }) = read {
        assert!(line <= lines + 1);
    }
}
