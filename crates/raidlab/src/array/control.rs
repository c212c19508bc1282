//! Commands to arrays that `raidlab serve` serves: detail, manage, wait, stop.

use super::look_at;
use crate::failure::{Failure, Kind};
use crate::output;
use clap::{Args, ValueEnum};
use raidlab_serve::control::{
    ControlClient, ControlRequest, ControlResponse, StatusReport, control_path,
};
use raidlab_store::text::visible_path;
use raidlab_units::Bytes;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two questions to an array while waiting.
const LOOK: Duration = Duration::from_millis(200);

/// The word before the name of an array that is served beside this one.
const INNER: &str = "array:";

/// The time that a member may wait for its recovery before it is said that none begins.
const BEGINNING: Duration = Duration::from_secs(10);

/// The array that a command is for.
#[derive(Debug, Args)]
pub struct Which {
    /// The array's name, as `raidlab assemble` and `serve` print it, or the path of
    /// its control socket.
    array: String,
}

impl Which {
    /// The path of the array's control socket.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        if self.array.contains('/') {
            return Ok(PathBuf::from(&self.array));
        }
        control_path(&self.array).map_err(Failure::usage)
    }

    /// Connects to the array's control socket.
    ///
    /// # Errors
    /// When no server answers there.
    pub fn connect(&self) -> Result<ControlClient, Failure> {
        let path = self.path()?;
        ControlClient::connect(&path).map_err(|error| {
            let help = match served(path.parent()).as_slice() {
                [] => "none is served here; `raidlab assemble` serves one".to_owned(),
                names => format!("served here: {}", names.join(", ")),
            };
            Failure::new(Kind::Run, error).help(help)
        })
    }
}

/// The names of the arrays that are served by sockets in this folder, in order.
fn served(folder: Option<&Path>) -> Vec<String> {
    let sockets = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    let mut names: Vec<String> = sockets
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let array = name.strip_suffix(".sock")?;
            // Beside it lies the clients' socket.
            let ours = !array.ends_with(".nbd") && ControlClient::connect(&entry.path()).is_ok();
            ours.then(|| format!("`{array}`"))
        })
        .collect();
    names.sort_unstable();
    names
}

/// Arguments of `raidlab detail`.
#[derive(Debug, Args)]
pub struct DetailArguments {
    #[command(flatten)]
    which: Which,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Arguments of `raidlab manage`.
#[derive(Debug, Args)]
pub struct ManageArguments {
    #[command(flatten)]
    which: Which,

    /// Mark this device as failed, so that it is used no more.
    #[arg(short, long, value_name = "DEVICE")]
    fail: Vec<String>,

    /// Take this failed or spare device out of the array.
    #[arg(short, long, value_name = "DEVICE")]
    remove: Vec<String>,

    /// Start the array that these devices make, in the same server. It can then be
    /// added as `array:NAME`.
    #[arg(long, value_name = "DEVICE", num_args = 1..)]
    assemble: Vec<PathBuf>,

    /// Add this device to the array; what was on it is lost.
    #[arg(short, long, value_name = "PATH")]
    add: Vec<PathBuf>,

    /// With --add: take the device even if it is a member of another array.
    #[arg(short = 'R', long, requires = "add")]
    run: bool,

    /// Take a former member back, and copy to it what it has missed.
    #[arg(long, value_name = "PATH")]
    re_add: Vec<PathBuf>,

    /// Fill a spare with this device's content, then take the device out of service.
    /// To stop the replacement, fail the spare while it is being filled.
    #[arg(long, value_name = "DEVICE")]
    replace: Vec<String>,

    /// With --replace: the spare to fill; with several, in the same order. Default: any
    /// spare that fits.
    #[arg(long, value_name = "DEVICE", requires = "replace")]
    with: Vec<String>,

    /// Begin a check or a repair, or end the running one, or a resync.
    #[arg(long, value_enum)]
    action: Option<Action>,

