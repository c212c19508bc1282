//! `/proc/mdstat`, read whole.
//!
//! Used for what people import and for a look at all arrays of a machine at
//! once; one array's state comes from `/sys`. The format is that of
//! `md_seq_show` and `status_resync` (Linux 3.16 to 6.12 drivers/md/md.c). An
//! array begins with its name at the start of a line; the lines that belong to
//! it are indented:
//!
//! ```text
//! md1 : active (auto-read-only) raid1 sdd1[2](F) sdc1[0]
//!       3907017472 blocks super 1.2 [2/1] [U_]
//!       [===>.................]  recovery = 15.5% (605751360/3907017472) finish=322.5min speed=170572K/sec
//!       bitmap: 3/30 pages [12KB], 65536KB chunk
//! ```

use crate::array::{SyncKind, SystemError};

/// What `/proc/mdstat` says of one array.
#[derive(Debug, Clone, PartialEq)]
pub struct MdstatArray {
    /// The array's device, without `/dev/`: `md1`.
    pub name: String,
    /// Whether the array runs.
    pub active: bool,
    /// `read-only` or `auto-read-only`, where it is.
    pub read_only: Option<String>,
    /// `raid1`; `None` while it does not run.
    pub level: Option<String>,
    /// Its devices, in the order in which they are listed.
    pub devices: Vec<MdstatDevice>,
    /// Its size in KiB.
    pub size_kib: Option<u64>,
    /// The superblock's version: `1.2`; `None` for `0.90`, which prints none.
    pub metadata: Option<String>,
    /// The chunk in KiB, where the level has one.
    pub chunk_kib: Option<u64>,
    /// Slots and how many of them are up to date.
    pub slots: Option<(u32, u32)>,
    /// Slot by slot whether it is up to date.
    pub up: Vec<bool>,
    /// The bitmap, where there is one.
    pub bitmap: Option<MdstatBitmap>,
    /// What is copied in the background.
    pub sync: Option<MdstatSync>,
}

/// A device of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MdstatDevice {
    /// The member's device, without `/dev/`: `sdc1`.
    pub name: String,
    /// Its number among the array's devices: not always its slot, for a
    /// device that took another one's place keeps a number of its own.
    pub number: u32,
    /// The kernel has failed the device: `(F)`.
    pub faulty: bool,
    /// The device is a spare: `(S)`.
    pub spare: bool,
    /// Reads avoid the device: `(W)`, write-mostly.
    pub write_mostly: bool,
    /// The device is the journal: `(J)`.
    pub journal: bool,
    /// `(R)`: it is to take a device's place that is still there.
    pub replacement: bool,
}

/// A write-intent bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdstatBitmap {
    /// Pages of it with a bit set, and all.
    pub pages: (u64, u64),
    /// Bytes that one bit stands for.
    pub chunk_bytes: u64,
}

/// What an array copies or compares in the background.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MdstatSync {
    /// The kind of sync.
    pub kind: SyncKind,
    /// KiB done and in all; `None` while it is `PENDING`, `DELAYED` or done
    /// elsewhere (`REMOTE`).
    pub done_kib: Option<(u64, u64)>,
    /// Minutes that it will still take, as the kernel thinks.
    pub finish_minutes: Option<f64>,
    /// KiB a second.
    pub kib_per_second: Option<u64>,
}

impl MdstatSync {
    /// How far it is, 0 to 100, out of the counts: the printed percentage has
    /// one decimal.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a percentage is a statistic")]
    pub fn percent(&self) -> Option<f64> {
        let (done, total) = self.done_kib?;
        (total > 0).then(|| done.min(total) as f64 * 100.0 / total as f64)
    }
}

fn unreadable(line: usize, problem: impl Into<String>) -> SystemError {
    SystemError::Unreadable {
        source_name: "/proc/mdstat".to_owned(),
        line,
        problem: problem.into(),
    }
}

/// Reads the whole file.
///
/// # Errors
/// When a line that names an array, its size, its bitmap or its resync is not
/// as the kernel writes it. Lines of other kinds are passed over.
pub fn parse_mdstat(text: &str) -> Result<Vec<MdstatArray>, SystemError> {
    let mut arrays: Vec<MdstatArray> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.starts_with("Personalities") || line.starts_with("unused devices") {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            if let Some((name, rest)) = line.split_once(" : ") {
                let array = heading(name, rest)
                    .ok_or_else(|| unreadable(number, format!("`{line}` is no array")))?;
                arrays.push(array);
            }
            continue;
        }
        let Some(array) = arrays.last_mut() else {
            continue;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let understood = if words.get(1) == Some(&"blocks") {
            size(array, &words)
        } else if words.first() == Some(&"bitmap:") {
            array.bitmap = bitmap(&words);
            array.bitmap.is_some()
        } else {
            match sync(line.trim()) {
                Ok(found) => {
                    array.sync = found.or(array.sync);
                    true
                }
                Err(()) => false,
            }
        };
        if !understood {
            return Err(unreadable(number, format!("`{}`", line.trim())));
        }
    }
    Ok(arrays)
}

