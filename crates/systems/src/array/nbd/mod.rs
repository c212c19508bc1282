//! An NBD export of a server, such as raidlab's own array: used through a block device of this
//! kernel, or directly by a tool that speaks NBD (fio's `nbd` engine), which needs neither root nor
//! a kernel module.
//!
//! An array named `raidlab3` is attached to `/dev/nbd3`: by the number its name ends in, as device
//! names must be known beforehand. The kernel makes 16 of them by default. The export's contents
//! are not wiped: its disks are the server's affair.

use super::described::Described;
use super::fixed::Fixed;
use super::steps::{cannot_build, trailing_number};
use super::{
    Access, ArrayStatus, ArraySystem, Built, Health, Member, Need, OperatingSystem, ReadBack,
    ReadState, Result,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::{Bytes, Sectors};
use serde::Deserialize;

/// The smallest description of one, in JSON, with which leftovers are looked for.
pub(crate) const LEAST: &str = r#"{"uri": "nbd://localhost/", "size": "1g"}"#;

/// The settings of an export, which is used as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NbdSpec {
    /// The address: `nbd://host:port/name`; the default port is 10809, the name may be empty.
    pub uri: String,
    /// The size, as text (`4g`): the server is not asked for it before the plan is made.
    #[serde(deserialize_with = "super::spec::size")]
    pub size: Bytes,
    /// The way to the server: `device` (the default) or `direct`.
    #[serde(default)]
    pub through: Through,
    /// The number of connections to the server, 1 by default; `device` only.
    pub connections: Option<u32>,
}

/// The way of requests to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Through {
    /// Requests pass a block device of the kernel.
    #[default]
    Device,
    /// Requests go directly: the tool speaks NBD itself.
    Direct,
}

/// The parts of a URI.
struct Export<'a> {
    host: &'a str,
    port: u16,
    name: String,
}

const TITLE: &str = "NBD export";
const DEFAULT_PORT: u16 = 10809;

impl NbdSpec {
    fn export(&self) -> Result<Export<'_>> {
        let wrong = || {
            let reason = format!("`{}` is not `nbd://host:port/name`", self.uri);
            cannot_build(TITLE, reason)
        };
        let rest = self.uri.strip_prefix("nbd://").ok_or_else(wrong)?;
        let (server, name) = rest.split_once('/').unwrap_or((rest, ""));
        // An address of IPv6 is in brackets, because of its colons.
        let (host, port) = match server.strip_prefix('[') {
            Some(inner) => {
                let (host, port) = inner.split_once(']').ok_or_else(wrong)?;
                (host, port.strip_prefix(':'))
            }
            None => match server.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (server, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None => DEFAULT_PORT,
        };
        let is_host = !host.is_empty() && !host.starts_with('-') && !host.contains('@');
        if !is_host || name.contains(['?', '#']) {
            return Err(wrong());
        }
        let name = decoded(name).ok_or_else(wrong)?;
        Ok(Export { host, port, name })
    }
}

/// A part of a URI without its `%20` and the like, which nbd-client does not decode.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let code = u8::from_str_radix(digits, 16).ok();
        bytes.push(code.filter(|code| is_hexadecimal && *code != 0)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn kernel(name: &str) -> String {
    format!("nbd{}", trailing_number(name))
}

/// The file with the process of the connection, which exists as long as the device is attached.
fn attached(name: &str) -> String {
    format!("/sys/block/{}/pid", kernel(name))
}

impl Described for NbdSpec {
    fn title(&self) -> String {
        TITLE.to_owned()
    }

    fn level(&self) -> Option<&'static str> {
        None
    }
}

