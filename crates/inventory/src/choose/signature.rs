//! The signatures on a device: file systems, members of arrays, partition tables.

use crate::{InventoryError, System};
use raidlab_shell::{Command, Target, TargetError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A magic number on a device that a tool recognizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The device with the signature, by its path.
    pub device: String,
    /// The kind: `ext4`, `btrfs`, `linux_raid_member`, `zfs_member`, `LVM2_member`, `dos`, `gpt`.
    pub kind: String,
    /// The label, if there is one, which helps to recognize the data's owner.
    pub label: Option<String>,
    /// The universally unique identifier, if there is one.
    pub uuid: Option<String>,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.kind, self.device)?;
        if let Some(label) = &self.label {
            write!(f, " labelled {label:?}")?;
        }
        if let Some(uuid) = &self.uuid {
            write!(f, " with UUID {uuid}")?;
        }
        Ok(())
    }
}

/// Reads the signatures on some devices, or returns why they cannot be read.
///
/// # Errors
/// When the machine cannot be reached.
pub fn read(
    target: &dyn Target,
    system: System,
    devices: &[String],
) -> Result<Result<Vec<Signature>, String>, InventoryError> {
    let mut found = Vec::new();
    for device in devices {
        let one = match system {
            System::Linux => linux(target, device),
            System::FreeBsd => freebsd(target, device),
        };
        match one {
            Ok(signatures) => found.extend(signatures),
            Err(Trouble::Untold(evidence)) => return Ok(Err(evidence)),
            Err(Trouble::Target(error)) => return Err(error.into()),
        }
    }
    Ok(Ok(found))
}

enum Trouble {
    /// The tool is missing, too old or lacks permission.
    Untold(String),
    Target(TargetError),
}

impl From<TargetError> for Trouble {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Unreachable { .. } | TargetError::NotRecorded { .. } => {
                Self::Target(error)
            }
            _ => Self::Untold(error.to_string()),
        }
    }
}

fn linux(target: &dyn Target, device: &str) -> Result<Vec<Signature>, Trouble> {
    let wipefs = Command::reads("wipefs", ["--no-act", "--json", device]);
    let answer = target.run(&wipefs)?.stdout;
    parse_wipefs(&answer, device).map_err(|problem| Trouble::Untold(format!("{wipefs}: {problem}")))
}

/// Reads signatures on FreeBSD: partition tables by `gpart`, file systems, ZFS and geli by `fstyp`,
/// the other GEOM classes by their metadata in the last sector. A class whose module is loaded has
/// taken the disk already.
fn freebsd(target: &dyn Target, device: &str) -> Result<Vec<Signature>, Trouble> {
    let mut found = Vec::new();
    let mut add = |kind: &str| {
        found.push(Signature {
            device: device.to_owned(),
            kind: kind.to_owned(),
            label: None,
            uuid: None,
        });
    };
    let name = device.trim_start_matches("/dev/");
    // Exit code 1 means no table, no known file system, or no metadata.
    let ask = |program: &str, arguments: &[&str]| {
        target.run(&Command::reads(program, arguments.iter().copied()).success(&[0, 1]))
    };
    let table = ask("gpart", &["show", "-p", name])?;
    if table.code == Some(0) {
        // The form is `=> 34 7814037101 ada1 GPT (3.6T)`.
        add(table
            .stdout
            .split_whitespace()
            .nth(4)
            .unwrap_or("partition table"));
    }
    let filesystem = ask("fstyp", &["-u", device])?;
    // `fstyp` ends with 1 also when it may not read the device.
    let said = filesystem.stderr.trim();
    if filesystem.code == Some(1) && !said.is_empty() && !said.contains("not recognized") {
        return Err(Trouble::Untold(said.to_owned()));
    }
    if filesystem.code == Some(0) {
        add(filesystem
            .stdout
            .split_whitespace()
            .next()
            .unwrap_or("file system"));
    }
    for class in ["mirror", "stripe", "raid3", "concat"] {
        let dump = ask("geom", &[class, "dump", name])?;
        if dump.code == Some(0) && dump.stdout.contains("magic:") {
            add(&format!("GEOM::{}", class.to_uppercase()));
        }
    }
    Ok(found)
}

/// Parses the output of `wipefs --no-act --json`: nothing at all, or an empty list, for a blank
/// device, by version. A file system with several magic numbers (or a backup GPT) is listed several
/// times, but kept once.
fn parse_wipefs(text: &str, device: &str) -> Result<Vec<Signature>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let root: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = root.get("signatures").and_then(Value::as_array);
    let mut found: Vec<Signature> = Vec::new();
    for entry in list.ok_or("no field `signatures`")? {
        let field = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let signature = Signature {
            device: device.to_owned(),
            kind: field("type").ok_or("a signature without `type`")?,
            label: field("label"),
            uuid: field("uuid"),
        };
        if !found.contains(&signature) {
            found.push(signature);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::parse_wipefs;

    const GPT: &str = r#"{"signatures": [
        {"device":"sdb", "offset":"0x200", "type":"gpt", "uuid":null, "label":null},
        {"device":"sdb", "offset":"0x1fe00", "type":"gpt", "uuid":null, "label":null},
        {"device":"sdb", "offset":"0x1fe", "type":"PMBR", "uuid":null, "label":null}]}"#;

    #[test]
    fn a_signature_told_twice_is_kept_once() {
        let found = parse_wipefs(GPT, "/dev/sdb").unwrap();
        let kinds: Vec<&str> = found.iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(kinds, ["gpt", "PMBR"]);
        assert_eq!(found[0].to_string(), "gpt on /dev/sdb");
    }

    #[test]
    fn a_blank_disk_has_none_and_rubbish_is_an_error() {
        assert!(parse_wipefs("", "x").unwrap().is_empty());
        assert!(
            parse_wipefs("{\"signatures\": []}", "x")
                .unwrap()
                .is_empty()
        );
        assert!(parse_wipefs("{}", "x").is_err());
        assert!(parse_wipefs("{\"signatures\": [{}]}", "x").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).*", cut in 1..GPT.len()) {
            let _ = parse_wipefs(&text, "x");
            assert!(parse_wipefs(&GPT[..cut], "x").is_err());
        }
    }
}
