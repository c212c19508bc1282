//! The modules of a kernel: their needs and the order they load in.
//!
//! A package of Debian's kernel has no `modules.dep`: its installation makes
//! that with depmod(8), which many machines lack and which wants to run as
//! root. So the modules' own words are read: `.modinfo` has `name`, `depends`
//! and `alias`. Dashes and underscores in names are the same to the kernel.

use crate::kernel::Kernel;
use object::{Object, ObjectSection};
use raidlab_initramfs::Initramfs;
use raidlab_units::{PathError, cannot};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One module to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The name of the module, with underscores.
    pub name: String,
    /// The module's path below the folder of modules, such as `kernel/drivers/md/raid1.ko`.
    pub path: String,
    /// The names of the modules it needs, with underscores.
    pub depends: Vec<String>,
    /// The names by which the kernel may ask for it, such as `md-level-1`.
    pub aliases: Vec<String>,
}

/// All modules of one kernel.
#[derive(Debug, Clone)]
pub struct Modules {
    folder: PathBuf,
    files: BTreeMap<String, String>,
    built_in: BTreeSet<String>,
}

impl Modules {
    /// Reads the modules below a folder such as `/lib/modules/6.1.0-56-cloud-amd64`.
    ///
    /// # Errors
    /// When a folder cannot be read, or there is no module.
    pub fn below(folder: &Path) -> Result<Self, ModuleError> {
        let mut files = BTreeMap::new();
        let mut unread = vec![PathBuf::new()];
        while let Some(part) = unread.pop() {
            let here = folder.join(&part);
            let read = cannot("read", &here);
            for entry in fs::read_dir(&here).map_err(read)? {
                let entry = entry.map_err(read)?;
                let path = part.join(entry.file_name());
                if entry.file_type().map_err(read)?.is_dir() {
                    unread.push(path);
                } else if let Some(name) = name_of(&path.to_string_lossy()) {
                    files.insert(name, path.to_string_lossy().into_owned());
                }
            }
        }
        if files.is_empty() {
            return Err(ModuleError::None {
                folder: folder.to_owned(),
            });
        }
        // An own kernel may have no modules.builtin: then none is known to be built in, and a
        // missing one is an error that says so.
        let built_in = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        Ok(Self {
            folder: folder.to_owned(),
            files,
            built_in: built_in.lines().filter_map(name_of).collect(),
        })
    }

    /// Whether the kernel has the module of this name, loadable or built in.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let name = normal(name);
        self.files.contains_key(&name) || self.built_in.contains(&name)
    }

    /// Returns the modules wanted and all that they need, each after those it needs; without those
    /// that are built in.
    ///
    /// # Errors
    /// When one is neither a module nor built in, or cannot be read.
    pub(crate) fn closure<'a>(
        &self,
        wanted: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Module>, ModuleError> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in wanted {
            self.visit(&normal(name), &mut seen, &mut order)?;
        }
        Ok(order)
    }

    /// Adds a module behind those it needs. A module in `seen` is not visited
    /// again, so that a circle, which no real kernel has, ends too.
    fn visit(
        &self,
        name: &str,
        seen: &mut BTreeSet<String>,
        order: &mut Vec<Module>,
    ) -> Result<(), ModuleError> {
        if !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.files.get(name) else {
            return if self.built_in.contains(name) {
                Ok(())
            } else {
                Err(ModuleError::Missing {
                    name: name.to_owned(),
                    folder: self.folder.clone(),
                })
            };
        };
        let file = self.folder.join(path);
        let bytes = fs::read(&file).map_err(cannot("read", &file))?;
        let mut module = Module {
            name: name.to_owned(),
            path: path.clone(),
            depends: Vec::new(),
            aliases: Vec::new(),
        };
        for (key, value) in information(&file, &bytes)? {
            match key.as_str() {
                "depends" => {
                    let names = value.split(',').filter(|name| !name.is_empty());
                    module.depends.extend(names.map(normal));
                }
                "alias" => module.aliases.push(value),
                _ => {}
            }
        }
        for needed in &module.depends {
            self.visit(needed, seen, order)?;
        }
        order.push(module);
        Ok(())
    }

    /// The file of a module.
    #[must_use]
    pub fn file(&self, module: &Module) -> PathBuf {
        self.folder.join(&module.path)
    }
}

