//! The thread that takes a device's requests from the driver and returns the answers.
//!
//! For each tag there is one command in the ring. The driver completes it when the block layer has
//! a request; its descriptor then lies in shared memory. A write's payload is read from the
//! character device into a buffer of the pool, and the request goes to the export, which answers it
//! in any order and from any thread: such answers wait in a list, and a read of the waker's eventfd
//! ends this thread's wait. A read's payload is written to the character device, and the tag's next
//! command carries the result and fetches the next request.
//!
//! The driver takes commands only from the thread that sent the first ones. When the device is
//! stopped it completes them all with `ENODEV`; with the last of them the thread ends, and
//! everything that keeps the device open is closed.

use super::descriptors::Descriptors;
use super::request::{Shape, Wanted, errno, result, wanted};
use super::wire::{QueueCommand, command, payload_offset};
use crate::export::{
    Buffer, BufferError, BufferPool, Completions, ErrorCode, Export, Operation, Request,
};
use crate::member::{WakeRead, Waker};
use crossbeam_channel::{Sender, bounded};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The client's number for the export; connections are numbered from 0.
const CLIENT: u32 = u32::MAX;

/// Answers of the export that the driver has not received yet.
struct Answers {
    list: Mutex<Vec<Answered>>,
    waker: Waker,
}

struct Answered {
    tag: u16,
    buffer: Buffer,
    result: Result<(), ErrorCode>,
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, Vec<Answered>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completions for Answers {
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        // Tokens are tags.
        let tag = u16::try_from(token).unwrap_or(u16::MAX);
        self.lock().push(Answered {
            tag,
            buffer,
            result,
        });
        self.waker.wake();
    }
}

/// A device's queue while it is served.
pub(super) struct Queue {
    thread: JoinHandle<()>,
    over: Arc<AtomicBool>,
}

impl Queue {
    /// Serves the requests of an open character device with `depth` tags by an export, until the
    /// device is stopped.
    ///
    /// # Errors
    /// When the thread, its ring or the mapping is not available.
    pub(super) fn start(export: Arc<dyn Export>, character: File, depth: u16) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let at_end = SetAtEnd(Arc::clone(&over));
        let (started, result) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("ublk".to_owned())
            .spawn(move || {
                let _at_end = at_end;
                serve(export, character, depth, &started);
            })?;
        // If there is no answer, the thread has panicked.
        result.recv().map_err(io::Error::other)??;
        Ok(Self { thread, over })
    }

    /// Returns a flag that is set when the queue has ended.
    pub(super) fn over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.over)
    }

    /// Waits for the end of a queue whose device was stopped.
    pub(super) fn join(self) {
        // A panic there has been printed already.
        let _ = self.thread.join();
    }
}

struct SetAtEnd(Arc<AtomicBool>);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn serve(export: Arc<dyn Export>, character: File, depth: u16, started: &Sender<io::Result<()>>) {
    let mut worker = match Worker::new(export, character, depth) {
        Ok(worker) => worker,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let fetched = worker.fetch_all();
    let goes_on = fetched.is_ok();
    let _ = started.send(fetched);
    if goes_on {
        // After any error of the ring the thread cannot go on: the device ends with it, and its
        // users get errors.
        let _ = worker.run();
    }
}

struct Worker {
    ring: IoUring,
    character: File,
    descriptors: Descriptors,
    export: Arc<dyn Export>,
    shape: Shape,
    answers: Arc<Answers>,
    pool: BufferPool,
    /// By tag, the request that the export is working on.
    asked: Vec<Option<Wanted>>,
    /// The number of tags whose command the driver has.
    fetching: usize,
    /// The number of tags whose request the export has.
    busy: usize,
    wake: WakeRead,
}

impl Worker {
    fn new(export: Arc<dyn Export>, character: File, depth: u16) -> io::Result<Self> {
        let entries = (u32::from(depth) + 1).next_power_of_two();
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(entries)
            .or_else(|_| IoUring::new(entries))?;
        Ok(Self {
            ring,
            descriptors: Descriptors::map(&character, depth)?,
            character,
            shape: Shape::of(&*export),
            export,
            answers: Arc::new(Answers {
                list: Mutex::default(),
                waker: Waker::new()?,
            }),
            pool: BufferPool::default(),
            asked: vec![None; usize::from(depth)],
            fetching: 0,
            busy: 0,
            wake: WakeRead::default(),
        })
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: an entry names the open character device or the waker's
            // eventfd, which live as long as the ring, and no memory but
            // that of `self.wake`, which is leaked if the kernel has it still.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            // The queue is full: the kernel takes its entries.
            self.ring.submit()?;
        }
    }

