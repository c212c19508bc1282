//! Generates the list of array systems: every folder of `src/array` with a `mod.rs` is one. The
//! folder `md` defines the settings of its arrays as `MdSpec`, as which a file's table `[build.md]`
//! is read, and a minimal set of them, in JSON, as `LEAST`.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    // Read at run time: a tree that was moved since this was compiled lies elsewhere.
    let crate_folder = env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let sources = Path::new(&crate_folder).join("src/array");
    println!("cargo:rerun-if-changed={}", sources.display());
    let entries = fs::read_dir(&sources).expect("the sources");
    let folders = entries.map(|entry| entry.expect("a file of the sources").path());
    let mut names: Vec<String> = folders
        .filter(|folder| folder.join("mod.rs").is_file())
        .filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    // The text for each system, with its name in place of NAME and Name.
    let each = |text: &str| {
        let all = names.iter().map(|name| {
            let (first, rest) = name.split_at(1);
            let capital = format!("{}{rest}", first.to_uppercase());
            text.replace("NAME", name).replace("Name", &capital)
        });
        all.collect::<String>()
    };
    let mut code = String::new();
    let written = write!(
        code,
        "/// An array to be built: its system with its settings.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = \"lowercase\")]
pub enum ArraySpec {{
{variants}}}

impl ArraySpec {{
    /// The system's name, as in files and facts: `md`, `zfs`.
    #[must_use]
    pub const fn name(&self) -> &'static str {{
        match self {{
{titles}        }}
    }}

    fn system(&self) -> &(dyn ArraySystem + 'static) {{
        match self {{
{systems}        }}
    }}

    fn system_mut(&mut self) -> &mut (dyn ArraySystem + 'static) {{
        match self {{
{systems}        }}
    }}
}}

const LEAST: &[(&str, &str)] = &[
{least}];
",
        variants =
            each("    /// What `[build.NAME]` says.\n    Name(crate::array::NAME::NameSpec),\n"),
        titles = each("            Self::Name(_) => \"NAME\",\n"),
        systems = each("            Self::Name(spec) => spec,\n"),
        least = each("    (\"NAME\", crate::array::NAME::LEAST),\n"),
    );
    written.expect("a string takes all");
    let out = env::var_os("OUT_DIR").expect("cargo names the folder of output");
    fs::write(Path::new(&out).join("systems.rs"), code).expect("the list of systems");
}
