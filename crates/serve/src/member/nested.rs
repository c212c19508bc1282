//! Members that are arrays themselves, served by this process.
//!
//! As for md an inner array is a device like any other. Its own thread owns it; the outer array's
//! thread sends it requests and is woken by its answers. The bytes are copied on the way, as each
//! array has payloads of its own.
//!
//! Fault model: an inner array answers every command, as it gives up its own members by itself; so
//! it has no time limit, which would fail it while it is about to go on without a member that
//! hangs. An error concerns the place while the array works, and the whole member as soon as the
//! array has failed. md cannot distinguish the two: from below it gets only an I/O error.

use super::storage::{flush_whole, read_whole, write_whole};
use super::{MemberFile, Storage, Transfer, Waker};
use crate::export::{
    Buffer, BufferPool, Completions, ErrorCode, Export, MAXIMUM_BUFFER_BYTES, Operation, Request,
    RequestFlags,
};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use raidlab_array::MemberError;
use raidlab_units::{Bytes, Sectors};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest discard that one request carries, in bytes.
const MAXIMUM_DISCARD_BYTES: u64 = 1 << 31;

/// A member of an array.
#[derive(Debug, Clone)]
pub enum Member {
    /// A file or a block device, or a substitute for one.
    Storage(Arc<dyn Storage>),
    /// Another array of this process.
    Array(Arc<NestedMember>),
}

/// An array in its role as a member.
pub struct NestedMember {
    path: PathBuf,
    export: Arc<dyn Export>,
}

impl NestedMember {
    /// The array `export` as a member, named `array:NAME`.
    #[must_use]
    pub fn new(name: &str, export: Arc<dyn Export>) -> Self {
        Self {
            path: PathBuf::from(format!("array:{name}")),
            export,
        }
    }

    fn size(&self) -> Sectors {
        Bytes(self.export.size_bytes()).to_sectors()
    }

    /// Sends one request to the array and waits for the answer.
    fn ask(
        &self,
        operation: Operation,
        offset: u64,
        length: usize,
        buffer: Buffer,
    ) -> io::Result<Buffer> {
        let (sender, answer) = bounded(1);
        let length = u32::try_from(length).map_err(io::Error::other)?;
        let flags = RequestFlags::default();
        let mailbox = Arc::new(Mailbox {
            sender,
            waker: None,
        });
        let request = Request::new(operation, offset, length, flags, buffer, (mailbox, 0));
        self.export.submit(request);
        self.export.submitted();
        match answer.recv() {
            Ok((_, buffer, Ok(()))) => Ok(buffer),
            Ok((_, _, Err(error))) => Err(io::Error::other(error)),
            Err(gone) => Err(io::Error::other(gone)),
        }
    }
}

