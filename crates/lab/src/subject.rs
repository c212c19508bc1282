//! Subjects: what is measured, an array with all its settings.

use crate::catalogue::{self, LoadError};
use crate::document::{Document, FileError, Problem};
use crate::host::Host;
use crate::settings::{self, Size, Time};
use raidlab_store::Setting;
use raidlab_units::{Bytes, Nanos};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;
use toml::Spanned;

/// What kind of thing a subject is: it decides who builds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    /// One disk, no array.
    Disk,
    /// A mirror of the array core.
    Mirror,
    /// A ZFS pool of one mirror, with a volume on it.
    ZfsMirror,
}

/// Who answers a read of a mirror: one name for each driver's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadPolicy {
    /// Linux 3.16 to 4.9: first idle, sequential, nearest head, slot by slot.
    #[serde(rename = "md-3.16")]
    Md3_16,
    /// Linux 6.9 and later: sequential anywhere, then idle, then nearest.
    #[serde(rename = "md-6.9")]
    Md6_9,
    /// gmirror's default: a moving average of the load, bonuses for nearness.
    GmirrorLoad,
    /// gmirror's `round-robin`.
    GmirrorRoundRobin,
    /// gmirror's `split`.
    GmirrorSplit,
    /// gmirror's `prefer`.
    GmirrorPrefer,
    /// Our reading of gflash, whose source is closed.
    Gflash,
    /// The ZFS mirror of FreeBSD 10.
    #[serde(rename = "zfs-freebsd-10")]
    ZfsFreebsd10,
    /// The mirror of ZFS on Linux 0.6.
    #[serde(rename = "zol-0.6")]
    Zol0_6,
    /// Fewest outstanding requests, nearest head among equals.
    LeastPending,
    /// The head nearest to the request.
    NearestHead,
    /// btrfs: by process number.
    BtrfsPid,
    /// btrfs: in turn, 256 KiB at a time.
    BtrfsRoundRobin,
    /// btrfs: always the same device.
    BtrfsDevid,
    /// SPDK raid1: fewest outstanding blocks.
    Spdk,
}

/// Who is read to rebuild a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncSource {
    /// The lowest member that is in sync.
    LowestInSync,
    /// Whoever the read policy chooses, as for any read.
    Balanced,
}

/// Which part of a member that is being rebuilt may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readable {
    /// Nothing before the end.
    Never,
    /// Everything rebuilt so far.
    Front,
    /// Everything up to the last checkpoint, which is taken when the front
    /// has gone `1 / fraction` of the member further or `interval` has passed.
    Checkpoint {
        /// A checkpoint at each of so many parts of the member.
        fraction: u32,
        /// A checkpoint at least so often.
        interval: Nanos,
    },
}

/// What holds a rebuild back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// Nothing but the disks.
    Unlimited,
    /// At most so many bytes per second.
    Rate {
        /// Bytes per second.
        maximum: Bytes,
    },
    /// md's two limits: never above `maximum`, and above `minimum` only while
    /// nobody else uses the members. Linux `drivers/md/md.c`, `md_do_sync`.
    Md {
        /// Bytes per second.
        minimum: Bytes,
        /// Bytes per second.
        maximum: Bytes,
        /// How it waits.
        waits: MdThrottle,
    },
}

/// How md waits while others use the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MdThrottle {
    /// Linux up to 4.1: 500 ms, then looks again.
    Sleep,
    /// Linux 4.2 and later: until no sync request is in flight.
    Drain,
}

/// How a member is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes of one sync request.
    pub block: Bytes,
    /// Sync requests in flight at most.
    pub depth: u32,
    /// Who is read.
    pub source: SyncSource,
    /// What holds it back.
    pub throttle: Throttle,
    /// What of the member may be read meanwhile.
    pub readable: Readable,
}

