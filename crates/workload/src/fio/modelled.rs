//! The modelled options, and their effects on a job.

mod amounts;
mod endings;
mod engines;
mod errors;
mod finer;
mod lists;
mod option;
mod preconditioning;
mod sizes;
mod zones;

use super::error::OptionError;
pub(super) use super::value::choice;
use super::value::{KiloBase, count, number, size, switch, time};
use crate::arrivals::ArrivalProcess;
use crate::job::{JobSpec, Pattern};
use crate::shape::{ExitWhat, Rate};
use endings::EndDraft;
use errors::{ErrorDraft, set_continue_on_error, set_ignore_error};
use option::Setter::{Count, Either, Switch, Time};
use option::{Noted, option};
use preconditioning::PreconditioningDraft;
use raidlab_units::{Bytes, Nanos};
use sizes::SizeDraft;
use zones::ZoneDraft;

pub(super) use finer::settle;
pub(super) use option::{ModelledOption, Setter};

/// A job under construction: fio settles some options only when all of a
/// section's are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    pub(super) spec: JobSpec,
    pub(super) kilo_base: KiloBase,
    sizes: SizeDraft,
    pub(super) rate: Rate,
    /// The limits of reads, writes and discards in requests per second.
    pub(super) rate_iops: [u64; 3],
    pub(super) flow_weight: u32,
    pub(super) flow_id: u32,
    pub(super) flow_sleep: Nanos,
    /// Whether written data are read back, where a section says so, and whether it gives a pattern,
    /// with which they are read back too.
    pub(super) verifies: Option<bool>,
    pub(super) has_pattern: bool,
    /// Whether the engine's writes go to the medium (fio `writefua`).
    pub(super) writes_through: bool,
    /// Whether the device is flushed when a job ends (fio `fsync_on_close`).
    pub(super) flushes_on_close: bool,
    /// Whether written data are not read back after all (fio `do_verify=0`).
    pub(super) verifies_not: bool,
    pub(super) verify_backlog: u32,
    pub(super) verify_batch: u32,
    zones: ZoneDraft,
    ends: EndDraft,
    errors: ErrorDraft,
    /// Whether the engine takes discards of several ranges.
    pub(super) takes_ranges: bool,
    preconditioning: PreconditioningDraft,
    /// The value of fio `iodepth_low` or `iodepth_batch_complete_min`; 0: not given.
    pub(super) depth_low: u32,
    pub(super) complete_batch: u32,
    pub(super) new_group: bool,
    /// Whether `exit_what=all` is given, with which later groups would not run.
    pub(super) ends_all: bool,
    pub(super) think_blocks_given: bool,
    pub(super) file_name: Option<String>,
    pub(super) no_random_map: bool,
    /// Whether blocks are visited once even without a map (fio `random_generator=lfsr`).
    pub(super) shift_register: bool,
    pub(super) stop_together: bool,
}

/// The largest number of ranges in one discard, which NVMe's command has room for.
const MOST_RANGES: u32 = 256;

/// All options that change a job.
pub(super) fn options() -> impl Iterator<Item = &'static ModelledOption> {
    let tables = [
        OPTIONS,
        amounts::OPTIONS,
        zones::OPTIONS,
        endings::OPTIONS,
        preconditioning::OPTIONS,
    ];
    tables.into_iter().flatten()
}

