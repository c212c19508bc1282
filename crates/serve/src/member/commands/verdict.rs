//! What the end of an attempt means: a command is done, is asked for again from where it
//! stopped, or has failed, in the core's words.

use super::{Ended, Job, Transfer};
use raidlab_array::MemberError;
use raidlab_array::mutation::{self, Mutation};
use rustix::io::Errno;

/// What becomes of a command.
pub(super) enum Verdict {
    Done,
    /// What is left of it is asked for again, after so many bytes more.
    Again {
        moved: usize,
    },
    /// It is asked for again after a while.
    Later,
    Failed(MemberError),
}

/// What becomes of a command whose attempt has ended so.
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
        // The end of a file or device that has become shorter: all behind it is lost.
        (Ok(0), Transfer::Read(_)) => Verdict::Failed(MemberError::Gone),
        (Ok(moved), _) => Verdict::Again { moved },
        (Err(Errno::INTR | Errno::AGAIN), _) => Verdict::Again { moved: 0 },
        // A discard is advice. A range that is no whole number of the device's own blocks is
        // not forgotten either. One that fails at its place was done by the other members: so
        // it is told, as what they hold there would differ.
        (Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL), Transfer::Discard { .. }) => {
            Verdict::Done
        }
        // What the host lacks for a moment (`BLK_STS_RESOURCE`, `BLK_STS_DEV_RESOURCE`) says
        // nothing of the member. A flush that has failed is not asked for again: what it was
        // to make durable may have been given up.
        (Err(Errno::NOMEM | Errno::BUSY), transfer) if !matches!(transfer, Transfer::Flush) => {
            Verdict::Later
        }
        (Err(_), Transfer::Flush) if mutation::is(Mutation::DriverFlushErrorLost) => Verdict::Done,
        (Err(_), Transfer::Flush) => Verdict::Failed(MemberError::Gone),
        (Err(error), _) => Verdict::Failed(member_error(error)),
    }
}

/// Bytes that a command is to move.
fn whole(transfer: &Transfer) -> usize {
    match transfer {
        Transfer::Read(bytes) => bytes.len(),
        Transfer::Write { data, .. } => data.len(),
        Transfer::Flush | Transfer::Discard { .. } => 0,
    }
}

/// Seeded bugs in what is left of a command after an attempt that moved so much.
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

/// The kernel's error numbers for block devices (`blk_errors` in
/// block/blk-core.c, 6.12): EIO, ENODATA (medium), EILSEQ (protection) and
/// EREMOTEIO (target) concern the place. All others that get here (no device, no
/// path, time out, no space) concern the member.
fn member_error(error: Errno) -> MemberError {
    match error {
        Errno::IO | Errno::NODATA | Errno::ILSEQ | Errno::REMOTEIO => MemberError::Medium,
        _ if mutation::is(Mutation::ErrorsOfPlace) => MemberError::Medium,
        _ => MemberError::Gone,
    }
}

/// Seeded bugs: commands that are answered when they are sent.
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
