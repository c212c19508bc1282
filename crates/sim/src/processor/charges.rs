//! The numbers of a processor: how many cores there are, and what each piece of their work costs.
//!
//! A file of `data/processors` has them, each with its source. A time there is that of one
//! core at `speed` 1; all times are divided by the speed, and all rates multiplied by it.

use super::schedulers::{self, BFQ_NS, KYBER_NS, MQ_DEADLINE_NS};
use super::task::Part;
use raidlab_disk::Order;
use raidlab_units::{Nanos, Sectors, line_of, plain_words, suggestion};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;
use toml::Spanned;

/// Each number, and after `as` the charge that is its time.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident $(as $charge:ident)?),+ $(,)?) => {
        /// The numbers of a preset under their names there, which carry their units.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct ProcessorNumbers {
            $($(#[$doc])* pub $name: f64,)+
        }

        impl ProcessorNumbers {
            /// Every name, in the order in which they are shown.
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];

            fn set(&mut self, name: &str, value: f64) {
                match name {
                    $(stringify!($name) => self.$name = value,)+
                    _ => {}
                }
            }

            /// Every number with its name.
            #[must_use]
            pub fn named(&self) -> Vec<(&'static str, f64)> {
                vec![$((stringify!($name), self.$name)),+]
            }
        }

        /// The charges of a processor: its numbers as whole nanoseconds of its own cores.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct Charges {
            $($(pub(crate) $charge: Nanos,)?)+
            pub(crate) cores: usize,
            pub(crate) sockets: usize,
            pub(crate) cores_per_cache: usize,
            /// The time of a lock's way from another core of the socket, and from another socket.
            pub(crate) way: [Nanos; 2],
            /// The same time for each core in line, in picoseconds.
            pub(crate) crowd_picos: [u64; 2],
            /// The time from one stripe to the next in a chain, in picoseconds.
            pub(crate) chain_picos: u64,
            xor_rate: u64,
            pq_rate: u64,
            copy_rate: u64,
            /// Bytes per second of fletcher4 and of SHA-256.
            checksum_rates: [u64; 2],
            /// Bytes per second of LZ4 there and back, and of Zstandard there and back.
            compression_rates: [u64; 4],
            /// The times of mq-deadline, BFQ and kyber.
            schedulers: [Nanos; 3],
        }

        impl Charges {
            pub(crate) fn of(numbers: &ProcessorNumbers) -> Self {
                let time = |nanos: f64| Nanos(whole(nanos / numbers.speed));
                let far = [1.0, numbers.remote_factor];
                let rate = |bytes: f64| whole(bytes * numbers.speed).max(1);
                let count = |number: f64| usize::try_from(whole(number)).unwrap_or(1).max(1);
                Self {
                    $($($charge: time(numbers.$name),)?)+
                    cores: count(numbers.cores),
                    sockets: count(numbers.sockets),
                    cores_per_cache: count(cores_near(numbers)),
                    way: far.map(|factor| time(numbers.transfer_ns * factor)),
                    crowd_picos: far.map(|factor| time(numbers.crowd_ns * factor * 1000.0).0),
                    chain_picos: time(CHAIN_NS * 1000.0).0,
                    xor_rate: rate(numbers.xor_bytes_per_second),
                    pq_rate: rate(numbers.pq_bytes_per_second),
                    copy_rate: rate(numbers.copy_bytes_per_second),
                    checksum_rates: [
                        rate(numbers.checksum_bytes_per_second),
                        rate(numbers.sha256_bytes_per_second),
                    ],
                    compression_rates: [
                        rate(numbers.lz4_bytes_per_second),
                        rate(numbers.unlz4_bytes_per_second),
                        rate(numbers.zstd_bytes_per_second),
                        rate(numbers.unzstd_bytes_per_second),
                    ],
                    schedulers: [MQ_DEADLINE_NS, BFQ_NS, KYBER_NS].map(time),
                }
            }
        }
    };
}