impl ArraySystem for NbdSpec {
    fn runs_on(&self) -> &'static [OperatingSystem] {
        match self.through {
            Through::Device => &[OperatingSystem::Linux],
            Through::Direct => &[OperatingSystem::Linux, OperatingSystem::FreeBsd],
        }
    }

    fn needs(&self) -> Vec<Need> {
        match self.through {
            Through::Direct => Vec::new(),
            Through::Device => vec![
                Need::program("nbd-client", "apt-get install nbd-client"),
                Need::Module("nbd"),
            ],
        }
    }

    fn check_settings(&self) -> Result<()> {
        self.export()?;
        if self.connections == Some(0) {
            return Err(cannot_build(TITLE, "it needs a connection"));
        }
        Ok(())
    }

    /// Checks that no members are given: it takes none of this machine.
    fn check(&self, members: &[Member]) -> Result<()> {
        self.check_settings()?;
        if !members.is_empty() {
            return Err(cannot_build(TITLE, "it takes no disks of this machine"));
        }
        Ok(())
    }

    fn capacity(&self, _: &[Member]) -> Bytes {
        self.size
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        let export = self.export()?;
        if self.through == Through::Direct {
            return Ok(Vec::new());
        }
        let mut words = vec![
            export.host.to_owned(),
            export.port.to_string(),
            format!("/dev/{}", kernel(&array.name)),
            "-name".to_owned(),
            export.name,
        ];
        if let Some(connections) = self.connections {
            words.extend(["-connections".to_owned(), connections.to_string()]);
        }
        Ok(vec![Command::changes("nbd-client", words)])
    }

    fn access(&self, array: &Built) -> Access {
        match self.through {
            Through::Device => Access::Device(format!("/dev/{}", kernel(&array.name))),
            Through::Direct => Access::Export(self.uri.clone()),
        }
    }

    /// The device node exists whether it is attached or not.
    fn own_paths(&self, array: &Built) -> Vec<String> {
        match self.through {
            Through::Device => vec![attached(&array.name)],
            Through::Direct => Vec::new(),
        }
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        match self.through {
            Through::Device => {
                let device = format!("/dev/{}", kernel(&array.name));
                vec![Command::changes("nbd-client", ["-d", &device])]
            }
            Through::Direct => Vec::new(),
        }
    }
}

impl Fixed for NbdSpec {
    const WHY: &str = "its members are the server's: change them there";
}

impl ReadState for NbdSpec {
    fn sources(&self, array: &Built) -> Vec<Watched> {
        match self.through {
            Through::Device => vec![Watched::File(attached(&array.name))],
            Through::Direct => Vec::new(),
        }
    }

    /// The state: whether it is attached; the server's array cannot be seen from here.
    fn interpret(&self, _: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        let attached =
            self.through == Through::Direct || contents.first().is_some_and(Option::is_some);
        Ok(ArrayStatus {
            health: if attached {
                Health::Optimal
            } else {
                Health::Failed
            },
            members: Vec::new(),
            sync: None,
        })
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
        if self.through == Through::Direct {
            return Ok(Vec::new());
        }
        let path = format!("/sys/block/{}/size", kernel(&array.name));
        let mut reader = super::steps::Reader::new(target);
        reader.file("size", Some(self.size.0), &path, |found| {
            let sectors = found.parse().map(|sectors| Sectors(sectors).to_bytes().0);
            sectors.map_or_else(|_| found.to_owned(), |bytes| bytes.to_string())
        })?;
        Ok(reader.done())
    }

    /// An attached export carries no name of ours, so none is ever found.
    fn find(&self, _: &dyn Target, _: &str) -> Result<Vec<Built>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::{ArraySystem, Built, NbdSpec};

    fn plan(uri: &str) -> String {
        let spec: NbdSpec = toml::from_str(&format!("uri = '{uri}'\nsize = '4g'")).expect("spec");
        let array = Built {
            name: "raidlab3".to_owned(),
            members: Vec::new(),
            folder: String::new(),
        };
        match spec.create(&array) {
            Ok(commands) => commands[0].to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// `/dev/nbd3` is always there; it belongs to somebody while it is attached.
    #[test]
    fn its_device_is_another_s_only_while_it_is_attached() {
        let spec: NbdSpec = toml::from_str("uri = 'nbd://a/'\nsize = '4g'").expect("spec");
        let array = Built {
            name: "raidlab3".to_owned(),
            members: Vec::new(),
            folder: String::new(),
        };
        assert_eq!(spec.own_paths(&array), ["/sys/block/nbd3/pid"]);
    }

    #[test]
    fn a_uri_names_host_port_and_export() {
        let cases = [
            (
                "nbd://store1/array",
                "nbd-client store1 10809 /dev/nbd3 -name array",
            ),
            (
                "nbd://[fe80::1]:9000",
                "nbd-client fe80::1 9000 /dev/nbd3 -name ''",
            ),
            (
                "nbd://store1/my%20array%2F2",
                "nbd-client store1 10809 /dev/nbd3 -name 'my array/2'",
            ),
            (
                "nbd://store1/my%2",
                "NBD export cannot be built: `nbd://store1/my%2` is not `nbd://host:port/name`",
            ),
            (
                "nbd://store1/a?tls=1",
                "NBD export cannot be built: `nbd://store1/a?tls=1` is not `nbd://host:port/name`",
            ),
            (
                "http://store1",
                "NBD export cannot be built: `http://store1` is not `nbd://host:port/name`",
            ),
            (
                "nbd://store1:x/",
                "NBD export cannot be built: `nbd://store1:x/` is not `nbd://host:port/name`",
            ),
            (
                "nbd://-d/",
                "NBD export cannot be built: `nbd://-d/` is not `nbd://host:port/name`",
            ),
        ];
        for (uri, planned) in cases {
            assert_eq!(plan(uri), planned);
        }
    }
}
