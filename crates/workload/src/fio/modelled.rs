//! The options that change a job, and how.

use super::error::OptionError;
use super::value::{KiloBase, count, number, size, switch, time};
use crate::job::{Engine, JobSpec, Pattern};
use raidlab_units::Bytes;

/// A job under construction: fio settles some options only when all of a
/// section's are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    pub(super) spec: JobSpec,
    pub(super) kilo_base: KiloBase,
    /// fio `bs` for reads and writes.
    pub(super) block_sizes: Option<[Bytes; 2]>,
    pub(super) file_name: Option<String>,
    pub(super) no_random_map: bool,
    /// fio `random_generator=lfsr` visits each block once even without a map.
    pub(super) shift_register: bool,
    pub(super) stop_together: bool,
}

/// Puts a value into a draft; gives a note if there is something to say.
pub(super) type Setter = fn(&mut Draft, Option<&str>) -> Result<Option<&'static str>, OptionError>;

/// An option that changes a job.
pub(super) struct ModelledOption {
    /// fio's name and its aliases.
    pub(super) names: &'static [&'static str],
    /// What it does.
    pub(super) set: Setter,
}

const fn option(names: &'static [&'static str], set: Setter) -> ModelledOption {
    ModelledOption { names, set }
}

pub(super) const OPTIONS: &[ModelledOption] = &[
    option(&["name"], |draft, value| {
        needed(value)?.clone_into(&mut draft.spec.name);
        Ok(None)
    }),
    option(&["filename"], set_file_name),
    option(&["rw", "readwrite"], set_pattern),
    option(&["ioengine"], set_engine),
    option(&["iodepth"], |draft, value| {
        draft.spec.io_depth = count(needed(value)?, 1)?;
        Ok(None)
    }),
    option(&["numjobs"], |draft, value| {
        draft.spec.num_jobs = count(needed(value)?, 1)?;
        Ok(None)
    }),
    option(&["bs", "blocksize"], set_block_sizes),
    option(&["bsrange", "blocksize_range"], set_block_size_range),
    option(&["size"], |draft, value| {
        draft.spec.size = amount(draft, value)?;
        Ok(None)
    }),
    option(&["io_size", "io_limit"], |draft, value| {
        draft.spec.io_size = amount(draft, value)?;
        Ok(None)
    }),
    option(&["filesize"], |draft, value| {
        draft.spec.file_size = Some(plain_size(draft, value)?);
        Ok(None)
    }),
    option(&["offset", "fileoffset"], |draft, value| {
        draft.spec.offset = plain_size(draft, value)?;
        Ok(None)
    }),
    option(&["offset_increment"], |draft, value| {
        draft.spec.offset_increment = plain_size(draft, value)?;
        Ok(None)
    }),
    option(&["loops"], |draft, value| {
        draft.spec.loops = count(needed(value)?, 1)?;
        Ok(None)
    }),
    option(&["number_ios"], |draft, value| {
        // fio takes 0 for no limit.
        let limit = plain_size(draft, value)?.0;
        draft.spec.request_limit = Some(limit).filter(|&limit| limit > 0);
        Ok(None)
    }),
    option(&["runtime", "timeout"], |draft, value| {
        draft.spec.runtime = Some(time(needed(value)?, "s")?);
        Ok(None)
    }),
    option(&["time_based"], |draft, value| {
        draft.spec.time_based = switch(value)?;
        Ok(None)
    }),
    option(&["ramp_time"], |draft, value| {
        draft.spec.ramp_time = time(needed(value)?, "s")?;
        Ok(None)
    }),
    option(&["rwmixread"], |draft, value| {
        draft.spec.read_mix_percent = percent(value)?;
        Ok(None)
    }),
    option(&["rwmixwrite"], |draft, value| {
        draft.spec.read_mix_percent = 100 - percent(value)?;
        Ok(None)
    }),
    option(&["gtod_reduce"], |draft, value| {
        draft.spec.reduced_clock = switch(value)?;
        Ok(None)
    }),
    option(&["thinktime"], |draft, value| {
        draft.spec.think_time = time(needed(value)?, "us")?;
        Ok(None)
    }),
    option(&["thinktime_blocks"], |draft, value| {
        draft.spec.think_time_blocks = count(needed(value)?, 1)?;
        Ok(None)
    }),
    option(&["randseed"], |draft, value| {
        draft.spec.random_seed = Some(number(needed(value)?, 0..=u64::MAX)?);
        Ok(None)
    }),
    option(&["norandommap"], |draft, value| {
        draft.no_random_map = switch(value)?;
        Ok(None)
    }),
    option(&["random_generator"], set_random_generator),
    option(&["fsync"], |draft, value| {
        draft.spec.fsync_every = count(needed(value)?, 0)?;
        Ok(None)
    }),
    option(&["fdatasync"], |draft, value| {
        draft.spec.fdatasync_every = count(needed(value)?, 0)?;
        Ok(None)
    }),
    option(&["end_fsync"], |draft, value| {
        draft.spec.end_fsync = switch(value)?;
        Ok(None)
    }),
    option(&["sync"], set_sync_writes),
    option(&["direct"], |_, value| buffered_note(!switch(value)?)),
    option(&["buffered"], |_, value| buffered_note(switch(value)?)),
    option(&["stonewall", "wait_for_previous"], |draft, value| {
        draft.spec.stonewall = switch(value)?;
        Ok(None)
    }),
    option(&["exitall"], |draft, value| {
        draft.stop_together = switch(value)?;
        Ok(None)
    }),
    option(&["kb_base"], |draft, value| {
        draft.kilo_base = match needed(value)? {
            "1024" => KiloBase::Binary,
            "1000" => KiloBase::Decimal,
            text => return Err(choice(text, "1000, 1024")),
        };
        Ok(None)
    }),
];

