//! A guest's first file system: programs of this machine with all that they
//! need, and an own first program that loads modules and runs a job.
//!
//! A program stands in the guest at its own path, links on the way to it
//! included, since some (lvm's) go by the name they are called with. Where
//! this machine's `/bin`, `/sbin`, `/lib` and `/lib64` are links, the guest's
//! are too.

use crate::libraries::{Libraries, LibraryError};
use crate::newc::{Archive, Node};
use raidlab_units::{PathError, cannot};
use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The script that is the first program.
const INIT: &str = include_str!("init.sh");

/// The folders in which programs are looked for too: they are not in the `PATH` of a user who
/// is not root.
const ADMINISTRATION: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Libraries that programs load by their own decision, when a thread is cancelled or ends early.
const LOADED_LATER: [&str; 1] = ["libgcc_s.so.1"];

/// The groups that the rules of udev name, with Debian's numbers.
const GROUPS: &str = "root:x:0:\ntty:x:5:\ndisk:x:6:\nlp:x:7:\nkmem:x:15:\ndialout:x:20:\n\
    cdrom:x:24:\ntape:x:26:\naudio:x:29:\nvideo:x:44:\nkvm:x:103:\ninput:x:104:\nrender:x:105:\n\
    sgx:x:106:\n";

/// The folders of programs below a folder that stands for `/`.
const PROGRAMS: [&str; 4] = ["usr/bin", "usr/sbin", "bin", "sbin"];

/// A first file system in the making.
#[derive(Debug, Clone)]
pub struct Initramfs {
    archive: Archive,
    libraries: Libraries,
    /// The folder below which programs that this machine lacks are looked for, as if it were `/`.
    beside: Option<PathBuf>,
}

impl Initramfs {
    /// Makes a file system with the first program and busybox, which it is written for.
    ///
    /// # Errors
    /// When busybox is not installed or a file cannot be read.
    pub fn new() -> Result<Self, InitramfsError> {
        Self::beside(None)
    }

