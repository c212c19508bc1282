//! Seeded bugs, with which the fault simulation and the tests prove that they would
//! find real ones: in the metadata, the array core and the real-time driver.
//!
//! Only builds with the cargo feature `mutations` contain them; everywhere
//! else [`is`] is a constant `false` and the compiler removes what depends on
//! it. With the feature, at most one bug is active in a thread: a simulation
//! runs on one thread from its beginning to its end, so that many can run side
//! by side with different bugs. A whole process, a test program with all its threads
//! say, has the bug that its environment names (`RAIDLAB_MUTATION`). A hook reads
//! `if mutation::is(Mutation::FlushForgotten) { .. }` and does the wrong thing
//! at the one place that its name says, nothing else.

/// Declares the bugs with their names and descriptions.
macro_rules! mutations {
    ($($variant:ident $name:literal $what:literal;)*) => {
        /// A seeded bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutation {
            $(#[doc = $what] $variant,)*
        }

        impl Mutation {
            /// All bugs, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the bug's name in tables and options.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns what the code does wrong with this bug, in words.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)*
                }
            }
        }
    };
}

mutations! {
    // Flushes and order.
    FlushForgotten "flush-forgotten" "a flush is acknowledged without being sent to the members";
    FlushOneMember "flush-one-member" "a flush is sent to the first member only";
    ForceUnitAccessDropped "fua-dropped" "a write's force-unit-access is not passed to the members";
    AcknowledgedByFirst "acknowledged-by-first" "a write is acknowledged when its first member has it";
    // Members.
    WriteErrorIgnored "write-error-ignored" "a member that fails a write stays in sync";
    ReadErrorIgnored "read-error-ignored" "a read that failed on a member is taken for one that succeeded";
    FailureNotAwaited "failure-not-awaited" "writes go on before the failure of a member is recorded";
    FailureNotRecorded "failure-not-recorded" "the superblocks keep naming a failed member as current";
    EventsNotCounted "events-not-counted" "a change of the members does not raise the event count";
    StaleTrusted "stale-trusted" "assembly takes a member for current because it claims to be";
    TieTakenWrongly "tie-taken-wrongly" "assembly takes the oldest superblock for the array's truth, not the newest";
    SpareUnheard "spare-unheard" "assembly does not ask spares which events they have heard of";
    SpareRolesUnheard "spare-roles-unheard" "assembly does not ask spares which members they know to have failed";
    SplitBrainAccepted "split-brain-accepted" "assembly takes members that call each other failed together";
    SuperblockVolatile "superblock-volatile" "superblocks are written without force-unit-access";
    // Dirty and clean.
    DirtyMarkLate "dirty-mark-late" "writes go out before the superblocks say that the array is dirty";
    CleanMarkEarly "clean-mark-early" "the superblocks say clean while writes are in flight";
    CleanWithoutFlush "clean-without-flush" "the superblocks say clean before the members were flushed";
    ResyncSkipped "resync-skipped" "no resync follows an unclean stop";
    // The bitmap.
    BitmapSetLate "bitmap-set-late" "a write goes out before its bitmap bit is durable";
    BitmapClearedDegraded "bitmap-cleared-degraded" "bitmap bits are cleared while a member is missing, and the bitmap does not tell";
    BitmapClearedWithoutFlush "bitmap-cleared-without-flush" "a bitmap bit is cleared before the members were flushed";
    BitmapLastChunk "bitmap-last-chunk" "the last bitmap chunk that a write touches is not marked";
    BitmapVolatile "bitmap-volatile" "bitmap pages are written without force-unit-access";
    ReAddTooOld "re-add-too-old" "a member is re-added although bits have been cleared since it left";
    ReAddTrusted "re-add-trusted" "a member that is re-added is in sync at once";
    // Copies.
    CopyReadUnrecovered "copy-read-unrecovered" "reads are served by a member above its recovered part";
    CopyWriteSkipsRecovering "copy-write-skips-recovering" "a member under recovery is given no writes";
    CopyBarrierIgnored "copy-barrier-ignored" "writes and sync of the same place run at once";
    CopyTrimmed "copy-trimmed" "the last sector of a write of several sectors misses the last copy";
    LogOfMemberForgotten "log-of-member-forgotten" "a member that is added again is taken without its bad-block log";
    RecoveryOffsetAhead "recovery-offset-ahead" "the recovery offset recorded lies beyond what was copied";
    // Parity.
    ParityReadAsData "parity-read-as-data" "a degraded read is given the parity block instead of the computed one";
    ParityNotUpdated "parity-not-updated" "a partial write leaves the parity as it was";
    QExponentOff "q-exponent-off" "Q is updated with the exponent of the next data block";
    RmwOldFromNew "rmw-old-from-new" "read-modify-write takes the new bytes for the old ones";
    StripeLockIgnored "stripe-lock-ignored" "two writes work on the same stripe at once";
    NeighbourFilled "neighbour-filled" "a partial write fills the rest of its block with zeros";
    RecoveryParitySwapped "recovery-parity-swapped" "recovery writes a block one sector too short";
    StripeReadUnrecovered "stripe-read-unrecovered" "blocks above the recovered part are read from the member";
    FirstResyncDistrusted "first-resync-distrusted" "what no write has reached in a first resync counts as torn by a crash";
    SyncParityKept "sync-parity-kept" "resync reads a stripe and does not write its parity";
    // The log.
    LogSkipped "log-skipped" "in-place writes go out without a log record";
    LogVolatile "log-volatile" "log records are written without force-unit-access";
    LogReusedEarly "log-reused-early" "log space is reused before the in-place writes were flushed";
    ArrivalUnmarked "arrival-unmarked" "a member is added, and the log's records of before go on to count";
    AbsenceUnnamed "absence-unnamed" "a replay does not say which members it did without";
    ReplayIncomplete "replay-incomplete" "replay takes a transaction of which a participant has no record";
    ReplayReversed "replay-reversed" "replay goes from the newest transaction to the oldest";
    // Check and bad blocks.
    CheckBlind "check-blind" "check compares nothing";
    BadBlockUnawaited "bad-block-unawaited" "the log lets go of what a bad block lacks before that one is recorded";
    LogBeforeSession "log-before-session" "log records are written before the superblocks name the run that they are of";
    ReadOnlyCorrected "read-only-corrected" "an array that may write nothing writes anew what a member could not read";
    UnreplayedParityTrusted "unreplayed-parity-trusted" "a start that may write nothing computes from parity although the log is not replayed";
    FailedWriteResynced "failed-write-resynced" "with parity, the rows of a write that failed are resynced, and their parity distrusted";
    RemadeParityDistrusted "remade-parity-distrusted" "parity that a resync could not read and made anew goes on counting as torn";
    PredecessorCounts "predecessor-counts" "what a member was given before it failed counts as given to the one that takes its place";
    BadBlockForgotten "bad-block-forgotten" "a block that could not be recovered is not recorded as bad";
    // Bugs of the second round, one or two beside each that the first would find.
    NeededBitCleared "needed-bit-cleared" "a bit goes although its chunk still has to be resynced";
    ClearedBitKept "cleared-bit-dropped" "bits that were about to go when a member failed go all the same";
    BusyBitCleared "busy-bit-cleared" "the daemon clears bits of chunks that are being written";
    LastRowUnmarked "last-row-unmarked" "of a write over several rows the last one is not in the bitmap";
    CatchUpSkipped "catch-up-skipped" "members an event behind are not brought level before the next event";
    SecondPassSkipped "second-pass-skipped" "a run without a member begins after one pass, not two";
    FlushFailureUnnamed "flush-failure-unnamed" "a pass does not name members that failed during its own flush";
    BrokenPassGoesOn "broken-pass-goes-on" "a pass goes on when a member that is needed failed it";
    BrokenWritesOn "broken-writes-on" "an array that has broken down goes on with writes that waited for a failure to be recorded";
    RecoveryOffsetTrusted "recovery-offset-trusted" "after a crash a member is filled from its offset, not from the first dirty chunk";
    UntoldOffsetTrusted "untold-offset-trusted" "the recovery offset of a member an event behind is believed";
    AbsenceIgnored "absence-ignored" "assembly passes over which members a replay did without";
    TwoEventsBehind "two-events-behind" "a member two events behind counts as current";
    OldSessionBelieved "old-session-believed" "of two log sessions the older one is believed";
    NeverInSyncForgotten "never-in-sync-forgotten" "after a replay the first resync counts as over";
    NumberReused "number-reused" "a new member is given the number of one that is gone";
    ReAddUnwitnessed "re-add-unwitnessed" "a former member is taken back though none of its companions is left";
    ReAddHalfFilled "re-add-half-filled" "a member that was still being filled when it left is re-added by the bitmap";
    ReAddUnsettled "re-add-unsettled" "a member is re-added before its failure is recorded";
    StoppedSyncForgotten "stopped-sync-forgotten" "a sync that was stopped by hand does not go on";
    SpareSeatedEarly "spare-seated-early" "a spare takes a slot before the failure of its member is recorded";
    ReplacementMissesWrites "replacement-misses-writes" "a device that is filled to replace another is not given the writes";
    ReplacementMissesEarlier "replacement-misses-earlier" "copying begins while writes from before the replacement are in flight";
    ReplacementWindowOpen "replacement-window-open" "writes go on in the window that is copied";
    ReplacementSeatedEarly "replacement-seated-early" "a replacement takes its slot before the superblocks call it full";
    ReplacementLogUncopied "replacement-log-uncopied" "a replacement counts as filled before it has the log's records";
    ReplacementBadUncopied "replacement-bad-uncopied" "what the old member's bad-block log names is not written to the replacement";
    FailedWriteUncopied "failed-write-uncopied" "a write that fails on the member that is being replaced is not copied again";
    ReplacementUndrained "replacement-undrained" "a replacement takes its slot while what both devices were given is not answered";
    ReplacementUnasked "replacement-unasked" "a replacement takes its slot without having answered since the last write to it";
    FullReplacementUnfilled "full-replacement-unfilled" "a replacement that takes the slot at a start never gets what its bad-block log names";
    CopyMissUnrecorded "copy-miss-unrecorded" "what one of the two devices of a slot has missed is acknowledged before the superblocks leave it out";
    UnlikeCopyKept "unlike-copy-kept" "what a replacement was given before a resync had passed counts when the old member fails";
    SuccessorBlamed "successor-blamed" "a read that fails on a member which was replaced meanwhile counts as the new one's failure";
    ReplayMarkIgnored "replay-mark-ignored" "replay takes transactions of before a member was added";
    ReplayVoidCounts "replay-void-counts" "replay takes records that were announced to be void";
    ReplayUnfilledTrusted "replay-unfilled-trusted" "replay asks a member for records above its filled part";
    ArrivalNotWiped "arrival-not-wiped" "the log of a member that is added is not emptied";
    RingFreedUnannounced "ring-freed-unannounced" "room of the log is used again before the medium knows that it is void";
    LogUnfilledLeftOut "log-unfilled-left-out" "a member that is being filled has no part in the log where it is not filled yet";
    UnsyncedParityTrusted "unsynced-parity-trusted" "parity is computed with before a resync has passed";
    ArrivalDuringWrite "arrival-during-write" "a member that is added counts as filled where writes are under way";
    UnwrittenCountsAsFilled "unwritten-counts-as-filled" "what recovery could not write counts as filled";
    GatheredForceUnitAccessLost "gathered-fua-lost" "a write that is gathered with others loses its force-unit-access";
    CorrectionUnheld "correction-unheld" "writes go on where a read error is being corrected";
    DirtyCopiesBalanced "dirty-copies-balanced" "reads are balanced over copies that may differ";
    DirtyShowsAnother "dirty-shows-another" "reads of copies that may differ follow another member than a resync copies";
    CopyWrittenUnrecorded "copy-written-unrecorded" "copies are written before the failure of another is recorded";
    DefinedInWork "defined-in-work" "what nobody has written is called defined by parity while it is in work";
    GivenUpCountsAsDone "given-up-counts-as-done" "what a resync that was given up has not copied counts as made to agree";
    RepairUnorphaned "repair-unorphaned" "reads of a dirty array go on where the source of a repair has left before its block was written";
    ResyncPassesUnread "resync-passes-unread" "a resync that compares counts a block as the same on all members, some of which could not be read";
    FillingCopyKept "filling-copy-kept" "a member that is being filled is read where only it took a write";
    OrphanRead "orphan-read" "reads go on where the source of a resync has left before its block was written";
    ResyncSourceSwitched "resync-source-switched" "a resync that cannot read some of a block takes all of it from another member";
    FirstNeedOnly "first-need-only" "of several members that are filled together only what the first lacks is copied";
    // Claims that must not be trusted at the next start.
    PositionAhead "position-ahead" "a replacement counts as filled where a bad block has got its bytes on the old device alone";
    OverclaimIgnored "overclaim-ignored" "an array is called in sync before a replacement has heard that what it has does not count";
    SeatedOverclaimed "seated-overclaimed" "a replacement whose old device has failed takes the slot while its superblock calls it filled where writes in work leave it out";
    OrphanLeftFilled "orphan-left-filled" "a replacement that an array which stops goes on without keeps counting as filled";
    SecondLossUnrecorded "second-loss-unrecorded" "writes go on before it is recorded that a replacement has failed whose member had failed before";
    LateBitmapPartial "late-bitmap-partial" "a device that comes during a pass gets the rest of the bitmap only";
    FilledOneBelieved "filled-one-believed" "of superblocks of one age that of a member that is being filled is believed";
    StaleSeatedAtOnce "stale-seated-at-once" "a member as new as those who call it failed is given its slot at once";
    SizeOfBefore "size-of-before" "a member that has not heard that the array has grown is told of it with its old size";
    GrowthKeepsBad "growth-keeps-bad" "what bad-block logs name in the part that growth adds stays bad";
    SpareOfBefore "spare-of-before" "a spare that is older than a growth keeps its write log where the array has data now";
    RingWidened "ring-widened" "the write log takes all the room that there is at a start";
    LostBitmapTrusted "lost-bitmap-trusted" "writes go out before the bitmap's file, which has failed, is out of date";
    AbsentFileTrusted "absent-file-trusted" "a run without the bitmap's file begins after one pass, not two";
    // Bugs in the metadata.
    SumUnchecked "sum-unchecked" "a superblock whose checksum is wrong is taken";
    RolesNotSummed "roles-not-summed" "the checksum of a superblock leaves out the roles";
    EventsCut "events-cut" "of the event count only the low 32 bits are written";
    ResyncOffsetAhead "resync-offset-ahead" "the resync offset is written 64 sectors too high";
    RecoveryFlagLost "recovery-flag-lost" "superblocks are written without the flag that their member is filled in part";
    BadBlockFlagLost "bad-block-flag-lost" "superblocks are written without the flag that there is a bad-block log";
    BitsMirrored "bits-mirrored" "the bits of each byte of the bitmap are counted from the other end";
    LastBitUnread "last-bit-unread" "the bit of the bitmap's last chunk is not looked at";
    NeededFromNext "needed-from-next" "the chunk that the resync offset lies in is not synchronised at the next start";
    StaleBitmapBelieved "stale-bitmap-believed" "a bitmap that is older than the superblocks is believed";
    LongBadRangeCut "long-bad-range-cut" "of a bad range of more than 512 sectors the rest is not logged";
    BadCountUnshifted "bad-count-unshifted" "the length of a bad range is read in sectors, not in the log's units";
    LogOverBitmap "log-over-bitmap" "the write log is given the bitmap's room";
    ForcedNeedlessly "forced-needlessly" "a member out of date is taken by force though current ones have all that it has";
    ForcedCopyFirst "forced-copy-first" "the copy of a member that was taken by force goes over that of a current one";
    FailedFlushForgotten "failed-flush-forgotten" "a flush that a needed member has failed leaves no mark";
    WritesOverlap "writes-overlap" "two writes of one place go to the copies at once";
    FilledUncompared "filled-uncompared" "what a failed flush has lost counts as compared though a member is being filled";
    FullResyncUnmarked "full-resync-unmarked" "a resync of everything, asked for or after force, leaves the bits of the bitmap clear";
    InSyncOfBefore "in-sync-of-before" "a pass calls in sync what has come to differ since it began";
    DirtyReadSwitched "dirty-read-switched" "where copies may differ, a read of which a part fails is served by another one as a whole";
    DirtyCorrectedByLowest "dirty-corrected-by-lowest" "where copies may differ, a correction takes another one than reads do";
    NumberUnlisted "number-unlisted" "a spare keeps a number that superblocks have no place for";
    BitmapUnplaced "bitmap-unplaced" "a member that was made before the bitmap gets it where its superblock lies";
    // Bugs in the real-time driver.
    ShortWriteTaken "short-write-taken" "a command that was cut short counts as done";
    RestMisplaced "rest-misplaced" "the third part of a command that is cut short twice goes to the second's place";
    RestAtStart "rest-at-start" "the rest of a command that was cut short goes to where it began";
    DriverForceUnitAccessLost "driver-fua-lost" "the driver sends writes without their force-unit-access";
    DriverFlushSkipped "driver-flush-skipped" "the driver answers flushes of members without sending them";
    DriverFlushErrorLost "driver-flush-error-lost" "a flush that failed on a member counts as done";
    ErrorsOfPlace "errors-of-place" "every error of a member is taken for one of the place";
    HungReadUnmoved "hung-read-unmoved" "the buffer of a read that hangs is used again where it is";
    OverlapLent "overlap-lent" "a range is lent though its last bytes are in use";
    ZeroesOfBefore "zeroes-of-before" "zeroes are written from memory that was not cleared";
    TrimPartSkipped "trim-part-skipped" "a trim of several parts leaves out the second one";
    ForcedTrimUnflushed "forced-trim-unflushed" "a trim with force-unit-access is answered without a flush";
    BeyondMemberSent "beyond-member-sent" "a command beyond a member's end is sent to it";
    ShortReadTaken "short-read-taken" "a read that was cut short counts as done";
    InterruptedTaken "interrupted-taken" "a command that was interrupted before it moved anything counts as done";
    InterruptedFails "interrupted-fails" "a command that was interrupted fails its member";
    InterruptedSkips "interrupted-skips" "a command that was interrupted goes on one sector further";
    RestNotDurable "rest-not-durable" "the rest of a durable write that was cut short is sent without force-unit-access";
    LateAnswerTaken "late-answer-taken" "the late answer of a member that was given up counts for the oldest command under way";
    AbsenceCounts "absence-counts" "the time in which the driver did not look counts as the members' own";
    HungWriteTaken "hung-write-taken" "a write that a hung member never answered counts as done";
    FlushOfOneLost "flush-of-one-lost" "the driver answers flushes of one member without sending them";
    FlushUnawaited "flush-unawaited" "a flush is answered when it is sent";
    DurableWriteUnawaited "durable-write-unawaited" "a durable write, one of the bitmap or a superblock say, is answered when it is sent";
    WriteErrorTaken "write-error-taken" "a write that failed at its place counts as done";
    ReadErrorTaken "read-error-taken" "a read that failed at its place counts as done";
    CommandsBeforeSteps "commands-before-steps" "commands are sent before the steps that make their bytes";
    AnswerDropped "answer-dropped" "of several commands that end at once the last is forgotten";
    SlotFreedEarly "slot-freed-early" "a request's slot is given back while the core works on it";
    FlushSwallowed "flush-swallowed" "a client's flush is answered without the core";
    RequestForceUnitAccessLost "request-fua-lost" "a client's force-unit-access does not reach the core";
    RefusalTaken "refusal-taken" "a write that a read-only array refused is answered as done";
    FailureTaken "failure-taken" "a request that has failed is answered as done";
    TrimShifted "trim-shifted" "a trim begins one sector too early";
    RemovedInService "removed-in-service" "a device that the array does not let go is detached all the same";
    AddedUnasked "added-unasked" "what is on a device is erased though the array does not take it";
    HandleOfAnother "handle-of-another" "a device that is added takes the place of one in service";
    MetadataReadShort "metadata-read-short" "metadata of which only a part was read count as read";
    MetadataWriteShort "metadata-write-short" "metadata of which only a part was written count as written";
    CreateUnflushed "create-unflushed" "the metadata of a new array are not flushed";
}

