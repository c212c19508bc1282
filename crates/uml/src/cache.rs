//! The place where kernels are kept: the user's cache folder.
//!
//! ```text
//! raidlab/kernels/6.12/linux        the program
//! raidlab/kernels/6.12/kernel.json  what it is
//! raidlab/build/6.12/               the source and its objects, while building
//! raidlab/packages/root/            packages that were fetched and not installed
//! ```

use raidlab_units::{PathError, cannot};
use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file beside a kernel that describes it.
const ABOUT: &str = "kernel.json";
/// The file of the kernel itself.
const PROGRAM: &str = "linux";

/// A folder of kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// A kernel that has been built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The name that it has here: `6.12`, `6.1-zfs`.
    pub name: String,
    /// The release of the kernel: `6.12.117`.
    pub release: String,
    /// The origin of its source.
    pub source: String,
    /// The version of OpenZFS that is built in.
    pub zfs: Option<String>,
    /// Whether it knows the shared-memory form of the time protocol (since
    /// Linux 6.11).
    pub shared_memory: bool,
    /// Whether its programs run under seccomp instead of ptrace (since 6.16).
    pub seccomp: bool,
    /// The digest of raidlab's changes to it; `None` where that was not written down.
    #[serde(default)]
    pub changes: Option<String>,
    /// The kernel itself, which is a program.
    #[serde(skip)]
    pub program: PathBuf,
}

impl Cache {
    /// The cache of the user: below `XDG_CACHE_HOME`, or `~/.cache` where that is not set.
    ///
    /// # Errors
    /// When neither it nor `HOME` is set.
    pub fn of_user() -> Result<Self, CacheError> {
        let absolute = |name: &str| {
            let path = PathBuf::from(env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        absolute("XDG_CACHE_HOME")
            .or_else(|| Some(absolute("HOME")?.join(".cache")))
            .map(|folder| Self::in_folder(folder.join("raidlab")))
            .ok_or(CacheError::Nowhere)
    }

    /// A cache in a folder of its own.
    #[must_use]
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder of a kernel.
    #[must_use]
    pub fn kernel_folder(&self, name: &str) -> PathBuf {
        self.folder.join("kernels").join(name)
    }

    /// The program of a kernel.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.kernel_folder(name).join(PROGRAM)
    }

    /// The folder in which a kernel is built.
    #[must_use]
    pub fn build_folder(&self, name: &str) -> PathBuf {
        self.folder.join("build").join(name)
    }

    /// The folder of packages that were fetched.
    #[must_use]
    pub fn packages_folder(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// Locks this kernel against others that build or remove it until the returned file is closed,
    /// which stays when the build's folder goes.
    pub(crate) fn lock(&self, name: &str) -> Result<File, CacheError> {
        let path = self.folder.join(format!("{name}.lock"));
        let failed = cannot("change", &path);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(CacheError::Busy {
                name: name.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source).into()),
        }
    }

    /// The kernels in the cache, the newest version last.
    ///
    /// # Errors
    /// When the folder or a description in it cannot be read.
    pub fn kernels(&self) -> Result<Vec<Kernel>, CacheError> {
        let mut kernels = Vec::new();
        for name in self.names("kernels")? {
            // A folder without a description is a build that was broken off.
            if let Some(kernel) = self.kernel(&name)? {
                kernels.push(kernel);
            }
        }
        kernels.sort_by_key(|kernel| (version_key(&kernel.release), kernel.name.clone()));
        Ok(kernels)
    }

    /// The names of builds that were begun and not finished, or whose trees
    /// were kept.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn builds(&self) -> Result<Vec<String>, CacheError> {
        self.names("build")
    }

