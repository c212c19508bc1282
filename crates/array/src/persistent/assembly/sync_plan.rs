//! The plan of the replay and the resync that make an array whole.

use super::choose::Chosen;
use super::view::View;
use super::{
    AssembleOptions, AssembledMember, Assembly, LeftOut, NeededLog, NeededReplay, NeededSync, Part,
    Update,
};
use crate::admission::Admission;
use crate::mutation::{self, Mutation};
use crate::persistent::error::{AssembleError, LogFault};
use crate::persistent::intent::span;
use crate::persistent::log_superblock::{LogBlock, LogSays, Numbers};
use crate::stripes::log::Trust;
use raidlab_geometry::{Slot, SlotSet};
use raidlab_metadata::{Features, Role, Superblock};
use raidlab_units::{SECTOR_BYTES, Sectors};

/// The resync and the replay that the array needs.
struct Plan {
    resync: Option<NeededSync>,
    /// The logs that are replayed.
    replay: Option<Logs>,
}

/// Logs with all the writes that were under way. Members are the candidates' indices.
struct Logs {
    /// The session, the lowest sector below which the array was in sync, and whether that is by
    /// its first resync.
    says: LogSays,
    /// The members that hold data.
    members: Vec<usize>,
    /// The logs of those members that have one of this session.
    logs: Vec<NeededLog>,
}