    /// Makes the same file system, where programs that this machine lacks are looked for below a
    /// folder that stands for `/`, as unpacked packages have them.
    ///
    /// # Errors
    /// As [`Initramfs::new`].
    pub fn beside(folder: Option<&Path>) -> Result<Self, InitramfsError> {
        // A folder that is not there has nothing.
        let beside = folder.and_then(|folder| fs::canonicalize(folder).ok());
        let mut libraries = Libraries::of_this_machine();
        if let Some(folder) = &beside {
            libraries.look_below(folder);
        }
        let mut initramfs = Self {
            archive: Archive::default(),
            libraries,
            beside,
        };
        for folder in ["bin", "sbin", "lib", "lib64"] {
            let node = match fs::read_link(Path::new("/").join(folder)) {
                Ok(target) => Node::Link(target.to_string_lossy().into_owned()),
                Err(_) => Node::Folder,
            };
            initramfs.archive.insert(folder, node);
        }
        for folder in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "root"] {
            initramfs.archive.insert(folder, Node::Folder);
        }
        initramfs.text("/etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n");
        initramfs.text("/etc/group", 0o644, GROUPS);
        initramfs.text("/init", 0o755, INIT);
        let busybox = initramfs
            .find("busybox")
            .ok_or_else(|| InitramfsError::missing(&["busybox"]))?;
        initramfs.copy_program(&busybox)?;
        initramfs.file("/busybox", &busybox)?;
        for name in LOADED_LATER {
            if let Some(path) = initramfs.libraries.named(name, &busybox) {
                initramfs.copy_program(&path)?;
            }
        }
        Ok(initramfs)
    }

    /// Adds programs of this machine, with what they need, by their names with blanks or
    /// line ends between them.
    ///
    /// # Errors
    /// When some are not installed (all of them are named) or a file cannot be
    /// read.
    pub fn programs(&mut self, names: &str) -> Result<(), InitramfsError> {
        let all = names.split_whitespace();
        let missing: Vec<_> = all.filter(|name| self.find(name).is_none()).collect();
        if !missing.is_empty() {
            return Err(InitramfsError::missing(&missing));
        }
        self.programs_present(names)
    }

    /// Adds those of some programs that this machine has.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn programs_present(&mut self, names: &str) -> Result<(), InitramfsError> {
        for name in names.split_whitespace() {
            if let Some(path) = self.find(name) {
                self.copy_program(&path)?;
            }
        }
        Ok(())
    }

    /// Adds files and folders of this machine at their own paths, with blanks or line ends between
    /// them, programs among them with their needs; leaves out paths that are not there.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn paths_present(&mut self, paths: &str) -> Result<(), InitramfsError> {
        let mut paths = paths.split_whitespace().map(Path::new);
        paths.try_for_each(|path| self.path_present(path))
    }

    fn path_present(&mut self, path: &Path) -> Result<(), InitramfsError> {
        if !path.is_dir() {
            return match path.exists() {
                true => self.copy_program(path),
                false => Ok(()),
            };
        }
        let read = cannot("read", path);
        let entries = fs::read_dir(path).map_err(read)?;
        let paths = entries.map(|entry| Ok(entry.map_err(read)?.path()));
        let mut paths: Vec<PathBuf> = paths.collect::<Result<_, PathError>>()?;
        paths.sort();
        paths.iter().try_for_each(|path| self.path_present(path))
    }

    /// Puts a file of this machine, with the libraries it needs if it is a
    /// program, at a path of the guest's.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn file(&mut self, guest: &str, host: &Path) -> Result<(), InitramfsError> {
        let (mode, contents) = read(host)?;
        let needs = self.needs(host, &contents)?;
        self.archive.insert(guest, Node::File { mode, contents });
        self.copy_programs(needs)
    }

    /// Puts a text at a path of the guest's.
    pub fn text(&mut self, guest: &str, mode: u32, text: &str) {
        self.bytes(guest, mode, text.as_bytes().to_vec());
    }

    /// Puts a file with these contents at a path of the guest's.
    pub fn bytes(&mut self, guest: &str, mode: u32, contents: Vec<u8>) {
        self.archive.insert(guest, Node::File { mode, contents });
    }

    /// The archive that was put together.
    #[must_use]
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Returns the archive when nothing more is to be put in.
    #[must_use]
    pub fn into_archive(self) -> Archive {
        self.archive
    }

    /// A guest's path with a link at its first part followed: an archive's
    /// files cannot be put behind links.
    #[must_use]
    pub fn real(&self, path: &str) -> String {
        let path = path.trim_start_matches('/');
        if let Some((first, rest)) = path.split_once('/')
            && let Some(Node::Link(target)) = self.archive.get(first)
        {
            return format!("/{}/{rest}", target.trim_matches('/'));
        }
        format!("/{path}")
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        find_program(name, self.beside.as_deref())
    }

    /// The path in the guest of a file here.
    fn inside(&self, file: &Path) -> String {
        let below = self.beside.as_deref();
        match below.and_then(|folder| file.strip_prefix(folder).ok()) {
            // The folders of the file are as the package has them, those of the
            // guest perhaps links.
            Some(path) => self.real(&path.to_string_lossy()),
            None => file.to_string_lossy().into_owned(),
        }
    }

    /// Copies a program or library at its own path, and the files that it needs, unless that
    /// was done before.
    fn copy_program(&mut self, path: &Path) -> Result<(), InitramfsError> {
        let needs = self.copy(path)?;
        self.copy_programs(needs)
    }

    fn copy_programs(&mut self, paths: Vec<PathBuf>) -> Result<(), InitramfsError> {
        paths.iter().try_for_each(|path| self.copy_program(path))
    }

    /// The files that a program needs by itself: libraries, or the interpreter of a script.
    fn needs(&self, path: &Path, contents: &[u8]) -> Result<Vec<PathBuf>, InitramfsError> {
        if contents.starts_with(b"\x7fELF") {
            return Ok(self.libraries.of(path, contents)?);
        }
        Ok(interpreter(contents)
            .map(PathBuf::from)
            .into_iter()
            .collect())
    }

    /// Copies a file at its own path with the links on the way to it; returns the files that it
    /// needs, which are none when it was copied before.
    fn copy(&mut self, path: &Path) -> Result<Vec<PathBuf>, InitramfsError> {
        // The number of links is that which the kernel follows (path_resolution(7)).
        const MOST_LINKS: usize = 40;
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let real = fs::canonicalize(folder)
                .map_err(cannot("read", folder))?
                .join(path.file_name().unwrap_or_default());
            let name = self.inside(&real);
            if self.archive.get(&name).is_some() {
                return Ok(Vec::new());
            }
            let Ok(target) = fs::read_link(&real) else {
                let (mode, contents) = read(&real)?;
                let needs = self.needs(&real, &contents)?;
                self.archive.insert(&name, Node::File { mode, contents });
                return Ok(needs);
            };
            let text = target.to_string_lossy().into_owned();
            self.archive.insert(&name, Node::Link(text));
            path = match (&self.beside, target.strip_prefix("/")) {
                (Some(folder), Ok(below)) if real.starts_with(folder) => folder.join(below),
                _ => real.parent().unwrap_or(Path::new("/")).join(target),
            };
        }
        let too_many = io::Error::from(io::ErrorKind::TooManyLinks);
        Err(cannot("read", &path)(too_many).into())
    }
}

