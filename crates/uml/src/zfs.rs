//! OpenZFS, built into a kernel: from the source that Debian's package
//! `zfs-dkms` puts into `/usr/src`.
//!
//! It does not exist as modules for User-Mode Linux, so its sources are copied into the
//! kernel's tree, as its own script `copy-builtin` does, which older packages lack. The
//! licences of the two do not go together: the result is for the machine that it was built
//! on, and must not be passed on.

use crate::edits::replace;
use crate::error::BuildError;
use raidlab_shell::Command;
use raidlab_units::{PathError, cannot};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder in which the package puts its source.
const FOLDER: &str = "/usr/src";
const PREFIX: &str = "zfs-";

/// The folder of the configured copy while a kernel is built, beside the kernel's
/// tree and the stamps of the steps.
pub(crate) const COPY: &str = "openzfs";

/// The kernel's menu entry for OpenZFS.
pub(crate) const KCONFIG: &str = "config ZFS\n\ttristate \"OpenZFS\"\n\tdepends on EFI_PARTITION\n\
                       \tselect ZLIB_INFLATE\n\tselect ZLIB_DEFLATE\n";

/// The source of OpenZFS, as a package has brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    version: String,
    folder: PathBuf,
}

impl Source {
    /// Finds the newest version that is installed, or was fetched with packages whose root is
    /// `beside`; `None` where there is none.
    #[must_use]
    pub fn find(beside: &Path) -> Option<Self> {
        let fetched = beside.join(FOLDER.trim_start_matches('/'));
        Self::find_in(Path::new(FOLDER)).or_else(|| Self::find_in(&fetched))
    }

    /// A source of that version in a folder.
    #[cfg(test)]
    pub(crate) fn of(version: &str, folder: &Path) -> Self {
        Self {
            version: version.to_owned(),
            folder: folder.to_owned(),
        }
    }

    fn find_in(folder: &Path) -> Option<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<Self> = entries
            .filter_map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let version = name.strip_prefix(PREFIX)?.to_owned();
                let folder = entry.path();
                let whole = folder.join("configure").is_file();
                whole.then_some(Self { version, folder })
            })
            .collect();
        found.sort_by_key(|source| {
            let numbers = source.version.split('.');
            let numbers: Vec<u32> = numbers.map(|part| part.parse().unwrap_or(0)).collect();
            numbers
        });
        found.pop()
    }

    /// The version of OpenZFS: `2.3.2`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Configures a copy for the kernel's tree and puts it in.
    pub(crate) fn put_into(
        &self,
        tree: &Path,
        folder: &Path,
        run: &mut dyn FnMut(&Command) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let copy = folder.join(COPY);
        crate::cache::remove_folder(&copy)?;
        let word = |path: &Path| path.to_string_lossy().into_owned();
        let tree_word = word(tree);
        run(&Command::changes(
            "cp",
            ["-a", &word(&self.folder), &word(&copy)],
        ))?;
        // Its configure compiles small modules, for which the kernel has to be prepared; the parts
        // that are built in need not be linked for that.
        let prepare = ["-C", &tree_word, "ARCH=um", "modules_prepare"];
        run(&Command::changes("make", prepare))?;
        let script = "cd \"$0\" && ARCH=um ARCH_UM=ARCH=um ./configure --with-config=kernel \
                      --enable-linux-builtin --with-linux=\"$1\" --with-linux-obj=\"$1\"";
        let words = ["-c", script, &word(&copy), &tree_word];
        run(&Command::changes("sh", words))?;
        put(&copy, tree)?;
        run(&Command::changes(
            "make",
            ["-C", &tree_word, "ARCH=um", "olddefconfig"],
        ))
    }
}