    /// The names of all that [`Self::remove`] can remove, of which some may be damaged.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn removable(&self) -> Result<Vec<String>, CacheError> {
        Ok([self.names("kernels")?, self.builds()?].concat())
    }

    fn names(&self, below: &str) -> Result<Vec<String>, CacheError> {
        let folder = self.folder.join(below);
        let read = |source| CacheError::Read(cannot("read", &folder)(source));
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(read)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(read)?.file_name().to_string_lossy().into());
        }
        names.sort();
        Ok(names)
    }

    /// One kernel; `None` where it was not built, or its description is not whole, as a
    /// power cut may leave it: it is built again.
    ///
    /// # Errors
    /// When its description cannot be read.
    pub fn kernel(&self, name: &str) -> Result<Option<Kernel>, CacheError> {
        let about = self.kernel_folder(name).join(ABOUT);
        let program = self.program(name);
        let text = match fs::read_to_string(&about) {
            Err(error) if is_nothing(&error) => return Ok(None),
            text => text
                .map_err(cannot("read", &about))
                .map_err(CacheError::Read)?,
        };
        let kernel = serde_json::from_str::<Kernel>(&text).ok();
        let kernel = kernel.filter(|_| program.is_file());
        Ok(kernel.map(|kernel| Kernel { program, ..kernel }))
    }

    /// Chooses the kernel of that name, or else the newest one with OpenZFS, or without it, as is
    /// wanted, or else the newest.
    ///
    /// # Errors
    /// [`CacheError::NotBuilt`] where there is none.
    pub fn choose(&self, name: Option<&str>, with_zfs: bool) -> Result<Kernel, CacheError> {
        let kernels = self.kernels()?;
        let newest = |fits: &dyn Fn(&Kernel) -> bool| {
            let mut fitting = kernels.iter().filter(|kernel| fits(kernel));
            fitting.next_back().cloned()
        };
        let chosen = match name {
            Some(name) => newest(&|kernel| kernel.name == name),
            None => {
                newest(&|kernel| kernel.zfs.is_some() == with_zfs).or_else(|| newest(&|_| true))
            }
        };
        chosen.ok_or_else(|| CacheError::NotBuilt {
            name: name.map(str::to_owned),
            known: kernels.into_iter().map(|kernel| kernel.name).collect(),
        })
    }

    /// Puts a built kernel in its place, whole or not at all.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn install(&self, kernel: &Kernel) -> Result<PathBuf, CacheError> {
        let folder = self.kernel_folder(&kernel.name);
        fs::create_dir_all(&folder).map_err(cannot("change", &folder))?;
        let (program, about) = (folder.join(PROGRAM), folder.join(ABOUT));
        let (new_program, new_about) = (folder.join("linux.new"), folder.join("kernel.new"));
        let text = serde_json::to_string_pretty(kernel)
            .map_err(|error| cannot("change", &about)(error.into()))?;
        fs::copy(&kernel.program, &new_program).map_err(cannot("change", &program))?;
        fs::write(&new_about, text + "\n").map_err(cannot("change", &about))?;
        // A kernel without a description counts as none, so it is never seen with another's.
        match fs::remove_file(&about) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(cannot("change", &about)(source).into());
            }
            _ => {}
        }
        fs::rename(&new_program, &program)
            .and_then(|()| fs::rename(&new_about, &about))
            .map_err(cannot("change", &about))?;
        Ok(program)
    }

    /// Removes a kernel and the rest of its build; returns whether there was anything.
    ///
    /// # Errors
    /// When something cannot be removed, or it is being built.
    pub fn remove(&self, name: &str) -> Result<bool, CacheError> {
        let _alone = self.lock(name)?;
        let kernel = remove_folder(&self.kernel_folder(name))?;
        let build = remove_folder(&self.build_folder(name))?;
        Ok(kernel || build)
    }
}

/// Whether the error says that there is no such file, nor a folder that could have it.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Removes a folder; returns whether it was there.
///
/// # Errors
/// When it cannot be removed.
pub(crate) fn remove_folder(folder: &Path) -> Result<bool, CacheError> {
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(cannot("change", folder)(source).into()),
    }
}

/// A release as numbers, to be sorted: 6.9 comes before 6.12.
fn version_key(release: &str) -> Vec<u32> {
    release
        .split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}

