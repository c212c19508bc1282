//! Writes to an export until its server dies, and tells afterwards whether the
//! disk holds what it must.
//!
//!     crash_writer fill URI FILE
//!     crash_writer write URI FILE SEED SECONDS
//!     crash_writer verify URI|PATH FILE
//!
//! `fill` writes every sector once and flushes. `write` keeps 16 requests in
//! flight, writes of 512 bytes to 512 KiB, some with FUA, zeros and flushes
//! among them, no two in flight on the same sector, until the connection is
//! lost or the time is over; it says `connected` before the first. `verify`
//! reads the whole disk, over NBD or from a file or device, and fails at a
//! sector that holds what it must not. FILE remembers what was sent,
//! acknowledged and flushed.

#[path = "../../tests/client/mod.rs"]
#[expect(dead_code, reason = "tests share it")]
mod client;
mod memory;

use client::{Client, ClientError, Wishes};
use memory::{Findings, Memory, SECTOR, ZEROS, content};
use raidlab_nbd::wire::{Command, command_flag};
use raidlab_random::Stream;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of one read, or of one write of `fill`.
const PIECE: usize = 1 << 20;

/// Requests in flight.
const DEPTH: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["fill", uri, file] => fill(uri, Path::new(file)),
        ["write", uri, file, seed, seconds] => {
            let limit = Duration::from_secs_f64(seconds.parse()?);
            write(uri, Path::new(file), seed.parse()?, limit)
        }
        ["verify", place, file] => verify(place, Path::new(file)),
        _ => Err("usage: crash_writer fill|write|verify PLACE FILE [SEED SECONDS]".into()),
    }
}

fn connect(uri: &str) -> Result<Client, Box<dyn Error>> {
    let (place, export) = client::address(uri).ok_or("no address of an export")?;
    let wishes = Wishes {
        export,
        depth: DEPTH,
        ..Wishes::default()
    };
    Ok(client::connect(&place, None, &wishes)?)
}

/// Returns the bytes of a write.
fn bytes_of(range: Range<u64>, fill: u64) -> Vec<u8> {
    range.flat_map(|sector| content(sector, fill)).collect()
}

fn fill(uri: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let mut client = connect(uri)?;
    let mut memory = Memory::new(client.session().size_bytes / SECTOR as u64);
    let fill = memory.new_fill();
    for first in (0..memory.len()).step_by(PIECE / SECTOR) {
        let range = first..memory.len().min(first + (PIECE / SECTOR) as u64);
        memory.sent(range.clone(), fill);
        client.write(first * SECTOR as u64, &bytes_of(range.clone(), fill), false)?;
        memory.acknowledged(range, false);
    }
    let sent_at = memory.tick();
    client.flush()?;
    memory.flushed(sent_at);
    memory.save(file)?;
    client.disconnect()?;
    Ok(())
}

/// A disk that is read, over NBD or from a file.
enum Disk {
    Export(Box<Client>),
    File(File),
}

impl Disk {
    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, Box<dyn Error>> {
        match self {
            Self::Export(client) => Ok(client.read(offset, u32::try_from(length)?)?),
            Self::File(file) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
        }
    }
}

fn verify(place: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let mut memory = Memory::load(file)?;
    let mut disk = if place.contains("://") {
        Disk::Export(Box::new(connect(place)?))
    } else {
        Disk::File(File::open(place)?)
    };
    let mut findings = Findings::default();
    let end = memory.len() * SECTOR as u64;
    for offset in (0..end).step_by(PIECE) {
        let length = PIECE.min(usize::try_from(end - offset)?);
        let bytes = disk.read(offset, length)?;
        memory.look(offset / SECTOR as u64, &bytes, &mut findings)?;
    }
    memory.save(file)?;
    println!(
        "open {} newest {} older {}",
        findings.open, findings.newest, findings.older_than_acknowledged
    );
    Ok(())
}

/// A request in flight.
enum Sent {
    Write { range: Range<u64>, durable: bool },
    Flush { at: u64 },
}

/// A writer at work.
struct Writer {
    client: Client,
    memory: Memory,
    random: Stream,
    in_flight: BTreeMap<u64, Sent>,
    acknowledged: u64,
    durable: u64,
    flushes: u64,
}