const OPTIONS: &[ModelledOption] = &[
    option("name", |draft, value| {
        needed(value)?.clone_into(&mut draft.spec.name);
        Ok(None)
    }),
    option("filename", set_file_name),
    option("rw|readwrite", set_pattern),
    option("ioengine", engines::set_engine),
    ("iodepth", Count(1, |draft| &mut draft.spec.io_depth)),
    ("numjobs", Count(1, |draft| &mut draft.spec.num_jobs)),
    option("bs|blocksize", sizes::set_block_sizes),
    option("bsrange|blocksize_range", sizes::set_block_size_range),
    option("bssplit", sizes::set_block_size_split),
    (
        "bs_unaligned|blocksize_unaligned",
        Switch(|draft| &mut draft.spec.unaligned_sizes),
    ),
    option("ba|blockalign", finer::set_alignment),
    option("runtime|timeout", |draft, value| {
        draft.spec.runtime = Some(time(needed(value)?, "s")?);
        Ok(None)
    }),
    ("time_based", Switch(|draft| &mut draft.spec.time_based)),
    ("ramp_time", Time("s", |draft| &mut draft.spec.ramp_time)),
    option("rwmixread", |draft, value| {
        draft.spec.read_mix_percent = percent(value)?;
        Ok(None)
    }),
    option("rwmixwrite", |draft, value| {
        draft.spec.read_mix_percent = 100 - percent(value)?;
        Ok(None)
    }),
    ("gtod_reduce", Switch(|draft| &mut draft.spec.reduced_clock)),
    ("thinktime", Time("us", |draft| &mut draft.spec.think_time)),
    option("thinktime_blocks", |draft, value| {
        draft.spec.think_time_blocks = count(needed(value)?, 1)?;
        draft.think_blocks_given = true;
        Ok(None)
    }),
    (
        "thinktime_blocks_type",
        Either("complete, issue", |draft| {
            &mut draft.spec.thinking.counts_issues
        }),
    ),
    (
        "thinktime_iotime",
        Time("s", |draft| &mut draft.spec.thinking.after),
    ),
    option("rate", finer::set_rate),
    option("rate_min|ratemin", finer::set_least_rate),
    option("rate_iops", finer::set_rate_iops),
    option("rate_iops_min", finer::set_least_iops),
    option("rate_cycle|ratecycle", |draft, value| {
        draft.rate.cycle = Nanos::from_millis(number(needed(value)?, 1..=u64::from(u32::MAX))?);
        Ok(None)
    }),
    option("rate_process", |draft, value| {
        let text = needed(value)?;
        let found = ArrivalProcess::ALL.iter().find(|entry| entry.1 == text);
        let refused = || choice(text, ArrivalProcess::names());
        draft.rate.process = found.ok_or_else(refused)?.0;
        Ok(None)
    }),
    (
        "rate_ignore_thinktime",
        Switch(|draft| &mut draft.rate.ignores_thinking),
    ),
    (
        "io_submit_mode",
        Either("inline, offload", |draft| &mut draft.rate.offload),
    ),
    option("startdelay", |draft, value| {
        let text = needed(value)?;
        if text.contains(['-', ':']) {
            return Err(not_modelled("a delay that is drawn; write one time"));
        }
        draft.spec.start_delay = time(text, "s")?;
        Ok(None)
    }),
    option("wait_for", |draft, value| {
        draft.spec.wait_for = Some(needed(value)?.to_owned());
        Ok(None)
    }),
    option("exit_what", |draft, value| {
        draft.spec.exit_what = match needed(value)? {
            "group" => ExitWhat::Group,
            "stonewall" | "all" => ExitWhat::Stonewall,
            text => return Err(choice(text, "group, stonewall, all")),
        };
        draft.ends_all = value.is_some_and(|value| value.trim() == "all");
        Ok(None)
    }),
    option("new_group", |draft, value| {
        draft.new_group = switch(value)?;
        Ok(draft
            .new_group
            .then_some("counts for `exitall`; jobs that run together share a row all the same"))
    }),
    option("random_distribution", finer::set_distribution),
    option("random_sequence_stride", finer::set_sequence_stride),
    option("percentage_random", finer::set_percentage_random),
    (
        "rw_sequencer",
        Either("sequential, identical", |draft| &mut draft.spec.runs.repeat),
    ),
    ("flow", Count(0, |draft| &mut draft.flow_weight)),
    ("flow_id", Count(0, |draft| &mut draft.flow_id)),
    option("flow_sleep", |draft, value| {
        draft.flow_sleep = Nanos::from_micros(number(needed(value)?, 0..=u64::from(u32::MAX))?);
        Ok(None)
    }),
    option("verify", set_verify),
    option("verify_pattern", |draft, value| {
        needed(value)?;
        draft.has_pattern = true;
        Ok(Some("what is read back is not compared"))
    }),
    option("do_verify", |draft, value| {
        draft.verifies_not = !switch(value)?;
        Ok(None)
    }),
    (
        "verify_backlog",
        Count(0, |draft| &mut draft.verify_backlog),
    ),
    (
        "verify_backlog_batch",
        Count(0, |draft| &mut draft.verify_batch),
    ),
    option("num_range", |draft, value| {
        draft.spec.ranges = count(needed(value)?, 1)?;
        match draft.spec.ranges {
            ..=MOST_RANGES => Ok(None),
            _ => Err(needs("a number up to 256, as NVMe has them")),
        }
    }),
    option("continue_on_error", set_continue_on_error),
    option("ignore_error", set_ignore_error),
    ("writefua", Switch(|draft| &mut draft.writes_through)),
    (
        "iodepth_batch|iodepth_batch_submit",
        Count(0, |draft| &mut draft.spec.submit_batch),
    ),
    ("iodepth_low", Count(0, |draft| &mut draft.depth_low)),
    (
        "iodepth_batch_complete_min|iodepth_batch_complete",
        Count(0, |draft| &mut draft.complete_batch),
    ),
    option("randseed", |draft, value| {
        draft.spec.random_seed = Some(number(needed(value)?, 0..=u64::MAX)?);
        Ok(None)
    }),
    ("norandommap", Switch(|draft| &mut draft.no_random_map)),
    option("random_generator", set_random_generator),
    ("fsync", Count(0, |draft| &mut draft.spec.fsync_every)),
    (
        "fdatasync",
        Count(0, |draft| &mut draft.spec.fdatasync_every),
    ),
    ("end_fsync", Switch(|draft| &mut draft.spec.end_fsync)),
    // fio treats both in the same way, also on a device.
    (
        "fsync_on_close",
        Switch(|draft| &mut draft.flushes_on_close),
    ),
    option("sync", set_sync_writes),
    // The model has no page cache; the runner of the jobs notes that once for all.
    option("direct", |_, value| switch(value).map(|_| None)),
    option("buffered", |_, value| switch(value).map(|_| None)),
    // Threads and processes send the same requests to a disk.
    option("thread|threads", |_, value| switch(value).map(|_| None)),
    (
        "stonewall|wait_for_previous",
        Switch(|draft| &mut draft.spec.stonewall),
    ),
    ("exitall", Switch(|draft| &mut draft.stop_together)),
    option("kb_base", |draft, value| {
        draft.kilo_base = match needed(value)? {
            "1024" => KiloBase::Binary,
            "1000" => KiloBase::Decimal,
            text => return Err(choice(text, "1000, 1024")),
        };
        Ok(None)
    }),
];

