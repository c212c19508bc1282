//! Debian's packages without root: fetched by apt, and unpacked into raidlab's own cache.
//!
//! apt keeps its lists and its archives in folders of raidlab's here, and takes none of the
//! system's locks; it reads from the system which packages are installed, and fetches those that
//! are missing and nothing else. It checks them as ever (apt-secure(8)). `dpkg-deb` unpacks.
//! Nothing is installed: the actions of a package at its installation, as `dkms` of OpenZFS, are
//! not done. Programs of it are told where their libraries and data are.

use crate::cache::Cache;
use crate::error::BuildError;
use raidlab_shell::Command;
use raidlab_units::cannot;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folders of programs in the unpacked packages.
const PROGRAMS: [&str; 4] = ["usr/bin", "usr/sbin", "bin", "sbin"];

/// The user's own preferences among versions, which ours come behind.
const PREFERENCES: &str = "/etc/apt/preferences";

/// apt prefers a release's own OpenZFS to the newer one of its backports. That is too old for
/// the kernels that are built here, and the newer one takes the older kernels too.
const NEWER_ZFS: &str = "Package: src:zfs-linux
Pin: release n=*-backports
Pin-Priority: 900
";

/// Packages that were fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// The packages of a cache; there may be none.
    #[must_use]
    pub fn of(cache: &Cache) -> Self {
        let folder = cache.packages_folder();
        Self { folder }
    }

    /// The folder that they are unpacked in, as if it were `/`.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// The file with the output of apt and `dpkg-deb` while the packages were fetched.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("fetch.log")
    }

    /// The folders of programs: the system's, then those of the packages.
    pub(crate) fn program_folders(&self) -> Vec<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        let own = PROGRAMS.map(|folder| self.root().join(folder));
        env::split_paths(&path).chain(own).collect()
    }

    /// The environment by which programs of the packages find their data and libraries; nothing
    /// where there are none.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let root = self.root();
        if !root.is_dir() {
            return Vec::new();
        }
        let word = |path: PathBuf| path.to_string_lossy().into_owned();
        let joined = |folders: Vec<PathBuf>| {
            let joined = env::join_paths(folders).unwrap_or_default();
            joined.to_string_lossy().into_owned()
        };
        let mut variables = vec![
            ("PATH", joined(self.program_folders())),
            ("LD_LIBRARY_PATH", joined(libraries(&root))),
        ];
        // These two programs have the places of their data built in.
        for (name, place) in [
            ("BISON_PKGDATADIR", "usr/share/bison"),
            ("M4", "usr/bin/m4"),
        ] {
            if root.join(place).exists() {
                variables.push((name, word(root.join(place))));
            }
        }
        let variables = variables.into_iter();
        variables
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Fetches packages and those that they need and that are not installed, and unpacks them.
    ///
    /// # Errors
    /// When apt does not find or get one, or one cannot be unpacked.
    pub(crate) fn fetch(
        &self,
        packages: &[String],
        run: &mut dyn FnMut(&Command) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let archives = self.folder.join("apt/cache/archives");
        for folder in [
            self.folder.join("apt/state/lists/partial"),
            archives.join("partial"),
            self.root(),
        ] {
            fs::create_dir_all(&folder).map_err(cannot("use", &folder))?;
        }
        let preferences = self.preferences();
        let own = fs::read_to_string(PREFERENCES).unwrap_or_default();
        let text = format!("{own}\n{NEWER_ZFS}");
        fs::write(&preferences, text).map_err(cannot("write", &preferences))?;
        run(&self.apt(&["update"]))?;
        let install = [
            "install",
            "--yes",
            "--no-install-recommends",
            "--download-only",
        ];
        let words = install
            .into_iter()
            .chain(packages.iter().map(String::as_str));
        run(&self.apt(&words.collect::<Vec<_>>()))?;
        for file in debs(&archives).map_err(cannot("use", &archives))? {
            let words = [PathBuf::from("--extract"), file, self.root()];
            let words = words.map(|word| word.to_string_lossy().into_owned());
            run(&Command::changes("dpkg-deb", words))?;
        }
        // Only the unpacked files are wanted of them.
        let apt = self.folder.join("apt");
        Ok(fs::remove_dir_all(&apt).map_err(cannot("use", &apt))?)
    }

    /// The file of the preferences among versions.
    fn preferences(&self) -> PathBuf {
        self.folder.join("apt/preferences")
    }

    fn apt(&self, words: &[&str]) -> Command {
        let option = |name: &str, below: &str| {
            format!("{name}={}", self.folder.join("apt").join(below).display())
        };
        let mut arguments = Vec::new();
        for setting in [
            option("Dir::State", "state"),
            option("Dir::Cache", "cache"),
            "Dir::State::status=/var/lib/dpkg/status".to_owned(),
            format!("Dir::Etc::Preferences={}", self.preferences().display()),
            "Debug::NoLocking=1".to_owned(),
            // Without this apt, as root, fetches as a user who cannot write here.
            "APT::Sandbox::User=root".to_owned(),
        ] {
            arguments.extend(["-o".to_owned(), setting]);
        }
        arguments.push("-qq".to_owned());
        arguments.extend(words.iter().map(|word| (*word).to_owned()));
        Command::changes("apt-get", arguments)
    }
}