    /// Make the array read-only.
    #[arg(short = 'o', long, conflicts_with = "readwrite")]
    readonly: bool,

    /// Make the array writable again.
    #[arg(short = 'w', long)]
    readwrite: bool,

    /// The speed limits of a sync, in KiB/s for each member: the least while clients
    /// work, and the most at any time.
    #[arg(long, num_args = 2, value_names = ["MINIMUM", "MAXIMUM"])]
    sync_speed: Option<Vec<u64>>,
}

/// What a running array is told to do, in the words of md's `sync_action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Compare the copies, or data and parity, and change nothing.
    Check,
    /// Compare, and mend what does not agree.
    Repair,
    /// End the running resync, check or repair. What fills a device goes on.
    Idle,
}

/// Arguments of `raidlab wait`.
#[derive(Debug, Args)]
pub struct WaitArguments {
    #[command(flatten)]
    which: Which,

    /// Give up after this many seconds. Default: wait for as long as it takes.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

/// Arguments of `raidlab stop`.
#[derive(Debug, Args)]
pub struct StopArguments {
    #[command(flatten)]
    which: Which,
}

/// The state of an array.
///
/// # Errors
/// When the connection breaks.
pub fn status(client: &mut ControlClient) -> Result<StatusReport, Failure> {
    match client
        .ask(&ControlRequest::Status {})
        .map_err(Failure::run)?
    {
        ControlResponse::Status { status } => Ok(*status),
        _ => Err(Failure::words(Kind::Run, "the server gave no status")),
    }
}

/// Shows an array.
///
/// # Errors
/// When it is not served.
pub fn detail(arguments: &DetailArguments) -> Result<(), Failure> {
    let status = status(&mut arguments.which.connect()?)?;
    if !arguments.json {
        return output::print(&words(&status));
    }
    output::print(&output::json(&status)?)
}

/// Changes an array.
///
/// # Errors
/// When it is not served or it refuses; changes before that one were made.
pub fn manage(arguments: &ManageArguments) -> Result<(), Failure> {
    let requests = requests(arguments)?;
    if requests.is_empty() {
        return Err(Failure::words(Kind::Usage, "nothing to do")
            .help("`raidlab manage --help` lists what can be done"));
    }
    let mut client = arguments.which.connect()?;
    for (done, request) in requests.iter().enumerate() {
        client.ask(request).map_err(|error| {
            let done: Vec<_> = requests[..done].iter().map(shown).collect();
            match done.is_empty() {
                true => Failure::run(error),
                false => Failure::run(error).help(format!("done before it: {}", done.join(" "))),
            }
        })?;
    }
    Ok(())
}

/// A change in the words in which it was asked for.
fn shown(request: &ControlRequest) -> String {
    use ControlRequest as Request;
    match request {
        Request::Fail { device } => format!("--fail {device}"),
        Request::Remove { device } => format!("--remove {device}"),
        Request::Assemble { paths } => format!("--assemble {}", paths.join(" ")),
        Request::Add { path, .. } => format!("--add {path}"),
        Request::ReAdd { path } => format!("--re-add {path}"),
        Request::Replace { device, .. } => format!("--replace {device}"),
        Request::ReadOnly {} => "--readonly".to_owned(),
        Request::ReadWrite {} => "--readwrite".to_owned(),
        Request::Speed { minimum, maximum } => format!("--sync-speed {minimum} {maximum}"),
        Request::Check {} => "--action check".to_owned(),
        Request::Repair {} => "--action repair".to_owned(),
        Request::Idle {} => "--action idle".to_owned(),
        Request::Status {} | Request::Stop {} | Request::Events {} => String::new(),
    }
}

fn requests(arguments: &ManageArguments) -> Result<Vec<ControlRequest>, Failure> {
    let mut requests = Vec::new();
    // A read-only array takes none of the others.
    if arguments.readwrite {
        requests.push(ControlRequest::ReadWrite {});
    }
    for word in &arguments.fail {
        let device = known(word)?;
        requests.push(ControlRequest::Fail { device });
    }
    for word in &arguments.remove {
        let device = known(word)?;
        requests.push(ControlRequest::Remove { device });
    }
    if !arguments.assemble.is_empty() {
        let paths = arguments.assemble.iter().map(|path| new_device(path));
        let paths = paths.collect::<Result<_, _>>()?;
        requests.push(ControlRequest::Assemble { paths });
    }
    for path in &arguments.add {
        requests.push(ControlRequest::Add {
            path: new_device(path)?,
            overwrite: arguments.run,
        });
    }
    for path in &arguments.re_add {
        requests.push(ControlRequest::ReAdd {
            path: new_device(path)?,
        });
    }
    if arguments.with.len() > arguments.replace.len() {
        let words = format!(
            "`--with` is given {} times and `--replace` {}",
            arguments.with.len(),
            arguments.replace.len()
        );
        return Err(Failure::words(Kind::Usage, words).help("give each `--with` a `--replace`"));
    }
    let mut spares = arguments.with.iter();
    for word in &arguments.replace {
        requests.push(ControlRequest::Replace {
            device: known(word)?,
            with: spares.next().map(|with| known(with)).transpose()?,
        });
    }
    if let Some([minimum, maximum]) = arguments.sync_speed.as_deref() {
        requests.push(ControlRequest::Speed {
            minimum: *minimum,
            maximum: *maximum,
        });
    }
    requests.extend(arguments.action.map(|action| match action {
        Action::Check => ControlRequest::Check {},
        Action::Repair => ControlRequest::Repair {},
        Action::Idle => ControlRequest::Idle {},
    }));
    if arguments.readonly {
        requests.push(ControlRequest::ReadOnly {});
    }
    Ok(requests)
}

/// The name of a device of the array as it is sent: a file that is here under that name goes by its
/// whole path, which leads the server to the same file from its own folder; all else, a number or a
/// file that is gone, by the word itself.
fn known(word: &str) -> Result<String, Failure> {
    let path = Path::new(word);
    if path.exists() {
        return device(path);
    }
    Ok(word.to_owned())
}

/// The name of a device that the array is to get: one that cannot be used is found out before the
/// array is told of any.
fn new_device(path: &Path) -> Result<String, Failure> {
    if !path.to_str().is_some_and(|name| name.starts_with(INNER)) {
        look_at(path)?;
    }
    device(path)
}

/// The name by which the server knows a device: `array:NAME`, or a path, for which the server may
/// have another working folder.
fn device(path: &Path) -> Result<String, Failure> {
    if let Some(name) = path.to_str().filter(|name| name.starts_with(INNER)) {
        return Ok(name.to_owned());
    }
    let whole = std::path::absolute(path).map_err(Failure::usage)?;
    whole.into_os_string().into_string().map_err(|_| {
        // The message is JSON, and a changed name would be another device.
        let words = format!(
            "the server cannot be told of {}: it is no UTF-8",
            visible_path(path)
        );
        Failure::words(Kind::Usage, words).help("give the device a name of letters: a link to it")
    })
}

/// Waits for the end of syncs.
///
/// # Errors
/// When the array is not served, the time is over, or a member waits for a recovery and none begins
/// for some time.
pub fn wait(arguments: &WaitArguments) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut client = arguments.which.connect()?;
    // A member that was added is known before its recovery has begun.
    let mut idle = Instant::now();
    loop {
        let status = status(&mut client)?;
        let waits = status.has_whom_to_fill();
        let words = match status.sync {
            Some(sync) => {
                idle = Instant::now();
                let done = percent(sync.position, sync.total);
                format!("{} still runs: {done}", sync.kind)
            }
            None if waits && idle.elapsed() < BEGINNING => "a recovery has not begun".to_owned(),
            // A replacement that waits leaves nothing degraded.
            None if waits && status.health.contains('_') => {
                let words = "a device waits to be filled, and no recovery begins";
                let help = "`raidlab detail` says why: an array that is read-only goes on after \
                            `raidlab manage NAME --readwrite`";
                return Err(Failure::words(Kind::Run, words).help(help));
            }
            None => return Ok(()),
        };
        let over = arguments
            .seconds
            .is_some_and(|most| begun.elapsed().as_secs() >= most);
        if over {
            return Err(Failure::words(Kind::Run, words));
        }
        std::thread::sleep(LOOK);
    }
}

