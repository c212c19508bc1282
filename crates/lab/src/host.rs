//! Hosts: the properties of the operating system between fio and the disks.

use crate::document::{Document, FileError};
use crate::settings::{self, Size, Time};
use raidlab_store::Setting;
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

/// The way in which a queue depth above one was reached on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueStyle {
    /// One process with that many asynchronous requests in flight (Linux).
    Libaio,
    /// That many threads with one synchronous request each (FreeBSD, where
    /// fio has no libaio).
    Threads,
}

/// An operating system on a machine, with the properties that shape a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// The host's name: `linux-3.16`.
    pub name: String,
    /// The host's title, for people.
    pub title: String,
    /// The time from a completion to the same thread's next submission.
    pub turnaround: Nanos,
    /// The turnaround on a machine with a disk that does not rotate.
    pub turnaround_with_flash: Nanos,
    /// The time from the end of a job to the first request of the next.
    pub start_up: Nanos,
    /// The time without writes of the members that is awaited before a job, unless a sync runs.
    pub quiet: Nanos,
    /// The period of the scheduler's tick, where the scheduler lets threads of an array with
    /// parity, and of a RAID 10's sync, preempt the process that it last found running (CFS,
    /// Linux before 6.6) and these threads compute for what they send; `None`: a process runs
    /// until it sleeps.
    pub scheduler_clock: Option<Nanos>,
    /// Whether all processes and threads share one processor, on which each runs until it sleeps.
    pub one_processor: bool,
    /// The processor time that a process uses before it waits for an answer.
    pub call: Nanos,
    /// The number of commands that the host sends to one drive at a time.
    pub tags: u32,
    /// The scheduler that chooses among requests waiting for a free tag, in the model's words.
    pub scheduler: String,
    /// The size of the largest request that reaches a drive whole; larger ones are split.
    pub maximum_request: Bytes,
    /// The system call of a durable write (`O_SYNC`) flushes the device once more before it
    /// returns, behind what makes the write itself durable.
    pub flush_after_sync: bool,
    /// The way in which a queue depth above one was reached.
    pub queue: QueueStyle,
    /// The size of main memory, of which a file system's cache can take a part.
    pub memory: Bytes,
    /// Locks of md that newer kernels do not have, or take less often.
    pub old_locks: Vec<OldLock>,
    /// The thread that sends writes to a RAID 1 or RAID 10 with a bitmap.
    pub bitmap_writes: BitmapWrites,
    /// The Linux version whose rules md follows.
    pub md: MdRelease,
    /// Every field of the host's table with its source.
    pub settings: Vec<Setting>,
}

/// A Linux version whose md is modelled with its own rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum MdRelease {
    /// Linux 6.1, as Debian 12 has it.
    #[serde(rename = "6.1")]
    Linux6_1,
    /// Linux 6.12, the default.
    #[default]
    #[serde(rename = "6.12")]
    Linux6_12,
}

/// A lock of md that a newer Linux does not have, or takes less often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OldLock {
    /// RAID 10 takes `resync_lock` at the begin and the end of each request, and wakes its barrier's
    /// queue of waiting requests.
    Barrier,
    /// RAID 1 wakes the queue of the barrier at the end of each request.
    WakeUp,
    /// RAID 5 takes `device_lock` for each read past the stripe cache.
    DirectRead,
    /// RAID 5 takes the lock of the queue `wait_for_overlap` for each write.
    Overlap,
    /// RAID 5 with a bitmap takes the lock of its counters for each block of a write.
    BlockCounts,
}