/// The folders of shared libraries below a folder that stands for `/`.
fn libraries(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in ["usr/lib", "lib"].map(|folder| root.join(folder)) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let of_a_machine = entries
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
        let mut of_machines: Vec<PathBuf> = of_a_machine.collect();
        of_machines.sort();
        folders.extend(of_machines);
        folders.push(folder);
    }
    folders
}

fn debs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_fetched_and_unpacked_in_folders_of_our_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let packages = Packages::of(&Cache::in_folder(folder.path().to_owned()));
        assert_eq!(packages.environment(), []);
        let mut ran = Vec::new();
        let archives = folder.path().join("packages/apt/cache/archives");
        let wanted = ["flex", "bison"].map(str::to_owned);
        let fetched = packages.fetch(&wanted, &mut |command| {
            ran.push(command.to_string());
            if ran.len() == 2 {
                let preferences = fs::read_to_string(packages.preferences()).expect("text");
                assert!(preferences.ends_with(NEWER_ZFS), "{preferences}");
                for name in ["m4_1.deb", "flex_1.deb", "lock"] {
                    fs::write(archives.join(name), "").expect("written");
                }
            }
            Ok(())
        });
        fetched.expect("all goes well");
        assert_eq!(ran.len(), 4, "{ran:?}");
        assert!(ran[0].ends_with("-qq update"), "{}", ran[0]);
        assert!(ran[1].ends_with("--download-only flex bison"), "{}", ran[1]);
        for command in &ran[..2] {
            let folder = folder.path().display();
            for setting in ["Dir::State", "Dir::Etc::Preferences"] {
                let own = format!("{setting}={folder}");
                assert!(command.contains(&own), "{command}");
            }
            assert!(!command.contains("sudo"), "{command}");
        }
        assert!(
            ran[2].contains("flex_1.deb") && ran[3].contains("m4_1.deb"),
            "{ran:?}"
        );
        assert!(!archives.exists(), "the archives are gone");
    }

    #[test]
    fn programs_are_told_where_their_libraries_and_data_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let packages = Packages::of(&Cache::in_folder(folder.path().to_owned()));
        let root = packages.root();
        for place in ["usr/lib/x86_64-linux-gnu", "usr/share/bison", "usr/bin"] {
            fs::create_dir_all(root.join(place)).expect("made");
        }
        let told = packages.environment();
        let value = |name: &str| {
            let mut found = told.iter().filter(|(known, _)| known == name);
            found.next().map(|(_, value)| value.clone())
        };
        let path = value("PATH").expect("set");
        assert!(
            path.contains(&format!(":{}", root.join("usr/bin").display())),
            "{path}"
        );
        let own = root.join("usr/lib/x86_64-linux-gnu");
        let libraries = value("LD_LIBRARY_PATH").expect("set");
        assert!(
            libraries.starts_with(&*own.to_string_lossy()),
            "{libraries}"
        );
        assert!(value("BISON_PKGDATADIR").is_some());
        assert_eq!(value("M4"), None, "it is not there");
    }
}