pub(super) fn needed(value: Option<&str>) -> Result<&str, OptionError> {
    value
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .ok_or(OptionError::MissingValue)
}

pub(super) const fn needs(what: &'static str) -> OptionError {
    OptionError::Needs { what }
}

pub(super) const fn not_modelled(reason: &'static str) -> OptionError {
    OptionError::NotModelled { reason }
}

pub(super) fn percent(value: Option<&str>) -> Result<u32, OptionError> {
    let text = needed(value)?;
    let share = count(text, 0)?;
    if share > 100 {
        return Err(OptionError::Number {
            text: text.to_owned(),
            least: 0,
            most: 100,
        });
    }
    Ok(share)
}

/// Reads one size in bytes: no share of the device, and no range.
fn plain_size(draft: &Draft, value: Option<&str>) -> Result<Bytes, OptionError> {
    let text = needed(value)?;
    if text.ends_with('%') {
        return Err(not_modelled("a share of the device; write a size"));
    }
    if text.ends_with('z') {
        return Err(not_modelled("a number of zones; write a size"));
    }
    // `-1` is not a range: fio takes it for a share of the device.
    if text.contains(':') || text.trim_start_matches('-').contains('-') {
        return Err(not_modelled("a range of sizes; write one size"));
    }
    size(text, draft.kilo_base)
}

fn set_file_name(draft: &mut Draft, value: Option<&str>) -> Noted {
    let name = needed(value)?;
    // fio splits at `:`; `\:` is a colon within a name.
    if name.replace("\\:", "").contains(':') {
        return Err(not_modelled("several files; a job runs on one device"));
    }
    draft.file_name = Some(name.to_owned());
    Ok(Some("the modelled device takes its place"))
}

fn set_pattern(draft: &mut Draft, value: Option<&str>) -> Noted {
    let text = needed(value)?;
    let (text, modifier) = match text.split_once(':') {
        Some((pattern, modifier)) => (pattern.trim(), Some(modifier.trim())),
        None => (text, None),
    };
    let name = if text == "rw" { "readwrite" } else { text };
    let found = Pattern::ALL.into_iter().find(|(_, known)| *known == name);
    let Some((pattern, _)) = found else {
        return Err(choice(
            text,
            "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, \
             randtrimwrite",
        ));
    };
    draft.spec.pattern = pattern;
    draft.spec.step = 0;
    draft.spec.runs.draw_every = 1;
    match modifier {
        None => {}
        Some(every) if draft.spec.pattern.is_random() => {
            draft.spec.runs.draw_every = count(every, 1)?;
        }
        Some(step) => draft.spec.step = finer::step(draft, step)?,
    }
    Ok(None)
}

/// The checksums of fio's `verify`.
const CHECKSUMS: &str = "md5 crc64 crc32 crc32c-intel crc32c crc16 crc7 sha1 sha256 sha512 \
     sha3-224 sha3-256 sha3-384 sha3-512 xxhash meta pattern pattern_hdr null";

fn set_verify(draft: &mut Draft, value: Option<&str>) -> Noted {
    let text = needed(value)?;
    if text != "0" && !CHECKSUMS.split(' ').any(|known| known == text) {
        return Err(choice(
            text,
            "0, md5, crc32c, sha256, xxhash, meta, pattern and their like",
        ));
    }
    draft.verifies = Some(text != "0");
    Ok((text != "0").then_some("read back; what comparing costs the processor is not modelled"))
}

fn set_random_generator(draft: &mut Draft, value: Option<&str>) -> Noted {
    let text = needed(value)?;
    draft.shift_register = match text {
        "tausworthe" | "tausworthe64" => false,
        "lfsr" => true,
        _ => return Err(choice(text, "tausworthe, tausworthe64, lfsr")),
    };
    Ok((text != "tausworthe")
        .then_some("the order is random by another generator, not fio's own sequence"))
}

fn set_sync_writes(draft: &mut Draft, value: Option<&str>) -> Noted {
    draft.spec.sync_writes = match value.map(str::trim) {
        None | Some("1" | "sync" | "dsync") => true,
        Some("0" | "none") => false,
        Some(text) => return Err(choice(text, "none, sync, dsync, 0, 1")),
    };
    Ok(None)
}
