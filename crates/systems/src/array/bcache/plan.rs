//! The commands that build a cache and take it down, and the paths of its files.

use super::{BcacheSpec, CacheMode};
use crate::array::steps::{kernel_name, set, wipe};
use crate::array::{Access, ArraySystem, Built, Described, Result, WriteBack};
use raidlab_shell::Command;
use std::fmt::Write;

/// The kernel's folder of cache sets.
pub(super) const SETS: &str = "/sys/fs/bcache";

/// The kernel's default share of dirty data, percent (`bch_cached_dev_writeback_init`).
const WRITEBACK_PERCENT: u32 = 10;

/// A script that waits until the kernel has joined the cache set `$1` and its device, and makes a
/// link `$2` to the device.
const LINK: &str = "i=0; until [ -e \"$1/bdev0/dev\" ] || [ $i = 100 ]; do i=$((i+1)); sleep 0.1; \
                    done; device=$(readlink -f \"$1/bdev0/dev\") && mkdir -p \"${2%/*}\" && \
                    ln -sfn \"/dev/${device##*/}\" \"$2\"";

/// A script that waits until the paths `$1`, `$2` and `$3` are gone: the kernel releases a cache
/// set and its disks after a moment.
const GONE: &str = "i=0; while [ -e \"$1\" ] || [ -e \"$2\" ] || [ -e \"$3\" ]; do \
                    [ $i = 100 ] && exit 1; i=$((i+1)); sleep 0.1; done";

/// The UUID of an array's cache set: its name's bytes, and zeros.
pub(super) fn set_uuid(name: &str) -> String {
    let mut text = String::with_capacity(36);
    let bytes = name.bytes().chain(std::iter::repeat(0)).take(16);
    for (place, byte) in bytes.enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The name that a UUID was made of; `None` where it is not one of ours.
pub(super) fn name_of(uuid: &str) -> Option<String> {
    let digits: String = uuid.chars().filter(|letter| *letter != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok();
    let bytes = number.filter(|_| digits.len() == 32)?.to_be_bytes();
    let name: Vec<u8> = bytes
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect();
    let ours = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let padded = bytes[name.len()..].iter().all(|byte| *byte == 0);
    (!name.is_empty() && padded && name.iter().all(ours))
        .then(|| String::from_utf8_lossy(&name).into_owned())
}

/// The path of a file of the array's cache set.
pub(super) fn of_set(name: &str, file: &str) -> String {
    format!("{SETS}/{}/{file}", set_uuid(name))
}

/// The path of a file of the device behind the cache.
pub(super) fn of_backing(name: &str, file: &str) -> String {
    of_set(name, &format!("bdev0/{file}"))
}

/// The link to the finished device.
pub(super) fn link(name: &str) -> String {
    format!("/dev/{name}/bcache")
}

/// The device behind the cache and the cache itself.
fn sides(spec: &BcacheSpec, array: &Built) -> Option<(String, String)> {
    let (cache, data) = array.members.split_last()?;
    let backing = match spec.behind(array) {
        Some((md, behind)) => match md.access(&behind) {
            Access::Device(device) => device,
            Access::Folder(_) | Access::Export(_) => return None,
        },
        None => data.first()?.device.clone(),
    };
    Some((backing, cache.device.clone()))
}

pub(super) fn create(spec: &BcacheSpec, array: &Built) -> Result<Vec<Command>> {
    let Some((backing, cache)) = sides(spec, array) else {
        return spec.refuse("it has no members");
    };
    let mut commands = match spec.behind(array) {
        Some((md, behind)) => {
            let mut commands = md.create(&behind)?;
            commands.push(wipe(&[&backing, &cache]));
            commands
        }
        None => vec![wipe(&[&backing, &cache])],
    };
    let mut words = vec!["--cset-uuid".to_owned(), set_uuid(&array.name)];
    if let Some(block) = spec.block {
        words.extend(["--block".to_owned(), block.0.to_string()]);
    }
    if let Some(bucket) = spec.bucket {
        words.extend(["--bucket".to_owned(), bucket.0.to_string()]);
    }
    words.extend(["--bdev".to_owned(), backing.clone()]);
    words.extend(["--cache".to_owned(), cache.clone()]);
    commands.push(Command::destroys("make-bcache", words));
    // `register_quiet` is used, as udev may have been faster.
    for device in [cache, backing] {
        commands.push(set(&format!("{SETS}/register_quiet"), device));
    }
    let (folder, link) = (of_set(&array.name, ""), link(&array.name));
    let words = ["-c", LINK, "sh", folder.trim_end_matches('/'), &link];
    commands.push(Command::changes("sh", words));
    commands.extend(tune(spec, &array.name));
    Ok(commands)
}

/// Settings that are plain numbers, with their files.
pub(super) fn numbers(spec: &BcacheSpec, name: &str) -> [(&'static str, Option<u32>, String); 4] {
    let [read, write] = [
        "congested_read_threshold_us",
        "congested_write_threshold_us",
    ];
    let (percent, delay) = ("writeback_percent", of_backing(name, "writeback_delay"));
    [
        (percent, spec.writeback_percent, of_backing(name, percent)),
        ("writeback_delay_s", spec.writeback_delay_s, delay),
        (read, spec.congested_read_threshold_us, of_set(name, read)),
        (
            write,
            spec.congested_write_threshold_us,
            of_set(name, write),
        ),
    ]
}

fn tune(spec: &BcacheSpec, name: &str) -> Vec<Command> {
    let backing = |file: &str| of_backing(name, file);
    let mut commands = vec![set(&backing("cache_mode"), spec.mode.name())];
    let cutoff = spec.sequential_cutoff;
    commands.extend(cutoff.map(|size| set(&backing("sequential_cutoff"), size.0)));
    let numbers = numbers(spec, name).into_iter();
    commands.extend(numbers.filter_map(|(_, value, path)| Some(set(&path, value?))));
    let replacement = spec.replacement.map(|policy| {
        let path = of_set(name, "cache0/cache_replacement_policy");
        set(&path, policy.name())
    });
    commands.extend(replacement);
    commands
}

pub(super) fn write_back(spec: &BcacheSpec, array: &Built) -> WriteBack {
    if spec.mode != CacheMode::WriteBack {
        return WriteBack::default();
    }
    let percent = of_backing(&array.name, "writeback_percent");
    let before = spec.writeback_percent.unwrap_or(WRITEBACK_PERCENT);
    WriteBack {
        begin: vec![set(&percent, 0)],
        end: vec![set(&percent, before)],
    }
}

/// The device goes first, then its cache set; only then can their disks be wiped.
pub(super) fn destroy(spec: &BcacheSpec, array: &Built) -> Vec<Command> {
    let mut commands = vec![
        set(&of_backing(&array.name, "stop"), 1),
        set(&of_set(&array.name, "stop"), 1),
    ];
    if let Some((backing, cache)) = sides(spec, array) {
        let folder = of_set(&array.name, "");
        let of_device = |device: &str| format!("/sys/class/block/{}/bcache", kernel_name(device));
        let (backing_file, cache_file) = (of_device(&backing), of_device(&cache));
        let folder = folder.trim_end_matches('/');
        let words = ["-c", GONE, "sh", folder, &backing_file, &cache_file];
        commands.push(Command::changes("sh", words));
        commands.push(wipe(&[&backing, &cache]));
    }
    if let Some((md, behind)) = spec.behind(array) {
        commands.extend(md.destroy(&behind));
    }
    commands.push(Command::changes("rm", ["-f", &link(&array.name)]));
    let folder = format!("/dev/{}", array.name);
    commands.push(Command::changes("rmdir", [folder]));
    commands
}
