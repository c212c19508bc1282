//! Parsing of the output of `lsblk --json --bytes`.
//!
//! Numbers and flags are JSON numbers and booleans since util-linux 2.33 and strings before; a
//! device that rests on several others is printed below each of them. Both forms are accepted, and
//! a device is kept once with all that it rests on. Only columns of util-linux 2.31 are requested:
//! an older `lsblk` refuses a call with a newer column.

use crate::{Disk, DiskKind};
use raidlab_shell::Command;
use serde_json::Value;
use std::collections::BTreeMap;

const COLUMNS: &str = "NAME,KNAME,TYPE,PKNAME,MAJ:MIN,SIZE,RO,ROTA,MODEL,SERIAL,WWN,REV,VENDOR,\
                       TRAN,LOG-SEC,PHY-SEC,ALIGNMENT,SCHED,RQ-SIZE,RA";

/// The call of lsblk whose output [`parse`] reads.
pub fn command() -> Command {
    Command::reads("lsblk", ["--json", "--bytes", "--output", COLUMNS])
}

/// A block device with its number, `8:16`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The device as `lsblk` describes it.
    pub disk: Disk,
    /// The major and minor number.
    pub device_number: String,
}

/// Parses the devices, each once, in order of their first appearance; the error is what is wrong
/// with the text.
pub fn parse(text: &str) -> Result<Vec<Listed>, String> {
    let root: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(devices) = root.get("blockdevices").and_then(Value::as_array) else {
        return Err("no field `blockdevices`".to_owned());
    };
    let mut found = Found::default();
    for device in devices {
        found.take(device, None, 0)?;
    }
    // lsblk also calls bcache and DRBD disks, as it has no type for them. A real disk rests on
    // no other device.
    for Listed { disk, .. } in &mut found.listed {
        if disk.kind == DiskKind::Disk && !disk.on.is_empty() {
            disk.kind = DiskKind::Built;
        }
    }
    Ok(found.listed)
}

/// The largest depth, more than in any real stack of devices; it ends the parsing of
/// a malicious answer.
const DEEPEST: usize = 32;

#[derive(Default)]
struct Found {
    listed: Vec<Listed>,
    places: BTreeMap<String, usize>,
}

impl Found {
    fn take(&mut self, entry: &Value, parent: Option<&str>, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("devices nested deeper than {DEEPEST}"));
        }
        let name = text(entry, "kname").ok_or("a device without `kname`")?;
        let device = format!("/dev/{}", name.replace('!', "/"));
        let place = match self.places.get(&device) {
            Some(&place) => place,
            None => {
                self.listed.push(listed(entry, &device)?);
                self.places.insert(device.clone(), self.listed.len() - 1);
                self.listed.len() - 1
            }
        };
        let on = &mut self.listed[place].disk.on;
        let named = text(entry, "pkname").map(|name| format!("/dev/{}", name.replace('!', "/")));
        for lower in [parent.map(str::to_owned), named].into_iter().flatten() {
            if lower != device && !on.contains(&lower) {
                on.push(lower);
            }
        }
        for child in entry
            .get("children")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.take(child, Some(&device), depth + 1)?;
        }
        Ok(())
    }
}

fn listed(entry: &Value, device: &str) -> Result<Listed, String> {
    let size = number(entry, "size").ok_or_else(|| format!("{device} without `size`"))?;
    let mut disk = Disk::new(device, kind(entry, device), size);
    disk.model = text(entry, "model");
    disk.serial = text(entry, "serial");
    disk.wwn = text(entry, "wwn");
    disk.firmware = text(entry, "rev");
    disk.transport = text(entry, "tran").or_else(|| virtual_transport(device));
    disk.logical_sector_bytes = number(entry, "log-sec")
        .filter(|&bytes| bytes > 0)
        .unwrap_or(512);
    disk.physical_sector_bytes = number(entry, "phy-sec")
        .filter(|&bytes| bytes > 0)
        .unwrap_or(disk.logical_sector_bytes);
    disk.alignment_offset_bytes = text(entry, "alignment")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    disk.rotational = flag(entry, "rota");
    disk.read_only = flag(entry, "ro") == Some(true);
    disk.scheduler = text(entry, "sched");
    disk.request_queue = number(entry, "rq-size");
    disk.read_ahead_bytes = number(entry, "ra").map(|kibibytes| kibibytes.saturating_mul(1024));
    Ok(Listed {
        disk,
        device_number: text(entry, "maj:min").unwrap_or_default(),
    })
}

