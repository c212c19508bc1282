//! What has to be replayed or made to agree before the array is whole.

use super::choose::Chosen;
use super::view::View;
use super::{
    AssembleOptions, AssembledMember, Assembly, Candidate, NeededLog, NeededReplay, NeededSync,
    Part, Update,
};
use crate::engine::Admission;
use crate::mutation::{self, Mutation};
use crate::persistent::error::{AssembleError, LogFault};
use crate::persistent::intent::span;
use crate::persistent::log_superblock::LogBlock;
use crate::stripes::log::Trust;
use raidlab_geometry::SlotSet;
use raidlab_metadata::Superblock;
use raidlab_units::Sectors;

/// How far the array is from being in sync.
struct Plan {
    resync: Option<NeededSync>,
    /// Session and the candidates whose logs are replayed.
    replay: Option<(u64, Vec<NeededLog>)>,
}

pub(super) fn conclude(
    mut view: View,
    mut chosen: Chosen,
    options: &AssembleOptions,
) -> Result<Assembly, AssembleError> {
    let plan = match plan(&view, &chosen, options) {
        Err(AssembleError::DirtyDegraded {
            log: LogFault::OtherSession(_),
            ..
        }) if drop_laggards(&view, &mut chosen) => plan(&view, &chosen, options),
        plan => plan,
    }?;
    find_log_areas(&mut view, &chosen);
    let order = order(&chosen);
    for (session, log) in plan
        .replay
        .iter()
        .flat_map(|(it, logs)| logs.iter().map(move |log| (it, log)))
    {
        view.believe(log.member, *session);
    }
    let replay = plan.replay.map(|(session, logs)| NeededReplay {
        session,
        logs: logs
            .into_iter()
            .filter_map(|log| {
                let member = order.iter().position(|at| *at == log.member)?;
                Some(NeededLog { member, ..log })
            })
            .collect(),
    });
    let array = view.array().clone();
    let (level, layout, size, newest) = (view.level, view.layout, view.size, view.newest);
    let name = |at: usize| view.candidates[at].name.clone();
    let left_out = chosen
        .left_out
        .iter()
        .map(|(at, reason)| (name(*at), reason.clone()))
        .collect();
    let forced = chosen.forced.iter().map(|at| name(*at)).collect();
    let newest = name(newest);
    let mut candidates: Vec<_> = view.candidates.into_iter().map(Some).collect();
    let mut parts = chosen.parts;
    let members = order
        .into_iter()
        .filter_map(|at| {
            Some(AssembledMember {
                candidate: candidates[at].take()?,
                part: parts[at].take()?,
            })
        })
        .collect();
    let mut assembly = Assembly {
        array,
        newest,
        level,
        layout,
        size,
        members,
        left_out,
        bitmap: chosen.bitmap.map(|(bitmap, _)| bitmap),
        bitmap_is_external: options.external_bitmap.is_some(),
        resync: plan.resync,
        replay,
        forced,
        read_only: options.read_only,
    };
    if options.update == Some(Update::Size) {
        assembly.grow()?;
    }
    Ok(assembly)
}

/// Leaves out members that failed while a session began, in a pass that the
/// newest superblock tells of and theirs does not: they would have the block of
/// that session otherwise, for all blocks are written before the first
/// superblock. True if there were any, and the others are enough.
fn drop_laggards(view: &View, chosen: &mut Chosen) -> bool {
    let newest = &view.candidates[view.newest];
    let blocks = blocks(newest).unwrap_or_default();
    let Some(session) = blocks.first().map(|block| block.session) else {
        return false;
    };
    let is_laggard = |at: &usize| {
        let candidate = &view.candidates[*at];
        let blocks = self::blocks(candidate).unwrap_or_default();
        matches!(
            chosen.parts[*at],
            Some(Part::InSync(_) | Part::Recovering(..))
        ) && candidate.superblock().events < newest.superblock().events
            && blocks.iter().all(|block| block.session != session)
    };
    let laggards: Vec<usize> = (0..view.candidates.len()).filter(is_laggard).collect();
    chosen.leave_out_laggards(view, &laggards) && view.is_enough(chosen.in_sync)
}

/// Where a member's own bitmap was not written yet, the array's says how long
/// it is, and so where the room for the log begins.
fn find_log_areas(view: &mut View, chosen: &Chosen) {
    let Some((bitmap, _)) = &chosen.bitmap else {
        return;
    };
    for candidate in &mut view.candidates {
        let metadata = &mut candidate.metadata;
        if metadata.bitmap.is_none() {
            metadata.log_area = metadata.superblock.log_area(Some(&bitmap.superblock));
        }
    }
}

/// The candidates that take part: by slot, those that replace behind those
/// they replace, spares last.
fn order(chosen: &Chosen) -> Vec<usize> {
    let key = |part: &Part| match part {
        Part::InSync(slot) | Part::Recovering(slot, _) => (slot.0, 0),
        Part::Replacing(slot, _) => (slot.0, 1),
        Part::Spare => (u16::MAX, 2),
    };
    let mut order: Vec<(_, usize)> = chosen
        .parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| Some((key(part.as_ref()?), at)))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

