//! `raidlab serve`: an array, a single file or a modelled disk over NBD.

mod client_log;
mod model;
mod source;
mod tls;
mod ublk;

use crate::failure::{Failure, Kind};
use crate::{interrupt, output};
use clap::Args;
use client_log::ClientLog;
use model::Source;
use raidlab_serve::array::{ArrayExport, Nest};
use raidlab_serve::control::{ControlError, ControlServer, Controlled, control_path};
use raidlab_serve::disk::DiskExport;
use raidlab_serve::export::{Export, MemoryExport, NullExport};
use raidlab_serve::server::{Exports, Limits, Listen, Server, ServerOptions};
use raidlab_store::text::visible_path;
pub use source::{Assembling, not_assembled};
use std::fmt::Write;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use ublk::{BlockDevice, UblkArguments};

/// How long clients and members are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked whether it shall end.
const LOOK: Duration = Duration::from_millis(50);

/// What only an array has.
const OF_ARRAYS: [&str; 9] = [
    "devices",
    "force",
    "run",
    "stale",
    "bitmap",
    "size",
    "no_log",
    "read_policy",
    "control",
];
/// What only arrays and files have.
const OF_MEMBERS: [&str; 5] = [
    "readonly",
    "backend",
    "registered_memory",
    "buffered",
    "member_timeout",
];

/// What is served without a model. clap does not ask for what an option requires where
/// something is named that rules the required one out.
const NO_MODEL: [&str; 4] = ["file", "null", "memory", "devices"];

/// Headings of the help; without one an option stands under that of the flattened group before.
const OTHERS: &str = "In the place of an array";
const CLIENTS: &str = "Clients";

/// Arguments of `raidlab serve`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    assembling: Assembling,

    /// Serve this file or device as it is, without an array.
    #[arg(
        long,
        help_heading = OTHERS,
        value_name = "FILE",
        group = "source",
        conflicts_with_all = OF_ARRAYS
    )]
    file: Option<PathBuf>,

    /// Serve a modelled disk in real time, by the name of its preset (`raidlab
    /// disks`). Its bytes are in memory, or in --storage.
    #[arg(
        long,
        help_heading = OTHERS,
        value_name = "PRESET",
        group = "source",
        conflicts_with_all = OF_ARRAYS.iter().chain(&OF_MEMBERS)
    )]
    model: Option<String>,

    /// With --model: the preset's parameter set. Default: its first.
    #[arg(long, help_heading = OTHERS, value_name = "SET", requires = "model", conflicts_with_all = NO_MODEL)]
    set: Option<String>,

    /// With --model: keep the bytes in this file.
    #[arg(long, help_heading = OTHERS, value_name = "FILE", requires = "model", conflicts_with_all = NO_MODEL)]
    storage: Option<PathBuf>,

    /// With --model: the seed of everything random in the disk.
    #[arg(
        long,
        help_heading = OTHERS,
        value_name = "N",
        requires = "model",
        conflicts_with_all = NO_MODEL,
        default_value_t = 1
    )]
    seed: u64,

    /// Serve an export of this size that forgets what is written, to measure the server
    /// alone. What is read from it has no meaning.
    #[arg(long, help_heading = OTHERS, value_name = "SIZE", group = "source", conflicts_with_all = OF_ARRAYS.iter().chain(&OF_MEMBERS), value_parser = super::mdadm_size_above_zero)]
    null: Option<raidlab_units::Sectors>,

    /// Serve this much memory, to measure the server alone.
    #[arg(long, help_heading = OTHERS, value_name = "SIZE", group = "source", conflicts_with_all = OF_ARRAYS.iter().chain(&OF_MEMBERS), value_parser = super::mdadm_size_above_zero)]
    memory: Option<raidlab_units::Sectors>,

    /// The export's and the control socket's name. Default: the array's.
    #[arg(long, help_heading = None::<&str>)]
    name: Option<String>,

    /// Listen on this Unix socket; may be repeated.
    #[arg(long, help_heading = CLIENTS, value_name = "PATH")]
    unix: Vec<PathBuf>,

    /// Listen on this TCP address; may be repeated.
    #[arg(long, help_heading = CLIENTS, value_name = "ADDRESS:PORT")]
    tcp: Vec<SocketAddr>,

    /// Allow TCP addresses that are not the loopback's: whoever reaches them can
    /// read and write, unless --tls-client-authority says who may.
    #[arg(long, help_heading = CLIENTS, requires = "tcp")]
    anywhere: bool,

    #[command(flatten)]
    tls: tls::TlsArguments,

    #[command(flatten)]
    ublk: UblkArguments,

    /// How many clients are served at once.
    #[arg(
        long,
        help_heading = CLIENTS,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    connections: u32,

    /// Disconnect a client that pauses for this many seconds within a request, or
    /// that takes none of its replies. Between two requests it may pause for ever.
    #[arg(
        long,
        help_heading = CLIENTS,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    client_timeout: u64,

    /// The control socket. Default: named after the array, in a folder of the
    /// user's own.
    #[arg(long, help_heading = None::<&str>, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// Something that is served, and what is done with it at the end.
