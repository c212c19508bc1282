//! A cache's state and settings, read from `/sys/fs/bcache`.
//!
//! The kernel adds up a cache's hits and misses every 23 s only (`scale_accounting`), so they are
//! useless for a single job and are not read: the members' own counters are used.

use super::BcacheSpec;
use super::plan::{SETS, name_of, numbers, of_backing, of_set};
use crate::array::steps::{Reader, device_size};
use crate::array::{
    ArrayStatus, Built, CacheState, Health, Member, MemberState, ReadBack, ReadState, Result,
    SystemError,
};
use raidlab_shell::{Target, Watched};
use raidlab_units::{Bytes, parse_bytes};

/// The file of the backing device with its state: `clean`, `dirty`, `no cache`, `inconsistent`.
const STATE: &str = "state";

/// Parses a size as bcache prints it (`bch_hprint`): a number with one digit after the point and a
/// unit of 1024, `512.0k`, `4.0M`, or bytes.
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

/// Formats a size as bcache prints it: divided by 1024 once, and further while there are more than
/// three digits; the first digit of the remainder is kept.
fn printed(size: Bytes) -> String {
    let (mut number, mut units) = (size.0, "kMGTPE".chars());
    while number >> 10 >= 1000 {
        number >>= 10;
        units.next();
    }
    let tenths = ((number & 1023) * 10) >> 10;
    format!("{}.{tenths}{}", number >> 10, units.next().unwrap_or('?'))
}

/// The chosen word of `lru fifo [random]`.
fn chosen(text: &str) -> String {
    let words = text.split_whitespace();
    let mut marked = words.filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    marked.next().unwrap_or(text).to_owned()
}

/// A size in bytes: the requested one, if it would be printed in this way.
fn bytes(asked: Option<Bytes>, text: &str) -> String {
    let asked = asked.filter(|asked| printed(*asked) == text.trim());
    let found = asked.or_else(|| size(text));
    found.map_or_else(|| text.to_owned(), |size| size.0.to_string())
}

/// The device behind a link in a cache set's folder: the kernel's
/// `.../block/vda/bcache` is `/dev/vda`.
fn device(target: &dyn Target, link: &str) -> Option<Member> {
    let path = target.resolve(link).ok()?;
    let name = path.trim_end_matches("/bcache").rsplit('/').next()?;
    Some(Member::found(
        format!("/dev/{name}"),
        device_size(target, name),
    ))
}

impl ReadState for BcacheSpec {
    fn sources(&self, array: &Built) -> Vec<Watched> {
        let mut sources = vec![Watched::File(of_backing(&array.name, STATE))];
        if let Some((md, behind)) = self.behind(array) {
            sources.extend(md.sources(&behind));
        }
        sources
    }

    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        let no_array = || SystemError::no_array(&array.name);
        let state = contents.first().and_then(Option::as_deref);
        let state = state.ok_or_else(no_array)?.trim();
        let (_, data) = array.members.split_last().ok_or_else(no_array)?;
        let mut whole = match self.behind(array) {
            Some((md, behind)) => md.interpret(&behind, contents.get(1..).unwrap_or(&[]))?,
            None => ArrayStatus {
                health: Health::Optimal,
                members: vec![MemberState::InSync; data.len()],
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
                return Err(SystemError::unreadable(
                    of_backing(&array.name, STATE),
                    1,
                    format!("`{other}` is no state of a cache"),
                ));
            }
        };
        if cached == MemberState::Missing && whole.health == Health::Optimal {
            whole.health = Health::Degraded;
        }
        whole.members.push(cached);
        Ok(whole)
    }

    fn cache(&self, target: &dyn Target, array: &Built) -> Result<Option<CacheState>> {
        let path = of_backing(&array.name, "dirty_data");
        let text = target.read(&path)?;
        let dirty = size(&text).ok_or_else(|| {
            SystemError::unreadable(path, 1, format!("`{}` is no size", text.trim()))
        })?;
        Ok(Some(CacheState {
            dirty,
            counts: None,
        }))
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
        let mut reader = Reader::new(target);
        let backing = |file: &str| of_backing(&array.name, file);
        let set = |file: &str| of_set(&array.name, file);
        let in_bytes = |size: Option<Bytes>| size.map(|size| size.0);
        reader.file(
            "cache_mode",
            Some(self.mode),
            &backing("cache_mode"),
            chosen,
        )?;
        let path = set("cache0/cache_replacement_policy");
        reader.file("replacement", self.replacement, &path, chosen)?;
        for (name, asked, path) in [
            ("block", self.block, set("block_size")),
            ("bucket", self.bucket, set("bucket_size")),
            (
                "sequential_cutoff",
                self.sequential_cutoff,
                backing("sequential_cutoff"),
            ),
            ("dirty_bytes", None, backing("dirty_data")),
        ] {
            reader.file(name, in_bytes(asked), &path, |text| bytes(asked, text))?;
        }
        for (name, asked, path) in numbers(self, &array.name) {
            reader.file(name, asked, &path, str::to_owned)?;
        }
        let mut settings = reader.done();
        if let Some((md, behind)) = self.behind(array) {
            settings.extend(md.settings(target, &behind)?);
        }
        Ok(settings)
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        let mut names: Vec<String> = target
            .list(SETS)?
            .iter()
            .filter_map(|entry| name_of(entry))
            .filter(|name| name.starts_with(prefix))
            .collect();
        names.sort();
        let found = names.into_iter().map(|name| {
            let sides = ["bdev0", "cache0"].iter();
            let members = sides.filter_map(|side| device(target, &of_set(&name, side)));
            Built::found(&name, members.collect())
        });
        Ok(found.collect())
    }
}