/// Copies the configured source into the tree and names it in the tree's own
/// files.
fn put(copy: &Path, tree: &Path) -> Result<(), PathError> {
    let (module, headers) = (tree.join("fs/zfs"), tree.join("include/zfs"));
    copy_folder(&copy.join("include"), &headers)?;
    copy_folder(&copy.join("module"), &module)?;
    let config = copy.join("zfs_config.h");
    fs::copy(&config, headers.join("zfs_config.h")).map_err(cannot("use", &config))?;
    fs::write(module.join("Kconfig"), KCONFIG).map_err(cannot("use", &module))?;
    for makefile in makefiles(&module)? {
        change(&makefile, |text| {
            // User-Mode Linux is x86-64 without being x86, and has a setjmp of
            // its own.
            let text = text.replace("$(CONFIG_X86)", "$(CONFIG_X86_64)");
            let lines = text.lines().filter(|line| !line.contains("setjmp/setjmp"));
            lines.map(|line| format!("{line}\n")).collect()
        })?;
    }
    append(&tree.join("fs/Makefile"), "obj-$(CONFIG_ZFS) += zfs/\n")?;
    change(&tree.join("fs/Kconfig"), |text| {
        let line = "source \"fs/zfs/Kconfig\"\n";
        if text.contains(line) {
            text.to_owned()
        } else {
            text.replacen("if BLOCK\n", &format!("if BLOCK\n{line}"), 1)
        }
    })?;
    append(&tree.join(".config"), "CONFIG_ZFS=y\n")
}

fn change(file: &Path, change: impl FnOnce(&str) -> String) -> Result<(), PathError> {
    fs::read_to_string(file)
        .and_then(|text| replace(file, &change(&text)))
        .map_err(cannot("use", file))
}

fn append(file: &Path, line: &str) -> Result<(), PathError> {
    change(file, |text| {
        if text.contains(line) {
            text.to_owned()
        } else {
            format!("{}\n{line}", text.trim_end())
        }
    })
}

/// The files `Makefile` and `Kbuild` of a folder and those below it.
fn makefiles(folder: &Path) -> Result<Vec<PathBuf>, PathError> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(makefiles(&path)?);
        } else if path
            .file_name()
            .is_some_and(|name| name == "Makefile" || name == "Kbuild")
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), PathError> {
    fs::create_dir_all(to).map_err(cannot("use", to))?;
    for path in entries(from)? {
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &to)?;
        } else {
            fs::copy(&path, &to).map_err(cannot("use", &path))?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, PathError> {
    let trouble = cannot("use", folder);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(trouble)? {
        paths.push(entry.map_err(trouble)?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_source_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Source::find_in(folder.path()), None);
        for name in ["zfs-2.1.9", "zfs-2.1.11", "zfs-empty"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        for name in ["zfs-2.1.9", "zfs-2.1.11"] {
            fs::write(folder.path().join(name).join("configure"), "").expect("written");
        }
        let source = Source::find_in(folder.path()).expect("two are there");
        assert_eq!(source.version(), "2.1.11");
    }

    #[test]
    fn the_source_is_named_in_the_tree_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (copy, tree) = (folder.path().join("copy"), folder.path().join("tree"));
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(copy.join("include/sys/zfs.h"), "");
        write(copy.join("zfs_config.h"), "");
        write(
            copy.join("module/lua/Makefile"),
            "a += one.o\nb += setjmp/setjmp.o\nc-$(CONFIG_X86) += two.o\n",
        );
        write(tree.join("fs/Makefile"), "obj-y += open.o\n");
        write(tree.join("fs/Kconfig"), "menu\n\nif BLOCK\n\nendif\n");
        write(tree.join(".config"), "CONFIG_BLOCK=y\n");
        for _ in 0..2 {
            put(&copy, &tree).expect("put in");
        }
        let text = |path: &str| fs::read_to_string(tree.join(path)).expect("there");
        assert_eq!(
            text("fs/zfs/lua/Makefile"),
            "a += one.o\nc-$(CONFIG_X86_64) += two.o\n"
        );
        assert_eq!(
            text("fs/Makefile"),
            "obj-y += open.o\nobj-$(CONFIG_ZFS) += zfs/\n"
        );
        assert_eq!(text("fs/Kconfig").matches("fs/zfs/Kconfig").count(), 1);
        assert_eq!(text(".config"), "CONFIG_BLOCK=y\nCONFIG_ZFS=y\n");
        assert!(tree.join("include/zfs/zfs_config.h").exists());
    }
}
