//! The write-intent bitmap in memory: which chunks may differ between members, and the present
//! state of the members' own bitmaps.
//!
//! A chunk's bit is *set* from before the first write to it until two passes of the daemon have
//! found it without writes (Linux drivers/md/md-bitmap.c: the counter goes from 2 to 1, then to 0).
//! The bitmap on the members follows: a page is encoded when it is sent, and the members have it
//! once all have answered. So a chunk is *durable* when its bit was set in the last page sent and
//! that page has arrived; only then may data be written.
//!
//! A chunk is *needed* while its copies or parity are known to differ, as after a crash: its bit
//! stays until a resync has passed.
use crate::mutation::{self, Mutation};
use raidlab_metadata::{Bitmap, BitmapSuperblock, PAGE_BYTES};
use raidlab_units::{Nanos, Sectors, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The sectors that a page of the bitmap takes on a member.
pub(super) const PAGE_SECTORS: u64 = PAGE_BYTES as u64 / raidlab_units::SECTOR_BYTES;

/// Flag: the bit is to be set.
const SET: u8 = 1;
/// Flag: the bit is set in the page sent last.
const SENT: u8 = 2;
/// Flag: the bit is set on every member.
const DURABLE: u8 = 4;
/// Flag: a resync has to pass before the bit may go.
const NEEDED: u8 = 8;
/// Flag: the daemon has found the chunk without writes once.
const AGED: u8 = 16;

/// The bitmap of a running array.
#[derive(Debug)]
pub(super) struct Intent {
    /// The superblock, and the bits in the state last sent.
    bitmap: Bitmap,
    /// The flags of each chunk of the array: a combination of `SET` to `AGED`.
    chunks: Vec<u8>,
    /// The number of writes under way by chunk, where there are any.
    writes: BTreeMap<usize, u32>,
    /// Pages of the bitmap that have to be written before waiting writes may begin.
    wanted: BTreeSet<usize>,
    /// Pages with cleared bits, which can wait for the daemon.
    lazy: BTreeSet<usize>,
    /// Pages of the bitmap that are being written.
    sending: BTreeSet<usize>,
    set_count: u64,
    /// The pages with bits that md's thread has cleared, which it writes in its
    /// next turn (`BITMAP_PAGE_PENDING`).
    pending: BTreeSet<usize>,
    /// Whether md's thread writes the page with the superblock in its next turn (`need_sync`).
    header_is_due: bool,
    /// md's `allclean`: whether nothing has been written since bits aged last, and no set bit
    /// may be cleared.
    all_clean: bool,
}

impl Intent {
    /// A bitmap all of whose pages are to be written, as members' copies may differ. Chunks that
    /// end where the array is not in sync are needed.
    pub(super) fn new(bitmap: Bitmap, in_sync_below: Sectors) -> Self {
        let count = usize::try_from(bitmap.chunks()).unwrap_or(0);
        let mut chunks = vec![0; count];
        let mut set_count = 0;
        for (at, flags) in (0..).zip(&mut chunks) {
            if bitmap.test(at) {
                set_count += 1;
                let end = (at + 1).saturating_mul(bitmap.chunk_sectors());
                let is_needed = end > in_sync_below.0;
                *flags = if is_needed { SET | NEEDED } else { SET };
            }
        }
        let mut intent = Self {
            bitmap,
            chunks,
            writes: BTreeMap::new(),
            wanted: BTreeSet::new(),
            lazy: BTreeSet::new(),
            sending: BTreeSet::new(),
            pending: BTreeSet::new(),
            header_is_due: false,
            set_count,
            all_clean: false,
        };
        intent.want_all();
        intent
    }

    /// Returns the bitmap's superblock.
    pub(super) const fn superblock(&self) -> &BitmapSuperblock {
        &self.bitmap.superblock
    }

    /// Returns the end of the bitmap, in bytes of whole sectors.
    pub(super) fn end_bytes(&self) -> usize {
        let bytes = usize::try_from(self.bitmap.superblock.bytes()).unwrap_or(usize::MAX);
        bytes.next_multiple_of(512)
    }

    pub(super) fn daemon_sleep(&self) -> Nanos {
        Nanos::from_secs(self.bitmap.superblock.daemon_sleep_seconds.into())
    }

    /// Marks every page to be written, as for a member that has joined.
    pub(super) fn want_all(&mut self) {
        self.wanted.extend(0..self.bitmap.page_count());
    }

    /// Marks the page with the superblock to be written.
    pub(super) fn want_header(&mut self) {
        self.wanted.insert(0);
    }

    pub(super) const fn set_count(&self) -> u64 {
        self.set_count
    }

    pub(super) fn chunk_count(&self) -> u64 {
        self.bitmap.chunks()
    }

    /// Returns the chunks of a range of the sectors that the bitmap covers.
    pub(super) fn chunks_of(&self, range: Span) -> Range<usize> {
        let count = Sectors(range.end.0.saturating_sub(range.start.0));
        let chunks = self.bitmap.chunks_of(range.start, count);
        let index = |chunk| {
            usize::try_from(chunk)
                .unwrap_or(usize::MAX)
                .min(self.chunks.len())
        };
        index(chunks.start)..index(chunks.end)
    }

    /// Begins a write to these chunks (or its wait): their bits must be set. Returns the pages with
    /// bits that no write before had set.
    pub(super) fn begin(&mut self, chunks: Range<usize>) -> BTreeSet<usize> {
        let mut new = BTreeSet::new();
        for at in chunks {
            *self.writes.entry(at).or_default() += 1;
            let was_set = self.chunks[at] & SET != 0;
            self.set(at);
            self.chunks[at] &= !AGED;
            // If it is sent and not durable, it is on its way.
            if self.chunks[at] & (DURABLE | SENT) == 0 {
                let page = self.bitmap.page_of(at as u64);
                self.wanted.insert(page);
                if !was_set {
                    new.insert(page);
                }
            }
        }
        new
    }

    fn set(&mut self, at: usize) {
        if self.chunks[at] & SET == 0 {
            self.chunks[at] |= SET;
            self.set_count += 1;
        }
    }

    /// Whether data may be written to these chunks.
    pub(super) fn is_durable(&self, chunks: Range<usize>) -> bool {
        self.chunks[chunks].iter().all(|flags| flags & DURABLE != 0)
    }

    /// Ends a write; `failed` if the members may differ for good.
    pub(super) fn end(&mut self, chunks: Range<usize>, failed: bool) {
        for at in chunks {
            if let Some(writes) = self.writes.get_mut(&at) {
                *writes -= 1;
                if *writes == 0 {
                    self.writes.remove(&at);
                    self.all_clean = false;
                }
            }
            self.chunks[at] &= !AGED;
            if failed {
                self.chunks[at] |= NEEDED;
            }
        }
    }

    /// Marks these chunks as different: their bits stay until a resync has passed.
    pub(super) fn need(&mut self, range: Span) {
        for at in self.chunks_of(range) {
            self.set(at);
            self.chunks[at] |= NEEDED;
        }
    }

    /// Records that a resync has passed everything below `position`.
    pub(super) fn resynced(&mut self, position: Sectors) {
        let chunk = self.bitmap.chunk_sectors();
        let whole = if position >= self.bitmap.superblock.sync_size {
            u64::MAX
        } else {
            position.0 / chunk
        };
        for (_, flags) in (0..whole).zip(&mut self.chunks) {
            *flags &= !NEEDED;
        }
    }

    /// Runs a pass of the daemon. Bits are cleared in memory only; the caller sends the pages after
    /// it has flushed the members. `events`: the array's.
    pub(super) fn age(&mut self, events: u64) {
        let mut cleared = false;
        self.all_clean = true;
        for at in 0..self.chunks.len() {
            let flags = self.chunks[at];
            let is_busy = self.writes.contains_key(&at) && !mutation::is(Mutation::BusyBitCleared);
            let is_needed = flags & NEEDED != 0 && !mutation::is(Mutation::NeededBitCleared);
            if flags & SET == 0 || is_needed || is_busy {
                continue;
            }
            self.all_clean = false;
            if flags & AGED == 0 {
                self.chunks[at] |= AGED;
                continue;
            }
            self.chunks[at] &= !(SET | AGED);
            self.set_count -= 1;
            self.lazy.insert(self.bitmap.page_of(at as u64));
            cleared = true;
        }
        let is_told = !mutation::is(Mutation::BitmapClearedDegraded);
        if cleared && is_told && self.bitmap.superblock.events_cleared != events {
            self.bitmap.superblock.events_cleared = events;
            self.lazy.insert(0);
        }
    }

    /// A write has ended on all members. md's bitmap tells up to which of the
    /// array's `events` that was so, in the first page that its thread writes
    /// then (drivers/md/md-bitmap.c, `bitmap_endwrite`).
    pub(super) const fn all_have_as_md(&mut self, events: u64) {
        if self.bitmap.superblock.events_cleared < events {
            self.bitmap.superblock.events_cleared = events;
            self.header_is_due = true;
        }
    }

    /// [`Self::age`] when md's thread finds it due. Returns whether the thread will wake by
    /// itself: not if nothing was written since the last time. A page whose bits are
    /// cleared now is written now if that has to be, and else the next time
    /// (`bitmap_daemon_work` and `md_bitmap_file_clear_bit`).
    pub(super) fn age_as_md(&mut self) -> bool {
        let was_clean = std::mem::replace(&mut self.all_clean, true);
        if !was_clean {
            self.lazy.append(&mut self.pending);
            if std::mem::take(&mut self.header_is_due) {
                self.lazy.insert(0);
            }
            let now = self.lazy.clone();
            self.age(self.bitmap.superblock.events_cleared);
            self.pending = &self.lazy - &now;
            self.lazy = now;
            for page in self.pending.clone() {
                // A write there has the page written anew.
                let chunks = self.chunks_of_page(page);
                let cleared = self.chunks[chunks].iter_mut();
                cleared
                    .filter(|flags| **flags & SET == 0)
                    .for_each(|flags| *flags &= !(SENT | DURABLE));
            }
            self.all_clean &= self.pending.is_empty();
        }
        !was_clean
    }

    /// Whether nothing has been written since bits aged last, and no bit may be cleared.
    pub(super) const fn is_all_clean(&self) -> bool {
        self.all_clean
    }

    /// Keeps bits that were cleared and are still set on the members, as a member has failed: the
    /// flush that had to come before did not cover it.
    pub(super) fn keep_cleared(&mut self) {
        if mutation::is(Mutation::ClearedBitKept) {
            return;
        }
        for page in std::mem::take(&mut self.lazy) {
            for at in self.chunks_of_page(page) {
                if self.chunks[at] & SENT != 0 {
                    self.set(at);
                }
            }
        }
    }

    /// Whether the daemon has anything to do.
    pub(super) fn can_age(&self) -> bool {
        self.set_count > 0
    }

    /// Whether cleared bits have not been sent.
    pub(super) fn has_cleared(&self) -> bool {
        !self.lazy.is_empty()
    }

    /// Whether any write waits for a page of the bitmap.
    pub(super) fn is_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Counts the bits of these chunks as set on every member, and no longer wants their pages.
    pub(super) fn believe(&mut self, chunks: Range<usize>) {
        for at in chunks {
            self.chunks[at] |= SENT | DURABLE;
            self.wanted.remove(&self.bitmap.page_of(at as u64));
        }
    }

    /// Takes the pages of these chunks to be sent now, whether or not they were sent before; others
    /// that are wanted wait. See [`Self::take_pages`].
    pub(super) fn take_pages_of(
        &mut self,
        chunks: Range<usize>,
        events: u64,
    ) -> Vec<(usize, Vec<u8>)> {
        let own: BTreeSet<usize> = chunks.map(|at| self.bitmap.page_of(at as u64)).collect();
        let others = &std::mem::take(&mut self.wanted) - &own;
        self.wanted = own;
        let runs = self.take_pages(false, events);
        self.wanted = others;
        runs
    }

    /// Takes the pages to be sent now, those with cleared bits too if `cleared`, as runs of pages
    /// with their bytes. `events` goes into the superblock.
    pub(super) fn take_pages(&mut self, cleared: bool, events: u64) -> Vec<(usize, Vec<u8>)> {
        self.bitmap.superblock.events = events;
        self.bitmap.superblock.state &= !(BitmapSuperblock::STALE | BitmapSuperblock::WRITE_ERROR);
        let mut pages = std::mem::take(&mut self.wanted);
        if cleared {
            pages.append(&mut self.lazy);
        }
        let runs = self.encode_runs(&pages);
        self.sending = pages;
        runs
    }

    /// Takes these pages, which are sent with those taken before. See [`Self::take_pages`].
    pub(super) fn take_also(&mut self, pages: &BTreeSet<usize>) -> Vec<(usize, Vec<u8>)> {
        self.wanted = &self.wanted - pages;
        self.sending.extend(pages);
        self.encode_runs(pages)
    }

    fn encode_runs(&mut self, pages: &BTreeSet<usize>) -> Vec<(usize, Vec<u8>)> {
        let mut runs: Vec<(usize, Vec<u8>)> = Vec::new();
        for &page in pages {
            self.lazy.remove(&page);
            self.pending.remove(&page);
            self.encode(page);
            let bytes = self.bitmap.page(page);
            match runs.last_mut() {
                Some((start, run)) if *start + run.len() / PAGE_BYTES == page => {
                    run.extend_from_slice(&bytes);
                }
                _ => runs.push((page, bytes.to_vec())),
            }
        }
        runs
    }

    /// Updates the bits of a page to their present state.
    fn encode(&mut self, page: usize) {
        let Range { start, end } = self.chunks_of_page(page);
        let mut chunks = self.chunks[start..end].iter_mut();
        self.bitmap.assign(start as u64..end as u64, |_| {
            chunks.next().is_some_and(|flags| {
                let set = *flags & SET != 0;
                *flags = match set {
                    true => *flags | SENT,
                    false => *flags & !(SENT | DURABLE),
                };
                set
            })
        });
    }

    /// Records that all members have the pages that were sent.
    pub(super) fn pages_arrived(&mut self) {
        for page in std::mem::take(&mut self.sending) {
            for at in self.chunks_of_page(page) {
                if self.chunks[at] & SENT != 0 {
                    self.chunks[at] |= DURABLE;
                }
            }
        }
    }

    /// Returns the ranges whose bits are set.
    pub(super) fn spans(&self) -> Vec<Span> {
        let mut bitmap = self.bitmap.clone();
        bitmap.fill(false);
        for (at, flags) in (0..).zip(&self.chunks) {
            if flags & SET != 0 {
                bitmap.set(at);
            }
        }
        bitmap.set_spans().map(span).collect()
    }

    fn chunks_of_page(&self, page: usize) -> Range<usize> {
        let first = page * PAGE_BYTES;
        let bit = |byte: usize| byte.saturating_sub(HEADER_BYTES) * 8;
        bit(first).min(self.chunks.len())..bit(first + PAGE_BYTES).min(self.chunks.len())
    }
}

/// Bytes of the bitmap's superblock, in front of the bits.
const HEADER_BYTES: usize = 256;

pub(super) const fn span(range: Range<Sectors>) -> Span {
    Span::between(range.start, range.end)
}
