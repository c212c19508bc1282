//! The archive that a Linux kernel unpacks into its first file system.
//!
//! The format is cpio's "new ASCII" one, `newc`: for each file a header of
//! 110 bytes (the magic `070701` and thirteen numbers of eight hexadecimal
//! digits), its path with a final zero byte, padding to four bytes, its
//! contents, padding to four bytes; the last is called `TRAILER!!!`
//! (Documentation/driver-api/early-userspace/buffer-format.rst of Linux;
//! cpio(5)). Archives may be put one after another.
//!
//! An archive written here depends on its files only: they are in the order of
//! their paths, numbered in that order, owned by root and dated 1970.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// The size of a header in bytes.
const HEADER_BYTES: usize = 110;
/// The bytes with which a header begins.
const MAGIC: &[u8] = b"070701";
/// The path that ends an archive.
const TRAILER: &str = "TRAILER!!!";
/// The bits of a mode that give the kind of file, and three such kinds (inode(7)).
const KIND_MASK: u32 = 0o170_000;
const KIND_FOLDER: u32 = 0o040_000;
const KIND_FILE: u32 = 0o100_000;
const KIND_LINK: u32 = 0o120_000;

/// The node at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A folder, of mode 0755.
    Folder,
    /// An ordinary file with its contents.
    File {
        /// The permission bits, such as `0o755`.
        mode: u32,
        /// The bytes in the file.
        contents: Vec<u8>,
    },
    /// A symbolic link with its target.
    Link(String),
}

/// Files by their paths, which have no leading slash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Archive {
    nodes: BTreeMap<String, Node>,
}

impl Archive {
    /// Puts a node at a path, in place of an older one, and makes the folders above it where there
    /// are none. Slashes at the path's ends do not count.
    pub fn insert(&mut self, path: &str, node: Node) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.nodes
                .entry(path[..at].to_owned())
                .or_insert(Node::Folder);
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// Takes away the node at a path.
    pub fn remove(&mut self, path: &str) -> Option<Node> {
        self.nodes.remove(path.trim_matches('/'))
    }

    /// The node at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path.trim_matches('/'))
    }

    /// The contents of the file at a path; `None` where no file stands.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        match self.get(path)? {
            Node::File { contents, .. } => Some(contents),
            Node::Folder | Node::Link(_) => None,
        }
    }

    /// All paths with their nodes, in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Writes the archive; its length is a multiple of four bytes, so that
    /// another may follow.
    ///
    /// # Errors
    /// When it cannot be written, or a file has 4 GiB or more, which the
    /// format cannot say.
    pub fn write_to(&self, mut to: impl Write) -> io::Result<()> {
        for (number, (path, node)) in (1..).zip(&self.nodes) {
            let (mode, contents) = match node {
                Node::Folder => (KIND_FOLDER | 0o755, &[][..]),
                Node::File { mode, contents } => (KIND_FILE | (mode & !KIND_MASK), &contents[..]),
                Node::Link(text) => (KIND_LINK | 0o777, text.as_bytes()),
            };
            write_one(&mut to, number, mode, path, contents)?;
        }
        write_one(&mut to, 0, 0, TRAILER, &[])
    }

    /// Reads one archive and ignores what follows it.
    ///
    /// Owners, dates and hard links are not kept; nodes that are no file,
    /// folder or link are left out.
    ///
    /// # Errors
    /// When the bytes are no such archive or end before its end.
    pub fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let mut nodes = BTreeMap::new();
        let mut at = 0;
        loop {
            let header = slice(bytes, at, HEADER_BYTES)?;
            if !header.starts_with(MAGIC) {
                return Err(ArchiveError::Magic { at });
            }
            let field = |index: usize| number(header, index, at);
            let mode = field(1)?;
            let (length, name_length) = (field(6)? as usize, field(11)? as usize);
            let name_at = at + HEADER_BYTES;
            let name = slice(bytes, name_at, name_length)?;
            let name = name.strip_suffix(b"\0").unwrap_or(name);
            let name = std::str::from_utf8(name).map_err(|_| ArchiveError::Name { at })?;
            let contents_at = padded(name_at + name_length);
            let contents = slice(bytes, contents_at, length)?;
            at = padded(contents_at + length);
            if name == TRAILER {
                return Ok(Self { nodes });
            }
            let path = name.trim_start_matches("./").trim_matches('/');
            let node = match mode & KIND_MASK {
                KIND_FOLDER => Node::Folder,
                KIND_FILE => Node::File {
                    mode: mode & !KIND_MASK,
                    contents: contents.to_vec(),
                },
                KIND_LINK => Node::Link(String::from_utf8_lossy(contents).into_owned()),
                _ => continue,
            };
            nodes.insert(path.to_owned(), node);
        }
    }
}

/// Writes one header, path and contents.
fn write_one(
    to: &mut impl Write,
    number: u32,
    mode: u32,
    path: &str,
    contents: &[u8],
) -> io::Result<()> {
    let too_long = |_| {
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("{path}: 4 GiB or more"),
        )
    };
    let length = u32::try_from(contents.len()).map_err(too_long)?;
    let name_length = u32::try_from(path.len() + 1).map_err(too_long)?;
    let links = 1 + u32::from(mode & KIND_MASK == KIND_FOLDER);
    to.write_all(MAGIC)?;
    // The numbers are: number, mode, owner, group, links, date, length, four device numbers, length
    // of the path, check sum (not used by this variant).
    for field in [
        number,
        mode,
        0,
        0,
        links,
        0,
        length,
        0,
        0,
        0,
        0,
        name_length,
        0,
    ] {
        write!(to, "{field:08x}")?;
    }
    to.write_all(path.as_bytes())?;
    to.write_all(&[0])?;
    pad(to, HEADER_BYTES + path.len() + 1)?;
    to.write_all(contents)?;
    pad(to, contents.len())
}

/// Writes zeros up to the next multiple of four.
fn pad(to: &mut impl Write, written: usize) -> io::Result<()> {
    to.write_all(&[0; 3][..padded(written) - written])
}

/// The next multiple of four.
fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// Returns some bytes of an archive.
fn slice(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], ArchiveError> {
    bytes
        .get(at..)
        .and_then(|rest| rest.get(..length))
        .ok_or(ArchiveError::Short { at })
}

/// Returns a header's number by its index.
fn number(header: &[u8], index: usize, at: usize) -> Result<u32, ArchiveError> {
    let start = MAGIC.len() + 8 * index;
    std::str::from_utf8(&header[start..start + 8])
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or(ArchiveError::Number { at: at + start })
}

/// The error of bytes that are no archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The archive ends in the middle of an item.
    #[error("the archive ends inside the item at byte {at}")]
    Short {
        /// The byte of the archive at which the item begins.
        at: usize,
    },
    /// There is no header where one must be.
    #[error("no `070701` at byte {at} of the archive")]
    Magic {
        /// The byte of the archive at which the header must be.
        at: usize,
    },
    /// There is no hexadecimal number where one must be.
    #[error("no number of eight hexadecimal digits at byte {at} of the archive")]
    Number {
        /// The byte of the archive at which the number must be.
        at: usize,
    },
    /// A path is no UTF-8.
    #[error("the path of the file at byte {at} of the archive is not UTF-8")]
    Name {
        /// The byte of the archive at which the file's header begins.
        at: usize,
    },
}

#[cfg(test)]
mod tests;
