//! The state of a volume as `lvs` reports it, in JSON.
//!
//! `lvs` reads the members' metadata areas, a few sectors at each disk's
//! start, from the page cache or by direct reads: it is the one source here
//! that is not free. With `--devices` it is kept to our members.

use super::plan::VOLUME;
use super::{LvmSpec, cache};
use crate::array::steps::{Reader, devices, kernel_name};
use crate::array::{
    ArrayStatus, Built, Health, Member, MemberState, MemberStatus, ReadBack, SyncKind, SyncStatus,
    SystemError,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;

const LVS: &str = "lvs --reportformat json";
const COLUMNS: &str = "lv_name,lv_attr,sync_percent,raid_sync_action,lv_health_status,devices";

/// The volume that the members make: another than the one that is used where a
/// cache is before it.
const fn made_of_members(spec: &LvmSpec) -> &'static str {
    if spec.cache.is_some() {
        cache::ORIGIN
    } else {
        VOLUME
    }
}

fn lvs(spec: &LvmSpec, array: &Built) -> Command {
    let more = if spec.cache.is_some() {
        format!(",{}", cache::COLUMNS)
    } else {
        String::new()
    };
    let words = [
        "--devices".to_owned(),
        devices(&array.members).join(","),
        "--reportformat".to_owned(),
        "json".to_owned(),
        "--all".to_owned(),
        "--units".to_owned(),
        "b".to_owned(),
        "--nosuffix".to_owned(),
        "--options".to_owned(),
        format!("{COLUMNS},segtype,stripe_size,region_size{more}"),
        array.name.clone(),
    ];
    Command::reads("lvs", words)
}

pub(super) fn sources(spec: &LvmSpec, array: &Built) -> Vec<Watched> {
    vec![Watched::Command(lvs(spec, array))]
}

/// A report: each row by the columns' names.
#[derive(Deserialize)]
struct Report {
    report: Vec<BTreeMap<String, Vec<BTreeMap<String, String>>>>,
}

type Row = BTreeMap<String, String>;

fn rows(text: &str, table: &str, source: &str) -> Result<Vec<Row>, SystemError> {
    let report: Report = serde_json::from_str(text).map_err(|error| SystemError::Unreadable {
        source_name: source.to_owned(),
        line: error.line(),
        problem: error.to_string(),
    })?;
    Ok(report
        .report
        .into_iter()
        .filter_map(|mut tables| tables.remove(table))
        .flatten()
        .collect())
}

fn column<'a>(row: &'a Row, name: &str) -> &'a str {
    row.get(name).map_or("", |value| value.trim())
}

/// Hidden volumes are in brackets.
fn name(row: &Row) -> &str {
    column(row, "lv_name")
        .trim_start_matches('[')
        .trim_end_matches(']')
}

pub(super) fn interpret(
    spec: &LvmSpec,
    array: &Built,
    contents: &[Option<String>],
) -> Result<ArrayStatus, SystemError> {
    let no_array = || SystemError::NoArray {
        name: array.name.clone(),
    };
    let text = contents
        .first()
        .and_then(Option::as_deref)
        .ok_or_else(no_array)?;
    let rows = rows(text, "lv", LVS)?;
    let volume = rows
        .iter()
        .find(|row| name(row) == made_of_members(spec))
        .ok_or_else(no_array)?;
    let sync = sync(volume)?;
    let members = members(spec, array, &rows, sync.as_ref());
    let lost = members
        .iter()
        .filter(|member| member.state != MemberState::InSync)
        .count();
    let health = match column(volume, "lv_health_status") {
        _ if lost > 0 && !spec.level.redundant() => Health::Failed,
        "" if lost == 0 => Health::Optimal,
        _ => Health::Degraded,
    };
    Ok(ArrayStatus {
        health,
        members,
        sync,
    })
}

fn sync(volume: &Row) -> Result<Option<SyncStatus>, SystemError> {
    let text = column(volume, "sync_percent");
    if text.is_empty() {
        return Ok(None);
    }
    let percent: f64 = text.parse().map_err(|_| SystemError::Unreadable {
        source_name: LVS.to_owned(),
        line: 0,
        problem: format!("sync_percent `{text}` is no number"),
    })?;
    let kind = match column(volume, "raid_sync_action") {
        "recover" => SyncKind::Recovery,
        "check" | "repair" => SyncKind::Check,
        "reshape" => SyncKind::Reshape,
        "resync" => SyncKind::Resync,
        // The mirror target tells no action, only how far it is.
        _ if percent < 100.0 => SyncKind::Resync,
        _ => return Ok(None),
    };
    Ok(Some(SyncStatus {
        kind,
        percent: Some(percent),
        member: None,
        bytes_per_second: None,
    }))
}