/// Errors of the folder of kernels.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// There is no home folder.
    #[error("neither XDG_CACHE_HOME nor HOME says where kernels could be kept")]
    Nowhere,
    /// No such kernel has been built.
    #[error("{}", not_built(name.as_deref(), known))]
    NotBuilt {
        /// The name that was asked for, if any was.
        name: Option<String>,
        /// The names of the kernels that are built.
        known: Vec<String>,
    },
    /// Another raidlab is building this kernel.
    #[error("the kernel {name} is being built by another raidlab")]
    Busy {
        /// The name of the kernel as it was given.
        name: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Read(PathError),
    /// A file cannot be changed.
    #[error(transparent)]
    Change(#[from] PathError),
}

fn not_built(name: Option<&str>, known: &[String]) -> String {
    match (name, known) {
        (None, _) => "no kernel has been built for the kernel bench".to_owned(),
        (Some(name), []) => format!("kernel `{name}` has not been built, nor any other"),
        (Some(name), known) => {
            let known = known.join(", ");
            format!("kernel `{name}` has not been built; there are: {known}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(folder: &Path, name: &str, release: &str, zfs: Option<&str>) -> Kernel {
        let program = folder.join("built");
        fs::write(&program, name).expect("written");
        Kernel {
            name: name.to_owned(),
            release: release.to_owned(),
            source: "a test".to_owned(),
            zfs: zfs.map(str::to_owned),
            shared_memory: true,
            seccomp: false,
            changes: None,
            program,
        }
    }

    #[test]
    fn the_newest_kernel_is_chosen_unless_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::in_folder(folder.path().join("raidlab"));
        let error = cache.choose(None, false).expect_err("nothing is there");
        assert!(error.to_string().starts_with("no kernel"), "{error}");
        let put = |name, release, zfs| {
            let kernel = kernel(folder.path(), name, release, zfs);
            cache.install(&kernel).expect("installed");
        };
        put("6.9", "6.9.12", None);
        put("6.12", "6.12.117", None);
        put("6.12-zfs", "6.12.117", Some("2.4.1"));
        let names = |kernels: Vec<Kernel>| -> Vec<String> {
            kernels.into_iter().map(|kernel| kernel.name).collect()
        };
        let all = names(cache.kernels().expect("read"));
        assert_eq!(all, ["6.9", "6.12", "6.12-zfs"]);
        let chosen = cache.choose(None, false).expect("one is there");
        assert_eq!(chosen.name, "6.12");
        assert_eq!(fs::read(&chosen.program).expect("read"), b"6.12");
        let chosen = cache.choose(None, true).expect("one is there");
        assert_eq!(chosen.name, "6.12-zfs");
        assert_eq!(
            cache.choose(Some("6.9"), true).expect("there").release,
            "6.9.12"
        );
        let error = cache.choose(Some("5.10"), false).expect_err("not built");
        assert!(error.to_string().contains("6.9, 6.12, 6.12-zfs"), "{error}");
    }

    #[test]
    fn a_kernel_that_was_built_before_its_changes_were_written_down_works() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::in_folder(folder.path().join("raidlab"));
        let one = kernel(folder.path(), "6.12", "6.12.117", None);
        cache.install(&one).expect("installed");
        let about = cache.kernel_folder("6.12").join(ABOUT);
        let old = r#"{"name": "6.12", "release": "6.12.117", "source": "a test",
                      "zfs": null, "shared_memory": true, "seccomp": false}"#;
        fs::write(&about, old).expect("written");
        let found = cache.choose(None, false).expect("it is there");
        assert_eq!(found.changes, None);
        let known = Kernel {
            changes: Some("0123456789abcdef".to_owned()),
            ..one
        };
        cache.install(&known).expect("installed");
        let found = cache.choose(None, false).expect("it is there");
        assert_eq!(found.changes, known.changes);
    }

    #[test]
    fn a_kernel_that_cannot_be_described_takes_no_other_s_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::in_folder(folder.path().join("raidlab"));
        let old = kernel(folder.path(), "6.12", "6.12.117", None);
        cache.install(&old).expect("installed");
        let blocked = cache.kernel_folder("6.12").join("kernel.new");
        fs::create_dir(&blocked).expect("made");
        let new = kernel(folder.path(), "6.12", "6.12.118", None);
        fs::write(&new.program, "newer").expect("written");
        cache.install(&new).expect_err("a folder is in the way");
        let found = cache.choose(None, false).expect("the old one is there");
        assert_eq!(found.release, "6.12.117");
        assert_eq!(fs::read(&found.program).expect("read"), b"6.12");
        fs::remove_dir(&blocked).expect("removed");
        cache.install(&new).expect("installed");
        let found = cache.choose(None, false).expect("the new one is there");
        assert_eq!(found.release, "6.12.118");
        assert_eq!(fs::read(&found.program).expect("read"), b"newer");
    }

    #[test]
    fn a_damaged_description_keeps_nobody_from_other_kernels() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::in_folder(folder.path().join("raidlab"));
        for (name, release) in [("6.1", "6.1.192"), ("6.12", "6.12.117")] {
            let one = kernel(folder.path(), name, release, None);
            cache.install(&one).expect("installed");
        }
        let about = cache.kernel_folder("6.12").join(ABOUT);
        fs::write(&about, "").expect("as a power cut leaves it");
        fs::write(cache.kernel_folder("notes.txt"), "").expect("written");
        let chosen = cache.choose(None, false).expect("the other one is there");
        assert_eq!(chosen.name, "6.1");
        assert_eq!(cache.kernel("6.12").expect("read"), None);
        let known = cache.removable().expect("read");
        assert!(known.contains(&"6.12".to_owned()), "{known:?}");
        assert!(cache.remove("6.12").expect("removed"));
    }

    #[test]
    fn what_is_removed_is_gone_and_a_broken_off_build_is_no_kernel() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::in_folder(folder.path().join("raidlab"));
        let one = kernel(folder.path(), "6.1", "6.1.192", None);
        cache.install(&one).expect("installed");
        fs::create_dir_all(cache.build_folder("6.12")).expect("made");
        fs::create_dir_all(cache.kernel_folder("6.12")).expect("made");
        assert_eq!(cache.builds().expect("read"), ["6.12"]);
        assert_eq!(cache.kernels().expect("read").len(), 1);
        assert!(cache.remove("6.1").expect("removed"));
        assert!(!cache.remove("6.1").expect("nothing is there"));
        let builds = cache.lock("6.12").expect("somebody builds it");
        let error = cache.remove("6.12").expect_err("it is being built");
        assert!(matches!(error, CacheError::Busy { .. }), "{error}");
        assert_eq!(cache.builds().expect("read"), ["6.12"]);
        drop(builds);
        assert!(cache.remove("6.12").expect("removed"));
        assert!(cache.kernels().expect("read").is_empty());
        assert!(cache.builds().expect("read").is_empty());
    }
}
