//! What is mounted where, with which options.

use crate::array::steps::Reader;

/// One line of `/proc/mounts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) device: String,
    pub(crate) folder: String,
    pub(crate) kind: String,
    pub(crate) options: Vec<String>,
}

/// Reads `/proc/mounts`: device, folder, type and options, with blanks written
/// as `\040`. Lines that are none are skipped.
pub(crate) fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ').map(unescape);
            Some(Mount {
                device: words.next()?,
                folder: words.next()?,
                kind: words.next()?,
                options: words.next()?.split(',').map(str::to_owned).collect(),
            })
        })
        .collect()
}

/// Undoes `\040` (octal) for blank, tab, line end and backslash.
fn unescape(word: &str) -> String {
    let pairs = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    pairs
        .iter()
        .fold(word.to_owned(), |word, (code, character)| {
            word.replace(code, character)
        })
}

/// Each asked mount option beside what is in force, and one row with all.
///
/// Options that the kernel shows in another form (`compress=zstd` is
/// `compress=zstd:3`, `defaults` is nothing) count as applied when the shown
/// one begins with what was asked and goes on with `:`.
pub(crate) fn check_options(reader: &mut Reader<'_>, asked: &[String], mount: &Mount) {
    let source = "/proc/mounts";
    for option in asked.iter().filter(|option| *option != "defaults") {
        let longer = format!("{option}:");
        let found = mount
            .options
            .iter()
            .find(|found| *found == option || found.starts_with(&longer));
        let found = found.map_or("nothing", |_| option.as_str());
        let name = option.split('=').next().unwrap_or(option);
        let name = format!("mount_options.{name}");
        reader.found(&name, Some(option.clone()), found.to_owned(), source);
    }
    reader.found("mount_options", None, mount.options.join(","), source);
}

#[cfg(test)]
mod tests {
    use super::{Mount, parse_mounts};

    #[test]
    fn blanks_are_octal() {
        let text = "/dev/loop0 /mnt/a\\040b btrfs rw,relatime 0 0\nnonsense\n";
        let mount = Mount {
            device: "/dev/loop0".to_owned(),
            folder: "/mnt/a b".to_owned(),
            kind: "btrfs".to_owned(),
            options: vec!["rw".to_owned(), "relatime".to_owned()],
        };
        assert_eq!(parse_mounts(text), [mount]);
    }
}
