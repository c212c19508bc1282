//! A drive's report on its own health: `smartctl --json -a` (smartmontools 7).
//!
//! The attributes are those that operators of many drives watch: a drive with reallocated or
//! pending sectors reads some places again and again, and slows the whole array down.
//! `smartctl` ends with a bit mask of complaints, not with an error, so its answer is read
//! whatever its exit code.

use crate::InventoryError;
use raidlab_shell::{Command, Target, TargetError};
use serde_json::Value;
use std::time::Duration;

/// The time limit for `smartctl`: Linux gives a drive 30 seconds for a command, and as long again
/// after it has reset it (`SD_TIMEOUT`); a drive whose answer takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The health that a drive reports; fields that it does not report are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Smart {
    /// Whether the drive's own judgement is good.
    pub passed: Option<bool>,
    /// The temperature of the disk, degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// The hours in operation.
    pub power_on_hours: Option<u64>,
    /// Sectors replaced by spares (attribute 5).
    pub reallocated_sectors: Option<u64>,
    /// Sectors that could not be read lately (attribute 197).
    pub pending_sectors: Option<u64>,
    /// Sectors that could not be read in self-tests (attribute 198).
    pub uncorrectable_sectors: Option<u64>,
    /// Transfers with a wrong checksum: a bad cable (attribute 199).
    pub checksum_errors: Option<u64>,
    /// NVMe: errors of the medium.
    pub media_errors: Option<u64>,
    /// NVMe: percent of the rated writes used up; may exceed 100.
    pub used_percent: Option<u64>,
}

/// Queries a drive, unless it sleeps: then it stays asleep, and the answer is empty. So are
/// those of virtual disks, of loop devices and of a drive that hangs; `None` means that
/// `smartctl` is not installed.
///
/// # Errors
/// When the machine cannot be queried, or answers no JSON.
pub fn smart(target: &dyn Target, device: &str) -> Result<Option<Smart>, InventoryError> {
    let command =
        Command::reads("smartctl", ["--json", "--nocheck=standby", "-a", device]).timeout(PATIENCE);
    let output = match target.output(&command) {
        Ok(output) => output,
        Err(TargetError::NoProgram { .. }) => return Ok(None),
        Err(TargetError::Timeout { .. }) => return Ok(Some(Smart::default())),
        Err(error) => return Err(error.into()),
    };
    let smart = parse(&output.stdout).map_err(|problem| InventoryError::Format {
        machine: target.name().to_owned(),
        origin: command.to_string(),
        problem,
    })?;
    Ok(Some(smart))
}

/// Parses the output of `smartctl --json -a`; the error is what is wrong with it.
///
/// # Errors
/// When it is no JSON object.
pub fn parse(text: &str) -> Result<Smart, String> {
    let root: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if !root.is_object() {
        return Err("not a JSON object".to_owned());
    }
    let number = |path: &str| root.pointer(path).and_then(Value::as_u64);
    let nvme = |name: &str| number(&format!("/nvme_smart_health_information_log/{name}"));
    Ok(Smart {
        passed: root
            .pointer("/smart_status/passed")
            .and_then(Value::as_bool),
        temperature_celsius: root.pointer("/temperature/current").and_then(Value::as_i64),
        power_on_hours: number("/power_on_time/hours"),
        reallocated_sectors: attribute(&root, 5).or_else(|| number("/scsi_grown_defect_list")),
        pending_sectors: attribute(&root, 197),
        uncorrectable_sectors: attribute(&root, 198),
        checksum_errors: attribute(&root, 199),
        media_errors: nvme("media_errors"),
        used_percent: nvme("percentage_used"),
    })
}

/// The raw value of an ATA attribute.
fn attribute(root: &Value, id: u64) -> Option<u64> {
    let table = root.pointer("/ata_smart_attributes/table")?.as_array()?;
    let entry = table
        .iter()
        .find(|entry| entry.get("id").and_then(Value::as_u64) == Some(id))?;
    entry.pointer("/raw/value")?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::{Smart, parse, smart};
    use crate::testing::Machine;

    /// In the form that smartmontools 7.3 documents for ATA; the numbers are
    /// made up.
    const ATA: &str = r#"{"json_format_version":[1,0],
        "smartctl":{"version":[7,3],"exit_status":64},
        "device":{"name":"/dev/sdb","type":"sat","protocol":"ATA"},
        "rotation_rate":7200,"smart_status":{"passed":true},
        "ata_smart_attributes":{"revision":16,"table":[
            {"id":5,"name":"Reallocated_Sector_Ct","value":200,"worst":200,"thresh":140,
             "raw":{"value":3,"string":"3"}},
            {"id":194,"name":"Temperature_Celsius","value":116,"raw":{"value":34,"string":"34"}},
            {"id":197,"name":"Current_Pending_Sector","value":200,"raw":{"value":0,"string":"0"}},
            {"id":199,"name":"UDMA_CRC_Error_Count","value":200,"raw":{"value":7,"string":"7"}}]},
        "power_on_time":{"hours":21044},"temperature":{"current":34}}"#;

    /// The same for NVMe.
    const NVME: &str = r#"{"device":{"protocol":"NVMe"},"smart_status":{"passed":false},
        "nvme_smart_health_information_log":{"critical_warning":4,"temperature":41,
            "percentage_used":103,"media_errors":12,"power_on_hours":900},
        "temperature":{"current":41},"power_on_time":{"hours":900}}"#;

    #[test]
    fn an_ata_drive_s_attributes_are_read() {
        let smart = parse(ATA).unwrap();
        assert_eq!(smart.passed, Some(true));
        assert_eq!(
            (smart.temperature_celsius, smart.power_on_hours),
            (Some(34), Some(21_044))
        );
        assert_eq!(
            (smart.pending_sectors, smart.uncorrectable_sectors),
            (Some(0), None)
        );
        assert_eq!(smart.checksum_errors, Some(7));
        assert_eq!(smart.reallocated_sectors, Some(3));
    }

    #[test]
    fn an_nvme_drive_s_log_is_read() {
        let smart = parse(NVME).unwrap();
        assert_eq!(smart.used_percent, Some(103));
        assert_eq!((smart.passed, smart.media_errors), (Some(false), Some(12)));
    }

    #[test]
    fn a_virtual_disk_has_nothing_to_say() {
        // Recorded: smartctl 7.3 ends with 1 for a virtio disk.
        let answer = smart(&Machine::loops(), "/dev/vda").unwrap();
        assert_eq!(answer, Some(Smart::default()));
        assert_eq!(smart(&Machine::default(), "/dev/vda").unwrap(), None);
    }

    #[test]
    fn a_drive_that_hangs_is_not_waited_for() {
        let machine = Machine::loops().endless("smartctl --json --nocheck=standby -a /dev/sdb");
        let answer = smart(&machine, "/dev/sdb").unwrap();
        assert_eq!(answer, Some(Smart::default()));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).*", cut in 0..ATA.len()) {
            let _ = parse(&text);
            assert!(parse(&ATA[..cut]).is_err());
        }
    }
}