fn write(uri: &str, file: &Path, seed: u64, limit: Duration) -> Result<(), Box<dyn Error>> {
    let memory = Memory::load(file)?;
    let mut writer = Writer {
        client: connect(uri)?,
        memory,
        random: Stream::new(seed),
        in_flight: BTreeMap::new(),
        acknowledged: 0,
        durable: 0,
        flushes: 0,
    };
    // The script that kills the server waits for this line.
    println!("connected");
    let begun = Instant::now();
    let ended = loop {
        if begun.elapsed() > limit {
            break writer.finish();
        }
        if let Err(error) = writer.step() {
            break Err(error);
        }
    };
    writer.memory.save(file)?;
    println!(
        "acknowledged {} durable {} flushes {} lost {}",
        writer.acknowledged,
        writer.durable,
        writer.flushes,
        writer.in_flight.len()
    );
    match ended {
        // A connection that breaks is the server's death.
        Err(ClientError::Io(_)) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Writer {
    /// Sends one more request, and first takes replies until there is room for it.
    fn step(&mut self) -> Result<(), ClientError> {
        while self.in_flight.len() >= DEPTH {
            self.take()?;
        }
        if self.random.percent(3) {
            let at = self.memory.tick();
            let cookie = self.client.start(Command::Flush, 0, 0, 0, &[])?;
            self.in_flight.insert(cookie, Sent::Flush { at });
            return Ok(());
        }
        let range = self.range();
        while self.is_touched(&range) {
            self.take()?;
        }
        let durable = self.random.percent(10);
        let flags = if durable { command_flag::FUA } else { 0 };
        let (offset, length) = (range.start * SECTOR as u64, length_of(&range));
        let zeros = self.random.percent(3);
        let fill = if zeros { ZEROS } else { self.memory.new_fill() };
        // Recorded before it is sent: a failed sending may have arrived in part.
        self.memory.sent(range.clone(), fill);
        let cookie = if zeros {
            self.client
                .start(Command::WriteZeroes, offset, length, flags, &[])?
        } else {
            let bytes = bytes_of(range.clone(), fill);
            self.client
                .start(Command::Write, offset, length, flags, &bytes)?
        };
        self.in_flight
            .insert(cookie, Sent::Write { range, durable });
        Ok(())
    }

    /// Returns a range to write: small writes mostly, and a third of all within the first part,
    /// where they share blocks and stripes.
    fn range(&mut self) -> Range<u64> {
        let most = match self.random.below(10) {
            0..5 => 8,
            5..8 => 128,
            _ => 1024,
        };
        let length = 1 + self.random.below(most);
        let space = if self.random.percent(33) {
            self.memory.len() / 8
        } else {
            self.memory.len()
        };
        let first = self.random.below(space - length);
        first..first + length
    }

    fn is_touched(&self, range: &Range<u64>) -> bool {
        self.in_flight.values().any(|sent| match sent {
            Sent::Write { range: other, .. } => other.start < range.end && range.start < other.end,
            Sent::Flush { .. } => false,
        })
    }

    /// Takes one reply.
    fn take(&mut self) -> Result<(), ClientError> {
        let Some(completed) = self.client.wait()? else {
            return Ok(());
        };
        let sent = self.in_flight.remove(&completed.cookie);
        if let Err((code, words)) = completed.result {
            return Err(ClientError::Failed { code, words });
        }
        match sent {
            Some(Sent::Write { range, durable }) => {
                self.acknowledged += 1;
                self.durable += u64::from(durable);
                self.memory.acknowledged(range, durable);
            }
            Some(Sent::Flush { at }) => {
                self.flushes += 1;
                self.memory.flushed(at);
            }
            None => {}
        }
        Ok(())
    }

    /// Takes all outstanding replies and flushes.
    fn finish(&mut self) -> Result<(), ClientError> {
        while !self.in_flight.is_empty() {
            self.take()?;
        }
        let at = self.memory.tick();
        self.client.flush()?;
        self.memory.flushed(at);
        Ok(())
    }
}

/// Returns the bytes of a range of sectors; the longest write is far below the limit.
fn length_of(range: &Range<u64>) -> u32 {
    u32::try_from((range.end - range.start) * SECTOR as u64).unwrap_or(u32::MAX)
}
