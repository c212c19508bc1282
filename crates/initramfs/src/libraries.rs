//! The shared libraries that a program needs, and their places.
//!
//! They are found as ld.so(8) finds them: a name with a slash is a path; any other is looked for in
//! the run path of the file that needs it, in the folders of `/etc/ld.so.conf`, and in the standard
//! ones. A library for another processor is passed over: a machine with a foreign architecture's
//! packages has both in its folders. Libraries that a program loads later by its own decision
//! (`dlopen`) cannot be seen from outside.

use crate::elf::{self, ElfError, Needs};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders that are looked in last (ld.so(8); the first four are Debian's and Fedora's).
const STANDARD: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// A finder of libraries on this machine.
#[derive(Debug, Clone)]
pub struct Libraries {
    folders: Vec<PathBuf>,
}

impl Libraries {
    /// Makes a finder with the folders that this machine's `/etc/ld.so.conf` names.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let mut folders = Vec::new();
        read_configuration(Path::new("/etc/ld.so.conf"), 0, &mut folders);
        folders.extend(STANDARD.map(PathBuf::from));
        Self { folders }
    }

    /// Adds a place for the finder to look, after all others, below a folder that
    /// stands for `/` too.
    pub(crate) fn look_below(&mut self, root: &Path) {
        let own = self.folders.clone().into_iter();
        let below = own.filter_map(|folder| Some(root.join(folder.strip_prefix("/").ok()?)));
        self.folders.extend(below.collect::<Vec<_>>());
    }

    /// The loader and the libraries that a program or a library with these contents names
    /// itself, not those that they need in turn, as paths, not yet followed where they are
    /// links. Empty for a static program.
    ///
    /// # Errors
    /// When it is no ELF file, or a library is nowhere.
    pub fn of(&self, file: &Path, contents: &[u8]) -> Result<Vec<PathBuf>, LibraryError> {
        let needs = Needs::read(file, contents)?;
        let mut found = Vec::new();
        for name in &needs.libraries {
            let path = self.find(name, file, &needs);
            found.push(path.ok_or_else(|| LibraryError::Missing {
                library: name.clone(),
                file: file.to_owned(),
            })?);
        }
        found.extend(needs.interpreter.map(PathBuf::from));
        Ok(found)
    }

    /// Finds the library of this name that `file` needs.
    fn find(&self, name: &str, file: &Path, needs: &Needs) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name));
        }
        let origin = fs::canonicalize(file).ok();
        let origin = origin.as_deref().and_then(Path::parent)?;
        let near = needs.run_path.iter();
        let near = near.map(|folder| {
            let origin = origin.to_string_lossy();
            let folder = folder.replace("${ORIGIN}", &origin);
            PathBuf::from(folder.replace("$ORIGIN", &origin))
        });
        near.chain(self.folders.iter().cloned())
            .map(|folder| folder.join(name))
            .find(|path| elf::machine(path) == Some(needs.machine))
    }

    /// Finds the library of a name that `program` may load by its own decision.
    #[must_use]
    pub fn named(&self, name: &str, program: &Path) -> Option<PathBuf> {
        let machine = elf::machine(program)?;
        let paths = self.folders.iter().map(|folder| folder.join(name));
        let mut fitting = paths.filter(|path| elf::machine(path) == Some(machine));
        fitting.next()
    }
}

/// Adds the folders of a configuration and of those it includes; a file that
/// is not there adds none, as with ldconfig(8).
fn read_configuration(file: &Path, depth: usize, folders: &mut Vec<PathBuf>) {
    // The depth is limited, as files that include each other would go on for ever.
    const DEEPEST: usize = 4;
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(pattern) = line.strip_prefix("include ") {
            if depth < DEEPEST {
                for file in matching(pattern.trim()) {
                    read_configuration(&file, depth + 1, folders);
                }
            }
        } else if line.starts_with('/') {
            folders.push(PathBuf::from(line));
        }
    }
}

/// The files that a pattern of one star in its last part stands for, sorted.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    let (begin, end) = name.split_once('*').unwrap_or((name, ""));
    let mut files: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| {
                name.len() >= begin.len() + end.len()
                    && name.starts_with(begin)
                    && name.ends_with(end)
            })
        })
        .collect();
    files.sort();
    files
}

