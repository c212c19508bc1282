//! A build script that writes the list of the repository's data files: every `.toml` file of the
//! folders below `data/`, by name. A file that is added there is built in without a line of Rust.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// The folders below `data/` that are built in.
const FOLDERS: [&str; 7] = [
    "claims",
    "disks",
    "facts",
    "processors",
    "published",
    "subjects",
    "suites",
];

fn main() {
    // The variable is read at run time: a tree that was moved since this was
    // compiled lies elsewhere.
    let crate_folder = env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let root = Path::new(&crate_folder).join("../../data");
    let mut list = String::from("&[\n");
    for folder in FOLDERS {
        // Cargo looks at everything in the folder, so a new file is seen as well.
        let path = root.join(folder);
        println!("cargo:rerun-if-changed={}", path.display());
        let entries = fs::read_dir(&path).expect(folder);
        let files = entries.map(|entry| entry.expect(folder).path());
        let mut files: Vec<_> = files
            .filter(|file| {
                file.extension()
                    .is_some_and(|extension| extension == "toml")
            })
            .collect();
        // `md` comes before `md-raid0`, which would come first with the ends of the names.
        files.sort_by_cached_key(|file| file.file_stem().map(OsStr::to_os_string));
        writeln!(list, "    ({folder:?}, &[").expect("a string takes all");
        for file in files {
            let name = file.file_stem().and_then(|name| name.to_str());
            let name = name.expect("the name of a data file is UTF-8");
            writeln!(
                list,
                "        Entry {{ name: {name:?}, text: include_str!({file:?}) }},"
            )
            .expect("a string takes all");
        }
        list += "    ]),\n";
    }
    list += "]\n";
    let out = env::var_os("OUT_DIR").expect("cargo names the folder of output");
    fs::write(Path::new(&out).join("folders.rs"), list).expect("the list of files");
}