    fn command(&mut self, code: u32, tag: u16, result: i32) -> io::Result<()> {
        let entry = opcode::UringCmd16::new(Fd(self.character.as_raw_fd()), code)
            .cmd(QueueCommand::of(tag, result).in_entry())
            .build()
            .user_data(u64::from(tag));
        self.push(&entry)?;
        self.fetching += 1;
        Ok(())
    }

    /// Sends the first command of every tag.
    fn fetch_all(&mut self) -> io::Result<()> {
        for tag in 0..self.asked.len() {
            // There are at most 4096.
            self.command(command::FETCH, tag as u16, 0)?;
        }
        self.ring.submit()?;
        Ok(())
    }

    /// Runs until the device is stopped and every request answered.
    fn run(&mut self) -> io::Result<()> {
        let mut completed = Vec::new();
        while self.fetching + self.busy > 0 {
            self.give_answers()?;
            if let Some(entry) = self.wake.entry(&self.answers.waker) {
                self.push(&entry)?;
            }
            self.answers.waker.announce();
            // Answers that came before the announcement did not wake the thread.
            let least = usize::from(self.answers.lock().is_empty());
            let waited = self.ring.submit_and_wait(least);
            self.answers.waker.awake();
            if let Err(error) = waited {
                match Errno::from_io_error(&error) {
                    Some(Errno::INTR | Errno::BUSY | Errno::AGAIN) => {}
                    _ => return Err(error),
                }
            }
            let completions = self.ring.completion();
            completed.extend(completions.map(|one| (one.user_data(), one.result())));
            let mut submitted = false;
            for (name, result) in completed.drain(..) {
                match u16::try_from(name) {
                    Ok(tag) => submitted |= self.arrived(tag, result)?,
                    // The number is `WakeRead::NAME`.
                    Err(_) => self.wake.ended(),
                }
            }
            if submitted {
                self.export.submitted();
            }
        }
        Ok(())
    }

    /// Handles the completion of a tag's command; returns whether a request went to the export.
    fn arrived(&mut self, tag: u16, result: i32) -> io::Result<bool> {
        self.fetching -= 1;
        if result < 0 {
            // The device is stopped, or refuses the tag, which is used no more.
            return Ok(false);
        }
        let descriptor = self.descriptors.get(tag).unwrap_or_default();
        match wanted(&descriptor, &self.shape).and_then(|asked| self.prepare(tag, asked)) {
            Ok(request) => {
                self.busy += 1;
                self.export.submit(request);
                Ok(true)
            }
            Err(error) => self.answer(tag, Err(error)).map(|()| false),
        }
    }

    /// Builds the request with its payload.
    fn prepare(&mut self, tag: u16, asked: Wanted) -> Result<Request, Errno> {
        let mut buffer = Buffer::empty();
        if asked.has_payload() {
            buffer = self
                .pool
                .take(asked.length as usize)
                .map_err(|error| match error {
                    BufferError::TooLong(_) => Errno::INVAL,
                    BufferError::OutOfMemory(_) => Errno::NOMEM,
                })?;
        }
        if asked.operation == Operation::Write {
            let read = self
                .character
                .read_exact_at(&mut buffer, payload_offset(tag));
            read.map_err(|_| Errno::IO)?;
        }
        self.asked[usize::from(tag)] = Some(asked);
        let answer = Arc::clone(&self.answers) as Arc<dyn Completions>;
        let mut request = Request::new(
            asked.operation,
            asked.offset,
            asked.length,
            asked.flags,
            buffer,
            (answer, u64::from(tag)),
        );
        request.client = CLIENT;
        Ok(request)
    }

    /// Sends the export's answers to the driver.
    fn give_answers(&mut self) -> io::Result<()> {
        let list = std::mem::take(&mut *self.answers.lock());
        for Answered {
            tag,
            buffer,
            result,
        } in list
        {
            let asked = self.asked.get_mut(usize::from(tag));
            let Some(asked) = asked.and_then(Option::take) else {
                continue;
            };
            self.busy -= 1;
            let done = result
                .map_err(errno)
                .and_then(|()| self.finish(tag, asked, &buffer));
            self.answer(tag, done)?;
        }
        Ok(())
    }

    /// Passes a read's bytes to the driver; returns the number of bytes done.
    fn finish(&self, tag: u16, asked: Wanted, buffer: &Buffer) -> Result<u32, Errno> {
        if asked.operation == Operation::Read {
            if buffer.len() != asked.length as usize {
                return Err(Errno::IO);
            }
            let written = self.character.write_all_at(buffer, payload_offset(tag));
            written.map_err(|_| Errno::IO)?;
        }
        Ok(asked.length)
    }

    fn answer(&mut self, tag: u16, done: Result<u32, Errno>) -> io::Result<()> {
        self.command(command::ANSWER_AND_FETCH, tag, result(done))
    }
}
