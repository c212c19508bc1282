//! A calendar and a guest, each on a thread of its own.

use crate::peer::{Guest, Sockets};
use raidlab_disk::medium::constant;
use raidlab_disk::{Disk, DiskParameters, MediumParameters};
use raidlab_random::Stream;
use raidlab_uml_calendar::{
    Calendar, CalendarError, DeviceConfig, DiskCounters, Observer, Options, Outcome, Protocol,
    TraceRecord,
};
use raidlab_units::{BytesPerSecond, Nanos, Sectors};
use std::path::PathBuf;
use std::time::Duration;

/// What a run left behind.
pub struct Run<T> {
    pub ending: Result<Outcome, CalendarError>,
    /// What the guest's thread returned.
    pub guest: T,
    pub trace: Vec<TraceRecord>,
    pub samples: Vec<(Nanos, Vec<DiskCounters>)>,
    pub calendar: Calendar,
}

impl<T> Run<T> {
    /// Nothing but the guest's own end has ended it.
    pub fn assert_guest_ended(&self) {
        let ending = &self.ending;
        assert!(matches!(ending, Ok(Outcome::GuestEnded)), "{ending:?}");
    }
}

#[derive(Default)]
struct Notes {
    trace: Vec<TraceRecord>,
    samples: Vec<(Nanos, Vec<DiskCounters>)>,
}

impl Observer for Notes {
    fn sample(&mut self, at: Nanos, disks: &[DiskCounters]) {
        self.samples.push((at, disks.to_vec()));
    }

    fn completed(&mut self, record: &TraceRecord) {
        self.trace.push(*record);
    }
}

/// 8 ms an access, 512 MB/s: a sector takes a microsecond.
pub fn simple() -> DeviceConfig {
    let access = Nanos(8_000_000);
    let medium = MediumParameters::Constant(constant::Parameters { access });
    let parameters =
        DiskParameters::uniform(Sectors(1 << 21), BytesPerSecond(512_000_000.0), medium);
    let disk = Disk::new(parameters, Nanos::ZERO, Stream::new(0));
    DeviceConfig::new(disk.into(), "simple")
}

/// Options of a test: little patience with a guest that does nothing.
pub fn options(protocol: Protocol) -> Options {
    Options {
        protocol,
        patience: Duration::from_secs(10),
        ..Options::default()
    }
}

/// Runs `script` as a guest of these disks, from before its boot on.
pub fn run_raw<T: Send>(
    disks: Vec<DeviceConfig>,
    options: Options,
    script: impl FnOnce(&Sockets) -> T + Send,
) -> Run<T> {
    let dir = tempfile::tempdir().unwrap();
    let count = disks.len();
    let mut calendar = Calendar::bind(dir.path(), disks, options).unwrap();
    let sockets = Sockets {
        clock: calendar.socket_path().to_owned(),
        disks: (0..count)
            .map(|disk| PathBuf::from(calendar.device_path(disk).unwrap()))
            .collect(),
    };
    let mut notes = Notes::default();
    let (ending, guest) = std::thread::scope(|scope| {
        let guest = scope.spawn(|| script(&sockets));
        let ending = calendar.run(&mut notes);
        (ending, guest.join().unwrap())
    });
    Run {
        ending,
        guest,
        trace: notes.trace,
        samples: notes.samples,
        calendar,
    }
}

/// Runs `script` in a guest that has booted; it ends by being switched off.
pub fn run<T: Send>(
    disks: Vec<DeviceConfig>,
    options: Options,
    script: impl FnOnce(&mut Guest) -> T + Send,
) -> Run<T> {
    run_raw(disks, options, |sockets| script(&mut Guest::boot(sockets)))
}

/// Both ways of telling the time.
pub const PROTOCOLS: [Protocol; 2] = [Protocol::Messages, Protocol::SharedMemory];
