//! The mounted file systems, with their mount points and options.

use crate::array::steps::Reader;

/// One line of `/proc/mounts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) device: String,
    pub(crate) folder: String,
    pub(crate) kind: String,
    pub(crate) options: Vec<String>,
    /// The file or command that the line is from.
    pub(crate) source: &'static str,
}

/// Reads `/proc/mounts`: device, folder, type and options, with blanks written as `\040`. Malformed
/// lines are skipped.
pub(crate) fn parse_mounts(text: &str) -> Vec<Mount> {
    parse(text, "/proc/mounts")
}

/// Reads the output of FreeBSD's `mount -p`: the same columns, separated by tabs.
pub(crate) fn parse_mounts_freebsd(text: &str) -> Vec<Mount> {
    parse(text, "mount -p")
}

fn parse(text: &str, source: &'static str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(unescape);
            Some(Mount {
                device: words.next()?,
                folder: words.next()?,
                kind: words.next()?,
                options: words.next()?.split(',').map(str::to_owned).collect(),
                source,
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

/// Adds each requested mount option with the value in force, and one row with all options.
///
/// Options that the kernel shows in another form (`compress=zstd` is `compress=zstd:3`, `defaults`
/// is nothing) count as applied when the shown option is the requested one followed by `:`.
pub(crate) fn check_options(reader: &mut Reader<'_>, asked: &[String], mount: &Mount) {
    let source = mount.source;
    for option in asked.iter().filter(|option| *option != "defaults") {
        let longer = format!("{option}:");
        let found = mount
            .options
            .iter()
            .find(|found| *found == option || found.starts_with(&longer));
        let found = found.map_or("nothing", |_| option.as_str());
        let name = option.split('=').next().unwrap_or(option);
        let name = format!("mount_options.{name}");
        reader.found(&name, Some(option), found, source);
    }
    reader.found(
        "mount_options",
        None::<&str>,
        mount.options.join(","),
        source,
    );
}

#[cfg(test)]
mod tests {
    use super::{Mount, parse_mounts, parse_mounts_freebsd};

    #[test]
    fn blanks_are_octal() {
        let text = "/dev/loop0 /mnt/a\\040b btrfs rw,relatime 0 0\nnonsense\n";
        let mount = Mount {
            device: "/dev/loop0".to_owned(),
            folder: "/mnt/a b".to_owned(),
            kind: "btrfs".to_owned(),
            options: vec!["rw".to_owned(), "relatime".to_owned()],
            source: "/proc/mounts",
        };
        assert_eq!(parse_mounts(text), [mount]);
    }

    #[test]
    fn freebsd_sets_columns_apart_by_tabs() {
        // FreeBSD 14 mount.c, `putfsent`: constructed, not recorded.
        let text = "/dev/mirror/m0\t\t/mnt\t\t\tufs\trw,noatime\t2 2\n";
        let mounts = parse_mounts_freebsd(text);
        assert_eq!(mounts[0].folder, "/mnt");
        assert_eq!(mounts[0].kind, "ufs");
        assert_eq!(mounts[0].options, ["rw", "noatime"]);
    }
}
