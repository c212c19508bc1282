//! The kernel's configuration: the wanted settings, and whether they are in force.
//!
//! Kconfig drops settings silently when something that they depend on is off,
//! so after `make olddefconfig` every wanted one is looked for.

/// The wanted settings, with comments.
const WANTED: &str = include_str!("kernel.config");

/// The end of a line of a setting that not every kernel has.
const OPTIONAL: &str = "# where offered";

/// The settings that OpenZFS needs of the kernel that it is built into.
pub(crate) const FOR_ZFS: &str = "\
CONFIG_MODULES=y
CONFIG_ZLIB_INFLATE=y
CONFIG_ZLIB_DEFLATE=y
CONFIG_EFI_PARTITION=y
";

/// The same settings with the one that OpenZFS brings with it, which is there once it is
/// in the tree.
pub(crate) const WITH_ZFS: &str = "\
CONFIG_MODULES=y
CONFIG_ZLIB_INFLATE=y
CONFIG_ZLIB_DEFLATE=y
CONFIG_EFI_PARTITION=y
CONFIG_ZFS=y
";

/// The lines for a `.config`, without comments. Later lines win.
pub(crate) fn lines(more: &str) -> String {
    let mut text = String::new();
    for (name, value, _) in settings(WANTED).chain(settings(more)) {
        match value {
            "n" => text.push_str(&format!("# {name} is not set\n")),
            value => text.push_str(&format!("{name}={value}\n")),
        }
    }
    text
}

/// The wanted settings that a `.config` lacks.
pub(crate) fn lacking(config: &str, more: &str) -> Vec<String> {
    let overruled = |name: &str| settings(more).any(|(other, _, _)| other == name);
    settings(WANTED)
        .filter(|(name, _, _)| !overruled(name))
        .chain(settings(more))
        .filter(|(name, value, optional)| {
            let set = config
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            match (*value, set) {
                ("n", set) => set.is_some(),
                (_, None) => !optional,
                (value, Some(set)) => value != set,
            }
        })
        .map(|(name, value, _)| format!("{name}={value}"))
        .collect()
}

/// The settings of a text: name, value, and whether a kernel may lack it.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str, bool)> {
    text.lines().filter_map(|line| {
        let optional = line.ends_with(OPTIONAL);
        let setting = line.split('#').next()?.trim();
        let (name, value) = setting.split_once('=')?;
        Some((name, value, optional))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_no_comment_is_a_setting() {
        let lines = WANTED.lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), settings(WANTED).count());
    }

    #[test]
    fn a_configuration_of_the_wanted_lines_lacks_nothing() {
        let config = lines("");
        assert!(config.contains("CONFIG_BLK_DEV_MD=y\n"));
        assert!(config.contains("# CONFIG_SMP is not set\n"));
        assert!(!config.contains("offered"));
        assert_eq!(lacking(&config, ""), [""; 0]);
    }

    #[test]
    fn what_kconfig_dropped_is_named_unless_a_kernel_may_lack_it() {
        let config = lines("")
            .replace("CONFIG_BLK_DEV_MD=y\n", "# CONFIG_BLK_DEV_MD is not set\n")
            .replace("CONFIG_MD_BITMAP=y\n", "")
            .replace("CONFIG_BCACHE=y", "CONFIG_BCACHE=m")
            .replace("# CONFIG_SMP is not set", "CONFIG_SMP=y");
        let lacks = ["CONFIG_BLK_DEV_MD=y", "CONFIG_BCACHE=y", "CONFIG_SMP=n"];
        assert_eq!(lacking(&config, ""), lacks);
    }

    #[test]
    fn further_lines_overrule() {
        let config = lines(FOR_ZFS);
        let last = config.lines().rfind(|line| line.contains("CONFIG_MODULES"));
        assert_eq!(last, Some("CONFIG_MODULES=y"));
        let in_force = config.replace("# CONFIG_MODULES is not set\n", "");
        assert_eq!(lacking(&in_force, FOR_ZFS), [""; 0]);
        assert_eq!(lacking(&in_force, ""), ["CONFIG_MODULES=n"]);
    }
}