numbers! {
    /// The number of cores, those of all sockets together; 1 to 4096.
    cores,
    /// The number of sockets over which they are spread evenly; 1 to 64.
    sockets,
    /// The number of cores that share a cache of the last level; 1 to 4096. Beyond those of a
    /// socket it means all of them.
    cores_per_cache,
    /// The speed of a core; above 0.
    speed,
    /// The time of fio itself for a request, outside of the kernel.
    user_ns as user,
    /// The time of two system calls for each request, to submit it and to fetch its answer, with
    /// all the kernel's work there before an array or a driver.
    call_ns as call,
    /// The time of the block layer's queue and the driver, for each command to a disk.
    dispatch_ns as dispatch,
    /// The time to enter and to leave an interrupt, once for all answers that it finds.
    interrupt_ns as interrupt,
    /// The time of the end of a command in the interrupt, up to the request that it was for.
    complete_ns as complete,
    /// The time in which an array takes a request and maps it.
    request_ns as request,
    /// The time in which an array ends a request.
    request_end_ns as request_end,
    /// The time in which an array makes a command to a member.
    clone_ns as clone,
    /// The time in which an array ends a command of a member.
    clone_end_ns as clone_end,
    /// The time from a thread's wake-up until it runs on an idle core; no core computes then.
    wake_ns as wake,
    /// The time that waking a sleeping thread costs the one that wakes it.
    wake_call_ns as wake_call,
    /// The time of a change of threads on a core.
    switch_ns as switch,
    /// The time for which a spinlock is held where no more is said: to take it, change a few words,
    /// and release it.
    lock_ns as lock,
    /// The time in which a lock and the data that it guards come from another core's cache.
    transfer_ns,
    /// The time by which a pass is longer for each core that spins for the same lock.
    crowd_ns,
    /// The factor by which both take longer where the lock comes from another socket.
    remote_factor,
    /// The time for which the bitmap's lock is held, to look up and count a bit.
    bitmap_ns as bitmap,
    /// The time in which a stripe is looked up in the cache for a request, and a part of the
    /// request is put into it.
    find_ns as find,
    /// The time in which the array's thread, or a worker, looks through a stripe once.
    handle_ns as handle,
    /// The time of putting a stripe into the list of waiting ones, under `device_lock`.
    release_ns as release,
    /// Bytes per second that go through XOR on one core.
    xor_bytes_per_second,
    /// Bytes per second that go through P and Q on one core.
    pq_bytes_per_second,
    /// Bytes per second that one core copies.
    copy_bytes_per_second,
    /// Bytes per second of which one core makes checksums (fletcher4 of ZFS).
    checksum_bytes_per_second,
    /// Bytes per second of which one core makes checksums with SHA-256.
    sha256_bytes_per_second,
    /// Bytes per second that one core compresses with LZ4, counted before that.
    lz4_bytes_per_second,
    /// Bytes per second that one core decompresses with LZ4, counted after that.
    unlz4_bytes_per_second,
    /// Bytes per second that one core compresses with Zstandard, level 3.
    zstd_bytes_per_second,
    /// Bytes per second that one core decompresses with Zstandard, of any level.
    unzstd_bytes_per_second,
    /// The time in which ZFS looks up a block of a volume for a request: dnode, dbuf, cache.
    record_ns as record,
    /// The time in which ZFS makes the I/O of a block, with those of the mirror and of a
    /// member below it.
    zio_ns as zio,
    /// The time in which ZFS ends these I/Os.
    zio_end_ns as zio_end,
    /// The time of ZFS's syncing thread for a dirty block, until it is another thread's.
    sync_ns as sync,
    /// The time for which the lock of a disk's queue is held for a block that comes or goes.
    queue_ns as queue,
}

/// A number of a preset and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorSource {
    /// The name of the number, unit included.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// The way in which it is known, in a word: `measured`, `published`, `inferred`, `assumed`.
    pub basis: String,
    /// The source of the number, in words.
    pub source: String,
}

/// A machine's processor as data.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessorPreset {
    /// The short name, which is that of the file.
    pub name: String,
    /// The processor in a line of words.
    pub title: String,
    /// Remarks for people.
    pub description: String,
    /// The numbers of its file.
    pub numbers: ProcessorNumbers,
    /// The same numbers with their sources, in the order of [`ProcessorNumbers::NAMES`].
    pub sources: Vec<ProcessorSource>,
}

