//! The throughput of arrays relative to a single file, by the same driver, on files in memory.
//! There is no network: requests go straight to the export.
//!
//!     cargo run --release -p raidlab-serve --example array_speed -- \
//!         [FOLDER [ROUNDS [ring|threads|registered [DEPTH]]]]
//!
//! FOLDER should be on tmpfs (/dev/shm). Each round measures every subject in turn, so that other
//! load on the machine affects all of them alike; the table has the median of the rounds. RAID 6 is
//! 8+2, RAID 0 has 4 members, chunks are 64 KiB, the write log is off, no bitmap. Reads are 128
//! KiB, writes one full stripe; the file gets writes of the same size.
//!
//! `registered` compares io_uring with payloads in memory that is registered with the kernel to
//! io_uring without, subject by subject: throughput, and the whole process's processor time per
//! request. Registration matters past the page cache, so FOLDER should be on a disk.

use crossbeam_channel::{Receiver, Sender, unbounded};
use raidlab_array::{AssembleOptions, EngineOptions, Level};
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{DeviceFlags, Uuid, Version};
use raidlab_serve::array::{
    ArrayExport, DEFAULT_REGISTERED_BYTES, DriverConfig, FileExport, ServeOptions, assemble, create,
};
use raidlab_serve::export::{
    Buffer, BufferPool, Completions, ErrorCode, Export, Operation, Request, RequestFlags,
};
use raidlab_serve::member::{BackendKind, Member, MemberFile, OpenOptions};
use raidlab_units::{Bytes, Sectors};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The results of one pass.
#[derive(Clone, Copy)]
struct Pass {
    mib_per_second: f64,
    /// Processor time per request, in microseconds.
    cpu_us: f64,
}

fn processor_us() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

/// The least bytes that each subject offers, and the bytes that each measurement moves.
const WHOLE: u64 = 256 << 20;
const CHUNK: u64 = 64 << 10;
const READ: u32 = 128 << 10;

type Answer = (Buffer, Result<(), ErrorCode>);

struct Mailbox(Sender<Answer>);

impl Completions for Mailbox {
    fn completed(&self, _: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        // The receiver lives as long as requests do.
        let _ = self.0.send((buffer, result));
    }
}

struct Client {
    mailbox: Arc<Mailbox>,
    answers: Receiver<Answer>,
    pool: BufferPool,
    depth: usize,
}

impl Client {
    /// Runs one pass in order over the first [`WHOLE`] bytes.
    fn pass(
        &self,
        export: &dyn Export,
        operation: Operation,
        length: u32,
    ) -> Result<Pass, Box<dyn Error>> {
        let count = WHOLE / u64::from(length);
        let (started, cpu) = (Instant::now(), processor_us());
        let (mut sent, mut done) = (0, 0);
        while done < count {
            while sent < count && sent - done < self.depth as u64 {
                let answer: Arc<dyn Completions> = Arc::clone(&self.mailbox) as _;
                export.submit(Request::new(
                    operation,
                    sent * u64::from(length),
                    length,
                    RequestFlags::default(),
                    self.pool.take(length as usize)?,
                    (answer, sent),
                ));
                sent += 1;
            }
            export.submitted();
            // All answers that have arrived are taken at once, as in a server.
            let first = self.answers.recv()?;
            for (buffer, result) in std::iter::once(first).chain(self.answers.try_iter()) {
                result?;
                drop(buffer);
                done += 1;
            }
        }
        let mib = (count * u64::from(length)) as f64 / 1048576.0;
        Ok(Pass {
            mib_per_second: mib / started.elapsed().as_secs_f64(),
            cpu_us: (processor_us() - cpu) / count as f64,
        })
    }
}

fn open(path: &Path) -> Result<MemberFile, Box<dyn Error>> {
    Ok(MemberFile::open(path, OpenOptions::default())?)
}

fn make(folder: &Path, name: &str, bytes: u64) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join(name);
    std::fs::File::create(&path)?.set_len(bytes)?;
    Ok(path)
}

