//! Commands by `io_uring`: one ring for an array, used by its owner alone.
//!
//! Jobs wait in the submission queue and go to the kernel in one call, together with the wait for
//! completions. Members are registered files; payloads lie in registered memory as far as there is
//! room for it (see `registered`). A read of the waker's eventfd is always under way, so that a
//! request from another thread ends the wait like any completion.
//!
//! A file that goes through the page cache has threads of its own in place of the ring. The kernel
//! gives writes to files to workers that it chooses by a hash of the inode (`io_wq_hash_work`), and
//! those of one hash wait for each other: a file that hangs would take others with it.
//!
//! The kernel reads and writes through addresses taken from a job's borrow. The job, and with it
//! the borrow, stays in `jobs` until its completion has been seen; a ring that is dropped earlier
//! leaks the jobs rather than free memory that the kernel may still access.

mod registered;

pub use registered::RegisteredMemory;

use super::{
    Backend, Ended, Identity, Job, MemberFile, Storage, Threads, Transfer, WakeRead, Waker,
};
use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use registered::Registered;
use rustix::fs::FallocateFlags;
use rustix::io::{Errno, ReadWriteFlags};
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// The most submissions before the kernel is called.
const ENTRIES: u32 = 256;
/// The number of registered members: all slots of an array and its external bitmap.
const FILES: u32 = 1024;
/// The number of kernel threads for commands that cannot be done without blocking. The kernel's own
/// default of four a core would let one member that hangs stop the others.
const WORKERS: u32 = 64;
/// A ring and the jobs in it.
pub struct Ring {
    ring: IoUring,
    registered: Option<Registered>,
    waker: Arc<Waker>,
    jobs: Vec<Option<Job>>,
    free: Vec<usize>,
    attached: Vec<bool>,
    /// The threads of files that go through the page cache.
    threads: Threads,
    /// Jobs that the kernel did not take, with the error that is reported for them.
    refused: Vec<(Job, Errno)>,
    wake: WakeRead,
    /// The number of further submissions that are made to fail for lack of resources, for tests.
    #[cfg(test)]
    pub(super) lacks: u32,
}

impl Ring {
    /// Sets a ring up for the calling thread. It registers up to
    /// `registered_bytes` of the payloads' memory.
    ///
    /// # Errors
    /// When the kernel has no `io_uring`, refuses it or lacks an operation.
    pub fn new(waker: &Arc<Waker>, registered_bytes: u64) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(4 * ENTRIES)
            .build(ENTRIES)
            .or_else(|_| IoUring::builder().setup_cqsize(4 * ENTRIES).build(ENTRIES))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::Fsync::CODE,
            opcode::Fallocate::CODE,
        ];
        if !needed.iter().all(|&code| probe.is_supported(code)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        ring.submitter().register_files_sparse(FILES)?;
        // Kernels before 5.15 keep their default.
        let _ = ring
            .submitter()
            .register_iowq_max_workers(&mut [WORKERS, 0]);
        let registered =
            (registered_bytes > 0).then(|| Registered::new(&ring.submitter(), registered_bytes));
        Ok(Self {
            ring,
            registered,
            waker: Arc::clone(waker),
            jobs: Vec::new(),
            free: Vec::new(),
            attached: Vec::new(),
            threads: Threads::new(waker),
            refused: Vec::new(),
            wake: WakeRead::default(),
            #[cfg(test)]
            lacks: 0,
        })
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: an entry names a registered file or the waker's eventfd,
            // and memory of a job in `self.jobs` or of `self.wake`; both
            // live until its completion (or are leaked).
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            // The queue is full: the kernel takes its entries.
            self.hand_over()?;
        }
    }

    /// Makes the kernel take the entries in the queue.
    fn hand_over(&mut self) -> io::Result<usize> {
        #[cfg(test)]
        if let Some(left) = self.lacks.checked_sub(1) {
            self.lacks = left;
            return Err(Errno::AGAIN.into());
        }
        self.ring.submit()
    }

    fn collect(&mut self, ended: &mut Vec<(Job, Ended)>) {
        let mut completions = self.ring.completion();
        completions.sync();
        for completion in &mut completions {
            if completion.user_data() == WakeRead::NAME {
                self.wake.ended();
                continue;
            }
            let index = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
            if let Some(job) = self.jobs.get_mut(index).and_then(Option::take) {
                self.free.push(index);
                ended.push((job, outcome(&completion)));
            }
        }
    }
}

