//! Debian's kernel for virtual machines: found in the user's cache, or fetched.
//!
//! `linux-image-cloud-amd64` stands for the newest package of that kernel: 26
//! MB with md, device mapper, XFS and btrfs as modules. apt-get downloads it
//! with its signature checked and dpkg-deb unpacks it, both without being
//! root; nothing is installed.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package that stands for the newest kernel's.
const PACKAGE: &str = "linux-image-cloud-amd64";

/// A kernel and its modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The release as `uname -r` prints it, such as `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The image to boot.
    pub image: PathBuf,
    /// The folder of its modules.
    pub modules: PathBuf,
}

impl Kernel {
    /// Finds the newest kernel in the user's cache; if there is none, fetches one with Debian's
    /// tools, which needs its package lists and a mirror.
    ///
    /// # Errors
    /// When the machine is no x86-64 one or has no such tools, or one of them fails.
    pub fn find_or_fetch() -> Result<Self, KernelError> {
        if env::consts::ARCH != "x86_64" {
            return Err(KernelError::Machine {
                machine: env::consts::ARCH,
            });
        }
        let cache = cache_folder()?;
        match Self::newest_below(&cache) {
            Some(kernel) => Ok(kernel),
            None => Self::fetch(&cache),
        }
    }

    /// The kernel of the highest release in a folder that has the contents of
    /// kernels' packages, one folder each.
    #[must_use]
    pub(crate) fn newest_below(folder: &Path) -> Option<Self> {
        fs::read_dir(folder)
            .ok()?
            .flatten()
            .filter_map(|entry| Self::unpacked(&entry.path()))
            .max_by_key(|kernel| version_key(&kernel.release))
    }

    /// The kernel in a folder that has the contents of its package.
    #[must_use]
    pub fn unpacked(folder: &Path) -> Option<Self> {
        let boot = fs::read_dir(folder.join("boot")).ok()?;
        boot.flatten().find_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let release = name.strip_prefix("vmlinuz-")?.to_owned();
            // On a merged system's package the modules are in usr/lib.
            let modules = ["lib/modules", "usr/lib/modules"]
                .map(|path| folder.join(path).join(&release))
                .into_iter()
                .find(|path| path.is_dir())?;
            Some(Self {
                release,
                image: entry.path(),
                modules,
            })
        })
    }

    /// Downloads and unpacks the package. All happens in a folder of its own that gets its final
    /// name last, so an interrupted fetch leaves no half kernel.
    fn fetch(cache: &Path) -> Result<Self, KernelError> {
        let io_error = |source| KernelError::Cache {
            folder: cache.to_owned(),
            source,
        };
        fs::create_dir_all(cache).map_err(io_error)?;
        let scratch = tempfile::Builder::new()
            .prefix(".fetching-")
            .tempdir_in(cache)
            .map_err(io_error)?;
        let listed = tool(
            Command::new("apt-cache").args(["depends", "--important", PACKAGE]),
            "apt",
        )?;
        let package = real_package(&listed).ok_or(KernelError::Unlisted)?;
        tool(
            Command::new("apt-get")
                .args(["download", "--quiet", "--quiet", &package])
                .current_dir(scratch.path()),
            "apt",
        )?;
        let archive = fs::read_dir(scratch.path())
            .map_err(io_error)?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|end| end == "deb"))
            .ok_or(KernelError::Unlisted)?;
        let contents = scratch.path().join("contents");
        tool(
            Command::new("dpkg-deb")
                .arg("--extract")
                .args([&archive, &contents]),
            "dpkg",
        )?;
        let release = Self::unpacked(&contents)
            .ok_or(KernelError::Contents { package })?
            .release;
        let place = cache.join(release);
        // Another process may have fetched it meanwhile: then its folder is
        // as good as this one.
        if let Err(source) = fs::rename(&contents, &place)
            && Self::unpacked(&place).is_none()
        {
            return Err(io_error(source));
        }
        Self::unpacked(&place).ok_or(KernelError::Unlisted)
    }
}