/// Stops an array.
///
/// # Errors
/// When it is not served.
pub fn stop(arguments: &StopArguments) -> Result<(), Failure> {
    let mut client = arguments.which.connect()?;
    client.ask(&ControlRequest::Stop {}).map_err(Failure::run)?;
    // The socket goes when the server ends.
    let path = arguments.which.path()?;
    while ControlClient::connect(&path).is_ok() {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Formats a share as `12.5 %`.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 / whole.max(1) as f64 * 100.0)
}

/// The state of an array for people.
pub fn words(status: &StatusReport) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:>15} : {value}");
    };
    line("Name", status.name.clone());
    line("UUID", status.uuid.clone());
    line("Raid Level", status.level.clone());
    if !status.layout.is_empty() {
        line("Layout", status.layout.clone());
    }
    if status.chunk_bytes > 0 {
        line("Chunk Size", Bytes(status.chunk_bytes).to_string());
    }
    line("Array Size", Bytes(status.size_bytes).to_string());
    line("State", format!("{} {}", status.state, status.health));
    line("Events", status.events.to_string());
    if let Some((dirty, all)) = status.bitmap_chunks {
        line("Bitmap", format!("{dirty} of {all} chunks dirty"));
    }
    if status.log_bytes > 0 {
        line("Log", format!("{} on each member", Bytes(status.log_bytes)));
    }
    line("Backend", status.backend.clone());
    if let Some(registered) = &status.registered_memory {
        let mut words = format!(
            "{} of at most {} registered",
            Bytes(registered.bytes),
            Bytes(registered.limit_bytes)
        );
        if let Some(why) = &registered.refused {
            let _ = write!(words, "; the rest is not: {why}");
        }
        line("Memory", words);
    }
    if status.mismatch_sectors > 0 {
        line("Mismatches", format!("{} sectors", status.mismatch_sectors));
    }
    if let Some(sync) = &status.sync {
        line(
            "Sync",
            format!("{} {}", sync.kind, percent(sync.position, sync.total)),
        );
    }
    for warning in &status.warnings {
        line("Warning", warning.clone());
    }
    if let Some(broken) = &status.broken {
        line("Broken", broken.clone());
    }
    for device in &status.devices {
        if let Some(why) = &device.lost {
            line("Lost", format!("{}: {why}", device.path));
        }
    }
    let _ = writeln!(text);
    text.push_str(&devices(status));
    text
}

/// The table of an array's devices.
fn devices(status: &StatusReport) -> String {
    let rows = status.devices.iter().map(|device| {
        vec![
            device.number.to_string(),
            device
                .slot
                .map_or_else(|| "-".to_owned(), |slot| slot.to_string()),
            device.state.clone(),
            Bytes(device.counters.read_bytes).to_string(),
            Bytes(device.counters.written_bytes).to_string(),
            device.counters.errors.to_string(),
            device.corrected_read_errors.to_string(),
            device.bad_sectors.to_string(),
            device.path.clone(),
        ]
    });
    let head = [
        "number",
        "slot",
        "state",
        "read",
        "written",
        "errors",
        "corrected",
        "bad sectors",
        "device",
    ];
    output::table(&head, &[0, 1, 3, 4, 5, 6, 7], rows.collect())
}
