//! Commands by threads that block: for kernels and containers without
//! `io_uring`.
//!
//! Each member has threads of its own, so that a member that hangs takes no
//! other with it. They end when the member is detached and its jobs are done.

use super::{Backend, Ended, Job, Storage, Transfer, Waker};
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The number of threads per member: enough for a disk's queue to choose among commands.
const THREADS_PER_MEMBER: usize = 8;

/// Threads that carry out jobs.
#[derive(Debug)]
pub struct Threads {
    waker: Arc<Waker>,
    members: Vec<Option<Sender<Job>>>,
    ended: Receiver<(Job, Ended)>,
    ended_sender: Sender<(Job, Ended)>,
}

impl Threads {
    /// A backend without threads yet; they start with the members.
    #[must_use]
    pub fn new(waker: &Arc<Waker>) -> Self {
        let (ended_sender, ended) = unbounded();
        Self {
            waker: Arc::clone(waker),
            members: Vec::new(),
            ended,
            ended_sender,
        }
    }

    /// Whether there is a member at a place.
    pub(super) fn has(&self, place: usize) -> bool {
        matches!(self.members.get(place), Some(Some(_)))
    }

    /// Appends the jobs that have ended, without waiting for any.
    pub(super) fn collect(&mut self, ended: &mut Vec<(Job, Ended)>) {
        ended.extend(self.ended.try_iter());
    }
}

impl Backend for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn attach(&mut self, place: usize, _: &Arc<dyn Storage>) -> io::Result<()> {
        if self.members.len() <= place {
            self.members.resize_with(place + 1, || None);
        }
        let (sender, jobs) = unbounded::<Job>();
        for number in 0..THREADS_PER_MEMBER {
            let jobs = jobs.clone();
            let ended = self.ended_sender.clone();
            let waker = Arc::clone(&self.waker);
            std::thread::Builder::new()
                .name(format!("member-{place}-{number}"))
                .spawn(move || work(&jobs, &ended, &waker))?;
        }
        self.members[place] = Some(sender);
        Ok(())
    }

    fn detach(&mut self, place: usize) {
        if let Some(member) = self.members.get_mut(place) {
            *member = None;
        }
    }

    fn submit(&mut self, job: Job) {
        let refused = match self.members.get(job.place) {
            Some(Some(member)) => member.send(job).err().map(|refused| refused.0),
            _ => Some(job),
        };
        if let Some(job) = refused {
            // This backend itself has the other end of the channel, so it is open.
            let _ = self.ended_sender.send((job, Err(Errno::NODEV)));
        }
    }

    fn wait(&mut self, timeout: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()> {
        let before = ended.len();
        ended.extend(self.ended.try_iter());
        if ended.len() == before && timeout != Some(Duration::ZERO) {
            self.waker.sleep(timeout)?;
            ended.extend(self.ended.try_iter());
        }
        Ok(())
    }
}

fn work(jobs: &Receiver<Job>, ended: &Sender<(Job, Ended)>, waker: &Waker) {
    for mut job in jobs {
        let result = perform(&mut job);
        if ended.send((job, result)).is_err() {
            return;
        }
        waker.wake();
    }
}

/// Carries out a job in the calling thread.
pub(super) fn perform(job: &mut Job) -> Ended {
    let storage = &*job.storage;
    let offset = job.at();
    match &mut job.transfer {
        Transfer::Read(bytes) => storage.read_at(&mut bytes[job.moved..], offset),
        Transfer::Write {
            data,
            force_unit_access,
        } => storage.write_at(&data[job.moved..], offset, *force_unit_access),
        Transfer::Flush => storage.flush().map(|()| 0),
        Transfer::Discard { bytes } => storage.discard(offset, *bytes).map(|()| 0),
    }
}
