//! The state of a volume as `lvs` reports it, in JSON.
//!
//! `lvs` reads the members' metadata areas, a few sectors at each disk's start, from the page
//! cache or by direct reads: it is the only source here with a cost. With `--devices` it is
//! restricted to our members.

use super::plan::VOLUME;
use super::{LvmSpec, cache};
use crate::array::steps::{Reader, devices};
use crate::array::{
    ArrayStatus, Built, CacheState, Health, Member, MemberState, ReadBack, ReadState, Result,
    SyncKind, SyncStatus, SystemError,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;

const LVS: &str = "lvs --reportformat json";
const COLUMNS: &str = "lv_name,lv_attr,sync_percent,raid_sync_action,lv_health_status,devices";

/// The volume that the members make: where there is a cache, another one than the volume in use.
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

/// A report of `lvs`: its rows, each by the columns' names.
#[derive(Deserialize)]
struct Report {
    report: Vec<BTreeMap<String, Vec<BTreeMap<String, String>>>>,
}

type Row = BTreeMap<String, String>;

fn rows(text: &str, table: &str, source: &str) -> Result<Vec<Row>> {
    let report: Report = serde_json::from_str(text)
        .map_err(|error| SystemError::unreadable(source, error.line(), error.to_string()))?;
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

/// The name without the brackets of hidden volumes.
fn name(row: &Row) -> &str {
    column(row, "lv_name")
        .trim_start_matches('[')
        .trim_end_matches(']')
}

impl ReadState for LvmSpec {
    fn sources(&self, array: &Built) -> Vec<Watched> {
        vec![Watched::Command(lvs(self, array))]
    }

    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        let no_array = || SystemError::no_array(&array.name);
        let text = contents
            .first()
            .and_then(Option::as_deref)
            .ok_or_else(no_array)?;
        let rows = rows(text, "lv", LVS)?;
        let volume = rows
            .iter()
            .find(|row| name(row) == made_of_members(self))
            .ok_or_else(no_array)?;
        let sync = sync(volume)?;
        let members = members(self, array, &rows, sync.as_ref());
        let lost = members.iter().map(|state| *state != MemberState::InSync);
        let lost: Vec<bool> = lost.collect();
        let data = &lost[..self.data_count(lost.len())];
        let health = match column(volume, "lv_health_status") {
            _ if self.level.has_lost(data) => Health::Failed,
            "" if !lost.contains(&true) => Health::Optimal,
            _ => Health::Degraded,
        };
        Ok(ArrayStatus {
            health,
            members,
            sync,
        })
    }

    fn cache(&self, target: &dyn Target, array: &Built) -> Result<Option<CacheState>> {
        let cached = self.cache.as_ref();
        cached.map(|_| cache::state(target, array)).transpose()
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
        let output = target.run(&lvs(self, array))?;
        let rows = rows(&output.stdout, "lv", LVS)?;
        let find = |wanted: &str| {
            let found = rows.iter().find(|row| name(row) == wanted);
            found.ok_or_else(|| SystemError::no_array(&array.name))
        };
        let volume = find(made_of_members(self))?;
        let mut reader = Reader::new(target);
        // LVM reports its default layout of raid5 and raid6 by its full name.
        let found = match (self.level.name(), column(volume, "segtype")) {
            ("raid5", "raid5_ls") => "raid5",
            ("raid6", "raid6_zr") => "raid6",
            (_, found) => found,
        };
        reader.found("level", Some(self.level), found, LVS);
        let bytes = |size: Option<Bytes>| size.map(|size| size.0);
        if self.level.striped() {
            let found = column(volume, "stripe_size");
            reader.found("stripe_size", bytes(self.stripe_size), found, LVS);
        }
        if self.level.redundant() {
            let found = column(volume, "region_size");
            reader.found("region_size", bytes(self.region_size), found, LVS);
        }
        if let Some(cached) = &self.cache {
            let row = find(VOLUME)?;
            cached.settings(&mut reader, &|name| column(row, name).to_owned());
            let dirty = cache::state(target, array)?.dirty;
            let source = "dmsetup status";
            reader.found("dirty_bytes", None::<u64>, dirty.0, source);
        }
        Ok(reader.done())
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        const PVS: &str = "pvs --reportformat json";
        // Devices used with `--devices` are in no devices file (lvmdevices(8)), and where a system
        // has such a file, `pvs` sees only its devices without this setting. An older LVM only
        // warns of the unknown setting.
        let words = [
            "--config",
            "devices/use_devicesfile=0",
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
                found
                    .entry(group.to_owned())
                    .or_default()
                    .push(Member::found(
                        device,
                        Bytes(column(&row, "dev_size").parse().unwrap_or(0)),
                    ));
            }
        }
        Ok(found
            .into_iter()
            .map(|(name, members)| Built::found(name, members))
            .collect())
    }
}

fn sync(volume: &Row) -> Result<Option<SyncStatus>> {
    let text = column(volume, "sync_percent");
    if text.is_empty() {
        return Ok(None);
    }
    let percent: f64 = text.parse().map_err(|_| {
        SystemError::unreadable(LVS, 0, format!("sync_percent `{text}` is no number"))
    })?;
    let kind = match column(volume, "raid_sync_action") {
        "recover" => SyncKind::Recovery,
        "check" | "repair" => SyncKind::Check,
        "reshape" => SyncKind::Reshape,
        "resync" => SyncKind::Resync,
        // The mirror target reports no action, only its progress.
        _ if percent < 100.0 => SyncKind::Resync,
        _ => return Ok(None),
    };
    Ok(Some(SyncStatus::of(kind, Some(percent))))
}

/// Slot by slot from the hidden volumes `volume_rimage_0`, ... In `lv_attr` a member that is being
/// rebuilt has `I` (out of sync) in the first place; one that is missing has `p` (partial) in the
/// ninth, or `r` (refresh needed) where its device exists, but the volume runs without it.
fn members(
    spec: &LvmSpec,
    array: &Built,
    rows: &[Row],
    sync: Option<&SyncStatus>,
) -> Vec<MemberState> {
    let data = spec.data_count(array.members.len());
    let recovers = sync.is_some_and(|sync| sync.kind == SyncKind::Recovery);
    (0..array.members.len())
        .map(|slot| {
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
            // A cache that is lost takes the whole volume with it.
            let redundant = spec.level.redundant() && slot < data;
            match (redundant, away, behind || away && recovers) {
                (true, _, true) => MemberState::Recovering,
                (true, true, false) => MemberState::Missing,
                _ => MemberState::InSync,
            }
        })
        .collect()
}