pub(super) enum Served {
    /// And the arrays that are its members.
    Array(Arc<ArrayExport>, Arc<Nest>),
    Disk(Arc<DiskExport>),
    Other(Arc<dyn Export>),
}

impl Served {
    fn export(&self) -> Arc<dyn Export> {
        match self {
            Self::Array(array, _) => Arc::clone(array) as Arc<dyn Export>,
            Self::Disk(disk) => Arc::clone(disk) as Arc<dyn Export>,
            Self::Other(other) => Arc::clone(other),
        }
    }
}

/// Serves until it shall end.
///
/// # Errors
/// When a device cannot be used, the devices do not make an array that may be
/// started, or nobody can listen there.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    arguments.ublk.prepare();
    let stop = interrupt::listen()?;
    let (served, default_name) = start(arguments)?;
    let name = arguments.name.clone().unwrap_or(default_name);
    let device = arguments.ublk.start(served.export())?;
    let mut control = match &served {
        Served::Array(..) => Some(control(arguments, &name)?),
        _ => None,
    };
    let places = places(arguments, &name)?;
    let mut exports = Exports::new();
    exports
        .add(&name, served.export())
        .map_err(Failure::usage)?;
    let options = ServerOptions {
        limits: Limits {
            connections: arguments.connections as usize,
            stall_timeout: Duration::from_secs(arguments.client_timeout),
            ..Limits::default()
        },
        tls: arguments.tls.files(),
        ..ServerOptions::default()
    };
    let log = ClientLog::new();
    let server = Server::start(exports, &places, options, move |number, error| {
        log.tell(number, error);
    })
    .map_err(listen_failed)?;
    if let Served::Array(_, nest) = &served {
        let help = "`--name` gives them other places";
        let sockets = nest.listen(&name);
        for path in sockets.map_err(|error| Failure::new(Kind::Run, error).help(help))? {
            output::say(&format!("inner array: control {}", visible_path(&path)));
        }
    }
    announce(&name, &served, &places, &server, control.as_ref());
    if let Some(device) = &device {
        output::say(&format!("  as {}", visible_path(device.path())));
    }
    // Who is answered there finds all of the above said, and everything served.
    if let (Served::Array(array, _), Some(control)) = (&served, &mut control) {
        let controlled = Arc::clone(array) as Arc<dyn Controlled>;
        let controlled = match &device {
            Some(device) => device.guard(controlled, PATIENCE),
            None => controlled,
        };
        control.serve(controlled).map_err(no_control)?;
    }
    let is_lost = || device.as_ref().is_some_and(BlockDevice::is_lost);
    while !stop.load(Ordering::Relaxed) && !is_lost() {
        match &served {
            Served::Array(array, _) if array.wait_until_stopped(LOOK) => break,
            Served::Array(_, nest) => nest.reap(),
            _ => std::thread::sleep(LOOK),
        }
    }
    let lost = is_lost();
    end(device.as_ref(), server, control, served)?;
    match device {
        Some(device) if lost => Err(device.failure()),
        _ => Ok(()),
    }
}

fn start(arguments: &Arguments) -> Result<(Served, String), Failure> {
    if let Some(path) = &arguments.file {
        return Ok((arguments.assembling.file(path)?, "file".to_owned()));
    }
    if let Some(preset) = &arguments.model {
        let source = Source {
            preset,
            set: arguments.set.as_deref(),
            storage: arguments.storage.as_deref(),
            seed: arguments.seed,
        };
        return Ok((source.start()?, preset.clone()));
    }
    if let Some(size) = arguments.null {
        let export = NullExport::new(size.to_bytes().0);
        return Ok((Served::Other(Arc::new(export)), "null".to_owned()));
    }
    if let Some(size) = arguments.memory {
        let export = MemoryExport::new(size.to_bytes().0).ok_or_else(|| {
            Failure::words(
                Kind::Run,
                format!("there is no memory for {}", size.to_bytes()),
            )
        })?;
        return Ok((Served::Other(Arc::new(export)), "memory".to_owned()));
    }
    if !arguments.assembling.has_devices() {
        return Err(Failure::words(Kind::Usage, "nothing to serve is named")
            .help("name the members of an array, or --file, --model, --null or --memory"));
    }
    arguments.assembling.array()
}