fn plan(view: &View, chosen: &Chosen, options: &AssembleOptions) -> Result<Plan, AssembleError> {
    let mut plan = Plan {
        resync: None,
        replay: None,
    };
    if !view.is_redundant() {
        return Ok(plan);
    }
    let from = view.array().resync_offset;
    if from != Superblock::IN_SYNC && !mutation::is(Mutation::ResyncSkipped) {
        plan = plan_dirty(view, chosen, options, from)?;
    }
    // What is taken by force is out of step with the rest.
    if !chosen.forced.is_empty() || options.update == Some(Update::Resync) {
        plan.resync = Some(NeededSync {
            from: Sectors::ZERO,
            ranges: None,
        });
    }
    Ok(plan)
}

/// The plan for an array that was not stopped cleanly.
fn plan_dirty(
    view: &View,
    chosen: &Chosen,
    options: &AssembleOptions,
    from: Sectors,
) -> Result<Plan, AssembleError> {
    let missing = SlotSet::first(view.slot_count()) - chosen.in_sync;
    let has_parity = view.level.parity_count() > 0;
    let needs_parity = has_parity && !missing.is_empty();
    let refuse = |log| match needs_parity && !options.force {
        true => Err(AssembleError::DirtyDegraded { missing, log }),
        false => Ok(()),
    };
    if has_parity {
        match log(view, chosen) {
            Ok((session, logs, in_sync_below)) => {
                if options.read_only && needs_parity {
                    return Err(AssembleError::ReplayNeedsWrite);
                }
                let rest = (in_sync_below != Superblock::IN_SYNC).then_some(in_sync_below);
                if rest.is_some() {
                    refuse(LogFault::NeverInSync)?;
                }
                return Ok(Plan {
                    resync: rest.map(|from| needed(chosen, from)),
                    replay: Some((session, logs)),
                });
            }
            Err(log) => refuse(log)?,
        }
    }
    Ok(Plan {
        resync: Some(needed(chosen, from)),
        replay: None,
    })
}

/// What a sound bitmap names, else everything from the offset on.
fn needed(chosen: &Chosen, from: Sectors) -> NeededSync {
    let ranges = match &chosen.bitmap {
        Some((bitmap, true)) => Some(bitmap.needed_spans(from).map(span).collect()),
        _ => None,
    };
    NeededSync { from, ranges }
}

/// The logs' session, whose they are, and below which sector the array was in
/// sync, if every member that holds data has the log of the same session. The
/// members are still candidates' indices.
type Logs = (u64, Vec<NeededLog>, Sectors);

fn log(view: &View, chosen: &Chosen) -> Result<Logs, LogFault> {
    let mut members = Vec::new();
    for (at, part) in chosen.parts.iter().enumerate() {
        // A member that is being filled may hold blocks that are only in the
        // log; what lies above its offset, or in the chunks of the bitmap, is
        // copied again anyway.
        let (slot, trust) = match part {
            Some(Part::InSync(slot)) => (*slot, Trust::Everywhere),
            Some(Part::Recovering(slot, Admission::From(below)))
                if *below > Sectors::ZERO && view.is_current(at) =>
            {
                (*slot, Trust::Below(*below))
            }
            _ => continue,
        };
        members.push((at, slot, trust, blocks(&view.candidates[at])?));
    }
    let name = |at: usize| view.candidates[at].name.clone();
    let first = members
        .first()
        .ok_or_else(|| LogFault::Absent(name(view.newest)))?;
    let has = |blocks: &[LogBlock], session| blocks.iter().any(|it| it.session == session);
    let lacking = |session| members.iter().find(|(.., blocks)| !has(blocks, session));
    let sessions = first.3.iter().map(|block| block.session);
    let session = match sessions.clone().find(|session| lacking(*session).is_none()) {
        Some(0) => return Err(LogFault::Absent(name(first.0))),
        Some(session) => session,
        None => {
            let other = sessions
                .clone()
                .find_map(lacking)
                .map_or(first.0, |it| it.0);
            return Err(LogFault::OtherSession(name(other)));
        }
    };
    let mut logs = Vec::new();
    let mut below = Superblock::IN_SYNC;
    for (member, slot, trust, blocks) in members {
        let mut ring = None;
        for block in blocks.iter().filter(|block| block.session == session) {
            ring.get_or_insert(block.ring);
            below = below.min(block.in_sync_below);
        }
        logs.extend(ring.map(|ring| NeededLog {
            slot,
            member,
            ring,
            trust,
        }));
    }
    Ok((session, logs, below))
}

/// The blocks in force of a member's log superblock, at least one.
fn blocks(candidate: &Candidate) -> Result<Vec<LogBlock>, LogFault> {
    let name = || candidate.name.clone();
    let log = candidate.log.ok_or_else(|| LogFault::Absent(name()))?;
    let blocks = log.in_force(candidate.superblock());
    if blocks.is_empty() {
        return Err(LogFault::Overtaken(name()));
    }
    Ok(blocks)
}