/// Adds modules of a kernel to a first file system, with those they need. Those of `first`
/// are loaded at the start, in this order; those of `on_demand` wait until the kernel asks
/// for them, and those that it has not are left out.
///
/// # Errors
/// When the kernel has not a module of `first`, or one cannot be read.
pub fn add(
    initramfs: &mut Initramfs,
    kernel: &Kernel,
    first: &str,
    on_demand: &str,
) -> Result<(), ModuleError> {
    let all = Modules::below(&kernel.modules)?;
    let (first, on_demand) = (first.split_whitespace(), on_demand.split_whitespace());
    let on_demand = on_demand.filter(|name| all.has(name));
    let closure = all.closure(first.clone().chain(on_demand))?;
    let folder = initramfs.real(&format!("/lib/modules/{}", kernel.release));
    for module in &closure {
        let file = all.file(module);
        let read = cannot("read", &file);
        let mode = fs::metadata(&file).map_err(read)?.permissions().mode() & 0o777;
        let contents = fs::read(&file).map_err(read)?;
        initramfs.bytes(&format!("{folder}/{}", module.path), mode, contents);
    }
    let dependencies = dependency_file(&closure);
    initramfs.text(&format!("{folder}/modules.dep"), 0o644, &dependencies);
    let aliases = alias_file(&closure);
    initramfs.text(&format!("{folder}/modules.alias"), 0o644, &aliases);
    let list: String = first.map(|name| format!("{name}\n")).collect();
    initramfs.text("/raidlab/modules", 0o644, &list);
    Ok(())
}

/// The text of `modules.dep` for some modules, as modprobe(8) reads it: each
/// with all that it needs, the last to load first.
#[must_use]
pub(crate) fn dependency_file(modules: &[Module]) -> String {
    let by_name: BTreeMap<&str, &Module> = modules.iter().map(|m| (m.name.as_str(), m)).collect();
    let mut text = String::new();
    for module in modules {
        let mut needed = BTreeSet::new();
        let mut unread: Vec<&Module> = vec![module];
        while let Some(one) = unread.pop() {
            for name in &one.depends {
                if let Some(other) = by_name.get(name.as_str())
                    && needed.insert(&other.name)
                {
                    unread.push(other);
                }
            }
        }
        let _ = write!(text, "{}:", module.path);
        // `modules` is in loading order already.
        for other in modules.iter().rev().filter(|m| needed.contains(&m.name)) {
            let _ = write!(text, " {}", other.path);
        }
        text.push('\n');
    }
    text
}

/// The text of `modules.alias` for some modules.
#[must_use]
pub(crate) fn alias_file(modules: &[Module]) -> String {
    let mut text = String::new();
    for module in modules {
        for alias in &module.aliases {
            let _ = writeln!(text, "alias {alias} {}", module.name);
        }
    }
    text
}

/// The name of the module in a file; `None` for other files.
fn name_of(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    Some(normal(name.strip_suffix(".ko")?))
}

/// The `name=value` pairs of a kernel module's `.modinfo` section, in order;
/// names repeat.
fn information(file: &Path, bytes: &[u8]) -> Result<Vec<(String, String)>, ModuleError> {
    let section = || -> object::Result<Vec<u8>> {
        let module = object::File::parse(bytes)?;
        match module.section_by_name(".modinfo") {
            Some(section) => Ok(section.uncompressed_data()?.into_owned()),
            None => Ok(Vec::new()),
        }
    };
    let section = section().map_err(|source| ModuleError::Elf {
        file: file.to_owned(),
        source,
    })?;
    Ok(section
        .split(|byte| *byte == 0)
        .filter_map(|pair| {
            let text = String::from_utf8_lossy(pair);
            let (name, value) = text.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect())
}

/// Normalises a name as the kernel compares it.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// The error of modules that cannot be found or read.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// A file or folder cannot be read.
    #[error(transparent)]
    Read(#[from] PathError),
    /// A module is no ELF file.
    #[error("{} is not a sound 64-bit ELF file", file.display())]
    Elf {
        /// The file that could not be used.
        file: PathBuf,
        /// The mistake in the file.
        #[source]
        source: object::Error,
    },
    /// A folder has no modules, or only compressed ones.
    #[error(
        "no kernel modules below {} (compressed ones, .ko.xz and .ko.zst, are not read)",
        folder.display()
    )]
    None {
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// The kernel has no such module.
    #[error("the kernel of {} has no module {name}", folder.display())]
    Missing {
        /// The module's name, as `modprobe` takes it.
        name: String,
        /// The folder in which it was looked for.
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests;