/// The reason why a file is no processor's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {what}")]
pub struct ProcessorError {
    /// The file in which the mistake stands.
    pub file: String,
    /// The line of the mistake, from 1.
    pub line: usize,
    /// The mistake in words, and the remedy.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<u32>,
    name: String,
    title: String,
    description: String,
    numbers: Spanned<BTreeMap<String, Spanned<Value>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a number as { value = 8, basis = \"assumed\", source = \"our own\" }")]
struct Value {
    value: f64,
    basis: Spanned<String>,
    source: String,
}

/// The ways in which a number can be known, the best first.
const BASES: [&str; 4] = ["measured", "published", "inferred", "assumed"];

impl ProcessorPreset {
    /// Reads a preset from the text of `file` (used in errors).
    ///
    /// # Errors
    /// Names file, line and field of the first mistake.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProcessorError> {
        let fail = |at: usize, what: String| ProcessorError {
            file: file.to_owned(),
            line: line_of(text, at),
            what,
        };
        let raw: File = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let place = text.get(span.clone()).unwrap_or_default();
            fail(span.start, plain_words(error.message(), place))
        })?;
        let schema = *raw.schema.get_ref();
        if schema != 1 {
            let what = format!("schema is {schema}, but must be 1, the only version there is");
            return Err(fail(raw.schema.span().start, what));
        }
        let begin = raw.numbers.span().start;
        let given = raw.numbers.into_inner();
        let checked = given
            .iter()
            .try_for_each(|(name, value)| check(name, value));
        checked.map_err(|(at, what)| fail(at, what))?;
        let mut numbers = ProcessorNumbers::default();
        let mut sources = Vec::new();
        for &name in ProcessorNumbers::NAMES {
            let Some(value) = given.get(name) else {
                return Err(fail(begin, format!("the number `{name}` is missing")));
            };
            let value = value.get_ref();
            numbers.set(name, value.value);
            sources.push(ProcessorSource {
                name: name.to_owned(),
                value: value.value.to_string(),
                basis: value.basis.get_ref().clone(),
                source: value.source.clone(),
            });
        }
        let (cores, sockets) = (numbers.cores, numbers.sockets);
        let near = cores_near(&numbers);
        let uneven = if cores % sockets != 0.0 {
            let what = format!("{cores} `cores` cannot be spread evenly over {sockets} `sockets`");
            Some(("sockets", what))
        } else if cores / sockets % near != 0.0 {
            let each = cores / sockets;
            let what =
                format!("{each} `cores` of a socket are no multiple of {near} `cores_per_cache`");
            Some(("cores_per_cache", what))
        } else {
            None
        };
        if let Some((name, what)) = uneven {
            return Err(fail(given[name].span().start, what));
        }
        Ok(Self {
            name: raw.name,
            title: raw.title,
            description: raw.description,
            numbers,
            sources,
        })
    }
}

/// Checks that there is such a number, and that it may have this value; where it may not, returns
/// the place in the text and the reason.
fn check(name: &str, value: &Spanned<Value>) -> Result<(), (usize, String)> {
    let (mut at, given, known) = (value.span().start, value.get_ref(), ProcessorNumbers::NAMES);
    let (number, (least, most)) = (given.value, range(name));
    let what = if !known.contains(&name) {
        let near = suggestion(name, known);
        format!("`{name}` is no number of a processor; {near}")
    } else if !(least..=most).contains(&number) {
        format!("`{name}` is {number}, but must be {least} to {most}")
    } else if COUNTS.contains(&name) && number.fract() != 0.0 {
        format!("`{name}` is {number}, but must be a whole number")
    } else if !BASES.contains(&given.basis.get_ref().as_str()) {
        at = given.basis.span().start;
        let (basis, bases) = (given.basis.get_ref(), BASES.join(", "));
        format!("the basis `{basis}` of `{name}` is none of: {bases}")
    } else {
        return Ok(());
    };
    Err((at, what))
}

/// The number of cores that share a cache, those of a socket at most.
fn cores_near(numbers: &ProcessorNumbers) -> f64 {
    let each = (numbers.cores / numbers.sockets).max(1.0);
    numbers.cores_per_cache.min(each)
}

/// The numbers that count something.
const COUNTS: [&str; 3] = ["cores", "sockets", "cores_per_cache"];

