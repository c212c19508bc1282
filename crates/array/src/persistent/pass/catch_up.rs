//! The first passes of a run, so that a second crash does no harm.
//!
//! *Catching up.* A crash between two members' superblocks leaves some of them one event behind the
//! others, which assembly allows for. If the next count were written to one of the others now and
//! there were a crash again, they would be two behind, like a member that has missed writes, and
//! the array could lack members that have missed nothing. So in a run that starts with such members
//! the first pass brings them level, and does nothing else: they get the newest superblock as it
//! was found, whichever device has it, without a new event count, in place of their own. Until it
//! is over no member is ahead of the newest superblock as found, and all are still at most one
//! behind. The content of such a superblock is what the assembly relied on anyway. If a log was
//! replayed, then their log superblocks go before, of the session that was chosen.
//!
//! *Members that stay away.* A member that was in service and is missing may be one event ahead of
//! those present, for the same reason. So a run without it begins only after two passes with
//! superblocks: then the others are ahead of it whatever it says, and it can never be taken for one
//! that has the writes made meanwhile.

use super::Pass;
use crate::persistent::PersistentArray;
use crate::request::Outputs;

impl PersistentArray {
    /// Begins the pass that brings members level with the newest one.
    pub(super) fn begin_catching_up(&mut self, out: &mut Outputs) {
        let targets = std::mem::take(&mut self.behind);
        self.pass = Some(Pass {
            targets,
            writes_superblocks: true,
            catches_up: true,
            in_sync: self.in_sync,
            ..Pass::default()
        });
        self.send_flushes(out);
        self.continue_pass(out);
    }
}