/// Where the array's bytes lie on a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Metadata {
    /// No metadata: the member's bytes are the array's.
    #[serde(rename = "none")]
    None,
    /// md 0.90: 64 KiB at a multiple of 64 KiB near the end.
    #[serde(rename = "0.90")]
    Md0_90,
    /// md 1.2: near the start, before the data.
    #[serde(rename = "1.2")]
    Md1_2,
    /// gmirror: the last sector.
    #[serde(rename = "gmirror")]
    Gmirror,
    /// gflash: 4 022 272 bytes, observed.
    #[serde(rename = "gflash")]
    Gflash,
}

/// The volume of a ZFS subject and what shapes its speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Zfs {
    /// `freebsd-10.1` or `zol-0.6.4`.
    pub release: ZfsRelease,
    /// Size of the volume.
    pub volume_size: Bytes,
    /// Bytes of one of its blocks.
    pub volume_block: Bytes,
    /// Sectors of the pool are `1 << ashift` bytes.
    pub ashift: u32,
    /// Memory for the cache of data and metadata.
    pub cache: Bytes,
}

/// Whose limits and constants a ZFS subject has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ZfsRelease {
    /// FreeBSD 10.1, February 2015.
    #[serde(rename = "freebsd-10.1")]
    Freebsd10_1,
    /// ZFS on Linux 0.6.4, April 2015.
    #[serde(rename = "zol-0.6.4")]
    Zol0_6_4,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// `md`; unique in a suite.
    pub name: String,
    /// For people, in tables.
    pub title: String,
    /// A few sentences.
    pub description: String,
    /// What kind of thing it is.
    pub kind: SubjectKind,
    /// The host it runs on.
    pub host: Host,
    /// Who answers a read; `None` for a single disk.
    pub read_policy: Option<ReadPolicy>,
    /// Where the array's data begins on each member.
    pub data_offset: Bytes,
    /// What else is on the member.
    pub metadata: Metadata,
    /// How a member is rebuilt; `None` for a single disk and for ZFS, whose
    /// release decides it.
    pub recovery: Option<Recovery>,
    /// ZFS only.
    pub zfs: Option<Zfs>,
    /// Every setting of the file with its source, and those of the host.
    pub settings: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSubject {
    schema: Spanned<u32>,
    name: Spanned<String>,
    title: String,
    description: String,
    kind: Spanned<SubjectKind>,
    host: Spanned<String>,
    read_policy: Option<Spanned<ReadPolicy>>,
    data_offset: Option<Size>,
    metadata: Option<Metadata>,
    recovery: Option<Spanned<RawRecovery>>,
    zfs: Option<Spanned<RawZfs>>,
    #[serde(rename = "sources")]
    _sources: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRecovery {
    block: Size,
    depth: Spanned<u32>,
    source: SyncSource,
    readable: Spanned<ReadableRule>,
    checkpoint_fraction: Option<Spanned<u32>>,
    checkpoint_interval: Option<Time>,
    throttle: Spanned<ThrottleRule>,
    minimum: Option<Size>,
    maximum: Option<Size>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReadableRule {
    Never,
    Front,
    Checkpoint,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ThrottleRule {
    None,
    Rate,
    #[serde(rename = "md-3.16")]
    Md3_16,
    #[serde(rename = "md-4.2")]
    Md4_2,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawZfs {
    release: ZfsRelease,
    volume_size: Size,
    volume_block: Spanned<Size>,
    ashift: Spanned<u32>,
    cache: Size,
}

/// Fields of a subject that later versions will read.
const RESERVED: [crate::document::Reserved; 9] = [
    ("level", "every array is a mirror so far"),
    ("levels", "every array is a mirror so far"),
    ("layout", "every array is a mirror so far"),
    ("chunk", "a mirror has no chunks"),
    ("bitmap", "arrays have no write-intent bitmap so far"),
    ("filesystem", "jobs run on the raw array"),
    ("mount", "jobs run on the raw array"),
    ("cache", "subjects have no cache device so far"),
    ("matrix", "write one file for each subject"),
];

impl Subject {
    /// A built-in subject by name, or a file by path: anything with a `/` or
    /// ending in `.toml` is a path.
    ///
    /// # Errors
    /// When there is no such subject or its file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_from(name_or_path, Path::new(""))
    }

    /// Like [`Subject::load`], with relative paths taken from `base`.
    ///
    /// # Errors
    /// When there is no such subject or its file is wrong.
    pub fn load_from(name_or_path: &str, base: &Path) -> Result<Self, LoadError> {
        let document = catalogue::find(catalogue::Kind::Subject, name_or_path, base)?;
        let hosts = catalogue::hosts()?;
        Ok(Self::read(&document, &hosts)?)
    }

    /// Bytes of the array that members of `member` bytes give: what jobs may
    /// use. `None` when a member is too small to hold any.
    #[must_use]
    pub fn capacity(&self, member: Bytes) -> Option<Bytes> {
        const UNIT: u64 = 64 * 1024;
        let left = member.0.checked_sub(self.data_offset.0)?;
        let array = match self.metadata {
            Metadata::None | Metadata::Md1_2 => left,
            // Linux include/uapi/linux/raid/md_p.h, MD_NEW_SIZE_SECTORS.
            Metadata::Md0_90 => (left - left % UNIT).checked_sub(UNIT)?,
            Metadata::Gmirror => left.checked_sub(512)?,
            Metadata::Gflash => left.checked_sub(4_022_272)?,
        };
        match &self.zfs {
            Some(zfs) if zfs.volume_size.0 <= array => Some(zfs.volume_size),
            Some(_) => None,
            None => (array > 0).then_some(Bytes(array)),
        }
    }

    /// Reads a subject's file.
    ///
    /// # Errors
    /// With file, line, field and remedy.
    pub(crate) fn read(document: &Document, hosts: &[Host]) -> Result<Self, FileError> {
        let raw: RawSubject = document.decode(&RESERVED)?;
        settings::check_schema(document, &raw.schema)?;
        let host = hosts.iter().find(|host| host.name == *raw.host.get_ref());
        let host = host.cloned().ok_or_else(|| {
            document.error(
                raw.host.span(),
                Problem::UnknownName {
                    what: "host",
                    name: raw.host.get_ref().clone(),
                    known: hosts.iter().map(|host| host.name.clone()).collect(),
                },
            )
        })?;
        check_kind(document, &raw)?;
        let scope = format!("subject {}", raw.name.get_ref());
        let mut settings = settings::collect(document, &[], None, &scope)?;
        settings.extend(host.settings.iter().cloned());
        Ok(Self {
            name: raw.name.into_inner(),
            title: raw.title,
            description: raw.description,
            kind: raw.kind.into_inner(),
            host,
            read_policy: raw.read_policy.map(Spanned::into_inner),
            data_offset: raw.data_offset.map_or(Bytes(0), |size| size.0),
            metadata: raw.metadata.unwrap_or(Metadata::None),
            recovery: raw
                .recovery
                .map(|recovery| read_recovery(document, recovery))
                .transpose()?,
            zfs: raw.zfs.map(|zfs| read_zfs(document, zfs)).transpose()?,
            settings,
        })
    }
}

/// Refuses tables that the kind has no use for, and asks for those it needs.
fn check_kind(document: &Document, raw: &RawSubject) -> Result<(), FileError> {
    let kind = *raw.kind.get_ref();
    let needs = [
        (
            "read_policy",
            raw.read_policy.as_ref().map(Spanned::span),
            kind != SubjectKind::Disk,
        ),
        (
            "recovery",
            raw.recovery.as_ref().map(Spanned::span),
            kind == SubjectKind::Mirror,
        ),
        (
            "zfs",
            raw.zfs.as_ref().map(Spanned::span),
            kind == SubjectKind::ZfsMirror,
        ),
    ];
    for (field, span, needed) in needs {
        match (span, needed) {
            (None, true) => {
                let remedy = "a subject of this kind needs it".to_owned();
                return Err(document.error(raw.kind.span(), Problem::Missing { field, remedy }));
            }
            (Some(span), false) => {
                let what = "a subject of this kind has no use for this";
                return Err(document.invalid(span, what, "remove it or change `kind`"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks a recovery table and puts its rules together.
fn read_recovery(document: &Document, raw: Spanned<RawRecovery>) -> Result<Recovery, FileError> {
    let raw = raw.into_inner();
    let missing = |span, field, remedy: &str| {
        let remedy = remedy.to_owned();
        document.error(span, Problem::Missing { field, remedy })
    };
    if *raw.depth.get_ref() == 0 {
        let what = "a rebuild without a request in flight never ends";
        return Err(document.invalid(raw.depth.span(), what, "depth must be at least 1"));
    }
    if raw.block.0.0 == 0 || !raw.block.0.0.is_multiple_of(512) {
        let what = "a sync request must be whole sectors";
        return Err(document.invalid(raw.depth.span(), what, "block must be a multiple of 512"));
    }
    let readable = match (
        raw.readable.get_ref(),
        raw.checkpoint_fraction,
        raw.checkpoint_interval,
    ) {
        (ReadableRule::Never, ..) => Readable::Never,
        (ReadableRule::Front, ..) => Readable::Front,
        (ReadableRule::Checkpoint, Some(fraction), Some(interval)) => {
            if *fraction.get_ref() == 0 {
                let what = "a member cannot be cut into no parts";
                let remedy = "checkpoint_fraction must be at least 1";
                return Err(document.invalid(fraction.span(), what, remedy));
            }
            Readable::Checkpoint {
                fraction: fraction.into_inner(),
                interval: interval.0,
            }
        }
        (ReadableRule::Checkpoint, None, _) => {
            let remedy = "with readable = \"checkpoint\" say how many parts, 16 for md";
            return Err(missing(raw.readable.span(), "checkpoint_fraction", remedy));
        }
        (ReadableRule::Checkpoint, _, None) => {
            let remedy = "with readable = \"checkpoint\" say how often, \"5m\" for md";
            return Err(missing(raw.readable.span(), "checkpoint_interval", remedy));
        }
    };
    let limit = |limit: Option<Size>, field| {
        let remedy = "this throttle needs it: bytes per second, as \"1000k\"";
        limit
            .map(|size| size.0)
            .ok_or_else(|| missing(raw.throttle.span(), field, remedy))
    };
    let throttle = match *raw.throttle.get_ref() {
        ThrottleRule::None => Throttle::Unlimited,
        ThrottleRule::Rate => Throttle::Rate {
            maximum: limit(raw.maximum, "maximum")?,
        },
        rule @ (ThrottleRule::Md3_16 | ThrottleRule::Md4_2) => Throttle::Md {
            minimum: limit(raw.minimum, "minimum")?,
            maximum: limit(raw.maximum, "maximum")?,
            waits: match rule {
                ThrottleRule::Md4_2 => MdThrottle::Drain,
                _ => MdThrottle::Sleep,
            },
        },
    };
    Ok(Recovery {
        block: raw.block.0,
        depth: raw.depth.into_inner(),
        source: raw.source,
        throttle,
        readable,
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
    if !(9..=13).contains(raw.ashift.get_ref()) {
        let what = format!("a pool has no sectors of 2^{} bytes", raw.ashift.get_ref());
        return Err(document.invalid(raw.ashift.span(), what, "use 9 to 13"));
    }
    Ok(Zfs {
        release: raw.release,
        volume_size: raw.volume_size.0,
        volume_block: block,
        ashift: raw.ashift.into_inner(),
        cache: raw.cache.0,
    })
}
