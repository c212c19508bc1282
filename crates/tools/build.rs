//! Generates the list of tools: every folder of `src` with a `mod.rs` is a tool, and defines
//! it as `TOOL`.

use std::path::Path;
use std::{env, fs};

fn main() {
    // Read at run time: a tree that was moved since this was compiled lies elsewhere.
    let crate_folder = env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let sources = Path::new(&crate_folder).join("src");
    println!("cargo:rerun-if-changed={}", sources.display());
    let entries = fs::read_dir(&sources).expect("the sources");
    let folders = entries.map(|entry| entry.expect("a file of the sources").path());
    let mut names: Vec<String> = folders
        .filter(|folder| folder.join("mod.rs").is_file())
        .filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    let tools = names.iter().map(|name| format!("crate::{name}::TOOL, "));
    let list = format!("&[{}]\n", tools.collect::<String>());
    let out = env::var_os("OUT_DIR").expect("cargo names the folder of output");
    fs::write(Path::new(&out).join("tools.rs"), list).expect("the list of tools");
}