/// The permission bits and contents of a file.
fn read(file: &Path) -> Result<(u32, Vec<u8>), PathError> {
    let error = cannot("read", file);
    let mode = fs::metadata(file).map_err(error)?.permissions().mode();
    Ok((mode & 0o777, fs::read(file).map_err(error)?))
}

/// Finds the path of a program by its name: in the `PATH`, then in the folders of administrators'
/// programs, then below a folder that stands for `/`.
#[must_use]
pub fn find_program(name: &str, beside: Option<&Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let own = env::split_paths(&path)
        .chain(ADMINISTRATION.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| path.is_absolute() && path.is_file());
    let mut below = PROGRAMS
        .iter()
        .filter_map(|place| Some(beside?.join(place).join(name)));
    // A link of a package's leads to a place in it.
    own.or_else(|| below.find(|path| path.is_file() || path.is_symlink()))
}

/// The packages of Debian's that have those of some programs, and of busybox, which
/// [`find_program`] does not find, each once.
#[must_use]
pub fn missing_packages(names: &str, beside: Option<&Path>) -> Vec<String> {
    let all = std::iter::once("busybox").chain(names.split_whitespace());
    let missing: Vec<&str> = all
        .filter(|name| find_program(name, beside).is_none())
        .collect();
    match InitramfsError::missing(&missing) {
        InitramfsError::Missing { packages, .. } => packages,
        _ => Vec::new(),
    }
}

/// The program that a script's first line names.
fn interpreter(contents: &[u8]) -> Option<String> {
    let line = contents.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    Some(line.split_whitespace().next()?.to_owned())
}

/// The package of Debian's that has a program: mostly called like it.
#[must_use]
pub fn package_of(program: &str) -> &str {
    match program {
        "lsblk" | "findmnt" | "mount" | "umount" | "setpriv" | "blockdev" | "wipefs" => {
            "util-linux"
        }
        "df" | "cat" | "mkdir" | "rm" | "sleep" | "sync" | "uname" => "coreutils",
        "zpool" | "zfs" | "zdb" => "zfsutils-linux",
        "qemu-system-x86_64" => "qemu-system-x86",
        "lvm" => "lvm2",
        "mkfs.xfs" => "xfsprogs",
        "mkfs.btrfs" | "btrfs" => "btrfs-progs",
        "mkfs.ext4" => "e2fsprogs",
        other => other,
    }
}

/// The error of a first file system that cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum InitramfsError {
    /// Programs are not installed.
    #[error(
        "not installed: {}; on Debian: apt-get install {}",
        programs.join(", "),
        packages.join(" ")
    )]
    Missing {
        /// The names of the programs that are missing.
        programs: Vec<String>,
        /// Debian's packages that have them.
        packages: Vec<String>,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] PathError),
    /// The libraries of a program cannot be told or found.
    #[error(transparent)]
    Libraries(#[from] LibraryError),
}

impl InitramfsError {
    fn missing(names: &[&str]) -> Self {
        let mut packages: Vec<_> = names.iter().map(|n| package_of(n).to_owned()).collect();
        packages.sort();
        packages.dedup();
        Self::Missing {
            programs: names.iter().map(|name| (*name).to_owned()).collect(),
            packages,
        }
    }
}

#[cfg(test)]
mod tests;