/// The error of a program whose libraries cannot be told or found.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A file is no ELF file.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// A library is in none of the folders.
    #[error("the library {library} that {} needs is not found", file.display())]
    Missing {
        /// The name by which the program asks for it.
        library: String,
        /// The program or library that needs it.
        file: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::{Libraries, LibraryError, matching, read_configuration};
    use crate::elf::{Needs, machine};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// All that a program needs, with what its libraries need.
    fn all(program: &Path) -> BTreeSet<PathBuf> {
        let libraries = Libraries::of_this_machine();
        let (mut found, mut unread) = (BTreeSet::new(), vec![program.to_owned()]);
        while let Some(file) = unread.pop() {
            let contents = fs::read(&file).expect("it can be read");
            for path in libraries.of(&file, &contents).expect("since it runs") {
                if found.insert(path.clone()) {
                    unread.push(path);
                }
            }
        }
        found
    }

    #[test]
    fn a_shell_needs_a_loader_and_the_c_library() {
        let shell = fs::canonicalize("/bin/sh").expect("every Unix has one");
        let found = all(&shell);
        let names: Vec<_> = found
            .iter()
            .map(|path| path.file_name().expect("a file").to_string_lossy())
            .collect();
        assert!(
            names.iter().any(|name| name.starts_with("ld-")),
            "{names:?}"
        );
        assert!(
            names.iter().any(|name| name.starts_with("libc.")),
            "{names:?}"
        );
        for path in &found {
            assert!(path.is_file(), "{}", path.display());
        }
    }

    /// What the system's own tool says about the program that runs this test.
    #[test]
    fn the_same_libraries_as_ldd_finds() {
        let program = std::env::current_exe().expect("it runs");
        let Ok(output) = std::process::Command::new("ldd").arg(&program).output() else {
            return;
        };
        let real = |path: &str| fs::canonicalize(path).ok();
        let told: BTreeSet<PathBuf> = String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
            .filter_map(real)
            .collect();
        let found = all(&program);
        let found = found.iter().filter_map(|path| fs::canonicalize(path).ok());
        assert_eq!(found.collect::<BTreeSet<_>>(), told);
    }

    #[test]
    fn a_library_for_another_processor_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let program = std::env::current_exe().expect("it runs");
        let header = fs::read(&program).expect("it can be read")[..64].to_vec();
        let mut foreign = header.clone();
        // `e_machine`: 2 bytes at 18 (ELF-64 object file format, version 1.5, table 2).
        foreign[18..20].fill(0xee);
        for (name, bytes) in [
            ("foreign", foreign),
            ("own", header),
            ("text", b"no".to_vec()),
        ] {
            fs::create_dir(at(name)).expect("made");
            fs::write(at(name).join("lib.so.1"), bytes).expect("written");
        }
        let libraries = Libraries {
            folders: ["text", "foreign", "own"].map(at).to_vec(),
        };
        let found = libraries.named("lib.so.1", &program);
        assert_eq!(found, Some(at("own").join("lib.so.1")));
        assert_eq!(libraries.named("other.so.1", &program), None);
        let needs = Needs {
            machine: machine(&program).expect("an ELF file"),
            ..Needs::default()
        };
        assert_eq!(libraries.find("lib.so.1", &program, &needs), found);
    }

    #[test]
    fn a_text_is_no_program() {
        let text = b"some words, more than a header has";
        let error = Libraries::of_this_machine().of(Path::new("notes"), text);
        let error = error.expect_err("no ELF");
        assert!(matches!(error, LibraryError::Elf(_)), "{error:?}");
        assert!(error.to_string().contains("notes"), "{error}");
    }

    #[test]
    fn the_configuration_may_include_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let pattern = at("*.conf");
        let main = format!("include {}\n/last # not this\n", pattern.display());
        fs::write(at("main"), main).expect("written");
        fs::write(at("b.conf"), "/second\n").expect("written");
        fs::write(at("a.conf"), "# words\n/first\n").expect("written");
        let mut folders = Vec::new();
        read_configuration(&at("main"), 0, &mut folders);
        assert_eq!(folders, ["/first", "/second", "/last"].map(PathBuf::from));
        assert_eq!(matching(&pattern.to_string_lossy()).len(), 2);
    }

    #[test]
    fn a_configuration_that_includes_itself_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("main");
        fs::write(&file, format!("include {}\n/one\n", file.display())).expect("written");
        let mut folders = Vec::new();
        read_configuration(&file, 0, &mut folders);
        assert!(!folders.is_empty() && folders.iter().all(|f| f == Path::new("/one")));
    }
}
