//! The source of a kernel: the distribution's package, which is a compressed archive in `/usr/src`,
//! or an unpacked tree of the user's.

use raidlab_units::{PathError, cannot, visible_path};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder in which Debian's packages `linux-source-VERSION` put their archives.
const FOLDER: &str = "/usr/src";
const PREFIX: &str = "linux-source-";
const SUFFIX: &str = ".tar.xz";

/// The beginning of the description of a tree, before its folder.
pub(crate) const TREE: &str = "the tree ";

/// The oldest kernel that the bench's changes were tried on.
const OLDEST: (u32, u32) = (6, 1);

/// A kernel's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The archive of a package.
    Archive {
        /// The version in its name: `6.12`.
        version: String,
        /// The archive that the distribution's package has.
        file: PathBuf,
    },
    /// An unpacked tree, which is copied, never changed.
    Tree(PathBuf),
}

impl Source {
    /// Finds the source that a user names: a version whose package is installed, a folder, or
    /// nothing for the newest package that is installed. Packages that were fetched, whose root is
    /// `beside`, count too.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(wanted: Option<&str>, beside: &Path) -> Result<Self, SourceError> {
        let fetched = beside.join(FOLDER.trim_start_matches('/'));
        Self::find_in(&[Path::new(FOLDER), &fetched], wanted)
    }

    fn find_in(folders: &[&Path], wanted: Option<&str>) -> Result<Self, SourceError> {
        if let Some(path) = wanted.filter(|text| text.contains('/') || *text == ".") {
            let path = Path::new(path);
            if !path.join("arch/um").is_dir() {
                return Err(SourceError::NoTree {
                    path: path.to_owned(),
                });
            }
            let whole = fs::canonicalize(path).map_err(cannot("read", path))?;
            return Ok(Self::Tree(whole));
        }
        let mut archives: Vec<_> = folders.iter().flat_map(|folder| archives(folder)).collect();
        archives.sort();
        archives.retain(|(_, version, _)| wanted.is_none_or(|wanted| wanted == version));
        match archives.pop() {
            Some((_, version, file)) => Ok(Self::Archive { version, file }),
            None => Err(SourceError::NoPackage {
                version: wanted.map(str::to_owned),
            }),
        }
    }

    /// The name of the kernel made of it: the package's version, or the tree's release.
    ///
    /// # Errors
    /// When the tree does not tell.
    pub fn name(&self) -> Result<String, SourceError> {
        match self {
            Self::Archive { version, .. } => Ok(version.clone()),
            Self::Tree(path) => Ok(release(path)?.to_string()),
        }
    }

    /// The description as [`describe`](Self::describe) gives it, and which archive of that version
    /// it is: an update of the package puts another one in its place.
    pub(crate) fn state(&self) -> String {
        let archive = match self {
            Self::Archive { file, .. } => fs::metadata(file).ok(),
            Self::Tree(_) => None,
        };
        let state = archive.map(|file| format!("{}, {:?}", file.len(), file.modified().ok()));
        format!("{} ({})", self.describe(), state.unwrap_or_default())
    }

    /// The source in words: its version and where it comes from.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Archive { version, .. } => format!("Debian's package {PREFIX}{version}"),
            Self::Tree(path) => format!("{TREE}{}", path.display()),
        }
    }
}

/// The archives of a folder with their versions, the newest last.
fn archives(folder: &Path) -> Vec<((u32, u32), String, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
            let (major, minor) = version.split_once('.')?;
            let key = (major.parse().ok()?, minor.parse().ok()?);
            (key >= OLDEST).then(|| (key, version.to_owned(), entry.path()))
        })
        .collect();
    found.sort();
    found
}

/// A kernel's release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// The first number of the version, 6 of 6.12.3.
    pub major: u32,
    /// The second number of the version, 12 of 6.12.3.
    pub minor: u32,
    /// The third number of the version, 3 of 6.12.3.
    pub patch: u32,
}

