//! Runs one command in a guest over empty disks:
//! `in_guest [--kernel FOLDER] [--disks N] [--megabytes N] [--seconds N] [--iops N] [--kvm]
//! [--put GUEST=HOST]... [--take GUEST=HOST]... [--export NAME=SOCKET]...
//! [--ssh-port PORT] -- PROGRAM [ARGUMENT]...`.
//!
//! The kernel is the newest of the user's cache, or the one whose package was
//! unpacked in the folder, its modules not compressed.
//! An export is a disk that an NBD server of this machine has; it comes behind
//! the empty ones, with the serial numbers `EXPORT0`, `EXPORT1`...
//! With `--ssh-port`, this port of 127.0.0.1 leads to port 22 of the guest, which the
//! program has to open, after it has given the network a driver and an address.
//! A file put into the guest comes with the libraries it needs; a file taken
//! is written after the end. Ends with the command's exit code, or with 125
//! when there was no sound end.

use raidlab_guest::{Accelerator, Disk, Export, Guest, Job, Kernel, Machine, Stream, host_tools};
use raidlab_shell::Command;
use raidlab_units::Bytes;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The options that stand before `--`.
struct Options {
    kernel: Option<PathBuf>,
    disks: usize,
    megabytes: u64,
    seconds: u64,
    iops: Option<u32>,
    kvm: bool,
    put: Vec<(String, String)>,
    take: Vec<(String, String)>,
    exports: Vec<Export>,
    ssh_port: Option<u16>,
    command: Vec<String>,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        kernel: None,
        disks: 6,
        megabytes: 256,
        seconds: 600,
        iops: None,
        kvm: false,
        put: Vec::new(),
        take: Vec::new(),
        exports: Vec::new(),
        ssh_port: None,
        command: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if word == "--kvm" {
            options.kvm = true;
            continue;
        }
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let pair = || {
            let pair = value.split_once('=').ok_or("a pair is A=B")?;
            Ok::<_, &str>((pair.0.to_owned(), pair.1.to_owned()))
        };
        match word.as_str() {
            "--kernel" => options.kernel = Some(value.into()),
            "--disks" => options.disks = value.parse()?,
            "--megabytes" => options.megabytes = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--ssh-port" => options.ssh_port = Some(value.parse()?),
            "--iops" => options.iops = Some(value.parse()?),
            "--put" => options.put.push(pair()?),
            "--take" => options.take.push(pair()?),
            "--export" => {
                let (name, socket) = pair()?;
                options.exports.push(Export {
                    serial: format!("EXPORT{}", options.exports.len()),
                    socket: socket.into(),
                    name,
                });
            }
            _ => return Err(format!("unknown option {word}").into()),
        }
    }
    options.command = words.collect();
    if options.command.is_empty() {
        return Err("no command behind --".into());
    }
    Ok(options)
}

fn run() -> Result<u8, Box<dyn Error>> {
    let options = options()?;
    let kernel = match &options.kernel {
        None => Kernel::find_or_fetch()?,
        Some(folder) => Kernel::unpacked(folder)
            .ok_or_else(|| format!("no kernel with modules in {}", folder.display()))?,
    };
    let mut initramfs = host_tools(&kernel)?;
    for (guest, host) in &options.put {
        initramfs.file(guest, Path::new(host))?;
    }
    let mut disks = Disk::several(options.disks, Bytes(options.megabytes << 20));
    for disk in &mut disks {
        disk.requests_per_second = options.iops;
    }
    let mut guest = Guest {
        kernel,
        initramfs,
        machine: Machine {
            disks,
            exports: options.exports,
            ssh_port: options.ssh_port,
            ..Machine::default()
        },
    };
    if options.kvm && guest.kvm_boots() {
        guest.machine.accelerator = Accelerator::Kvm;
    }
    let command = Command::destroys(&options.command[0], &options.command[1..])
        .timeout(Duration::from_secs(options.seconds));
    let mut job = Job::new(command);
    job.take = options
        .take
        .iter()
        .map(|(guest, _)| guest.clone())
        .collect();
    let finished = guest.run(&job, &mut |stream, text| match stream {
        Stream::Output => print!("{text}"),
        Stream::Error => eprint!("{text}"),
    })?;
    for (guest, host) in &options.take {
        let contents = finished.files.file(guest);
        let contents = contents.ok_or_else(|| format!("the guest has no file {guest}"))?;
        std::fs::write(host, contents)?;
    }
    eprintln!(
        "guest: {} of kernel {}, {:.1} s to boot, {:.1} s to run",
        guest.machine.accelerator,
        guest.kernel.release,
        finished.boot.as_secs_f64(),
        finished.output.took.as_secs_f64(),
    );
    Ok(finished
        .output
        .code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(125))
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let reasons = raidlab_units::reasons(error.as_ref());
            eprintln!("in_guest: {}", reasons.join("\n  because: "));
            ExitCode::from(125)
        }
    }
}