/// The folder in which kernels are kept: `raidlab/guest` in the user's cache folder
/// (`XDG_CACHE_HOME`, or `~/.cache`).
fn cache_folder() -> Result<PathBuf, KernelError> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .ok_or(KernelError::Homeless)?;
    Ok(cache.join("raidlab").join("guest"))
}

/// Runs a tool of Debian's and returns its output.
fn tool(command: &mut Command, package: &'static str) -> Result<String, KernelError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("LC_ALL", "C")
        .output()
        .map_err(|source| KernelError::Tool {
            program: program.clone(),
            package,
            source,
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(KernelError::Failed {
        program,
        status: output.status.to_string(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// The package on which `apt-cache depends` says that [`PACKAGE`] depends.
fn real_package(listed: &str) -> Option<String> {
    listed.lines().find_map(|line| {
        let name = line.trim().strip_prefix("Depends:")?.trim();
        name.starts_with("linux-image-").then(|| name.to_owned())
    })
}

/// A release's numbers, for comparison: 6.1.0-9 is older than 6.1.0-56.
fn version_key(release: &str) -> Vec<u64> {
    release
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

/// The reason why there is no kernel to boot.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// This machine is no x86-64 one, for which alone Debian's cloud kernel and QEMU are
    /// set up here.
    #[error("a guest needs an x86-64 machine, and this is {machine}")]
    Machine {
        /// The architecture of this machine.
        machine: &'static str,
    },
    /// The user has no cache folder.
    #[error("neither XDG_CACHE_HOME nor HOME says where to keep a kernel")]
    Homeless,
    /// The cache cannot be written.
    #[error("cannot keep a kernel in {}", folder.display())]
    Cache {
        /// The folder for kernels.
        folder: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A tool of Debian's is not here.
    #[error(
        "cannot run {program} of Debian's package {package}, which fetches a kernel; on another \
         system put the contents of Debian's {PACKAGE} into a folder of ~/.cache/raidlab/guest"
    )]
    Tool {
        /// The program that is called, without its path.
        program: String,
        /// The package of Debian that has the program.
        package: &'static str,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A tool failed.
    #[error("{program} failed ({status}): {said}")]
    Failed {
        /// The program that is called, without its path.
        program: String,
        /// The status with which the program ended.
        status: String,
        /// The program's text on standard error.
        said: String,
    },
    /// The package lists do not have the kernel.
    #[error("apt knows no package {PACKAGE}; try: apt-get update")]
    Unlisted,
    /// The package is not laid out as expected.
    #[error("the package {package} has no kernel with modules")]
    Contents {
        /// The package's name in Debian.
        package: String,
    },
}

#[cfg(test)]
mod tests {
    use super::{Kernel, real_package, version_key};
    use std::fs;

    #[test]
    fn the_package_that_the_name_stands_for() {
        // apt 2.6.1 of Debian 12.
        let listed = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n";
        assert_eq!(
            real_package(listed).as_deref(),
            Some("linux-image-6.1.0-56-cloud-amd64")
        );
        assert_eq!(real_package("linux-image-cloud-amd64\n"), None);
    }

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert!(version_key("6.1.0-9-cloud-amd64") < version_key("6.1.0-56-cloud-amd64"));
        assert!(version_key("6.1.0-56-cloud-amd64") < version_key("6.12.1-1-cloud-amd64"));
    }

    #[test]
    fn the_newest_whole_kernel_is_taken() {
        let cache = tempfile::tempdir().expect("a folder");
        let package = |release: &str, with_modules: bool| {
            let at = cache.path().join(release);
            fs::create_dir_all(at.join("boot")).expect("made");
            fs::write(at.join("boot").join(format!("vmlinuz-{release}")), "").expect("written");
            if with_modules {
                fs::create_dir_all(at.join("lib/modules").join(release)).expect("made");
            }
        };
        assert_eq!(Kernel::newest_below(cache.path()), None);
        package("6.1.0-9-cloud-amd64", true);
        package("6.1.0-50-cloud-amd64", true);
        package("6.1.0-56-cloud-amd64", false);
        let kernel = Kernel::newest_below(cache.path()).expect("two whole ones");
        assert_eq!(kernel.release, "6.1.0-50-cloud-amd64");
        assert!(kernel.image.is_file() && kernel.modules.is_dir());
    }
}