impl std::fmt::Debug for NestedMember {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("NestedMember")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl From<MemberFile> for Member {
    fn from(file: MemberFile) -> Self {
        Self::Storage(Arc::new(file))
    }
}

impl Member {
    /// Returns the name with which it was given: a path, or `array:NAME`.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Storage(storage) => storage.path(),
            Self::Array(array) => &array.path,
        }
    }

    /// Returns the whole sectors of 512 bytes.
    #[must_use]
    pub fn size(&self) -> Sectors {
        match self {
            Self::Storage(storage) => storage.size(),
            Self::Array(array) => array.size(),
        }
    }

    /// Whether the member lies on a mechanical disk, as far as the kernel knows.
    #[must_use]
    pub fn rotational(&self) -> bool {
        match self {
            Self::Storage(storage) => storage.rotational(),
            Self::Array(array) => array.export.features().rotational,
        }
    }

    /// Reads `bytes` from `offset` on, and waits for it. Both in whole sectors, `bytes` aligned to
    /// a page unless the member is buffered.
    ///
    /// # Errors
    /// The system's, also for the member's end.
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let array = match self {
            Self::Storage(storage) => return read_whole(&**storage, bytes, offset),
            Self::Array(array) => array,
        };
        check_range(array, bytes.len(), offset)?;
        let pool = BufferPool::new(0);
        for (piece, start) in pieces(bytes.len()) {
            let buffer = pool.take(piece).map_err(io::Error::other)?;
            let buffer = array.ask(Operation::Read, offset + start as u64, piece, buffer)?;
            bytes[start..start + piece].copy_from_slice(&buffer);
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`, and waits for it, with the
    /// rules of [`read_exact_at`](Self::read_exact_at).
    ///
    /// # Errors
    /// The system's, also for the member's end.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let array = match self {
            Self::Storage(storage) => return write_whole(&**storage, bytes, offset),
            Self::Array(array) => array,
        };
        check_range(array, bytes.len(), offset)?;
        let pool = BufferPool::new(0);
        for (piece, start) in pieces(bytes.len()) {
            let mut buffer = pool.take(piece).map_err(io::Error::other)?;
            buffer.copy_from_slice(&bytes[start..start + piece]);
            array.ask(Operation::Write, offset + start as u64, piece, buffer)?;
        }
        Ok(())
    }

    /// Makes every completed write durable, and waits for it.
    ///
    /// # Errors
    /// The system's.
    pub fn flush(&self) -> io::Result<()> {
        match self {
            Self::Storage(storage) => flush_whole(&**storage),
            Self::Array(array) => array
                .ask(Operation::Flush, 0, 0, Buffer::empty())
                .map(|_| ()),
        }
    }
}

fn check_range(array: &NestedMember, length: usize, offset: u64) -> io::Result<()> {
    let end = offset.checked_add(length as u64);
    match end.is_some_and(|end| end <= array.export.size_bytes()) {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Cuts a length at the longest request: lengths and starts.
fn pieces(length: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..length)
        .step_by(MAXIMUM_BUFFER_BYTES)
        .map(move |start| (MAXIMUM_BUFFER_BYTES.min(length - start), start))
}

type Reply = (u64, Buffer, Result<(), ErrorCode>);

struct Mailbox {
    sender: Sender<Reply>,
    /// The waker of the outer array; `None` if a thread waits for the channel.
    waker: Option<Arc<Waker>>,
}

impl Completions for Mailbox {
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        // The outer array may be gone, so that the channel is closed.
        let _ = self.sender.send((token, buffer, result));
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// A command to an inner array that has ended.
#[derive(Debug)]
pub(super) struct NestedEnded {
    pub(super) token: u64,
    pub(super) transfer: Transfer,
    pub(super) result: Result<(), MemberError>,
}

/// Commands to inner arrays under way.
pub(super) struct NestedJobs {
    pool: BufferPool,
    mailbox: Arc<Mailbox>,
    replies: Receiver<Reply>,
    jobs: HashMap<u64, (Arc<NestedMember>, Transfer)>,
    /// Arrays to which requests were sent since they were last told of the end of a batch.
    touched: Vec<Arc<NestedMember>>,
    refused: Vec<NestedEnded>,
}

impl std::fmt::Debug for NestedJobs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("NestedJobs")
            .field("in_flight", &self.jobs.len())
            .finish_non_exhaustive()
    }
}

impl NestedJobs {
    pub(super) fn new(waker: Option<Arc<Waker>>) -> Self {
        let (sender, replies) = unbounded();
        Self {
            pool: BufferPool::default(),
            mailbox: Arc::new(Mailbox { sender, waker }),
            replies,
            jobs: HashMap::new(),
            touched: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Sends a command; the array may sleep until [`Self::start`].
    pub(super) fn submit(
        &mut self,
        token: u64,
        member: &Arc<NestedMember>,
        offset: u64,
        transfer: Transfer,
    ) {
        let mut flags = RequestFlags::default();
        let buffer = match &transfer {
            Transfer::Read(bytes) => self.pool.take(bytes.len()),
            Transfer::Write { data, .. } => self.pool.take(data.len()).map(|mut buffer| {
                buffer.copy_from_slice(data);
                buffer
            }),
            Transfer::Flush | Transfer::Discard { .. } => Ok(Buffer::empty()),
        };
        let Ok(buffer) = buffer else {
            // This process has no memory, which is not a passing lack of the kernel.
            let result = Err(MemberError::Gone);
            self.refused.push(NestedEnded {
                token,
                transfer,
                result,
            });
            return;
        };
        let (operation, length) = match &transfer {
            Transfer::Read(bytes) => (Operation::Read, bytes.len() as u64),
            Transfer::Write {
                data,
                force_unit_access,
            } => {
                flags.force_unit_access = *force_unit_access;
                (Operation::Write, data.len() as u64)
            }
            Transfer::Flush => (Operation::Flush, 0),
            // A discard is advice: bytes beyond the limit are kept.
            Transfer::Discard { bytes } => (Operation::Trim, (*bytes).min(MAXIMUM_DISCARD_BYTES)),
        };
        let offset = if operation == Operation::Flush {
            0
        } else {
            offset
        };
        self.jobs.insert(token, (Arc::clone(member), transfer));
        let answer = Arc::clone(&self.mailbox) as Arc<dyn Completions>;
        member.export.submit(Request::new(
            operation,
            offset,
            u32::try_from(length).unwrap_or(u32::MAX),
            flags,
            buffer,
            (answer, token),
        ));
        if !self.touched.iter().any(|other| Arc::ptr_eq(other, member)) {
            self.touched.push(Arc::clone(member));
        }
    }

    /// Tells the arrays that no more requests follow for now.
    pub(super) fn start(&mut self) {
        for member in self.touched.drain(..) {
            member.export.submitted();
        }
    }

    /// Appends the commands that have ended since the last call.
    pub(super) fn collect(&mut self, ended: &mut Vec<NestedEnded>) {
        ended.append(&mut self.refused);
        for (token, buffer, result) in self.replies.try_iter() {
            let Some((member, mut transfer)) = self.jobs.remove(&token) else {
                continue;
            };
            if let (Ok(()), Transfer::Read(bytes)) = (result, &mut transfer) {
                bytes.copy_from_slice(&buffer);
            }
            let result = result.map_err(|error| member_error(&member, &transfer, error));
            ended.push(NestedEnded {
                token,
                transfer,
                result,
            });
        }
    }
}

/// Returns the meaning of an inner array's error for the outer one.
fn member_error(member: &NestedMember, transfer: &Transfer, error: ErrorCode) -> MemberError {
    match (error, transfer) {
        (_, Transfer::Flush) => MemberError::Gone,
        (ErrorCode::Io, _) if !member.export.has_failed() => MemberError::Medium,
        _ => MemberError::Gone,
    }
}