/// Slot by slot from the hidden volumes `volume_rimage_0`, ... In `lv_attr` a
/// member that is being rebuilt has `I` (out of sync) in the first place; one
/// that is away has `p` (partial) in the ninth, or `r` (refresh needed) where
/// its device is there, but the volume runs without it.
fn members(
    spec: &LvmSpec,
    array: &Built,
    rows: &[Row],
    sync: Option<&SyncStatus>,
) -> Vec<MemberStatus> {
    let data = spec.data_count(array.members.len());
    let recovers = sync.is_some_and(|sync| sync.kind == SyncKind::Recovery);
    array
        .members
        .iter()
        .enumerate()
        .map(|(slot, member)| {
            let volume = made_of_members(spec);
            let image = format!("{volume}_rimage_{slot}");
            let mirror = format!("{volume}_mimage_{slot}");
            let row = rows
                .iter()
                .find(|row| name(row) == image || name(row) == mirror);
            let attributes = row.map_or("", |row| column(row, "lv_attr"));
            let at = |place: usize| attributes.chars().nth(place);
            let away = matches!(at(8), Some('p' | 'r'))
                || row.is_none_or(|row| column(row, "devices").contains("[unknown]"));
            let behind = at(0) == Some('I') && recovers;
            // A cache that is gone takes the whole volume with it.
            let redundant = spec.level.redundant() && slot < data;
            let state = match (redundant, away, behind || away && recovers) {
                (true, _, true) => MemberState::Recovering,
                (true, true, false) => MemberState::Missing,
                _ => MemberState::InSync,
            };
            MemberStatus {
                device: if state == MemberState::Missing {
                    String::new()
                } else {
                    kernel_name(&member.device).to_owned()
                },
                state,
            }
        })
        .collect()
}

pub(super) fn settings(
    spec: &LvmSpec,
    target: &dyn Target,
    array: &Built,
) -> Result<Vec<ReadBack>, SystemError> {
    let output = target.run(&lvs(spec, array))?;
    let rows = rows(&output.stdout, "lv", LVS)?;
    let find = |wanted: &str| {
        let found = rows.iter().find(|row| name(row) == wanted);
        found.ok_or_else(|| SystemError::NoArray {
            name: array.name.clone(),
        })
    };
    let volume = find(made_of_members(spec))?;
    let mut reader = Reader::new(target);
    // LVM calls its default layout of raid5 and raid6 by its full name.
    let found = match (spec.level.name(), column(volume, "segtype")) {
        ("raid5", "raid5_ls") => "raid5",
        ("raid6", "raid6_zr") => "raid6",
        (_, found) => found,
    };
    let asked = Some(spec.level.name().to_owned());
    reader.found("level", asked, found.to_owned(), LVS);
    let bytes = |size: Option<Bytes>| size.map(|size| size.0.to_string());
    if spec.level.striped() {
        let found = column(volume, "stripe_size").to_owned();
        reader.found("stripe_size", bytes(spec.stripe_size), found, LVS);
    }
    if spec.level.redundant() {
        let found = column(volume, "region_size").to_owned();
        reader.found("region_size", bytes(spec.region_size), found, LVS);
    }
    if let Some(cached) = &spec.cache {
        let row = find(VOLUME)?;
        cached.settings(&mut reader, &|name| column(row, name).to_owned());
        let dirty = cache::state(target, array)?.dirty;
        let source = "dmsetup status";
        reader.found("dirty_bytes", None, dirty.0.to_string(), source);
    }
    Ok(reader.done())
}

pub(super) fn find(target: &dyn Target, prefix: &str) -> Result<Vec<Built>, SystemError> {
    const PVS: &str = "pvs --reportformat json";
    let words = [
        "--reportformat",
        "json",
        "--units",
        "b",
        "--nosuffix",
        "--options",
        "pv_name,vg_name,dev_size",
    ];
    let output = target.run(&Command::reads("pvs", words))?;
    let mut found: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for row in rows(&output.stdout, "pv", PVS)? {
        let group = column(&row, "vg_name");
        let device = column(&row, "pv_name");
        if group.starts_with(prefix) && !group.is_empty() && device.starts_with('/') {
            found.entry(group.to_owned()).or_default().push(Member {
                device: device.to_owned(),
                size: Bytes(column(&row, "dev_size").parse().unwrap_or(0)),
                backing: None,
            });
        }
    }
    Ok(found
        .into_iter()
        .map(|(name, members)| Built {
            name,
            members,
            folder: String::new(),
        })
        .collect())
}