fn needed(value: Option<&str>) -> Result<&str, OptionError> {
    value
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .ok_or(OptionError::MissingValue)
}

fn choice(text: &str, expected: &'static str) -> OptionError {
    OptionError::Choice {
        text: text.to_owned(),
        expected,
    }
}

const fn not_modelled(reason: &'static str) -> OptionError {
    OptionError::NotModelled { reason }
}

fn percent(value: Option<&str>) -> Result<u32, OptionError> {
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

fn plain_size(draft: &Draft, value: Option<&str>) -> Result<Bytes, OptionError> {
    let text = needed(value)?;
    if text.ends_with('%') {
        return Err(not_modelled("a share of the device; write a size"));
    }
    if text.contains(['-', ':']) {
        return Err(not_modelled("a range of sizes; write one size"));
    }
    size(text, draft.kilo_base)
}

/// `size=100%` is what fio does without `size`.
fn amount(draft: &Draft, value: Option<&str>) -> Result<Option<Bytes>, OptionError> {
    if needed(value)? == "100%" {
        return Ok(None);
    }
    let bytes = plain_size(draft, value)?;
    // fio takes 0 for an option that is not given.
    Ok(Some(bytes).filter(|&bytes| bytes > Bytes(0)))
}

fn set_file_name(
    draft: &mut Draft,
    value: Option<&str>,
) -> Result<Option<&'static str>, OptionError> {
    let name = needed(value)?;
    // fio splits at `:`; `\:` is a colon within a name.
    if name.replace("\\:", "").contains(':') {
        return Err(not_modelled("several files; a job runs on one device"));
    }
    draft.file_name = Some(name.to_owned());
    Ok(Some("the modelled device takes its place"))
}

fn set_pattern(
    draft: &mut Draft,
    value: Option<&str>,
) -> Result<Option<&'static str>, OptionError> {
    let text = needed(value)?;
    draft.spec.pattern = match text {
        "read" => Pattern::Read,
        "write" => Pattern::Write,
        "randread" => Pattern::RandRead,
        "randwrite" => Pattern::RandWrite,
        "rw" | "readwrite" => Pattern::ReadWrite,
        "randrw" => Pattern::RandRw,
        "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => return Err(not_modelled("trims")),
        _ if text.contains(':') => {
            return Err(not_modelled("a modifier of the order, as in `read:64k`"));
        }
        _ => return Err(choice(text, "read, write, randread, randwrite, rw, randrw")),
    };
    Ok(None)
}

