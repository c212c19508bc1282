//! Members as the real kernel and the real mdadm left them (see `md/SOURCES`).

use raidlab_metadata::ReadAt;
use raidlab_units::Bytes;
use std::io;
use std::path::{Path, PathBuf};

/// One recorded member.
pub struct Recorded {
    /// `ARRAY.NUMBER`.
    pub name: String,
    /// The whole member.
    pub size: Bytes,
    /// Where the dumped parts begin, and their bytes.
    parts: Vec<(u64, Vec<u8>)>,
    /// What mdadm printed, by the option's name.
    texts: Vec<(String, String)>,
}

impl Recorded {
    /// The text that mdadm printed: `examine`, `brief`, `bitmap`, `badblocks`.
    pub fn text(&self, what: &str) -> String {
        let found = self.texts.iter().find(|(name, _)| name == what);
        found
            .unwrap_or_else(|| panic!("{}: no {what}", self.name))
            .1
            .clone()
    }
}

impl ReadAt for Recorded {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset.0 + bytes.len() as u64;
        let inside = end <= self.size.0;
        if !inside {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let part = self
            .parts
            .iter()
            .find(|(start, part)| *start <= offset.0 && end <= start + part.len() as u64);
        let (start, part) = part.ok_or_else(|| {
            io::Error::other(format!("{}: {offset:?} was not recorded", self.name))
        })?;
        let from = usize::try_from(offset.0 - start).map_err(io::Error::other)?;
        bytes.copy_from_slice(&part[from..from + bytes.len()]);
        Ok(())
    }
}

/// Bytes of a dump as `hexdump -C` prints it: `*` stands for lines like the
/// last one, the last line is the length.
fn undump<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut last = [0; 16];
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(first) = words.next().filter(|first| *first != "*") else {
            continue;
        };
        let at = usize::from_str_radix(first, 16).expect("an address");
        while bytes.len() < at {
            bytes.extend_from_slice(&last);
        }
        for (target, word) in last.iter_mut().zip(words) {
            *target = u8::from_str_radix(word, 16).expect("a byte");
            bytes.push(*target);
        }
    }
    bytes
}

/// Size and dumped parts.
fn parts(dump: &str) -> (Bytes, Vec<(u64, Vec<u8>)>) {
    let (size, rest) = dump.split_once("\nhead\n").expect("a head");
    let (head, rest) = rest.split_once("tail ").expect("a tail");
    let (at, tail) = rest.split_once('\n').expect("a place");
    let size = size.strip_prefix("size ").expect("a size");
    (
        Bytes(size.parse().expect("a size")),
        vec![
            (0, undump(head.lines())),
            (at.parse().expect("a place"), undump(tail.lines())),
        ],
    )
}

fn load(path: &Path) -> Vec<Recorded> {
    let array = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .expect("a name");
    let text = std::fs::read_to_string(path).expect("a recording");
    let text = format!("\n{}", text.trim_end_matches('\n'));
    let mut members: Vec<Recorded> = Vec::new();
    for section in text.split("\n== ").skip(1) {
        let (title, rest) = section.split_once('\n').expect("a title");
        let (number, what) = title.split_once(' ').expect("a number");
        if what == "dump" {
            let (size, parts) = parts(rest);
            members.push(Recorded {
                name: format!("{array}.{number}"),
                size,
                parts,
                texts: Vec::new(),
            });
        } else {
            let member = members.last_mut().expect("a dump before its texts");
            member.texts.push((what.to_owned(), format!("{rest}\n")));
        }
    }
    members
}

/// Every recorded member, in the order of names.
pub fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/md");
    let files = std::fs::read_dir(folder).expect("the recordings");
    let mut paths: Vec<PathBuf> = files
        .filter_map(|file| file.ok().map(|file| file.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    paths.iter().flat_map(|path| load(path)).collect()
}