pub(super) fn conclude(
    mut view: View,
    mut chosen: Chosen,
    options: &AssembleOptions,
) -> Result<Assembly, AssembleError> {
    chosen.number_anew(&mut view);
    let plan = plan(&view, &chosen, options)?;
    mark_all(plan.resync.as_ref(), &mut chosen);
    let bitmap_does_not_fit = place_bitmaps(&mut view, &mut chosen, options);
    find_log_areas(&mut view, &chosen);
    let order = order(&chosen);
    let absent = absent(&view, &chosen, plan.replay.is_some());
    let replay = plan.replay.map(|logs| {
        for at in &logs.members {
            view.believe(*at, logs.says);
        }
        let place = |log: NeededLog| {
            let member = order.iter().position(|at| *at == log.member)?;
            Some(NeededLog { member, ..log })
        };
        NeededReplay {
            session: logs.says.session,
            logs: logs.logs.into_iter().filter_map(place).collect(),
        }
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
        found: array.clone(),
        array,
        newest,
        level,
        layout,
        size,
        members,
        left_out,
        bitmap: chosen.bitmap.map(|(bitmap, _)| bitmap),
        bitmap_is_external: options.external_bitmap.is_some(),
        bitmap_does_not_fit,
        resync: plan.resync,
        replay,
        absent,
        forced,
        read_only: options.read_only,
    };
    if options.update == Some(Update::Size) {
        assembly.grow(options.external_bitmap.as_ref())?;
    }
    assembly.widen_spares();
    Ok(assembly)
}

/// Marks all chunks before a resync of everything: it may be interrupted, or lose a member that
/// comes back by the bitmap; the part that it has not reached is known by the bits alone then.
fn mark_all(resync: Option<&NeededSync>, chosen: &mut Chosen) {
    let covers_all = resync.is_some_and(|it| it.ranges.is_none());
    if let Some((bitmap, _)) = &mut chosen.bitmap
        && covers_all
        && !mutation::is(Mutation::FullResyncUnmarked)
    {
        bitmap.fill(true);
    }
}

/// Returns the device numbers of members that were in service and are not used, if a replay now or
/// one before it goes without them: no superblock records that yet.
fn absent(view: &View, chosen: &Chosen, replays: bool) -> Numbers {
    let takes_part = |number: u32| {
        let parts = view.candidates.iter().zip(&chosen.parts);
        parts
            .filter(|(_, part)| !matches!(part, None | Some(Part::Spare)))
            .any(|(candidate, _)| candidate.superblock().device_number == number)
    };
    (0..)
        .zip(&view.array().roles)
        .filter(|(number, role)| matches!(role, Role::Slot(_)) && !takes_part(*number))
        .filter(|(number, _)| replays || view.is_absent(*number))
        .fold(Numbers::default(), |absent, (number, _)| {
            absent.with(number)
        })
}

/// Places the bitmaps. A device that was away when the array got its bitmap does not record a place
/// for it: it lies where the newest device has it. Where a device has no room for it, it is left
/// out, or, if its content is current, the array has no bitmap: then the device's name is returned.
fn place_bitmaps(
    view: &mut View,
    chosen: &mut Chosen,
    options: &AssembleOptions,
) -> Option<String> {
    let array = view.array();
    let (version, offset) = (array.version, array.bitmap_offset);
    let (bitmap, _) = chosen.bitmap.as_ref()?;
    if options.external_bitmap.is_some() || mutation::is(Mutation::BitmapUnplaced) {
        return None;
    }
    let needed = bitmap.superblock.bytes().div_ceil(SECTOR_BYTES);
    for at in 0..chosen.parts.len() {
        let candidate = &mut view.candidates[at];
        let superblock = &mut candidate.metadata.superblock;
        if !superblock.features.has(Features::BITMAP) && superblock.version == version {
            superblock.features.0 |= Features::BITMAP;
            superblock.bitmap_offset = offset;
        }
        let room = superblock.bitmap_room(candidate.size);
        let fits = room.is_some_and(|room| room.end.0 - room.start.0 >= needed);
        match chosen.parts[at] {
            None => {}
            Some(_) if fits => {}
            Some(Part::InSync(_)) => {
                chosen.bitmap = None;
                return Some(candidate.name.clone());
            }
            Some(_) => {
                chosen.parts[at] = None;
                chosen.left_out.push((at, LeftOut::NoBitmapRoom));
            }
        }
    }
    None
}

/// Finds the room for logs where a member's own bitmap was not written yet: the array's bitmap
/// tells how long it is, and so where the room begins.
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

/// Returns the candidates of the array in order: by slot, replacements behind the members they
/// replace, spares last.
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
    // A member that is taken by force may differ from the others.
    if !chosen.forced.is_empty() || options.update == Some(Update::Resync) {
        plan.resync = Some(NeededSync {
            from: Sectors::ZERO,
            ranges: None,
            is_first: false,
        });
    }
    // With the last redundancy gone, the missing content is what the others define from here on.
    // The array counts as in sync, as with mdadm (super1.c, `force-array`), or it would never start
    // by itself again.
    let spared = view
        .level
        .parity_count()
        .saturating_sub(missing(view, chosen).len());
    let is_torn = plan.resync.as_ref().is_some_and(|it| !it.is_first);
    if has_parity(view) && spared == 0 && is_torn {
        plan.resync = None;
    }
    Ok(plan)
}

fn has_parity(view: &View) -> bool {
    view.level.parity_count() > 0
}

/// Returns the slots without current content.
fn missing(view: &View, chosen: &Chosen) -> SlotSet {
    SlotSet::first(view.slot_count()) - chosen.in_sync
}

/// Returns the plan for an array that was not stopped cleanly.
fn plan_dirty(
    view: &View,
    chosen: &Chosen,
    options: &AssembleOptions,
    from: Sectors,
) -> Result<Plan, AssembleError> {
    let missing = missing(view, chosen);
    let has_parity = has_parity(view);
    let needs_parity = has_parity && !missing.is_empty();
    let refuse = |log| match log {
        _ if options.force => Ok(()),
        log if needs_parity => Err(AssembleError::DirtyDegraded { missing, log }),
        LogFault::Unreadable(member) if !options.read_only => {
            Err(AssembleError::LogUnreadable { member })
        }
        _ => Ok(()),
    };
    let mut is_first = is_unused(view, chosen);
    if has_parity && !is_first {
        match log(view, chosen) {
            Ok(logs) => {
                if options.read_only && needs_parity {
                    return Err(AssembleError::ReplayNeedsWrite);
                }
                let LogSays {
                    in_sync_below: below,
                    first_resync,
                    ..
                } = logs.says;
                let rest = (below != Superblock::IN_SYNC).then_some(below);
                if rest.is_some() && !first_resync {
                    refuse(LogFault::NeverInSync)?;
                }
                return Ok(Plan {
                    resync: rest.map(|from| needed(chosen, from, first_resync)),
                    replay: Some(logs),
                });
            }
            Err(_) if no_run_has_begun(view, chosen) => is_first = true,
            Err(log) => refuse(log)?,
        }
    }
    is_first &= !mutation::is(Mutation::FirstResyncDistrusted);
    Ok(Plan {
        resync: Some(needed(chosen, from, is_first)),
        replay: None,
    })
}