/// fio's engines by how the model runs them.
const ENGINES: &[(Modelling, &str)] = &[
    (Modelling::As(Engine::Libaio, None), "libaio"),
    (
        Modelling::As(
            Engine::Libaio,
            Some("modelled as libaio: a queue of requests per clone"),
        ),
        "io_uring posixaio solarisaio windowsaio guasi syslet-rw",
    ),
    (Modelling::As(Engine::Sync, None), "sync psync"),
    (
        Modelling::As(
            Engine::Sync,
            Some("modelled as psync: one request at a time per clone"),
        ),
        "vsync pvsync pvsync2",
    ),
    (
        Modelling::As(
            Engine::Libaio,
            Some("the modelled device takes the place of what it reaches, with the same queue"),
        ),
        "io_uring_cmd xnvme libblkio nbd rbd rados libiscsi gfapi_async nfs dfs ime_aio",
    ),
    (
        Modelling::As(
            Engine::Sync,
            Some("the modelled device takes the place of what it reaches, one request at a time"),
        ),
        "mmap splice sg libpmem dev-dax pmemblk mtd gfapi libhdfs ime_psync ime_psyncv \
         libcufile libhipfile",
    ),
    (
        Modelling::As(
            Engine::Null,
            Some("no request reaches the device, as with fio's"),
        ),
        "null",
    ),
    (
        Modelling::No,
        "net netsplice rdma http cpuio exec external e4defrag falloc ftruncate filecreate \
         filestat filedelete dircreate dirstat dirdelete binject libzbc page_fault",
    ),
];

/// How the model runs an engine.
#[derive(Debug, Clone, Copy)]
enum Modelling {
    /// Like this one, with something to say.
    As(Engine, Option<&'static str>),
    /// Not at all.
    No,
}

fn engine(name: &str) -> Option<Modelling> {
    let lists = |names: &str| names.split(' ').any(|listed| listed == name);
    let found = ENGINES.iter().find(|(_, names)| lists(names));
    found.map(|&(modelling, _)| modelling)
}

fn set_engine(draft: &mut Draft, value: Option<&str>) -> Result<Option<&'static str>, OptionError> {
    let text = needed(value)?;
    match engine(text) {
        Some(Modelling::As(engine, note)) => {
            draft.spec.engine = engine;
            Ok(note)
        }
        Some(Modelling::No) => Err(not_modelled("an I/O engine other than those for disks")),
        None => Err(choice(
            text,
            "libaio, io_uring, posixaio, sync, psync, vsync, pvsync, pvsync2",
        )),
    }
}

/// `8k`, `8k,32k` (reads, writes) or `8k,32k,4k` (and trims); an empty place
/// keeps fio's default, and without a second one the first holds for all.
fn set_block_sizes(
    draft: &mut Draft,
    value: Option<&str>,
) -> Result<Option<&'static str>, OptionError> {
    let text = needed(value)?;
    let default = JobSpec::default().block_size;
    let one = |text: &str| match text.trim() {
        "" => Ok(default),
        text => size(text, draft.kilo_base),
    };
    let sizes = match text.split_once(',') {
        None => [one(text)?; 2],
        Some((reads, rest)) => [
            one(reads)?,
            one(rest.split_once(',').map_or(rest, |(writes, _)| writes))?,
        ],
    };
    draft.block_sizes = Some(sizes);
    Ok(None)
}

fn set_block_size_range(
    draft: &mut Draft,
    value: Option<&str>,
) -> Result<Option<&'static str>, OptionError> {
    let text = needed(value)?;
    let (least, most) = text
        .split_once(['-', ':'])
        .ok_or_else(|| choice(text, "ranges such as 4k-4k"))?;
    let least = size(least, draft.kilo_base)?;
    if least != size(most, draft.kilo_base)? {
        return Err(not_modelled(
            "requests of different sizes; use one block size",
        ));
    }
    draft.block_sizes = Some([least; 2]);
    Ok(None)
}

fn set_random_generator(
    draft: &mut Draft,
    value: Option<&str>,
) -> Result<Option<&'static str>, OptionError> {
    match needed(value)? {
        "tausworthe" | "tausworthe64" => draft.shift_register = false,
        "lfsr" => draft.shift_register = true,
        text => return Err(choice(text, "tausworthe, tausworthe64, lfsr")),
    }
    Ok(Some(
        "the order is random by another generator, not fio's own sequence",
    ))
}

fn set_sync_writes(
    draft: &mut Draft,
    value: Option<&str>,
) -> Result<Option<&'static str>, OptionError> {
    draft.spec.sync_writes = match value.map(str::trim) {
        None | Some("1" | "sync" | "dsync") => true,
        Some("0" | "none") => false,
        Some(text) => return Err(choice(text, "none, sync, dsync, 0, 1")),
    };
    Ok(None)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the tail of setters, which can fail"
)]
const fn buffered_note(buffered: bool) -> Result<Option<&'static str>, OptionError> {
    Ok(Some(if buffered {
        "there is no page cache in the model: the job runs as with `direct=1`"
    } else {
        "always so in the model"
    }))
}
