//! Sizes, times, and names of levels and layouts in mdadm's form.

use crate::superblock::Uuid;
use raidlab_geometry::{Layout, Level};
use raidlab_units::hexadecimal;

/// The word that mdadm prints where it has no name.
pub(super) const UNKNOWN: &str = "-unknown-";

/// Returns a UUID as four groups of eight digits.
#[must_use]
pub fn uuid(uuid: Uuid) -> String {
    let groups = uuid.0.chunks(4).map(hexadecimal);
    groups.collect::<Vec<_>>().join(":")
}

/// Returns seconds since 1970 as UTC in the form of `ctime`: `Thu Jan  1 00:00:00 1970`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb",
    ];
    let days = seconds / 86400;
    let clock = seconds % 86400;
    // Days are counted from 1 March 0000, so that a leap day is a year's last day.
    let since = days + 719_468;
    let (era, day_of_era) = (since / 146_097, since % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = year_of_era + era * 400 + u64::from(month >= 10);
    let name = |names: &[&'static str], index: u64| {
        let index = usize::try_from(index).unwrap_or(0);
        names.get(index).copied().unwrap_or(UNKNOWN)
    };
    format!(
        "{} {} {day:>2} {:02}:{:02}:{:02} {year}",
        name(&WEEKDAYS, days % 7),
        name(&MONTHS, month),
        clock / 3600,
        clock / 60 % 60,
        clock % 60,
    )
}

/// Returns a size in binary and decimal units, in brackets; nothing below 5000 KiB (`human_size`).
pub(super) fn human_size(bytes: u128) -> String {
    if bytes < 5000 * 1024 {
        return String::new();
    }
    let power = match bytes {
        _ if bytes < 2 << 30 => 2,
        _ if bytes < 2 << 40 => 3,
        _ => 4,
    };
    let letter = ["", "K", "M", "G", "T"][power as usize];
    let binary = (bytes * 200 / (1 << (10 * power))).div_ceil(2);
    let decimal = (bytes / (1000_u128.pow(power) / 200)).div_ceil(2);
    let hundredths = |value: u128| format!("{}.{:02}", value / 100, value % 100);
    format!(
        " ({} {letter}iB {} {letter}B)",
        hundredths(binary),
        hundredths(decimal)
    )
}

/// Returns [`human_size`] for a number of sectors.
pub(super) fn human_sectors(sectors: u64) -> String {
    human_size(u128::from(sectors) * 512)
}

/// Returns the name of a level.
pub(super) fn level(number: i32) -> String {
    match (Level::from_md_number(number), number) {
        (Some(level), _) => level.to_string(),
        (None, -4) => "multipath".to_owned(),
        (None, -5) => "faulty".to_owned(),
        (None, -100) => "container".to_owned(),
        (None, _) => UNKNOWN.to_owned(),
    }
}

/// Returns a layout's name, with the space before it; `None` where mdadm prints none.
pub(super) fn layout(level: i32, word: u32) -> Option<String> {
    let named = |level| {
        let layout = Layout::from_md(level, word);
        layout.map_or_else(|_| UNKNOWN.to_owned(), |layout| layout.to_string())
    };
    match level {
        0 if word == 0 => Some("dangerous".to_owned()),
        0 => Some(named(Level::Raid0)),
        5 => Some(named(Level::Raid5)),
        6 => Some(named(Level::Raid6)),
        10 => Some(copies(word)),
        _ => None,
    }
}

/// Returns the words for a RAID 10's copies (`print_r10_layout`).
fn copies(word: u32) -> String {
    let [near, far] = [word & 0xff, word >> 8 & 0xff];
    let mut parts = Vec::new();
    if near != 1 {
        parts.push(format!("near={near}"));
    }
    if far != 1 {
        let kind = if word & 0x1_0000 == 0 {
            "far"
        } else {
            "offset"
        };
        parts.push(format!("{kind}={far}"));
    }
    if near * far == 1 {
        parts.push("NO REDUNDANCY".to_owned());
    }
    parts.join(", ")
}

/// Returns the array's bytes as mdadm computes them, if the level has redundancy.
pub(super) fn array_bytes(
    level: i32,
    raid_disks: u32,
    layout: u32,
    used_bytes: u128,
) -> Option<u128> {
    let disks = u128::from(raid_disks);
    let (data, copies) = match level {
        1 => (1, 1),
        4 | 5 => (disks.saturating_sub(1), 1),
        6 => (disks.saturating_sub(2), 1),
        10 => (disks, u128::from((layout & 0xff) * (layout >> 8 & 0xff))),
        _ => (0, 1),
    };
    (data > 0 && copies > 0).then(|| used_bytes * data / copies)
}