/// Whether the array was never written above its `resync_offset`: it was never in use, or was
/// stopped cleanly in its first resync.
fn is_unused(view: &View, chosen: &Chosen) -> bool {
    let mut holders = (0..)
        .zip(&chosen.parts)
        .filter(|(_, part)| matches!(part, Some(Part::InSync(_))));
    let was_stopped = |at: usize| {
        let says = view.blocks(at).first().map(|block| block.says);
        says.is_some_and(|says| says.session == 0 && says.first_resync)
    };
    view.array().events == 0 || holders.all(|(at, _)| was_stopped(at))
}

/// Whether the members with data have seen only the beginnings of runs, if any. A run takes writes
/// when all of its members have a superblock that counts it, and a run without a member when they
/// have a second one. So none has begun where a member counts none; nor where they count one, but
/// the logs have no session in common.
fn no_run_has_begun(view: &View, chosen: &Chosen) -> bool {
    let holders: Vec<_> = (0..chosen.parts.len())
        .filter(|at| matches!(chosen.parts[*at], Some(Part::InSync(_))))
        .filter(|at| !chosen.forced.contains(at))
        .collect();
    let events = |at: &usize| view.candidates[*at].superblock().events;
    let logs: Vec<_> = holders.iter().map(|at| view.blocks(*at)).collect();
    let is_readable = |at: &usize| {
        let log = view.candidates[*at].log;
        log.is_some_and(|log| !log.is_unreadable())
    };
    let is_common = |session| {
        let has = |blocks: &Vec<LogBlock>| blocks.iter().any(|it| it.says.session == session);
        logs.iter().all(has)
    };
    let mut sessions = logs.iter().flatten().map(|block| block.says.session);
    let all_differ = logs.iter().all(|blocks| !blocks.is_empty())
        && holders.iter().all(is_readable)
        && !sessions.any(is_common);
    holders.iter().any(|at| events(at) == 0)
        || holders.iter().all(|at| events(at) == 1) && !holders.is_empty() && all_differ
}

/// Returns the resync of the ranges in a sound bitmap, else of everything from the offset on.
fn needed(chosen: &Chosen, from: Sectors, is_first: bool) -> NeededSync {
    let ranges = match &chosen.bitmap {
        Some((bitmap, true)) => Some(bitmap.needed_spans(from).map(span).collect()),
        _ => None,
    };
    NeededSync {
        from,
        ranges,
        is_first,
    }
}