/// Whether the kernel may succeed next time: the call timed out or was interrupted, or it lacked
/// memory for a moment or room for completions.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|error| passing.contains(&error))
}

/// Whether the kernel may let a write to a file wait for one to another file.
fn waits_for_others(file: &MemberFile) -> bool {
    matches!(file.identity(), Identity::File { .. }) && !file.direct()
}

fn outcome(completion: &cqueue::Entry) -> Ended {
    usize::try_from(completion.result())
        .map_err(|_| Errno::from_raw_os_error(completion.result().wrapping_neg()))
}

/// The most bytes that one entry moves: whole pages below the kernel's limit for
/// one call (`MAX_RW_COUNT`).
const MAXIMUM_BYTES: usize = 0x7fff_f000;

/// Returns the ring's entry for a job; `buffer`: the index of its registered memory.
fn entry(job: &mut Job, buffer: Option<u16>) -> squeue::Entry {
    let file = Fixed(u32::try_from(job.place).unwrap_or(u32::MAX));
    let offset = job.at();
    let length = |bytes: usize| u32::try_from(bytes.min(MAXIMUM_BYTES)).unwrap_or(u32::MAX);
    match &mut job.transfer {
        Transfer::Read(bytes) => {
            let bytes = &mut bytes[job.moved..];
            let (start, length) = (bytes.as_mut_ptr(), length(bytes.len()));
            match buffer {
                Some(buffer) => opcode::ReadFixed::new(file, start, length, buffer)
                    .offset(offset)
                    .build(),
                None => opcode::Read::new(file, start, length)
                    .offset(offset)
                    .build(),
            }
        }
        Transfer::Write {
            data,
            force_unit_access,
        } => {
            let bytes = &data[job.moved..];
            let flags = if *force_unit_access {
                ReadWriteFlags::DSYNC
            } else {
                ReadWriteFlags::empty()
            };
            let flags = flags.bits().cast_signed();
            let (start, length) = (bytes.as_ptr(), length(bytes.len()));
            match buffer {
                Some(buffer) => opcode::WriteFixed::new(file, start, length, buffer)
                    .offset(offset)
                    .rw_flags(flags)
                    .build(),
                None => opcode::Write::new(file, start, length)
                    .offset(offset)
                    .rw_flags(flags)
                    .build(),
            }
        }
        Transfer::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        Transfer::Discard { bytes } => {
            let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            opcode::Fallocate::new(file, *bytes)
                .offset(offset)
                .mode(mode.bits().cast_signed())
                .build()
        }
    }
}

/// The least bytes of a write for which it is worth waking one more worker: on tmpfs,
/// two processors, RAID 6 of 8+2 gained 15 % with 64 KiB to a member and lost 10 % with
/// 32 KiB (`array_speed`).
const SEVERAL_WORKERS_BYTES: usize = 64 << 10;

/// Whether the kernel is to give the job to a worker without trying it first. Where it cannot try a
/// write, it passes it to a worker anyway, but always to one and the same as long as that one does
/// not sleep: writes to ten members would be copied one after the other. If asked for at once, each
/// file's writes get a worker of their own (`IO_WQ_WORK_CONCURRENT`, io_uring/io_uring.c, Linux
/// 6.18; earlier kernels take no harm).
fn is_for_several_workers(job: &Job) -> bool {
    match &job.transfer {
        Transfer::Write { data, .. } => {
            data.len() - job.moved >= SEVERAL_WORKERS_BYTES
                && job.storage.file().is_some_and(|file| !file.nowait())
        }
        Transfer::Read(_) | Transfer::Flush | Transfer::Discard { .. } => false,
    }
}