impl Mutation {
    /// Whether the bug is one of the real-time driver's.
    #[must_use]
    pub fn is_of_driver(self) -> bool {
        self >= Self::ShortWriteTaken
    }

    /// Returns the bug with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.name() == name)
    }
}

/// The environment variable that names the bug of a whole process.
#[cfg(feature = "mutations")]
pub const VARIABLE: &str = "RAIDLAB_MUTATION";

#[cfg(feature = "mutations")]
mod active {
    use super::{Mutation, VARIABLE};
    use std::cell::Cell;
    use std::sync::LazyLock;

    thread_local! {
        static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    /// The bug of the whole process, from its environment.
    static EVERYWHERE: LazyLock<Option<Mutation>> = LazyLock::new(|| {
        let name = std::env::var(VARIABLE).ok()?;
        let found = Mutation::from_name(&name);
        assert!(found.is_some(), "{VARIABLE}: no bug is called `{name}`");
        found
    });

    /// Whether this bug is active in this thread.
    #[must_use]
    pub fn is(mutation: Mutation) -> bool {
        ACTIVE.get().or(*EVERYWHERE) == Some(mutation)
    }

    /// Chooses this thread's bug; returns the one before.
    pub fn choose(mutation: Option<Mutation>) -> Option<Mutation> {
        ACTIVE.replace(mutation)
    }
}

#[cfg(feature = "mutations")]
pub use active::{choose, is};

/// Whether this bug is active: never in this build.
#[cfg(not(feature = "mutations"))]
#[must_use]
#[inline]
pub const fn is(_mutation: Mutation) -> bool {
    false
}