/// Returns the logs, if every member with data has the log of the same session.
///
/// Members that failed while a session began do not have it: all are given its block before the
/// first of them is given an md superblock that refers to it. If the failure was not recorded, the
/// run has not begun, its log is empty, and they have the content with which it was begun.
fn log(view: &View, chosen: &Chosen) -> Result<Logs, LogFault> {
    let mut members = Vec::new();
    for (at, part) in chosen.parts.iter().enumerate() {
        // A member under recovery may hold blocks that are only in the log; everything above its
        // offset, or in the chunks of the bitmap, is copied again anyway.
        let (slot, trust) = match part {
            Some(Part::InSync(slot)) => (*slot, Trust::Everywhere),
            Some(Part::Recovering(slot, Admission::From(below)))
                if *below > Sectors::ZERO && view.is_current(at) =>
            {
                (*slot, Trust::Below(*below))
            }
            _ => continue,
        };
        members.push((at, slot, trust, view.blocks(at)));
    }
    let session =
        session(view, &members).map_err(|fault| unreadable(view, &members).unwrap_or(fault))?;
    let mut logs = Vec::new();
    let mut says = LogSays {
        session,
        in_sync_below: Superblock::IN_SYNC,
        first_resync: !mutation::is(Mutation::FirstResyncDistrusted),
    };
    for (member, slot, trust, blocks) in &members {
        let mut ring = None;
        for block in blocks.iter().filter(|it| it.says.session == session) {
            ring.get_or_insert(block.ring);
            if !mutation::is(Mutation::NeverInSyncForgotten) {
                says.in_sync_below = says.in_sync_below.min(block.says.in_sync_below);
            }
            says.first_resync &= block.says.is_never_torn();
        }
        logs.extend(ring.map(|ring| NeededLog {
            slot: *slot,
            member: *member,
            ring,
            trust: *trust,
        }));
    }
    Ok(Logs {
        says,
        members: members.into_iter().map(|(at, ..)| at).collect(),
        logs,
    })
}

/// Returns the first member whose log superblock cannot be read, if the logs of the others would
/// suffice for the array without it.
fn unreadable(view: &View, members: &[WithBlocks]) -> Option<LogFault> {
    let is_unreadable = |(at, _, _, blocks): &WithBlocks| {
        let log = view.candidates[*at].log;
        blocks.is_empty() && log.is_some_and(|log| log.is_unreadable())
    };
    let (spoilt, rest): (Vec<_>, Vec<_>) = members.iter().cloned().partition(is_unreadable);
    let (at, ..) = spoilt.first()?;
    session(view, &rest).ok()?;
    Some(LogFault::Unreadable(view.candidates[*at].name.clone()))
}

type WithBlocks = (usize, Slot, Trust, Vec<LogBlock>);

/// Returns the session of the write log whose records are replayed: one that every member with a
/// log has, preferably that of the newest superblock.
fn session(view: &View, members: &[WithBlocks]) -> Result<u64, LogFault> {
    let name = |at: usize| view.candidates[at].name.clone();
    let first = members
        .first()
        .ok_or_else(|| LogFault::Absent(name(view.newest)))?;
    let has = |blocks: &[LogBlock], session| blocks.iter().any(|it| it.says.session == session);
    let lacking = |session| {
        members
            .iter()
            .filter(move |(.., blocks)| !has(blocks, session))
    };
    let begun = view.blocks(view.newest);
    let begun = begun.first().map(|block| block.says.session);
    let begun = begun.filter(|session| *session != 0);
    // The session for which the newest md superblock was written comes before one that only a
    // single member still has.
    let known = first.3.iter().map(|block| block.says.session);
    let mut sessions = begun
        .into_iter()
        .filter(|_| !mutation::is(Mutation::OldSessionBelieved))
        .chain(known);
    match sessions.find(|session| lacking(*session).next().is_none()) {
        Some(0) => return Err(LogFault::Absent(name(first.0))),
        Some(session) => return Ok(session),
        None => {}
    }
    let newest = view.array().events;
    let is_behind = |at: usize| view.candidates[at].superblock().events < newest;
    let fault = match begun {
        Some(begun) => match lacking(begun).find(|(at, ..)| !is_behind(*at)) {
            None => return Ok(begun),
            Some((at, ..)) => *at,
        },
        None => first.0,
    };
    let lacks = members.iter().find(|(.., blocks)| blocks.is_empty());
    Err(
        match (lacks, view.candidates[lacks.map_or(fault, |it| it.0)].log) {
            (None, _) => LogFault::OtherSession(name(fault)),
            (Some((at, ..)), None) => LogFault::Absent(name(*at)),
            (Some((at, ..)), Some(_)) => LogFault::Overtaken(name(*at)),
        },
    )
}
