//! The meaning of an attempt's end: a command is done, is continued from where it stopped, or has
//! failed, in the core's terms.

use super::super::Member;
use super::{Ended, Job, Place, Transfer};
use raidlab_array::MemberError;
use raidlab_array::mutation::{self, Mutation};
use rustix::io::Errno;

/// The consequence of an attempt for its command.
pub(super) enum Verdict {
    Done,
    /// The rest of the command is sent again, after `moved` bytes more.
    Again {
        moved: usize,
    },
    /// The command is sent again after a pause.
    Later,
    Failed(MemberError),
}

/// Returns the verdict on a command whose attempt ended with this result.
pub(super) fn judge(job: &Job, result: Ended) -> Verdict {
    let whole = whole(&job.transfer);
    match (result, &job.transfer) {
        (Ok(moved), _) if job.moved + moved >= whole => Verdict::Done,
        (Ok(moved), _) if moved > 0 && mutation::is(Mutation::ShortWriteTaken) => Verdict::Done,
        (Ok(1..), Transfer::Read(_)) if mutation::is(Mutation::ShortReadTaken) => Verdict::Done,
        (Err(Errno::INTR), _) if mutation::is(Mutation::InterruptedTaken) => Verdict::Done,
        (Err(Errno::INTR), _) if mutation::is(Mutation::InterruptedFails) => {
            Verdict::Failed(MemberError::Gone)
        }
        (Err(Errno::IO), Transfer::Write { .. }) if mutation::is(Mutation::WriteErrorTaken) => {
            Verdict::Done
        }
        (Err(Errno::IO), Transfer::Read(_)) if mutation::is(Mutation::ReadErrorTaken) => {
            Verdict::Done
        }
        // The end of a file or device that has become shorter: all data behind it are lost.
        (Ok(0), Transfer::Read(_)) => Verdict::Failed(MemberError::Gone),
        (Ok(moved), _) => Verdict::Again { moved },
        (Err(Errno::INTR | Errno::AGAIN), _) => Verdict::Again { moved: 0 },
        // A discard is advice. A range that is not a whole number of the device's own blocks is not
        // discarded either. One that fails with an error was done on the other members: it is
        // reported, as the contents there would differ.
        (Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL), Transfer::Discard { .. }) => {
            Verdict::Done
        }
        // A temporary lack of the host (`BLK_STS_RESOURCE`, `BLK_STS_DEV_RESOURCE`) says nothing
        // about the member. A flush that has failed is not repeated: the writes that it was to make
        // durable may have been dropped.
        (Err(Errno::NOMEM | Errno::BUSY), transfer) if !matches!(transfer, Transfer::Flush) => {
            Verdict::Later
        }
        (Err(_), Transfer::Flush) if mutation::is(Mutation::DriverFlushErrorLost) => Verdict::Done,
        (Err(_), Transfer::Flush) => Verdict::Failed(MemberError::Gone),
        (Err(error), _) => Verdict::Failed(member_error(error)),
    }
}

impl Place {
    /// Notes the end of a command to the member. One that succeeds shows that the member is there:
    /// an earlier one may have failed because the file system was full, say. The first reason stays, as
    /// the array may have failed the member for it.
    pub(super) fn note(&mut self, result: Result<(), MemberError>) {
        self.is_gone &= result.is_err();
        if result == Err(MemberError::Gone) {
            self.is_gone = true;
            self.lost.get_or_insert_with(|| "it is gone".to_owned());
        }
    }

    /// Whether the member counts as gone. A file that was cut short or deleted does, although reads
    /// of the rest succeed.
    pub(super) fn is_lost(&self) -> bool {
        let is_cut = match &self.member {
            Some(Member::Storage(storage)) => storage.why_lost().is_some(),
            _ => false,
        };
        self.hung || self.is_gone || is_cut
    }
}

/// Returns the bytes that a command is to move.
fn whole(transfer: &Transfer) -> usize {
    match transfer {
        Transfer::Read(bytes) => bytes.len(),
        Transfer::Write { data, .. } => data.len(),
        Transfer::Flush | Transfer::Discard { .. } => 0,
    }
}

/// Applies seeded bugs to the rest of a command after an attempt that moved `moved` bytes.
pub(super) fn plant_in_rest(job: &mut Job, moved: usize) {
    let whole = whole(&job.transfer);
    if moved == 0 && job.moved + 512 < whole && mutation::is(Mutation::InterruptedSkips) {
        job.moved += 512;
    }
    if let Transfer::Write {
        force_unit_access, ..
    } = &mut job.transfer
    {
        *force_unit_access &= !mutation::is(Mutation::RestNotDurable);
    }
}

/// Returns the meaning of the kernel's error numbers for block devices (`blk_errors` in
/// block/blk-core.c, 6.12): EIO, ENODATA (medium), EILSEQ (protection) and EREMOTEIO (target)
/// concern the place. All others that arrive here (no device, no path, time out, no space)
/// concern the member.
fn member_error(error: Errno) -> MemberError {
    match error {
        Errno::IO | Errno::NODATA | Errno::ILSEQ | Errno::REMOTEIO => MemberError::Medium,
        _ if mutation::is(Mutation::ErrorsOfPlace) => MemberError::Medium,
        _ => MemberError::Gone,
    }
}

/// Whether a seeded bug answers this command when it is sent.
pub(super) fn is_unawaited(transfer: &Transfer) -> bool {
    match transfer {
        Transfer::Write {
            force_unit_access: true,
            ..
        } => mutation::is(Mutation::DurableWriteUnawaited),
        Transfer::Flush => mutation::is(Mutation::FlushUnawaited),
        _ => false,
    }
}