/// The thread that sends writes to a RAID 1 or RAID 10 of md with a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BitmapWrites {
    /// The process that writes: before Linux 6.5.
    Process,
    /// The array's thread: Linux 6.5 to 6.9.
    Thread,
    /// The process, after it has slept until a worker of the kernel has looked at the bitmap: Linux
    /// 6.10 and later, the default.
    #[default]
    Worker,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHosts {
    schema: Spanned<u32>,
    host: Vec<Spanned<RawHost>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHost {
    name: Spanned<String>,
    title: String,
    turnaround: Time,
    turnaround_with_flash: Option<Time>,
    #[serde(default = "start_up")]
    start_up: Time,
    #[serde(default = "no_time")]
    quiet: Time,
    scheduler_clock: Option<Spanned<Time>>,
    #[serde(default)]
    one_processor: bool,
    #[serde(default = "no_time")]
    call: Time,
    tags: Spanned<u32>,
    #[serde(default = "sweep")]
    scheduler: String,
    maximum_request: Spanned<Size>,
    #[serde(default = "yes")]
    flush_after_sync: bool,
    queue: QueueStyle,
    memory: Size,
    #[serde(default)]
    old_locks: Vec<OldLock>,
    #[serde(default)]
    bitmap_writes: BitmapWrites,
    #[serde(default)]
    md: MdRelease,
    #[serde(rename = "sources")]
    _sources: Option<IgnoredAny>,
}

/// The default: in the logs of the 2015 comparison a job that ran 60.1 s ends 61 s
/// after the one before.
const fn start_up() -> Time {
    Time(Nanos::SECOND)
}

/// The default where the file has no time: quiet members are not awaited.
const fn no_time() -> Time {
    Time(Nanos::ZERO)
}

/// What a host does that says nothing else.
const fn yes() -> bool {
    true
}

/// The default scheduler of a host.
fn sweep() -> String {
    "sweep".to_owned()
}

/// Reads a file of `[[host]]` tables.
///
/// # Errors
/// With file, line, field and remedy.
pub(crate) fn read_hosts(document: &Document) -> Result<Vec<Host>, FileError> {
    let raw: RawHosts = document.decode(&[])?;
    settings::check_schema(document, &raw.schema)?;
    let mut hosts: Vec<Host> = Vec::new();
    for (index, host) in raw.host.into_iter().enumerate() {
        let host = host.into_inner();
        if hosts.iter().any(|known| known.name == *host.name.get_ref()) {
            return Err(document.invalid(
                host.name.span(),
                format!("host `{}` is described twice", host.name.get_ref()),
                "give each host its own name",
            ));
        }
        if *host.tags.get_ref() == 0 {
            return Err(document.invalid(
                host.tags.span(),
                "no command could ever reach a drive",
                "tags must be at least 1",
            ));
        }
        let largest = host.maximum_request.get_ref().0.0;
        if largest == 0 || !largest.is_multiple_of(SECTOR_BYTES) {
            let what = "requests are of whole sectors";
            let remedy = "maximum_request must be a multiple of 512, above 0";
            return Err(document.invalid(host.maximum_request.span(), what, remedy));
        }
        let clock = host.scheduler_clock.as_ref();
        if let Some(clock) = clock.filter(|clock| clock.get_ref().0 == Nanos::ZERO) {
            let what = "a tick of 0 never comes";
            let remedy = "leave it out where a process goes on until it sleeps";
            return Err(document.invalid(clock.span(), what, remedy));
        }
        let scope = format!("host {}", host.name.get_ref());
        let settings = settings::collect(document, &["host"], Some(index), &scope)?;
        hosts.push(Host {
            name: host.name.into_inner(),
            title: host.title,
            turnaround: host.turnaround.0,
            turnaround_with_flash: host.turnaround_with_flash.unwrap_or(host.turnaround).0,
            start_up: host.start_up.0,
            quiet: host.quiet.0,
            scheduler_clock: host.scheduler_clock.map(|clock| clock.into_inner().0),
            one_processor: host.one_processor,
            call: host.call.0,
            tags: host.tags.into_inner(),
            scheduler: host.scheduler,
            maximum_request: host.maximum_request.get_ref().0,
            flush_after_sync: host.flush_after_sync,
            queue: host.queue,
            memory: host.memory.0,
            old_locks: host.old_locks,
            bitmap_writes: host.bitmap_writes,
            md: host.md,
            settings,
        });
    }
    Ok(hosts)
}

/// Reads a file with one `[[host]]` table.
///
/// # Errors
/// As [`read_hosts`], and where there are more.
pub(crate) fn read_one(document: &Document) -> Result<Host, FileError> {
    let mut hosts = read_hosts(document)?;
    match hosts.pop() {
        Some(host) if hosts.is_empty() => Ok(host),
        _ => Err(document.invalid(
            0..0,
            "the file does not describe one host",
            "write one table `[[host]]`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::read_one;
    use crate::catalogue;
    use crate::document::Document;
    use raidlab_units::Nanos;

    const OWN: &str = r#"schema = 1
[[host]]
name = "desk"
title = "The machine under the desk"
turnaround = "20us"
tags = 31
maximum_request = "1m"
queue = "libaio"
memory = "8g"
"#;

    fn read(text: &str) -> Result<super::Host, String> {
        let document = Document {
            file: "desk.toml".to_owned(),
            text: text.to_owned(),
        };
        read_one(&document).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_describes_one_host() {
        let host = read(OWN).expect("a sound file");
        assert_eq!(host.turnaround, Nanos::from_micros(20));
        assert_eq!(host.turnaround_with_flash, host.turnaround);
        let other = format!("{OWN}turnaround_with_flash = \"2us\"\n");
        let other = read(&other).expect("a sound file").turnaround_with_flash;
        assert_eq!(other, Nanos::from_micros(2));
        assert!(host.settings.iter().all(|it| it.scope == "host desk"));
        assert_eq!(host.md, super::MdRelease::Linux6_12);
        let older = read(&format!("{OWN}md = \"6.1\"\n")).expect("a sound file");
        assert_eq!(older.md, super::MdRelease::Linux6_1);
        let second = OWN.replacen("schema = 1", "", 1).replace("desk", "shelf");
        let wrong = [
            "schema = 1\nhost = []\n".to_owned(),
            format!("{OWN}{second}"),
        ];
        for text in wrong {
            let error = read(&text).expect_err("not one");
            assert!(error.contains("does not describe one host"), "{error}");
        }
        let error = read(&OWN.replace("31", "0")).expect_err("no tags");
        assert!(error.contains("desk.toml:6"), "{error}");
        assert_eq!(host.scheduler_clock, None);
        let clock = |time: &str| read(&format!("{OWN}scheduler_clock = \"{time}\"\n"));
        let ticks = clock("10ms").expect("a sound file").scheduler_clock;
        assert_eq!(ticks, Some(Nanos::from_millis(10)));
        let error = clock("0s").expect_err("it never ticks");
        assert!(
            error.contains("desk.toml:10: host[1].scheduler_clock"),
            "{error}"
        );
        for size in ["0", "100", "1000"] {
            let error = read(&OWN.replace("1m", size)).expect_err("no whole sectors");
            assert!(
                error.contains("desk.toml:7: host[1].maximum_request"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_subject_that_moves_takes_nothing_of_its_old_host_along() {
        let host = read(OWN).expect("a sound file");
        let mut subject = crate::Subject::load("md-raid10").expect("built in");
        let old = subject.host.clone().expect("it is modelled");
        subject.move_to(&host);
        let of = |name: &str| {
            let scope = format!("host {name}");
            let mine = subject.settings.iter().filter(|it| it.scope == scope);
            mine.count()
        };
        assert_eq!((of(&old.name), of("desk")), (0, host.settings.len()));
        let named = subject.settings.iter().find(|it| it.name == "host");
        assert_eq!(named.map(|it| it.value.as_str()), Some("desk"));
        assert_eq!(subject.host, Some(host.clone()));
        // What only real systems build has none.
        let real = crate::Subject::load("btrfs-raid1").expect("built in");
        let mut moved = real.clone();
        moved.move_to(&host);
        assert_eq!((moved, real.host.is_none()), (real, true));
        let error = catalogue::host(&crate::Files::default(), "plan9").expect_err("no such host");
        assert!(error.to_string().contains("kernel-bench"), "{error}");
    }
}
