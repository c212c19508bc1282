//! A kernel's modules: what they need and the order they load in.
//!
//! A package of Debian's kernel has no `modules.dep`: its installation makes
//! that with depmod(8), which many machines lack and which wants to run as
//! root. So the modules' own words are read: `.modinfo` has `name`, `depends`
//! and `alias`. Dashes and underscores in names are the same to the kernel.

use crate::elf::{self, ElfError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One module to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// Its path below the folder of modules, such as `kernel/drivers/md/raid1.ko`.
    pub path: String,
    /// The names of those it needs, with underscores.
    pub depends: Vec<String>,
    /// What the kernel may call it when it asks for one, such as `md-level-1`.
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
    /// Those below a folder such as `/lib/modules/6.1.0-56-cloud-amd64`.
    ///
    /// # Errors
    /// When a folder cannot be read, or there is no module.
    pub fn below(folder: &Path) -> Result<Self, ModuleError> {
        let mut files = BTreeMap::new();
        let mut unread = vec![PathBuf::new()];
        while let Some(part) = unread.pop() {
            let here = folder.join(&part);
            let read = |source| ModuleError::Read {
                file: here.clone(),
                source,
            };
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
        // An own kernel may have no modules.builtin: then none is known to be
        // built in, and a missing one is an error that says so.
        let built_in = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        Ok(Self {
            folder: folder.to_owned(),
            files,
            built_in: built_in.lines().filter_map(name_of).collect(),
        })
    }

    /// Whether the kernel has it, as a module or built in.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let name = normal(name);
        self.files.contains_key(&name) || self.built_in.contains(&name)
    }

    /// The modules wanted and all that they need, each after those it needs;
    /// without those that are built in.
    ///
    /// # Errors
    /// When one is neither a module nor built in, or cannot be read.
    pub fn closure<'a>(
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
        let bytes = fs::read(&file).map_err(|source| ModuleError::Read {
            file: file.clone(),
            source,
        })?;
        let mut module = Module {
            name: name.to_owned(),
            path: path.clone(),
            depends: Vec::new(),
            aliases: Vec::new(),
        };
        for (key, value) in elf::module_information(&file, &bytes)? {
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

/// The text of `modules.dep` for some modules, as modprobe(8) reads it: each
/// with all that it needs, the last to load first.
#[must_use]
pub fn dependency_file(modules: &[Module]) -> String {
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
pub fn alias_file(modules: &[Module]) -> String {
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

/// A name as the kernel compares it.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// Modules that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file that could not be used.
        file: PathBuf,
        /// What the operating system answered.
        #[source]
        source: io::Error,
    },
    /// A module is no ELF file.
    #[error(transparent)]
    Elf(#[from] ElfError),
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
        /// Where it was looked for.
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests;
