//! Parsing of a watch's byte stream into frames, and the requests for them.

use super::connection::last_line;
use crate::process::{Process, State};
use crate::target::{Frame, Frames, TargetError, Watched};
use crate::watch::{Queue, next_tick};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

/// The contents of one tick, as far as they have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// The number in the tick's request.
    pub number: u64,
    /// The contents of each source; `None` where it failed.
    pub contents: Vec<Option<String>>,
}

/// A parser that turns bytes, in pieces of any size, into ticks.
#[derive(Debug)]
pub struct Parser {
    /// The bytes before the end of each answer: `\nMARK `.
    needle: Vec<u8>,
    /// The successful statuses of each source.
    success: Vec<Vec<i32>>,
    /// The bytes that are not parsed yet, after a newline that the first header lacks.
    pending: Vec<u8>,
    /// The number of pending bytes that are known to hold no whole mark.
    searched: usize,
    begun: Option<Tick>,
}

impl Parser {
    /// Creates a parser for a watch with this mark and so many sources.
    pub fn new(mark: &str, success: Vec<Vec<i32>>) -> Self {
        Self {
            needle: format!("\n{mark} ").into_bytes(),
            success,
            pending: vec![b'\n'],
            searched: 0,
            begun: None,
        }
    }

    /// Takes a piece of the stream, and returns the ticks that it completes.
    pub fn push(&mut self, piece: &[u8]) -> Vec<Tick> {
        self.pending.extend_from_slice(piece);
        let mut ticks = Vec::new();
        while let Some((content, number)) = self.marked() {
            match &mut self.begun {
                None => {
                    self.begun = u64::try_from(number).ok().map(|number| Tick {
                        number,
                        contents: Vec::new(),
                    });
                }
                Some(tick) => {
                    let success = self.success.get(tick.contents.len());
                    let good = success
                        .is_some_and(|codes| codes.iter().any(|&code| i64::from(code) == number));
                    tick.contents
                        .push(good.then(|| String::from_utf8_lossy(&content).into_owned()));
                }
            }
            let whole = |tick: &mut Tick| tick.contents.len() == self.success.len();
            if let Some(tick) = self.begun.take_if(whole) {
                ticks.push(tick);
            }
            if self.begun.is_none() {
                // The newline of a tick's last line also begins the next header.
                self.pending.insert(0, b'\n');
            }
        }
        ticks
    }

    /// The number in the request of the last, incomplete tick.
    pub fn begun(&self) -> Option<u64> {
        self.begun.as_ref().map(|tick| tick.number)
    }

    /// Takes the bytes up to the next whole `MARK number` line from the pending ones.
    fn marked(&mut self) -> Option<(Vec<u8>, i64)> {
        let length = self.needle.len();
        let begin = self.searched
            + self.pending[self.searched..]
                .windows(length)
                .position(|window| window == self.needle)
                .or_else(|| {
                    self.searched = self.pending.len().saturating_sub(length - 1);
                    None
                })?;
        let rest = &self.pending[begin + length..];
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            self.searched = begin;
            return None;
        };
        let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        let after = begin + length + end + 1;
        let mut content: Vec<u8> = self.pending.drain(..after).collect();
        content.truncate(begin);
        self.searched = 0;
        Some((content, number))
    }
}

/// The successful statuses of each source.
pub(crate) fn successes(sources: &[Watched]) -> Vec<Vec<i32>> {
    sources
        .iter()
        .map(|source| match source {
            Watched::File(_) => vec![0],
            Watched::Command(command) => command.success.clone(),
        })
        .collect()
}

/// A watch over a session. Its thread requests a tick by writing the tick's number, waits for the
/// answer and sleeps until the next is due: the schedule is kept here, where the clock is that
/// all measurements share.
pub struct SshFrames {
    queue: Queue,
    machine: String,
    /// The reason why the session ended, once it has.
    lost: Arc<OnceLock<String>>,
    /// The thread ends when this is dropped.
    _alive: Sender<()>,
}

impl SshFrames {
    /// Begins to request ticks.
    pub fn begin(
        machine: &str,
        process: Process,
        parser: Parser,
        every: Duration,
    ) -> io::Result<Self> {
        let (alive, gone) = mpsc::channel();
        let queue = Queue::default();
        let lost = Arc::new(OnceLock::new());
        let mut asker = Asker {
            process,
            parser,
            begun: Instant::now(),
            gone,
            queue: queue.clone(),
        };
        let reason = Arc::clone(&lost);
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || {
                if let Some(end) = asker.ask(every) {
                    // This is the only place that sets it.
                    let _ = reason.set(end);
                }
            })?;
        Ok(Self {
            queue,
            machine: machine.to_owned(),
            lost,
            _alive: alive,
        })
    }
}

impl Frames for SshFrames {
    fn take(&mut self) -> Result<Vec<Frame>, TargetError> {
        // Read in this order, as the frames before the loss are in the queue by then.
        let lost = self.lost.get();
        let frames = self.queue.take();
        match lost {
            Some(reason) if frames.is_empty() => Err(TargetError::Unreachable {
                machine: self.machine.clone(),
                reason: reason.clone(),
            }),
            _ => Ok(frames),
        }
    }
}

struct Asker {
    process: Process,
    parser: Parser,
    begun: Instant,
    gone: Receiver<()>,
    queue: Queue,
}

impl Asker {
    /// Requests ticks until the watch is dropped, or returns why it cannot.
    fn ask(&mut self, every: Duration) -> Option<String> {
        for number in 0.. {
            let asked = self.begun.elapsed();
            self.process.feed(&format!("{number}\n"));
            match self.answer(number, asked) {
                Answered::Frame(frame) => self.queue.push(frame),
                Answered::Gone => return None,
                Answered::Lost(reason) => return Some(reason),
            }
            let now = self.begun.elapsed();
            let pause = next_tick(now, every).saturating_sub(now);
            if self.gone.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return None;
            }
        }
        None
    }

    fn answer(&mut self, number: u64, asked: Duration) -> Answered {
        let mut header = None;
        loop {
            let soon = Instant::now() + Duration::from_millis(100);
            self.process.wait(Some(soon), |state| {
                !state.stdout.is_empty() || state.complete()
            });
            if self.gone.try_recv() == Err(TryRecvError::Disconnected) {
                return Answered::Gone;
            }
            let over = self.process.look(State::complete);
            let ticks = self.parser.push(&self.process.take_stdout());
            if header.is_none() && (self.parser.begun() == Some(number) || !ticks.is_empty()) {
                header = Some(self.begun.elapsed());
            }
            if let (Some(header), Some(tick)) =
                (header, ticks.into_iter().find(|tick| tick.number == number))
            {
                return Answered::Frame(Frame {
                    at: (asked + header) / 2,
                    contents: tick.contents,
                });
            }
            if over {
                let said = self
                    .process
                    .look(|state| last_line(&String::from_utf8_lossy(&state.stderr)).to_owned());
                return Answered::Lost(if said.is_empty() {
                    "the watch has ended".to_owned()
                } else {
                    said
                });
            }
        }
    }
}

enum Answered {
    Frame(Frame),
    Gone,
    Lost(String),
}

#[cfg(test)]
mod tests;
