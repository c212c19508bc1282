//! Reading a subject's file: what is written, checked and put together.

use super::{
    Checkpoint, Metadata, ReadRecovered, RecoveringWrites, Recovery, Subject, SubjectKind,
    SyncSource, Throttle, WriteBarrier, Zfs, ZfsChecksum, ZfsCompression, ZfsRelease,
};
use crate::document::{Document, FileError, Problem, Reserved};
use crate::host::Host;
use crate::settings::{self, Size, Time};
use raidlab_policies::{ALL, read_policy};
use raidlab_systems::ArraySpec;
use raidlab_systems::array::md::MdLevel;
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, in_one_line};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSubject {
    schema: Spanned<u32>,
    name: Spanned<String>,
    title: String,
    description: String,
    kind: Spanned<SubjectKind>,
    host: Option<Spanned<String>>,
    read_policy: Option<Spanned<String>>,
    data_offset: Option<Spanned<Size>>,
    metadata: Option<Spanned<Metadata>>,
    recovery: Option<Spanned<RawRecovery>>,
    zfs: Option<Spanned<RawZfs>>,
    build: Option<Spanned<ArraySpec>>,
    #[serde(rename = "sources")]
    _sources: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRecovery {
    block: Spanned<Size>,
    depth: Spanned<u32>,
    merged: Option<Spanned<Size>>,
    tick: Option<Spanned<Time>>,
    source: SyncSource,
    barrier: WriteBarrier,
    recovering_writes: RecoveringWrites,
    read_recovered: Spanned<ReadRecovered>,
    checkpoint_parts: Option<Spanned<u32>>,
    checkpoint_interval: Option<Time>,
    throttle: Spanned<ThrottleRule>,
    minimum: Option<Spanned<Size>>,
    maximum: Option<Spanned<Size>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ThrottleRule {
    None,
    Rate,
    MdSleep,
    MdDrain,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawZfs {
    release: ZfsRelease,
    volume_size: Spanned<Size>,
    volume_block: Spanned<Size>,
    ashift: Spanned<u32>,
    cache: Size,
    #[serde(default)]
    checksum: ZfsChecksum,
    #[serde(default)]
    compression: ZfsCompression,
    compression_ratio: Option<Spanned<f64>>,
}

/// The largest number of a rebuild's requests in flight.
const DEEPEST: u32 = 1 << 16;

/// Fields that belong in the table of how a real system builds the subject.
const RESERVED: [Reserved; 7] = [
    ("level", "put it into [build]"),
    ("levels", "write one file for each subject"),
    ("layout", "put it into [build]"),
    ("chunk", "put it into [build]"),
    ("bitmap", "put it into [build]"),
    ("filesystem", "a suite says it: `filesystems`"),
    ("matrix", "write one file for each subject"),
];

impl Subject {
    /// Reads a subject's file.
    ///
    /// # Errors
    /// With file, line, field and remedy.
    pub(crate) fn read(document: &Document, hosts: &[Host]) -> Result<Self, FileError> {
        let raw: RawSubject = document.decode(&RESERVED)?;
        settings::check_schema(document, &raw.schema)?;
        let host = raw
            .host
            .as_ref()
            .map(|name| find_host(document, name, hosts));
        let host = host.transpose()?;
        check_kind(document, &raw)?;
        let offset = raw.data_offset.as_ref();
        if let Some(offset) = offset.filter(|it| !it.get_ref().0.0.is_multiple_of(SECTOR_BYTES)) {
            let what = "data begin at a whole sector";
            return Err(document.invalid(offset.span(), what, "write a multiple of 512"));
        }
        check_read_policy(document, raw.read_policy.as_ref())?;
        if let Some(build) = &raw.build {
            let checked = build.get_ref().check_words();
            checked.map_err(|refused| document.refused(build.span().start, &refused))?;
            check_settings(document, build)?;
        }
        let recovery = raw.recovery.map(|table| read_recovery(document, table));
        let recovery = recovery.transpose()?;
        let zfs = raw.zfs.map(|table| read_zfs(document, table)).transpose()?;
        if let (Some(zfs), Some(policy)) = (&zfs, &raw.read_policy) {
            check_selection(document, zfs.release, policy)?;
        }
        let scope = format!("subject {}", raw.name.get_ref());
        let mut settings = settings::collect(document, &[], None, &scope)?;
        settings.extend(host.iter().flat_map(|host| host.settings.iter().cloned()));
        Ok(Self {
            name: raw.name.into_inner(),
            title: raw.title,
            description: raw.description,
            kind: raw.kind.into_inner(),
            host,
            read_policy: raw.read_policy.map(Spanned::into_inner),
            data_offset: raw.data_offset.map_or(Bytes(0), |size| size.get_ref().0),
            metadata: raw.metadata.map_or(Metadata::None, Spanned::into_inner),
            recovery,
            zfs,
            build: raw.build.map(Spanned::into_inner),
            members: None,
            removed: Vec::new(),
            scheduler: None,
            write_throttling: None,
            steps: None,
            filesystems: None,
            settings,
        })
    }
}

/// The same file with the settings of its one build system replaced by these, and with the suite
/// as their source.
///
/// # Errors
/// When there is no such system, or more than one.
pub(super) fn built_otherwise(
    document: &Document,
    settings: toml::Table,
    suite: &str,
) -> Result<Document, FileError> {
    // Errors of the file itself are reported at their own lines.
    document.decode::<RawSubject>(&RESERVED)?;
    let syntax = |message: String| document.error(0..0, Problem::Syntax(message));
    let mut file: toml::Table =
        toml::from_str(&document.text).map_err(|error| syntax(error.to_string()))?;
    let build = file.get_mut("build").and_then(toml::Value::as_table_mut);
    let one = build.filter(|build| build.len() == 1);
    let system = one.and_then(|build| build.iter_mut().next());
    let Some((system, toml::Value::Table(built))) = system else {
        let remedy = "what no system builds has no such settings";
        return Err(document.missing(0..0, "build", remedy));
    };
    let system = system.clone();
    let names: Vec<String> = settings.keys().cloned().collect();
    built.extend(settings);
    let sources = file
        .entry("sources")
        .or_insert_with(|| toml::Value::Table(toml::Table::new()));
    if let toml::Value::Table(sources) = sources {
        let source = toml::Value::String(format!("suite {suite}"));
        sources.extend(
            names
                .iter()
                .map(|name| (format!("build.{system}.{name}"), source.clone())),
        );
    }
    Ok(Document {
        file: document.file.clone(),
        text: toml::to_string(&file).map_err(|error| syntax(error.to_string()))?,
    })
}

/// The host of this name.
fn find_host(
    document: &Document,
    name: &Spanned<String>,
    hosts: &[Host],
) -> Result<Host, FileError> {
    let host = hosts.iter().find(|host| host.name == *name.get_ref());
    host.cloned().ok_or_else(|| {
        let known = hosts.iter().map(|host| &host.name);
        document.unknown(name.span(), "host", name.get_ref(), known)
    })
}

/// Refuses tables that the kind has no use for, and asks for those it needs.
fn check_kind(document: &Document, raw: &RawSubject) -> Result<(), FileError> {
    let kind = *raw.kind.get_ref();
    let modelled = kind != SubjectKind::System;
    let level = array_level(document, raw)?;
    let is_array = kind == SubjectKind::Array;
    let copies = matches!(level, Some(MdLevel::Raid1 | MdLevel::Raid10));
    let redundant = !matches!(level, Some(MdLevel::Linear | MdLevel::Raid0));
    let needs = [
        ("host", raw.host.as_ref().map(Spanned::span), modelled),
        (
            "read_policy",
            raw.read_policy.as_ref().map(Spanned::span),
            modelled && kind != SubjectKind::Disk && (!is_array || copies),
        ),
        (
            "recovery",
            raw.recovery.as_ref().map(Spanned::span),
            kind == SubjectKind::Mirror || is_array && redundant,
        ),
        (
            "zfs",
            raw.zfs.as_ref().map(Spanned::span),
            kind == SubjectKind::ZfsMirror,
        ),
    ];
    // The places of a pool's labels and a real array's metadata are decided by their systems.
    let placed = matches!(kind, SubjectKind::Disk | SubjectKind::Mirror);
    let offset = raw.data_offset.as_ref().map(Spanned::span);
    let metadata = raw.metadata.as_ref().map(Spanned::span);
    let useless = offset.or(metadata).filter(|_| !placed);
    let useless = useless.map(|span| ("", Some(span), false));
    for (field, span, needed) in needs.into_iter().chain(useless) {
        match (span, needed) {
            (None, true) => {
                let remedy = "a subject of this kind needs it";
                return Err(document.missing(raw.kind.span(), field, remedy));
            }
            (Some(span), false) => {
                let what = "a subject of this kind has no use for this";
                return Err(document.invalid(span, what, "remove it or change `kind`"));
            }
            _ => {}
        }
    }
    if !modelled && raw.build.is_none() {
        return Err(document.missing(raw.kind.span(), "build", "say how it is built"));
    }
    Ok(())
}

/// The level of an array, which its `[build.md]` table says; `None` for other
/// kinds.
fn array_level(document: &Document, raw: &RawSubject) -> Result<Option<MdLevel>, FileError> {
    if *raw.kind.get_ref() != SubjectKind::Array {
        return Ok(None);
    }
    if raw.data_offset.is_some() || raw.metadata.is_some() {
        let what = "an array's metadata lie where mdadm puts them";
        let remedy = "remove `data_offset`, and say `metadata` in [build.md]";
        return Err(document.invalid(raw.kind.span(), what, remedy));
    }
    match raw.build.as_ref().map(Spanned::get_ref) {
        Some(ArraySpec::Md(spec)) => Ok(Some(spec.level)),
        _ => {
            let remedy = "an array is modelled as md is built: say at least its `level`";
            Err(document.missing(raw.kind.span(), "build.md", remedy))
        }
    }
}

/// Refuses settings that the real system would refuse, at the first setting that its error names,
/// if any: benches would find out late, and the model not at all.
fn check_settings(document: &Document, build: &Spanned<ArraySpec>) -> Result<(), FileError> {
    let Err(refused) = build.get_ref().check_settings() else {
        return Ok(());
    };
    let what = refused.to_string();
    let start = build.span().start;
    let named = what.split('`').nth(1);
    let found = named.and_then(|name| document.text.get(start..)?.find(name));
    let start = start + found.unwrap_or(0);
    let remedy = "leave this setting out, or write what the system takes";
    Err(document.invalid(start..start + 1, what, remedy))
}

/// Checks that a policy of this name exists and takes this parameter.
fn check_read_policy(
    document: &Document,
    policy: Option<&Spanned<String>>,
) -> Result<(), FileError> {
    let Some(policy) = policy else {
        return Ok(());
    };
    let text = policy.get_ref();
    let known: Vec<_> = ALL.iter().map(|kind| kind.name()).collect();
    let name = text.split(':').next().unwrap_or_default();
    if !known.contains(&name) {
        return Err(document.unknown(policy.span(), "read policy", name, known));
    }
    let remedy = "write it as in `gmirror-split:8k` or `btrfs-devid:1`";
    read_policy(text)
        .map(drop)
        .map_err(|error| document.invalid(policy.span(), in_one_line(&error), remedy))
}

/// Checks that a pool's read policy is the one that its release has.
fn check_selection(
    document: &Document,
    release: ZfsRelease,
    policy: &Spanned<String>,
) -> Result<(), FileError> {
    let own = match release {
        ZfsRelease::Freebsd10_1 | ZfsRelease::OpenZfs2_3 => "zfs-freebsd-10",
        ZfsRelease::Zol0_6_4 => "zol-0.6",
    };
    let remedy = format!("write `{own}`, or change `release`");
    let refused = document.invalid(policy.span(), "a pool of this release has its own", remedy);
    (policy.get_ref() == own).then_some(()).ok_or(refused)
}

/// Checks a recovery table and puts its rules together.
fn read_recovery(document: &Document, raw: Spanned<RawRecovery>) -> Result<Recovery, FileError> {
    let raw = raw.into_inner();
    if *raw.depth.get_ref() == 0 {
        let what = "a rebuild without a request in flight never ends";
        return Err(document.invalid(raw.depth.span(), what, "depth must be at least 1"));
    }
    if *raw.depth.get_ref() > DEEPEST {
        let what = format!(
            "{} requests in flight are more than any rebuild has",
            raw.depth.get_ref()
        );
        return Err(document.invalid(raw.depth.span(), what, "depth must be at most 65536"));
    }
    let block = raw.block.get_ref().0;
    if block.0 == 0 || !block.0.is_multiple_of(512) {
        let what = "a sync request must be whole sectors";
        let remedy = "block must be a multiple of 512";
        return Err(document.invalid(raw.block.span(), what, remedy));
    }
    if let Some(merged) = &raw.merged
        && (merged.get_ref().0 < block || !merged.get_ref().0.0.is_multiple_of(512))
    {
        let what = "a merged sync request must hold a block";
        let remedy = "merged must be a multiple of 512, not below block";
        return Err(document.invalid(merged.span(), what, remedy));
    }
    if let Some(tick) = raw
        .tick
        .as_ref()
        .filter(|tick| tick.get_ref().0 == Nanos::ZERO)
    {
        let what = "a timer tick of 0 never comes";
        return Err(document.invalid(tick.span(), what, "leave it out for 4 ms"));
    }
    Ok(Recovery {
        merged: raw.merged.as_ref().map(|merged| merged.get_ref().0),
        tick: raw.tick.as_ref().map(|tick| tick.get_ref().0),
        checkpoint: read_checkpoint(document, &raw)?,
        throttle: read_throttle(document, &raw)?,
        block,
        depth: raw.depth.into_inner(),
        source: raw.source,
        barrier: raw.barrier,
        recovering_writes: raw.recovering_writes,
        read_recovered: raw.read_recovered.into_inner(),
    })
}

/// Reads the checkpoint rule; reads below the checkpoint need one.
fn read_checkpoint(
    document: &Document,
    raw: &RawRecovery,
) -> Result<Option<Checkpoint>, FileError> {
    let missing =
        |field: &str, remedy: &str| Err(document.missing(raw.read_recovered.span(), field, remedy));
    let needed = *raw.read_recovered.get_ref() == ReadRecovered::BelowCheckpoint;
    match (&raw.checkpoint_parts, raw.checkpoint_interval) {
        (Some(parts), _) if *parts.get_ref() == 0 => {
            let what = "an array cannot be cut into no parts";
            let remedy = "checkpoint_parts must be at least 1";
            Err(document.invalid(parts.span(), what, remedy))
        }
        (Some(parts), Some(interval)) => Ok(Some(Checkpoint {
            parts: *parts.get_ref(),
            interval: interval.0,
        })),
        (None, None) if !needed => Ok(None),
        (None, _) => missing(
            "checkpoint_parts",
            "a checkpoint comes after a part of the array, 16 for md",
        ),
        (_, None) => missing(
            "checkpoint_interval",
            "a checkpoint comes after a time, \"5m\" for md",
        ),
    }
}

/// The lowest limit of a throttle, 1 KiB/s.
const LEAST_RATE: Bytes = Bytes(1024);

/// Reads the throttle with the limits that its rule needs.
fn read_throttle(document: &Document, raw: &RawRecovery) -> Result<Throttle, FileError> {
    let limits = [raw.minimum.as_ref(), raw.maximum.as_ref()];
    for limit in limits.into_iter().flatten() {
        if matches!(raw.throttle.get_ref(), ThrottleRule::None) {
            let what = "nothing holds this rebuild back";
            let remedy = "leave it out, or name a `throttle` that has limits";
            return Err(document.invalid(limit.span(), what, remedy));
        }
        if limit.get_ref().0 < LEAST_RATE {
            let what = "a rate below 1 KiB/s copies nothing";
            return Err(document.invalid(limit.span(), what, "write 1k or more"));
        }
    }
    if let [Some(minimum), Some(maximum)] = limits
        && minimum.get_ref().0 > maximum.get_ref().0
    {
        let what = "the rebuild may be no faster than that, and no slower than this";
        let remedy = "`minimum` must not be above `maximum`";
        return Err(document.invalid(minimum.span(), what, remedy));
    }
    let limit = |limit: Option<&Spanned<Size>>, field: &str| {
        limit.map(|size| size.get_ref().0).ok_or_else(|| {
            let remedy = "this throttle needs it: bytes per second, as \"1000k\"";
            document.missing(raw.throttle.span(), field, remedy)
        })
    };
    let minimum = || limit(limits[0], "minimum");
    let maximum = || limit(limits[1], "maximum");
    Ok(match *raw.throttle.get_ref() {
        ThrottleRule::None => Throttle::None,
        ThrottleRule::Rate => Throttle::Rate {
            minimum: minimum()?,
            maximum: maximum()?,
        },
        ThrottleRule::MdSleep => Throttle::MdSleep {
            minimum: minimum()?,
            maximum: maximum()?,
        },
        ThrottleRule::MdDrain => Throttle::MdDrain {
            minimum: minimum()?,
            maximum: maximum()?,
        },
    })
}

/// Checks a ZFS table.
fn read_zfs(document: &Document, raw: Spanned<RawZfs>) -> Result<Zfs, FileError> {
    let raw = raw.into_inner();
    let block = raw.volume_block.get_ref().0;
    if !block.0.is_power_of_two() || !(512..=128 * 1024).contains(&block.0) {
        let what = format!("a volume block cannot have {} bytes", block.0);
        let remedy = "use a power of two from 512 to 128k";
        return Err(document.invalid(raw.volume_block.span(), what, remedy));
    }
    let size = raw.volume_size.get_ref().0;
    if size.0 == 0 || !size.0.is_multiple_of(block.0) {
        let what = "a volume is of whole blocks";
        let remedy = "write a multiple of `volume_block`";
        return Err(document.invalid(raw.volume_size.span(), what, remedy));
    }
    if !(9..=13).contains(raw.ashift.get_ref()) {
        let what = format!("a pool has no sectors of 2^{} bytes", raw.ashift.get_ref());
        return Err(document.invalid(raw.ashift.span(), what, "use 9 to 13"));
    }
    let ratio = raw.compression_ratio;
    if let Some(ratio) = &ratio {
        if raw.compression == ZfsCompression::Off {
            let what = "nothing compresses".to_owned();
            let remedy = "say how with `compression`, or leave this out";
            return Err(document.invalid(ratio.span(), what, remedy));
        }
        if !(1.0..=100.0).contains(ratio.get_ref()) {
            let what = format!("data do not compress by {}", ratio.get_ref());
            return Err(document.invalid(ratio.span(), what, "use 1 to 100"));
        }
    }
    Ok(Zfs {
        checksum: raw.checksum,
        compression: raw.compression,
        compression_ratio: ratio.map_or(1.0, Spanned::into_inner),
        release: raw.release,
        volume_size: size,
        volume_block: block,
        ashift: raw.ashift.into_inner(),
        cache: raw.cache.0,
    })
}
