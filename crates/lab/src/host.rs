//! Hosts: what the operating system between fio and the disks adds.

use crate::document::{Document, FileError};
use crate::settings::{self, Size, Time};
use raidlab_store::Setting;
use raidlab_units::{Bytes, Nanos};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

/// How a queue depth above one was reached on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueStyle {
    /// One process with that many asynchronous requests (Linux).
    Libaio,
    /// That many threads with one synchronous request each (FreeBSD, where
    /// fio has no libaio).
    Threads,
}

/// An operating system on a machine, as far as it shapes a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// `linux-3.16`.
    pub name: String,
    /// For people.
    pub title: String,
    /// From a completion to the same thread's next submission.
    pub turnaround: Nanos,
    /// Commands that the host lets into one drive at a time.
    pub tags: u32,
    /// The largest request that reaches a drive whole; larger ones are split.
    pub maximum_request: Bytes,
    /// How a queue depth above one was reached.
    pub queue: QueueStyle,
    /// Main memory: what a file system's cache can take of.
    pub memory: Bytes,
    /// Every field of the host's table with its source.
    pub settings: Vec<Setting>,
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
    tags: Spanned<u32>,
    maximum_request: Size,
    queue: QueueStyle,
    memory: Size,
    #[serde(rename = "sources")]
    _sources: Option<IgnoredAny>,
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
        let scope = format!("host {}", host.name.get_ref());
        let settings = settings::collect(document, &["host"], Some(index), &scope)?;
        hosts.push(Host {
            name: host.name.into_inner(),
            title: host.title,
            turnaround: host.turnaround.0,
            tags: host.tags.into_inner(),
            maximum_request: host.maximum_request.0,
            queue: host.queue,
            memory: host.memory.0,
            settings,
        });
    }
    Ok(hosts)
}