/// `active (read-only) raid1 sdd1[2](F) sdc1[0]`
fn heading(name: &str, rest: &str) -> Option<MdstatArray> {
    let mut array = MdstatArray {
        name: name.to_owned(),
        active: false,
        read_only: None,
        level: None,
        devices: Vec::new(),
        size_kib: None,
        metadata: None,
        chunk_kib: None,
        slots: None,
        up: Vec::new(),
        bitmap: None,
        sync: None,
    };
    let mut words = rest.split_whitespace();
    array.active = match words.next()? {
        "active" => true,
        "inactive" | "broken" => false,
        _ => return None,
    };
    for word in words {
        if let Some(flag) = word.strip_prefix('(') {
            array.read_only = Some(flag.strip_suffix(')')?.to_owned());
        } else if word.contains('[') {
            array.devices.push(device(word)?);
        } else if array.level.is_none() && array.devices.is_empty() {
            array.level = Some(word.to_owned());
        } else {
            return None;
        }
    }
    Some(array)
}

/// A member out of a word such as `sdd1[2](W)(F)`.
fn device(word: &str) -> Option<MdstatDevice> {
    let (name, rest) = word.split_once('[')?;
    let (number, flags) = rest.split_once(']')?;
    let has = |flag: &str| flags.contains(flag);
    Some(MdstatDevice {
        name: name.to_owned(),
        number: number.parse().ok()?,
        faulty: has("(F)"),
        spare: has("(S)"),
        write_mostly: has("(W)"),
        journal: has("(J)"),
        replacement: has("(R)"),
    })
}

/// `5860270080 blocks super 1.2 level 6, 512k chunk, algorithm 2 [8/7] [UUUU_UUU]`;
/// `raid10` writes `512K chunks`, `linear` `64k rounding`.
fn size(array: &mut MdstatArray, words: &[&str]) -> bool {
    array.size_kib = words[0].parse().ok();
    for pair in words.windows(2) {
        match pair {
            ["super", version] => array.metadata = Some((*version).to_owned()),
            [size, chunk] if chunk.starts_with("chunk") => {
                let digits = size.trim_end_matches(['k', 'K']);
                array.chunk_kib = digits.parse().ok();
            }
            _ => {}
        }
    }
    for word in words {
        let Some(inner) = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'))
        else {
            continue;
        };
        if let Some((slots, good)) = inner.split_once('/') {
            array.slots = slots.parse().ok().zip(good.parse().ok());
        } else if !inner.is_empty() && inner.chars().all(|c| "U_".contains(c)) {
            array.up = inner.chars().map(|c| c == 'U').collect();
        }
    }
    array.size_kib.is_some()
}

/// `bitmap: 3/30 pages [12KB], 65536KB chunk, file: /path`; a small chunk is in
/// `B`.
fn bitmap(words: &[&str]) -> Option<MdstatBitmap> {
    let (used, all) = words.get(1)?.split_once('/')?;
    let chunk = words.get(4)?;
    let chunk_bytes = match chunk.strip_suffix("KB") {
        Some(kib) => kib.parse::<u64>().ok()?.checked_mul(1024)?,
        None => chunk.strip_suffix('B')?.parse().ok()?,
    };
    Some(MdstatBitmap {
        pages: (used.parse().ok()?, all.parse().ok()?),
        chunk_bytes,
    })
}

/// `[=>...]  recovery = 15.5% (605751360/3907017472) finish=322.5min speed=170572K/sec`
/// or `resync=DELAYED`. `Ok(None)` for a line about something else.
fn sync(line: &str) -> Result<Option<MdstatSync>, ()> {
    let text = match line.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(())?.1.trim_start(),
        None => line,
    };
    let Some((verb, rest)) = text.split_once('=') else {
        return Ok(None);
    };
    let kind = match verb.trim() {
        "resync" => SyncKind::Resync,
        "recovery" => SyncKind::Recovery,
        "check" => SyncKind::Check,
        "reshape" => SyncKind::Reshape,
        _ => return Ok(None),
    };
    let rest = rest.trim();
    let mut sync = MdstatSync {
        kind,
        done_kib: None,
        finish_minutes: None,
        kib_per_second: None,
    };
    if matches!(rest, "PENDING" | "DELAYED" | "REMOTE") {
        return Ok(Some(sync));
    }
    for word in rest.split_whitespace() {
        if let Some(counts) = word.strip_prefix('(') {
            let (done, total) = counts
                .strip_suffix(')')
                .and_then(|counts| counts.split_once('/'))
                .ok_or(())?;
            sync.done_kib = done.parse().ok().zip(total.parse().ok());
        } else if let Some(minutes) = word.strip_prefix("finish=") {
            sync.finish_minutes = minutes.strip_suffix("min").ok_or(())?.parse().ok();
        } else if let Some(speed) = word.strip_prefix("speed=") {
            sync.kib_per_second = speed.strip_suffix("K/sec").ok_or(())?.parse().ok();
        }
    }
    if sync.done_kib.is_none() {
        return Err(());
    }
    Ok(Some(sync))
}

#[cfg(test)]
mod tests;