fn array(
    folder: &Path,
    level: Level,
    (data, parity): (u64, u64),
    driver: DriverConfig,
) -> Result<ArrayExport, Box<dyn Error>> {
    let member_bytes = WHOLE / data + (8 << 20);
    let members = data + parity;
    let files = (0..members)
        .map(|member| {
            let path = make(folder, &format!("{level}-{member}"), member_bytes)?;
            open(&path).map(Member::from)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let spec = CreateSpec {
        version: Version::V1_2,
        level,
        layout: None,
        chunk: Some(Bytes(CHUNK).to_sectors()),
        raid_disks: files.len(),
        array_uuid: Uuid([level as u8; 16]),
        host: String::new(),
        name: "speed".to_owned(),
        created: 1_700_000_000,
        size: None,
        data_offset: Some(Sectors(2048)),
        bitmap: BitmapChoice::None,
        initial: InitialSync::AssumeClean,
        log: LogReserve::None,
        bad_block_log: true,
    };
    let sizes = (0..members).map(|member| {
        Some(MemberSize {
            size: Bytes(member_bytes),
            device_uuid: Uuid([member as u8; 16]),
            flags: DeviceFlags::default(),
            found: Vec::new(),
        })
    });
    create(&plan(&spec, &sizes.collect::<Vec<_>>())?, &files)?;
    let options = ServeOptions {
        engine: EngineOptions::new("md-6.9".parse()?),
        log: false,
        driver,
    };
    let assembled = assemble(&files, None, &AssembleOptions::default())?;
    Ok(ArrayExport::start(assembled, &options)?)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(arguments.first().map_or("/dev/shm", String::as_str));
    let folder = folder.join(format!("raidlab-speed-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let measured = measure(&folder, &arguments);
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn measure(folder: &Path, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let rounds: usize = arguments.get(1).map_or(Ok(7), |rounds| rounds.parse())?;
    let (sender, answers) = unbounded();
    let client = Client {
        mailbox: Arc::new(Mailbox(sender)),
        answers,
        pool: BufferPool::default(),
        depth: arguments.get(3).map_or(Ok(16), |depth| depth.parse())?,
    };
    match arguments.get(2).map(String::as_str) {
        Some("registered") => compare_registered(folder, rounds, client),
        Some("threads") => compare_arrays(folder, rounds, &client, BackendKind::Threads),
        _ => compare_arrays(folder, rounds, &client, BackendKind::Ring),
    }
}

fn compare_arrays(
    folder: &Path,
    rounds: usize,
    client: &Client,
    backend: BackendKind,
) -> Result<(), Box<dyn Error>> {
    let driver = DriverConfig {
        backend,
        ..DriverConfig::default()
    };
    let file = open(&make(folder, "file", WHOLE)?)?;
    let file = FileExport::start(Arc::new(file), driver)?;
    let raid0 = array(folder, Level::Raid0, (4, 0), driver)?;
    let raid6 = array(folder, Level::Raid6, (8, 2), driver)?;
    let [stripe0, stripe6] = [4 * CHUNK as u32, 8 * CHUNK as u32];
    let subjects: [(&str, &dyn Export, Operation, u32); 7] = [
        ("file, 128 KiB reads", &file, Operation::Read, READ),
        ("file, 256 KiB writes", &file, Operation::Write, stripe0),
        ("file, 512 KiB writes", &file, Operation::Write, stripe6),
        ("RAID 0, 128 KiB reads", &raid0, Operation::Read, READ),
        ("RAID 0, full stripes", &raid0, Operation::Write, stripe0),
        ("RAID 6, 128 KiB reads", &raid6, Operation::Read, READ),
        ("RAID 6, full stripes", &raid6, Operation::Write, stripe6),
    ];
    for export in [&file as &dyn Export, &raid0, &raid6] {
        client.pass(export, Operation::Write, stripe6)?;
    }
    let mut results = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds {
        for ((_, export, operation, length), results) in subjects.iter().zip(&mut results) {
            results.push(client.pass(*export, *operation, *length)?.mib_per_second);
        }
    }
    let medians: Vec<f64> = results.iter_mut().map(|values| median(values)).collect();
    println!("{:<24} {:>10} {:>10}", "", "MiB/s", "of file");
    for (index, (name, ..)) in subjects.iter().enumerate() {
        let base = medians[[0, 1, 2, 0, 1, 0, 2][index]];
        let share = 100.0 * medians[index] / base;
        println!("{name:<24} {:>10.0} {share:>9.0} %", medians[index]);
    }
    Ok(())
}

/// A subject with registered memory and without, each with buffers of its own.
struct Pair {
    exports: [Box<dyn Export>; 2],
    clients: [Client; 2],
}

impl Pair {
    fn new(
        client: &Client,
        make: impl Fn(&str, DriverConfig) -> Result<Box<dyn Export>, Box<dyn Error>>,
    ) -> Result<Self, Box<dyn Error>> {
        let driver = |registered_bytes| DriverConfig {
            backend: BackendKind::Ring,
            registered_bytes,
            ..DriverConfig::default()
        };
        let with_pool = || Client {
            mailbox: Arc::clone(&client.mailbox),
            answers: client.answers.clone(),
            pool: BufferPool::default(),
            depth: client.depth,
        };
        Ok(Self {
            exports: [
                make("registered", driver(DEFAULT_REGISTERED_BYTES))?,
                make("plain", driver(0))?,
            ],
            clients: [with_pool(), with_pool()],
        })
    }
}

fn compare_registered(folder: &Path, rounds: usize, client: Client) -> Result<(), Box<dyn Error>> {
    let file = Pair::new(&client, |name, driver| {
        let file = open(&make(folder, name, WHOLE)?)?;
        println!("{name}: past the page cache: {}", file.direct());
        Ok(Box::new(FileExport::start(Arc::new(file), driver)?))
    })?;
    let raid6 = Pair::new(&client, |name, driver| {
        let folder = folder.join(format!("raid6-{name}"));
        std::fs::create_dir(&folder)?;
        Ok(Box::new(array(&folder, Level::Raid6, (8, 2), driver)?))
    })?;
    let stripe = 8 * CHUNK as u32;
    let subjects = [
        ("file, 4 KiB reads", &file, Operation::Read, 4096),
        ("file, 4 KiB writes", &file, Operation::Write, 4096),
        ("file, 128 KiB reads", &file, Operation::Read, READ),
        ("file, 512 KiB writes", &file, Operation::Write, stripe),
        ("RAID 6, 128 KiB reads", &raid6, Operation::Read, READ),
        ("RAID 6, full stripes", &raid6, Operation::Write, stripe),
    ];
    for pair in [&file, &raid6] {
        for (export, client) in pair.exports.iter().zip(&pair.clients) {
            client.pass(&**export, Operation::Write, stripe)?;
        }
    }
    println!(
        "{:<24} {:>8} {:>8} {:>6} {:>10} {:>10} {:>6}",
        "", "MiB/s", "plain", "ratio", "us/request", "plain", "ratio"
    );
    for (name, pair, operation, length) in subjects {
        let mut speeds = [Vec::new(), Vec::new(), Vec::new()];
        let mut costs = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds {
            let mut passes = [None; 2];
            // The order of the two alternates from round to round.
            for which in [round % 2, 1 - round % 2] {
                let export = &*pair.exports[which];
                passes[which] = Some(pair.clients[which].pass(export, operation, length)?);
            }
            let [Some(ours), Some(plain)] = passes else {
                continue;
            };
            for (values, [ours, plain]) in [
                (&mut speeds, [ours.mib_per_second, plain.mib_per_second]),
                (&mut costs, [ours.cpu_us, plain.cpu_us]),
            ] {
                values[0].push(ours);
                values[1].push(plain);
                values[2].push(ours / plain);
            }
        }
        let [speed, plain, ratio] = speeds.each_mut().map(|values| median(values));
        print!("{name:<24} {speed:>8.0} {plain:>8.0} {ratio:>6.2} ");
        let [cost, plain, ratio] = costs.each_mut().map(|values| median(values));
        println!("{cost:>10.1} {plain:>10.1} {ratio:>6.2}");
    }
    Ok(())
}