impl Release {
    /// Whether the release is of this version, major and minor number, or of a later one.
    pub(crate) fn since(self, version: (u32, u32)) -> bool {
        (self.major, self.minor) >= version
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The release of a tree, from its Makefile.
///
/// # Errors
/// When it is no kernel's tree.
pub fn release(tree: &Path) -> Result<Release, SourceError> {
    let path = tree.join("Makefile");
    let text = fs::read_to_string(&path).map_err(cannot("read", &path))?;
    let number = |name: &str| {
        text.lines().take(20).find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().parse().ok())?
        })
    };
    match (number("VERSION"), number("PATCHLEVEL"), number("SUBLEVEL")) {
        (Some(major), Some(minor), Some(patch)) => Ok(Release {
            major,
            minor,
            patch,
        }),
        _ => Err(SourceError::NoTree {
            path: tree.to_owned(),
        }),
    }
}

/// The error that there is no source to build of.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The package is not installed.
    #[error("{}", no_package(version.as_deref()))]
    NoPackage {
        /// The version that was asked for.
        version: Option<String>,
    },
    /// The folder is no tree of a kernel's source.
    #[error("{} is no Linux source tree with arch/um in it", visible_path(path))]
    NoTree {
        /// The folder that was named.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] PathError),
}

fn no_package(version: Option<&str>) -> String {
    match version {
        Some(version) => format!("the kernel's source package {PREFIX}{version} is not installed"),
        None => "no kernel source package is installed".to_owned(),
    }
}

impl SourceError {
    /// The remedy, where there is one.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoPackage { version } => {
                let version = version.as_deref().unwrap_or("6.12");
                Some(format!(
                    "apt-get install {PREFIX}{version}; or give an unpacked tree with --source DIR"
                ))
            }
            Self::NoTree { .. } => Some("name the folder with the kernel's Makefile".to_owned()),
            Self::Read(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            fs::write(folder.path().join(name), "").expect("written");
        }
        folder
    }

    #[test]
    fn the_newest_package_is_taken_unless_a_version_is_named() {
        let folder = folder_with(&[
            "linux-source-6.1.tar.xz",
            "linux-source-6.12.tar.xz",
            "linux-source-6.9.tar.xz",
            "linux-source-5.10.tar.xz",
            "linux-source-6.16.patch.xz",
        ]);
        let version = |wanted| {
            let found = Source::find_in(&[folder.path()], wanted);
            found
                .and_then(|source| source.name())
                .map_err(|error| error.to_string())
        };
        assert_eq!(version(None).as_deref(), Ok("6.12"));
        assert_eq!(version(Some("6.1")).as_deref(), Ok("6.1"));
        for absent in ["5.10", "6.16"] {
            let error = version(Some(absent)).expect_err("too old, or not there");
            assert!(error.contains(&format!("linux-source-{absent}")), "{error}");
        }
    }

    #[test]
    fn without_a_package_the_command_is_named() {
        let folder = folder_with(&[]);
        let error = Source::find_in(&[folder.path()], None).expect_err("nothing");
        let help = error.help().expect("a remedy");
        assert!(help.starts_with("apt-get install linux-source-"), "{help}");
        let missing = folder.path().join("none");
        assert!(Source::find_in(&[&missing], Some("6.1")).is_err());
        let fetched = folder_with(&["linux-source-6.1.tar.xz"]);
        let both = [folder.path(), fetched.path()];
        assert!(
            Source::find_in(&both, Some("6.1")).is_ok(),
            "it was fetched"
        );
    }

    #[test]
    fn a_tree_tells_its_release() {
        let folder = folder_with(&[]);
        let path = folder.path();
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n";
        fs::write(path.join("Makefile"), text).expect("written");
        let wanted = format!("{}/", path.display());
        assert!(
            Source::find_in(&[path], Some(&wanted)).is_err(),
            "no arch/um"
        );
        fs::create_dir_all(path.join("arch/um")).expect("made");
        let source = Source::find_in(&[path], Some(&wanted)).expect("a tree");
        assert_eq!(source.name().expect("a release"), "6.12.117");
        fs::write(path.join("Makefile"), "VERSION = six\n").expect("written");
        assert!(matches!(source.name(), Err(SourceError::NoTree { .. })));
    }
}