/// A control socket that does not answer yet: another server of that name is found out before
/// anything is served.
fn control(arguments: &Arguments, name: &str) -> Result<ControlServer, Failure> {
    let path = match &arguments.control {
        Some(path) => path.clone(),
        None => control_path(name)
            .map_err(|error| Failure::new(Kind::Usage, error).help("name the array with --name"))?,
    };
    ControlServer::listen(&path).map_err(no_control)
}

fn no_control(error: ControlError) -> Failure {
    Failure::new(Kind::Run, error).help("`--name` or `--control` gives it another place")
}

/// Where to listen: as asked, or beside the control socket if there is no
/// other way to what is served.
fn places(arguments: &Arguments, name: &str) -> Result<Vec<Listen>, Failure> {
    let unix = arguments.unix.iter().cloned().map(Listen::Unix);
    let tcp = arguments.tcp.iter().map(|address| Listen::Tcp {
        address: *address,
        anywhere: arguments.anywhere,
    });
    let mut places: Vec<Listen> = unix.chain(tcp).collect();
    if places.is_empty() && !arguments.ublk.is_wanted() {
        let path = control_path(&format!("{name}.nbd"));
        let path = path.map_err(|error| {
            Failure::new(Kind::Usage, error).help("say where to listen with --unix or --tcp")
        })?;
        places.push(Listen::Unix(path));
    }
    Ok(places)
}

fn listen_failed(error: raidlab_serve::server::ServeError) -> Failure {
    use raidlab_serve::server::ServeError;
    let help = match &error {
        ServeError::NotLoopback(_) => "`--anywhere` allows it; better with TLS",
        ServeError::Listen { .. } => "choose another place with --unix or --tcp",
        ServeError::OnlyOffered(_) => {
            "add `--require-tls`, or `--tls-client-authority` to say who is let in"
        }
        _ => "see `raidlab serve --help`",
    };
    Failure::new(Kind::Run, error).help(help)
}

fn announce(
    name: &str,
    served: &Served,
    places: &[Listen],
    server: &Server,
    control: Option<&ControlServer>,
) {
    let export = served.export();
    let size = raidlab_units::Bytes(export.size_bytes());
    let mut tcp = server.addresses().iter();
    let title = name;
    let name = in_uri(name.as_bytes());
    output::say(&format!(
        "serving `{title}`: {}, {size}",
        export.description()
    ));
    for place in places {
        let uri = match place {
            Listen::Unix(path) => {
                let socket = in_uri(path.as_os_str().as_bytes());
                format!("nbd+unix:///{name}?socket={socket}")
            }
            Listen::Tcp { address, .. } => {
                format!("nbd://{}/{name}", tcp.next().unwrap_or(address))
            }
        };
        output::say(&format!("  at {uri}"));
    }
    if let Some(control) = control {
        output::say(&format!("  control {}", visible_path(control.path())));
    }
}

/// A name or a path as a part of an address of NBD: what has a meaning there, or cannot be
/// there, as `%` and two digits.
fn in_uri(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, &byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

/// Deletes the block device, answers what is in flight, then stops what is
/// served.
fn end(
    device: Option<&BlockDevice>,
    server: Server,
    control: Option<ControlServer>,
    served: Served,
) -> Result<(), Failure> {
    // If it does not end by itself, it does when the array takes no more.
    let deleted = device.map_or(Ok(()), |device| device.stop(PATIENCE));
    if !server.shut_down(PATIENCE) {
        output::say("warning: a client's requests were not answered in time");
    }
    match &served {
        Served::Array(array, nest) => {
            array.stop();
            if !(array.wait_until_stopped(PATIENCE) && nest.stop(PATIENCE)) {
                let words = "the array could not be stopped in time; it is recovered when it is \
                             assembled again";
                // Going, it would be waited for without end.
                std::mem::forget(served);
                return Err(Failure::words(Kind::Run, words));
            }
            array.stopped_cleanly().map_err(|error| {
                let help = "it is recovered when it is assembled again";
                Failure::new(Kind::Run, error).help(help)
            })?;
        }
        Served::Disk(disk) => output::say(&disk.punctuality().to_string()),
        Served::Other(_) => {}
    }
    drop(control);
    deleted
}

#[cfg(test)]
mod tests {
    use super::in_uri;

    #[test]
    fn a_name_stands_in_an_address_as_it_may() {
        assert_eq!(in_uri(b"vm:home-1_2.3"), "vm:home-1_2.3");
        assert_eq!(in_uri(b"my array & 100%?"), "my%20array%20%26%20100%25%3F");
        assert_eq!(in_uri("/tmp/\u{e4}.sock".as_bytes()), "/tmp/%C3%A4.sock");
    }
}
