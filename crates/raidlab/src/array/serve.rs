//! The command `raidlab serve`: it serves an array, a single file or a modelled disk over NBD.

mod client_log;
mod doors;
mod model;
mod source;
mod tls;
mod ublk;

use crate::failure::{Failure, Kind};
use crate::{interrupt, output};
use clap::Args;
use client_log::ClientLog;
use doors::{Doors, announce, listen_failed, no_control};
use model::Source;
use raidlab_serve::array::{ArrayExport, Assembled, Nest};
use raidlab_serve::control::{ControlServer, Controlled};
use raidlab_serve::disk::DiskExport;
use raidlab_serve::export::{Export, MemoryExport, NullExport};
use raidlab_serve::server::{Exports, Server};
use raidlab_store::text::visible_path;
pub use source::{Assembling, not_assembled};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use ublk::{BlockDevice, UblkArguments};

/// The time for which clients and members are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two looks whether the server shall end.
const LOOK: Duration = Duration::from_millis(50);

/// Options that only an array has.
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
/// Options that only arrays and files have.
const OF_MEMBERS: [&str; 5] = [
    "readonly",
    "backend",
    "registered_memory",
    "buffered",
    "member_timeout",
];

/// Options for exports without a model. clap does not ask for what an option requires where
/// something is named that rules the required one out.
const NO_MODEL: [&str; 4] = ["file", "null", "memory", "devices"];

/// The heading of options in the help; without one an option stands under that of the
/// flattened group before.
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

/// A thing that is served, and its treatment at the end.
pub(super) enum Served {
    /// An array, and the arrays that are its members.
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

/// Serves until the server shall end.
///
/// # Errors
/// When a device cannot be used, the devices do not make an array that may be started, or it is
/// impossible to listen there.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    arguments.ublk.prepare()?;
    let stop = interrupt::listen()?;
    interrupt::outlive_the_limit_of_file_sizes()?;
    // An array that has begun has thrown members out, taken others by force and grown. So errors of
    // its doors are found out before.
    let named = arguments.name.as_deref();
    let named = named.map(|name| Doors::open(arguments, name)).transpose()?;
    let (prepared, default_name) = prepare(arguments)?;
    let Doors {
        name,
        mut control,
        places,
        listening,
    } = named.map_or_else(|| Doors::open(arguments, &default_name), Ok)?;
    let served = prepared.start(&name)?;
    let device = arguments.ublk.start(served.export())?;
    let mut exports = Exports::new();
    exports
        .add(&name, served.export())
        .map_err(Failure::usage)?;
    let log = ClientLog::new();
    let server = listening
        .serve(exports, move |number, error| log.tell(number, error))
        .map_err(listen_failed)?;
    announce(
        arguments,
        &name,
        &served,
        &places,
        &server,
        control.as_ref(),
    );
    if let Some(device) = &device {
        output::say(&format!("  as {}", visible_path(device.path())));
    }
    // A client that is answered there finds all of the above said, and everything served.
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

/// A thing that is to be served.
pub(super) enum Prepared {
    /// An array that has not begun, and the arrays that are its members.
    Array(Box<Assembled>, Arc<Nest>),
    Other(Served),
}

impl Prepared {
    /// Starts an array whose inner arrays are controlled by `name`.
    fn start(self, name: &str) -> Result<Served, Failure> {
        let (assembled, nest) = match self {
            Self::Array(assembled, nest) => (assembled, nest),
            Self::Other(served) => return Ok(served),
        };
        let help = "`--name` gives them other places";
        let sockets = nest.listen(name);
        for path in sockets.map_err(|error| Failure::new(Kind::Run, error).help(help))? {
            output::say(&format!("inner array: control {}", visible_path(&path)));
        }
        let export = nest.start_top(*assembled).map_err(Failure::run)?;
        for warning in export.status().map(|it| it.warnings).unwrap_or_default() {
            output::say(&format!("warning: {warning}"));
        }
        Ok(Served::Array(Arc::new(export), nest))
    }
}

fn prepare(arguments: &Arguments) -> Result<(Prepared, String), Failure> {
    if arguments.assembling.has_devices() {
        return arguments.assembling.array();
    }
    let (served, name) = start(arguments)?;
    Ok((Prepared::Other(served), name))
}

/// Starts an export that is no array.
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
    Err(Failure::words(Kind::Usage, "nothing to serve is named")
        .help("name the members of an array, or --file, --model, --null or --memory"))
}

/// Deletes the block device, answers the requests in flight, then stops the export.
fn end(
    device: Option<&BlockDevice>,
    server: Server,
    control: Option<ControlServer>,
    served: Served,
) -> Result<(), Failure> {
    // A device that does not end by itself does when the array takes no more.
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
                // Dropping it would wait for it without end.
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