impl Backend for Ring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn attach(&mut self, place: usize, storage: &Arc<dyn Storage>) -> io::Result<()> {
        let file = storage.file().ok_or(io::ErrorKind::Unsupported)?;
        if waits_for_others(file) {
            self.detach(place);
            return self.threads.attach(place, storage);
        }
        self.threads.detach(place);
        let index = u32::try_from(place)
            .ok()
            .filter(|&index| index < FILES)
            .ok_or(io::ErrorKind::InvalidInput)?;
        self.ring
            .submitter()
            .register_files_update(index, &[file.file().as_raw_fd()])?;
        if self.attached.len() <= place {
            self.attached.resize(place + 1, false);
        }
        self.attached[place] = true;
        Ok(())
    }

    fn detach(&mut self, place: usize) {
        self.threads.detach(place);
        if self.attached.get(place) == Some(&true) {
            // Entries in the queue still refer to the old file, so they are submitted first.
            let _ = self.ring.submit();
            let index = u32::try_from(place).unwrap_or(u32::MAX);
            let _ = self.ring.submitter().register_files_update(index, &[-1]);
            self.attached[place] = false;
        }
    }

    fn submit(&mut self, mut job: Job) {
        if self.threads.has(job.place) {
            self.threads.submit(job);
            return;
        }
        if self.attached.get(job.place) != Some(&true) {
            self.refused.push((job, Errno::NODEV));
            return;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        let buffer = self.registered.as_mut().and_then(|registered| {
            let memory = match &job.transfer {
                Transfer::Read(bytes) => bytes.memory(),
                Transfer::Write { data, .. } => data.memory(),
                Transfer::Flush | Transfer::Discard { .. } => return None,
            };
            registered.index(&self.ring.submitter(), memory)
        });
        let mut entry = entry(&mut job, buffer).user_data(index as u64);
        if is_for_several_workers(&job) {
            entry = entry.flags(squeue::Flags::ASYNC);
        }
        self.jobs[index] = Some(job);
        if let Err(error) = self.push(&entry)
            && let Some(job) = self.jobs[index].take()
        {
            // The entry did not get into the queue: the kernel does not know of it, so that even a
            // flush may be repeated.
            self.free.push(index);
            let passes = is_passing(&error);
            self.refused
                .push((job, if passes { Errno::AGAIN } else { Errno::NODEV }));
        }
    }

    fn wait(&mut self, timeout: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()> {
        let before = ended.len();
        let refused = self.refused.drain(..);
        ended.extend(refused.map(|(job, error)| (job, Err(error))));
        self.threads.collect(ended);
        let mut timeout = if ended.len() > before {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        if let Some(entry) = self.wake.entry(&self.waker)
            && let Err(error) = self.push(&entry)
        {
            self.wake.ended();
            if !is_passing(&error) {
                return Err(error);
            }
            // No completion would end the wait.
            timeout = Some(Duration::ZERO);
        }
        let time;
        let mut arguments = SubmitArgs::new();
        if let Some(timeout) = timeout {
            time = Timespec::from(timeout);
            arguments = arguments.timespec(&time);
        }
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        self.collect(ended);
        self.threads.collect(ended);
        Ok(())
    }

    fn registered(&self) -> Option<RegisteredMemory> {
        self.registered.as_ref().map(Registered::report)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel dismantles a closed ring some time later; until then its files would stay
        // open, and claimed.
        let _ = self.ring.submitter().unregister_files();
        // Nor does closing wait for what is under way.
        for job in self.jobs.drain(..).flatten() {
            std::mem::forget(job);
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Ring")
            .field("in_flight", &(self.jobs.len() - self.free.len()))
            .finish_non_exhaustive()
    }
}
