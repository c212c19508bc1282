//! A cache's state and settings out of `/sys/fs/bcache`.
//!
//! The kernel adds up a cache's hits and misses every 23 s only
//! (`scale_accounting`), so they say nothing of a job and are not read: what each
//! member did tells it.

use super::BcacheSpec;
use super::plan::{SETS, name_of, of_backing, of_set};
use crate::array::steps::{Reader, kernel_name};
use crate::array::{
    ArrayStatus, ArraySystem, Built, CacheState, Health, Member, MemberState, MemberStatus,
    ReadBack, SystemError,
};
use raidlab_shell::{Target, Watched};
use raidlab_units::{Bytes, Sectors, parse_bytes};

/// What is behind the cache tells its state: `clean`, `dirty`, `no cache`,
/// `inconsistent`.
const STATE: &str = "state";

pub(super) fn sources(spec: &BcacheSpec, array: &Built) -> Vec<Watched> {
    let mut sources = vec![Watched::File(of_backing(&array.name, STATE))];
    if let Some((md, behind)) = spec.behind(array) {
        sources.extend(md.sources(&behind));
    }
    sources
}

pub(super) fn interpret(
    spec: &BcacheSpec,
    array: &Built,
    contents: &[Option<String>],
) -> Result<ArrayStatus, SystemError> {
    let no_array = || SystemError::NoArray {
        name: array.name.clone(),
    };
    let state = contents.first().and_then(Option::as_deref);
    let state = state.ok_or_else(no_array)?.trim();
    let (cache, data) = array.members.split_last().ok_or_else(no_array)?;
    let status = |member: &Member, state| MemberStatus {
        device: kernel_name(&member.device).to_owned(),
        state,
    };
    let mut whole = match spec.behind(array) {
        Some((md, behind)) => md.interpret(&behind, contents.get(1..).unwrap_or(&[]))?,
        None => ArrayStatus {
            health: Health::Optimal,
            members: data
                .iter()
                .map(|member| status(member, MemberState::InSync))
                .collect(),
            sync: None,
        },
    };
    let cached = match state {
        "clean" | "dirty" => MemberState::InSync,
        "no cache" => MemberState::Missing,
        "inconsistent" => {
            whole.health = Health::Failed;
            MemberState::Missing
        }
        other => {
            return Err(SystemError::Unreadable {
                source_name: of_backing(&array.name, STATE),
                line: 1,
                problem: format!("`{other}` is no state of a cache"),
            });
        }
    };
    if cached == MemberState::Missing && whole.health == Health::Optimal {
        whole.health = Health::Degraded;
    }
    whole.members.push(status(cache, cached));
    Ok(whole)
}

/// A size as bcache prints it (`bch_hprint`): a number with one digit after the
/// point and a unit of 1024, `512.0k`, `4.0M`, or bytes.
fn size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix(|letter: char| letter.is_ascii_alphabetic()) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, ""),
    };
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let one = parse_bytes(&format!("1{}", unit.to_ascii_lowercase()))
        .ok()?
        .0;
    let whole = whole.parse::<u64>().ok()?.checked_mul(one)?;
    let tenths = tenths.parse::<u64>().ok()?.checked_mul(one)? / 10;
    whole.checked_add(tenths).map(Bytes)
}

pub(super) fn cache(target: &dyn Target, array: &Built) -> Result<CacheState, SystemError> {
    let path = of_backing(&array.name, "dirty_data");
    let text = target.read(&path)?;
    let dirty = size(&text).ok_or_else(|| SystemError::Unreadable {
        source_name: path,
        line: 1,
        problem: format!("`{}` is no size", text.trim()),
    })?;
    Ok(CacheState {
        dirty,
        counts: None,
    })
}

/// The chosen one of `lru fifo [random]`.
fn chosen(text: &str) -> String {
    let words = text.split_whitespace();
    let mut marked = words.filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    marked.next().unwrap_or(text).to_owned()
}

/// A size in bytes.
fn bytes(text: &str) -> String {
    size(text).map_or_else(|| text.to_owned(), |size| size.0.to_string())
}

pub(super) fn settings(
    spec: &BcacheSpec,
    target: &dyn Target,
    array: &Built,
) -> Result<Vec<ReadBack>, SystemError> {
    let mut reader = Reader::new(target);
    let backing = |file: &str| of_backing(&array.name, file);
    let set = |file: &str| of_set(&array.name, file);
    let in_bytes = |size: Option<Bytes>| size.map(|size| size.0.to_string());
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let mode = Some(spec.mode.name().to_owned());
    reader.file("cache_mode", mode, &backing("cache_mode"), chosen)?;
    let replacement = spec.replacement.map(|policy| policy.name().to_owned());
    let path = set("cache0/cache_replacement_policy");
    reader.file("replacement", replacement, &path, chosen)?;
    for (name, asked, path) in [
        ("block", in_bytes(spec.block), set("block_size")),
        ("bucket", in_bytes(spec.bucket), set("bucket_size")),
        (
            "sequential_cutoff",
            in_bytes(spec.sequential_cutoff),
            backing("sequential_cutoff"),
        ),
        ("dirty_bytes", None, backing("dirty_data")),
    ] {
        reader.file(name, asked, &path, bytes)?;
    }
    for (name, asked, path) in [
        (
            "writeback_percent",
            number(spec.writeback_percent),
            backing("writeback_percent"),
        ),
        (
            "writeback_delay_s",
            number(spec.writeback_delay_s),
            backing("writeback_delay"),
        ),
        (
            "congested_read_threshold_us",
            number(spec.congested_read_threshold_us),
            set("congested_read_threshold_us"),
        ),
        (
            "congested_write_threshold_us",
            number(spec.congested_write_threshold_us),
            set("congested_write_threshold_us"),
        ),
    ] {
        reader.file(name, asked, &path, str::to_owned)?;
    }
    let mut settings = reader.done();
    if let Some((md, behind)) = spec.behind(array) {
        settings.extend(md.settings(target, &behind)?);
    }
    Ok(settings)
}

/// The device that a link below a cache set's folder leads to: the kernel's
/// `.../block/vda/bcache` is `/dev/vda`.
fn device(target: &dyn Target, link: &str) -> Option<Member> {
    let path = target.resolve(link).ok()?;
    let name = path
        .trim_end_matches("/bcache")
        .rsplit('/')
        .next()?
        .to_owned();
    let sectors = target.read(&format!("/sys/class/block/{name}/size")).ok();
    let sectors = sectors.and_then(|text| text.trim().parse().ok());
    Some(Member {
        device: format!("/dev/{name}"),
        size: sectors.map_or(Bytes(0), |count| Sectors(count).to_bytes()),
        backing: None,
    })
}

pub(super) fn find(target: &dyn Target, prefix: &str) -> Result<Vec<Built>, SystemError> {
    let mut names: Vec<String> = target
        .list(SETS)?
        .iter()
        .filter_map(|entry| name_of(entry))
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    Ok(names
        .into_iter()
        .map(|name| Built {
            members: ["bdev0", "cache0"]
                .iter()
                .filter_map(|side| device(target, &of_set(&name, side)))
                .collect(),
            name,
            folder: String::new(),
        })
        .collect())
}