/// The least and the greatest value that a number may have.
fn range(name: &str) -> (f64, f64) {
    match name {
        "cores" | "cores_per_cache" => (1.0, 4096.0),
        "sockets" => (1.0, 64.0),
        "speed" => (0.001, 1000.0),
        "remote_factor" => (1.0, 1000.0),
        rate if rate.ends_with("_per_second") => (1e3, 1e15),
        _ => (0.0, 1e9),
    }
}

/// The checksum by which a pool makes sure that it reads what it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// Blocks have no checksum.
    #[default]
    Off,
    /// Blocks have Fletcher's sums, the default of ZFS.
    Fletcher4,
    /// Blocks have their SHA-256.
    Sha256,
}

/// The compression of a pool's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Blocks are not compressed.
    #[default]
    Off,
    /// Blocks are compressed with LZ4, the default of OpenZFS where compression is on.
    Lz4,
    /// Blocks are compressed with Zstandard, at this level from 1 to 19.
    Zstd(u8),
}

/// The speed of Zstandard's compression at levels 1 to 19, in thousandths of level 3, from lzbench
/// 1.8 with Zstandard 1.4.3 on Silesia (levels 1, 2, 5, 8, 11, 15 and 18; level 3 by its ratio to
/// level 1 in the table of brieflz, 199 to 345 MB/s); between them in even ratios.
const ZSTD_LEVELS: [u64; 19] = [
    1734, 1286, 1000, 613, 376, 286, 218, 166, 126, 96, 72, 56, 43, 33, 26, 20, 16, 13, 10,
];

/// The time from one stripe to the next in a chain of md's hash table, in nanoseconds: a cache line
/// that the one before names, out of the third cache. Those of the largest stripe cache are 2 MB,
/// which fit there (16 MB) but not into the second one (512 KB). AnandTech measured it on an EPYC
/// 7742, whose core has speed 1: 34 cycles at 3.4 GHz, and 122 ns out of memory ("AMD Rome Second
/// Generation EPYC Review", 2019, page "Memory Subsystem: Latency").
const CHAIN_NS: f64 = 10.27;

impl Charges {
    /// The parts that a disk's scheduler costs a command.
    pub(crate) fn scheduler(&self, order: Order, disk: u8) -> Vec<Part> {
        schedulers::parts(self.schedulers, order, disk)
    }

    /// The time of handing a request to a thread that has the same core at once: it is woken, and
    /// the core changes threads there and back.
    pub(crate) fn hand_over(&self) -> Nanos {
        self.wake_call + self.switch * 2
    }

    /// The time of so many sectors through XOR, or through P and Q.
    pub(crate) fn parity(&self, sectors: Sectors, with_q: bool) -> Nanos {
        per_byte(sectors, if with_q { self.pq_rate } else { self.xor_rate })
    }

    /// The time of a checksum of so many sectors.
    pub(crate) fn checksum(&self, checksum: Checksum, sectors: Sectors) -> Nanos {
        match checksum {
            Checksum::Off => Nanos::ZERO,
            Checksum::Fletcher4 => per_byte(sectors, self.checksum_rates[0]),
            Checksum::Sha256 => per_byte(sectors, self.checksum_rates[1]),
        }
    }

    /// The time of compressing so many sectors, and of bringing them back.
    pub(crate) fn compression(&self, kind: Compression, sectors: Sectors) -> [Nanos; 2] {
        let [lz4, unlz4, zstd, unzstd] = self.compression_rates;
        let times = |there, back| [per_byte(sectors, there), per_byte(sectors, back)];
        match kind {
            Compression::Off => [Nanos::ZERO; 2],
            Compression::Lz4 => times(lz4, unlz4),
            Compression::Zstd(level) => {
                let level = usize::from(level).clamp(1, ZSTD_LEVELS.len());
                times((zstd * ZSTD_LEVELS[level - 1] / 1000).max(1), unzstd)
            }
        }
    }

    /// The time of copying so many sectors.
    pub(crate) fn copy(&self, sectors: Sectors) -> Nanos {
        per_byte(sectors, self.copy_rate)
    }
}

fn per_byte(sectors: Sectors, rate: u64) -> Nanos {
    let bytes = u128::from(sectors.to_bytes().0);
    let time = bytes * u128::from(Nanos::SECOND.0) / u128::from(rate);
    Nanos(u64::try_from(time).unwrap_or(u64::MAX))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of a preset, within their ranges"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
