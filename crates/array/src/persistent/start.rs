//! The start of an assembled array.
//!
//! The engine is built for the members as they were assembled; if it does not have the size in the
//! superblocks, or a write log is still to be replayed, the start is refused. A bitmap's chunks
//! that end above the point of a resync are taken as differing. The first pass over the metadata
//! then records which members are present and that the array is dirty; a second one follows where a
//! member lacked metadata. If copies may differ, the resync begins before the first request is
//! served, so that no read takes one version and the next read another.

use super::assembly::Assembly;
use super::build::{self, EngineOptions};
use super::commands::Commands;
use super::error::StartError;
use super::flushes::Flushes;
use super::imitation::BitPasses;
use super::intent::Intent;
use super::replace::Replacements;
use super::syncs::{InSync, Syncs};
use super::{Mode, PersistentArray, Settings};
use crate::engine::Engine;
use crate::mutation::{self, Mutation};
use crate::request::Outputs;
use raidlab_units::Nanos;
use std::collections::{BTreeSet, HashMap, VecDeque};

impl PersistentArray {
    /// Builds the engine for an assembled array and starts it. One that has md's threads makes the
    /// array a prediction of md, which records less than an array of our own.
    ///
    /// # Errors
    /// When the log has not been replayed, the engine cannot be configured or does not have the
    /// size in the superblocks, or superblocks of version 0.90 would have to be written.
    pub fn start(
        assembly: Assembly,
        options: &EngineOptions,
        settings: Settings,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<Self, StartError> {
        let engine = assembly.build_engine(options, &settings)?;
        may_start(&assembly, engine.as_ref())?;
        let mut array = Self::new(assembly, engine, options, settings, now);
        array.passes_to_start = array.passes_before_writes();
        array.begin(out);
        Ok(array)
    }

    fn new(
        assembly: Assembly,
        engine: Box<dyn Engine>,
        options: &EngineOptions,
        settings: Settings,
        now: Nanos,
    ) -> Self {
        let gone = build::gone(&assembly);
        let stripes = build::stripe_map(&assembly);
        let ring = build::ring(&assembly).filter(|_| settings.session != 0);
        let slots = assembly.slot_count();
        let in_sync = InSync::but_for(assembly.resync.as_ref());
        let has_grown = assembly.has_grown();
        let is_redundant = build::is_redundant(assembly.level);
        let bitmap = assembly.bitmap.filter(|_| is_redundant);
        let intent = bitmap.map(|bitmap| Intent::new(bitmap, in_sync.below));
        let (mut devices, served) = build::devices(assembly.members, slots);
        for device in devices.values_mut() {
            // Growth has removed bad blocks from the room that it added.
            device.bad_blocks_changed = has_grown && device.own.bad_block_log.is_some();
        }
        let has_bitmap = intent.is_some() && !assembly.bitmap_is_external;
        let behind = build::behind(&assembly.found, &devices, has_bitmap);
        Self {
            engine,
            inner: Outputs::default(),
            settings,
            imitates_md: options.recovery.threads.is_some(),
            rules: options.recovery.rules(),
            flushes: Flushes::new(
                (options.recovery.threads).map_or(Nanos::ZERO, |threads| threads.turnaround),
            ),
            bit_passes: BitPasses::new(options.recovery.moment_of_writers()),
            now,
            mode: Mode::at_start(assembly.read_only),
            level: assembly.level,
            layout: assembly.layout,
            stripes,
            absent: assembly.absent,
            ring,
            array: assembly.array,
            devices,
            served,
            gone,
            intent,
            bitmap_is_external: assembly.bitmap_is_external,
            passes_to_start: 1,
            started: false,
            active: false,
            disk_dirty: false,
            clean_at: None,
            daemon_at: None,
            daemon_ran: Nanos::ZERO,
            in_sync,
            resync_ranges: assembly.resync.and_then(|it| it.ranges),
            said: in_sync,
            syncs: Syncs::default(),
            held: VecDeque::new(),
            tracked: HashMap::new(),
            writes: 0,
            held_finished: Vec::new(),
            unrecorded: BTreeSet::new(),
            recorded: BTreeSet::new(),
            replacements: Replacements::default(),
            thread_is_due: false,
            turn_is_due: false,
            bad_blocks_unrecorded: false,
            log_waits: ring.is_some(),
            pass: None,
            behind,
            want_superblocks: is_redundant,
            is_final: false,
            degraded: false,
            commands: Commands::default(),
        }
    }

    /// Returns the number of passes with superblocks that come before anything is written: two,
    /// where a missing device may be one event ahead of the others, and must not be taken for sound
    /// when it returns (see `catch_up`). That may be a member, or the file with the bitmap.
    fn passes_before_writes(&self) -> u8 {
        let lacks_member = build::lacks(&self.array, &self.devices);
        let lacks_file = self.intent.is_none() && self.is_recorded() && !self.imitates_md;
        match () {
            () if lacks_member && !mutation::is(Mutation::SecondPassSkipped) => 2,
            () if lacks_file && !mutation::is(Mutation::AbsentFileTrusted) => 2,
            () => 1,
        }
    }

    /// The first steps of a new run.
    fn begin(&mut self, out: &mut Outputs) {
        // Superblocks that call the array dirty do so until a resync or the first pass in which
        // there are no writes.
        self.follow_members();
        if self.mode == Mode::ReadWrite {
            self.resume_replacements();
        } else if !mutation::is(Mutation::ReadOnlyCorrected) {
            self.engine.set_corrects(false);
        }
        if !self.is_in_sync() && self.mode == Mode::ReadWrite {
            // Before any read: copies that differ must not be mixed.
            self.start_resync(out);
        }
        self.pump(out);
    }
}

/// Whether an assembly may be started with this engine: with its log replayed, at its size,
/// and with superblocks that can be written, if any will be.
fn may_start(assembly: &Assembly, engine: &dyn Engine) -> Result<(), StartError> {
    if assembly.replay.is_some() && !assembly.read_only {
        return Err(StartError::ReplayPending);
    }
    if engine.size() != assembly.size {
        return Err(StartError::Size {
            engine: engine.size().0,
            superblocks: assembly.size.0,
        });
    }
    if build::is_redundant(assembly.level) && !assembly.read_only {
        for member in &assembly.members {
            let superblock = &member.candidate.metadata.superblock;
            superblock.encode().map_err(StartError::Superblock)?;
        }
    }
    Ok(())
}