fn kind(entry: &Value, device: &str) -> DiskKind {
    let name = device.trim_start_matches("/dev/");
    // lsblk lists compressed memory as a disk.
    if ["zram", "ram", "sr", "fd"]
        .iter()
        .any(|begins| name.starts_with(begins))
    {
        return DiskKind::Other;
    }
    match text(entry, "type").as_deref() {
        Some("disk") => DiskKind::Disk,
        Some("part") => DiskKind::Partition,
        Some("loop") => DiskKind::Loop,
        Some("rom" | "tape" | "printer" | "processor" | "worm" | "changer") => DiskKind::Other,
        _ => DiskKind::Built,
    }
}

/// The transport of a paravirtual disk, for which `lsblk` has none.
fn virtual_transport(device: &str) -> Option<String> {
    let known = [
        ("/dev/vd", "virtio"),
        ("/dev/xvd", "xen"),
        ("/dev/nbd", "nbd"),
    ];
    let (_, name) = known
        .iter()
        .find(|(begins, _)| device.starts_with(begins))?;
    Some((*name).to_owned())
}

/// A field as trimmed text, if it is not empty.
fn text(entry: &Value, field: &str) -> Option<String> {
    let text = match entry.get(field)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

fn number(entry: &Value, field: &str) -> Option<u64> {
    text(entry, field)?.parse().ok()
}

fn flag(entry: &Value, field: &str) -> Option<bool> {
    match entry.get(field)? {
        Value::Bool(flag) => Some(*flag),
        _ => Some(text(entry, field)? == "1"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::DiskKind;

    /// Old strings and new numbers; an array under each of its members.
    const NESTED: &str = r#"{"blockdevices": [
        {"name":"sda","kname":"sda","type":"disk","pkname":null,"maj:min":"8:0","size":"4000787030016",
         "ro":"0","rota":"1","model":"WDC WD4000FYYZ-0","phy-sec":"4096","log-sec":"512","ra":"128",
         "children":[{"name":"sda1","kname":"sda1","type":"part","pkname":"sda","maj:min":"8:1",
            "size":"4000785964544","alignment":"-1",
            "children":[{"name":"md0","kname":"md0","type":"raid1","pkname":"sda1","maj:min":"9:0","size":1}]}]},
        {"name":"sdb","kname":"sdb","type":"disk","maj:min":"8:16","size":4000787030016,"ro":false,"rota":true,
         "children":[{"name":"md0","kname":"md0","type":"raid1","pkname":"sdb","maj:min":"9:0","size":1}]}]}"#;

    #[test]
    fn both_forms_are_read_and_an_array_is_kept_once() {
        let listed = parse(NESTED).unwrap();
        let names: Vec<&str> = listed.iter().map(|one| one.disk.device.as_str()).collect();
        assert_eq!(names, ["/dev/sda", "/dev/sda1", "/dev/md0", "/dev/sdb"]);
        let array = &listed[2].disk;
        assert_eq!(array.kind, DiskKind::Built);
        assert_eq!(array.on, ["/dev/sda1", "/dev/sdb"]);
        let (old, new) = (&listed[0].disk, &listed[3].disk);
        assert_eq!(old.size_bytes, new.size_bytes);
        assert_eq!((old.rotational, new.rotational), (Some(true), Some(true)));
        assert_eq!(
            (old.physical_sector_bytes, new.physical_sector_bytes),
            (4096, 512)
        );
        assert_eq!(old.read_ahead_bytes, Some(131_072));
        assert_eq!(listed[1].disk.alignment_offset_bytes, -1);
    }

    /// lsblk of util-linux has no type for them and says `disk`.
    #[test]
    fn a_disk_that_rests_on_another_is_built_of_it() {
        let cached = r#"{"blockdevices": [
            {"name":"sdb","kname":"sdb","type":"disk","maj:min":"8:16","size":4000787030016,
             "children":[{"name":"bcache0","kname":"bcache0","type":"disk","pkname":"sdb",
                "maj:min":"252:0","size":4000787021824,
                "children":[{"name":"bcache0p1","kname":"bcache0p1","type":"part",
                    "pkname":"bcache0","maj:min":"252:1","size":4000785973248}]}]}]}"#;
        let listed = parse(cached).unwrap();
        let kinds = listed.iter().map(|one| one.disk.kind);
        let expected = [DiskKind::Disk, DiskKind::Built, DiskKind::Partition];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn bad_answers_are_named() {
        assert_eq!(parse("{}").unwrap_err(), "no field `blockdevices`");
        let nameless = r#"{"blockdevices":[{"size":1}]}"#;
        assert_eq!(parse(nameless).unwrap_err(), "a device without `kname`");
        let sizeless = r#"{"blockdevices":[{"kname":"sda"}]}"#;
        assert_eq!(parse(sizeless).unwrap_err(), "/dev/sda without `size`");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).*", cut in 0..NESTED.len()) {
            let _ = parse(&text);
            assert!(parse(&NESTED[..cut]).is_err());
        }
    }
}
