//! Reading ahead: what a solid-state disk fetches of a stream of reads before it is asked for it.
//!
//! A read that begins where one of the last [`STREAMS`] reads ended goes on with its stream. The
//! drive then fetches what follows into its buffer: as much as the stream has had since its first
//! read, and a page of flash for each die at most, which is what SimpleSSD fetches of a stream
//! (`icl/generic_cache.cc`). A read of what is in the buffer needs no die, and one of what is on its
//! way waits for it.
//!
//! Data sheets show that drives do so: the Intel P4500 (1 TB) has a latency of 85 us for random and
//! of 10 us for sequential reads, less than a page takes to be sensed (Lenovo's product guide of
//! it). How far ahead drives read, and how many streams they tell apart, is not on them.
//!
//! What is written or trimmed ahead of a stream ends it.

use std::collections::VecDeque;
use std::ops::Range;

/// The number of streams that are told apart; a guess.
const STREAMS: usize = 16;

/// A stream of reads.
#[derive(Debug, Clone)]
struct Stream {
    /// The sectors that were read, one command after the other, from the end of the first one on.
    read: Range<u64>,
    /// The end of what was fetched, or of what was read.
    fetched: u64,
    /// The pieces that are in the buffer or on their way, in order.
    pieces: VecDeque<u32>,
}

/// A part of a page of flash that is fetched.
#[derive(Debug, Clone, Default)]
struct Piece {
    sectors: Range<u64>,
    /// Whether it is in the buffer.
    is_here: bool,
    /// Whether no stream has it any more.
    is_left: bool,
    /// The commands that wait for it, and how many bytes each of them wants.
    waiting: Vec<(u32, u64)>,
}

/// The place of a part of a page that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It is in the buffer.
    Here,
    /// It is on its way, and the command waits for it.
    Coming,
    /// It was not fetched.
    Nowhere,
}

/// The streams of a drive, the one that was read last behind the others.
#[derive(Debug, Clone)]
pub(super) struct Ahead {
    /// How far is read ahead at most, and the end of the drive, in sectors.
    most: u64,
    end: u64,
    streams: Vec<Stream>,
    pieces: Vec<Piece>,
    unused: Vec<u32>,
    coming: u32,
}

impl Ahead {
    /// Creates a buffer that takes so many sectors of a stream, of a drive with `end` sectors.
    pub(super) fn new(most: u64, end: u64) -> Self {
        Self {
            most,
            end,
            streams: Vec::with_capacity(STREAMS),
            pieces: Vec::new(),
            unused: Vec::new(),
            coming: 0,
        }
    }

    /// Notes a read, which goes on with a stream or begins one.
    pub(super) fn follow(&mut self, read: Range<u64>) {
        let found = self.streams.iter().rposition(|stream| stream.read.end == read.start);
        let stream = match found {
            Some(index) => {
                let mut stream = self.streams.remove(index);
                stream.read.end = read.end;
                stream
            }
            None => {
                if self.streams.len() == STREAMS {
                    self.end_stream(0);
                }
                let end = read.end;
                Stream { read: end..end, fetched: end, pieces: VecDeque::new() }
            }
        };
        self.streams.push(stream);
    }

    /// Looks for a part of a page among what was fetched of the latest stream. A command that has
    /// to wait for it is remembered with `bytes`.
    pub(super) fn find(&mut self, sectors: &Range<u64>, command: u32, bytes: u64) -> Found {
        while let Some(stream) = self.streams.last_mut()
            && let Some(&slot) = stream.pieces.front()
        {
            let piece = &mut self.pieces[slot as usize];
            if sectors.start < piece.sectors.start {
                break;
            }
            let is_in_it = sectors.start < piece.sectors.end;
            let is_here = piece.is_here;
            if is_in_it && !is_here {
                piece.waiting.push((command, bytes));
            }
            if sectors.end >= piece.sectors.end {
                stream.pieces.pop_front();
                self.leave(slot);
            }
            if is_in_it {
                return if is_here { Found::Here } else { Found::Coming };
            }
        }
        Found::Nowhere
    }

    /// The first sector that is to be fetched of the latest stream, if any.
    pub(super) fn next(&mut self) -> Option<u64> {
        let stream = self.streams.last_mut()?;
        let Range { start, end } = stream.read;
        stream.fetched = stream.fetched.max(end);
        let wanted = end + (end - start).min(self.most);
        (stream.fetched < wanted.min(self.end)).then_some(stream.fetched)
    }

    /// Goes past sectors of the latest stream that lie nowhere in flash.
    pub(super) fn skip(&mut self, end: u64) {
        if let Some(stream) = self.streams.last_mut() {
            stream.fetched = end;
        }
    }

    /// Begins to fetch a piece for the latest stream, and returns its number.
    pub(super) fn fetch(&mut self, sectors: Range<u64>) -> u32 {
        self.skip(sectors.end);
        self.coming += 1;
        let piece = Piece { sectors, ..Piece::default() };
        let slot = match self.unused.pop() {
            Some(slot) => {
                self.pieces[slot as usize] = piece;
                slot
            }
            None => {
                self.pieces.push(piece);
                self.pieces.len() as u32 - 1
            }
        };
        if let Some(stream) = self.streams.last_mut() {
            stream.pieces.push_back(slot);
        }
        slot
    }

    /// Notes that a piece is in the buffer. Returns the commands that waited for it, and how many
    /// bytes each of them wants.
    pub(super) fn arrived(&mut self, slot: u32) -> Vec<(u32, u64)> {
        self.coming -= 1;
        let piece = &mut self.pieces[slot as usize];
        piece.is_here = true;
        if piece.is_left {
            self.unused.push(slot);
        }
        std::mem::take(&mut piece.waiting)
    }

    /// Whether nothing is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.coming == 0
    }

    /// Ends the streams of which a part of these sectors was fetched: they are written or trimmed.
    pub(super) fn forget(&mut self, sectors: &Range<u64>) {
        for index in (0..self.streams.len()).rev() {
            let stream = &self.streams[index];
            if stream.read.end < sectors.end && sectors.start < stream.fetched {
                self.end_stream(index);
            }
        }
    }

    fn end_stream(&mut self, index: usize) {
        for slot in self.streams.remove(index).pieces {
            self.leave(slot);
        }
    }

    /// Gives a piece up that no stream has any more, once it is there.
    fn leave(&mut self, slot: u32) {
        let piece = &mut self.pieces[slot as usize];
        piece.is_left = true;
        if piece.is_here {
            self.unused.push(slot);
        }
    }
}

#[cfg(test)]
mod tests;
