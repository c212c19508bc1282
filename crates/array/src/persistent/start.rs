//! An assembled array starts.
//!
//! The engine is built for the members as they were assembled; if it does not have the size
//! that the superblocks say, or a write log is still to be replayed, the start is refused. A
//! bitmap's chunks that end above the point of a resync are taken as differing. The first pass
//! over the metadata then says who is there and that the array is dirty; a second one follows
//! where a member lacked metadata. If copies may differ, the resync begins before the first
//! request is served, so that no read takes one version and the next read another.

use super::assembly::Assembly;
use super::build::{self, EngineOptions};
use super::error::StartError;
use super::imitation::Flushes;
use super::intent::Intent;
use super::replace::Replacements;
use super::{InSync, Mode, PersistentArray, Settings};
use crate::engine::{Engine, FIRST_OUTER_ID, FIRST_OUTER_SCRATCH};
use crate::mutation::{self, Mutation};
use crate::recovery::MdRules;
use crate::request::Outputs;
use raidlab_metadata::Superblock;
use raidlab_units::{Nanos, Sectors, SpanSet};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

impl PersistentArray {
    /// Builds the engine for an assembled array and starts it. One that has md's threads
    /// makes it a prediction of md, which remembers less than an array of our own.
    ///
    /// # Errors
    /// When the log has not been replayed, the engine cannot be set up or does not have the
    /// size that the superblocks say, or superblocks of version 0.90 would have to be written.
    pub fn start(
        assembly: Assembly,
        options: &EngineOptions,
        settings: Settings,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<Self, StartError> {
        let engine = assembly.build_engine(options, &settings)?;
        let mut array = Self::new(assembly, engine, settings, now)?;
        array.imitates_md = options.recovery.threads.is_some();
        array.rules = options.recovery.rules();
        if array.may_lack_its_file() && !mutation::is(Mutation::AbsentFileTrusted) {
            array.passes_to_start = 2;
        }
        array.begin(out);
        Ok(array)
    }

    fn new(
        assembly: Assembly,
        engine: Box<dyn Engine>,
        settings: Settings,
        now: Nanos,
    ) -> Result<Self, StartError> {
        if assembly.replay.is_some() && !assembly.read_only {
            return Err(StartError::ReplayPending);
        }
        if engine.size() != assembly.size {
            return Err(StartError::Size {
                engine: engine.size().0,
                superblocks: assembly.size.0,
            });
        }
        let is_redundant = build::is_redundant(assembly.level);
        let gone = build::gone(&assembly);
        let stripes = build::stripe_map(&assembly);
        let wants_log = settings.session != 0 && assembly.level.parity_count() > 0;
        let ring = build::ring(&assembly).filter(|_| settings.session != 0);
        let (level, layout, slots) = (assembly.level, assembly.layout, assembly.slot_count());
        let (resync_from, resync_ranges, first_resync) = match assembly.resync {
            Some(resync) => (Some(resync.from), resync.ranges, resync.is_first),
            None => (None, None, false),
        };
        let intent = assembly
            .bitmap
            .filter(|_| is_redundant)
            .map(|bitmap| Intent::new(bitmap, resync_from));
        let (devices, served) = build::devices(assembly.members, slots);
        let has_bitmap = intent.is_some() && !assembly.bitmap_is_external;
        let behind = build::behind(&assembly.found, &devices, has_bitmap);
        let lacks = build::lacks(&assembly.array, &devices);
        for device in devices.values() {
            let writes = is_redundant && !assembly.read_only;
            if writes && let Err(source) = device.own.encode() {
                return Err(StartError::Superblock(source));
            }
        }
        Ok(Self {
            engine,
            inner: Outputs::default(),
            settings,
            imitates_md: false,
            rules: MdRules::LINUX_6_12,
            flushes: Flushes::default(),
            now,
            mode: match assembly.read_only {
                true => Mode::Untouched,
                false => Mode::ReadWrite,
            },
            level,
            layout,
            stripes,
            session: ring.map_or(0, |_| settings.session),
            absent: assembly.absent,
            lacks_log: wants_log && ring.is_none(),
            ring,
            array: assembly.array,
            devices,
            served,
            gone,
            intent,
            bitmap_is_external: assembly.bitmap_is_external,
            passes_to_start: if lacks && !mutation::is(Mutation::SecondPassSkipped) {
                2
            } else {
                1
            },
            started: false,
            active: false,
            disk_dirty: false,
            clean_at: None,
            daemon_at: None,
            daemon_ran: Nanos::ZERO,
            in_sync_below: resync_from.unwrap_or(Superblock::IN_SYNC),
            resync_ranges,
            first_resync,
            said: InSync {
                below: resync_from.unwrap_or(Superblock::IN_SYNC),
                is_first: first_resync,
            },
            resynced_members: 0,
            resync_again: SpanSet::default(),
            sync: None,
            resync_waits: false,
            resume_due: false,
            mismatches: Sectors::ZERO,
            held: VecDeque::new(),
            tracked: HashMap::new(),
            writes: 0,
            held_finished: Vec::new(),
            unrecorded: BTreeSet::new(),
            recorded: BTreeSet::new(),
            replacements: Replacements::default(),
            thread_is_due: false,
            bad_blocks_unrecorded: false,
            log_waits: ring.is_some(),
            pass: None,
            behind,
            want_superblocks: is_redundant,
            is_final: false,
            degraded: false,
            metadata_commands: BTreeMap::new(),
            data_commands: HashMap::default(),
            next_command: FIRST_OUTER_ID,
            next_scratch: FIRST_OUTER_SCRATCH,
        })
    }

    /// Whether its bitmap may be in a file that is not here. That may be one event ahead of the
    /// superblocks, as a member that is away (see `catch_up`), and must not be taken for sound
    /// when it is here again.
    fn may_lack_its_file(&self) -> bool {
        self.intent.is_none() && self.is_recorded() && !self.imitates_md
    }

    /// The first steps of a new run.
    fn begin(&mut self, out: &mut Outputs) {
        // Superblocks that say "dirty" say so until a resync or the first pass
        // in which there are no writes.
        self.follow_members();
        if self.mode == Mode::ReadWrite {
            self.resume_replacements();
        } else if !mutation::is(Mutation::ReadOnlyCorrected) {
            self.engine.set_corrects(false);
        }
        let resync = self.in_sync_below != Superblock::IN_SYNC;
        if resync && self.mode == Mode::ReadWrite {
            // Before anything is read: copies that differ must not be mixed.
            self.start_resync(out);
        }
        self.pump(out);
    }
}
