//! The command `raidlab manual`: it prints pages for man(1), made from the definition of
//! the command line.

use crate::failure::{EXIT_CODES, Failure, Kind};
use crate::output;
use clap::{Args, Command};
use clap_mangen::Man;

/// Arguments of `raidlab manual`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The command whose page is wanted; raidlab's own page where none is named.
    command: Vec<String>,
    /// List the pages: on each line the page's name, then the command, if there is one.
    #[arg(long, conflicts_with = "command")]
    list: bool,
}

/// Prints a page, or the list of all.
///
/// # Errors
/// When there is no such command, or standard output does not take it.
pub fn manual(arguments: &Arguments, raidlab: Command) -> Result<(), Failure> {
    let mut root = raidlab.disable_help_subcommand(true);
    root.build();
    if arguments.list {
        let mut lines = String::new();
        list(&root, &[], &mut lines);
        return output::print(&lines);
    }
    let page = page(&root, &arguments.command)?;
    output::print_bytes(&page)
}

/// Makes a page as man(1) reads it.
fn page(root: &Command, path: &[String]) -> Result<Vec<u8>, Failure> {
    let mut command = root;
    for name in path {
        command = command.find_subcommand(name).ok_or_else(|| {
            let wrong = format!("there is no command `{}`", path.join(" "));
            Failure::words(Kind::Usage, wrong).help("`raidlab manual --list` names all pages")
        })?;
    }
    let mut page = Vec::new();
    Man::new(command.clone())
        .source(format!("raidlab {}", env!("CARGO_PKG_VERSION")))
        .manual("raidlab manual")
        .render(&mut page)
        .map_err(Failure::write_output)?;
    page.extend_from_slice(b".SH \"EXIT STATUS\"\n");
    for one in &EXIT_CODES {
        let (code, says, example) = (one.code, one.says, one.example);
        page.extend_from_slice(format!(".TP\n{code}\n{says}. {example}\n").as_bytes());
    }
    Ok(page)
}

/// Adds a line for `command`, which is found by `path`, and one for each below it.
fn list(command: &Command, path: &[&str], lines: &mut String) {
    let name = command.get_display_name().unwrap_or(command.get_name());
    lines.push_str(name);
    for word in path {
        lines.push(' ');
        lines.push_str(word);
    }
    lines.push('\n');
    for below in command.get_subcommands() {
        let path: Vec<&str> = path.iter().copied().chain([below.get_name()]).collect();
        list(below, &path, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::{list, page};
    use crate::cli::Cli;
    use clap::{Command, CommandFactory};

    /// Every command below `command`, with its path and what can be said to it.
    fn all(command: &Command, path: &[String], found: &mut Vec<(Vec<String>, Vec<String>)>) {
        let options = command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
            .filter_map(|argument| argument.get_long())
            .map(str::to_owned);
        found.push((path.to_vec(), options.collect()));
        for below in command.get_subcommands() {
            let path: Vec<String> = path
                .iter()
                .cloned()
                .chain([below.get_name().to_owned()])
                .collect();
            all(below, &path, found);
        }
    }

    #[test]
    fn every_command_has_its_page_with_every_option_and_an_example() {
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        let mut commands = Vec::new();
        all(&root, &[], &mut commands);
        assert!(commands.len() > 28, "{}", commands.len());
        let mut lines = String::new();
        list(&root, &[], &mut lines);
        assert_eq!(lines.lines().count(), commands.len());
        for (path, options) in commands {
            let name = std::iter::once("raidlab").chain(path.iter().map(String::as_str));
            let name = name.collect::<Vec<_>>().join("-");
            assert!(
                lines
                    .lines()
                    .any(|line| line.split(' ').next() == Some(name.as_str())),
                "{name}"
            );
            let text = String::from_utf8(page(&root, &path).expect("a page")).expect("UTF-8");
            // roff writes a hyphen that is one as `\\-`.
            let text = text.replace("\\-", "-");
            assert!(text.contains(&format!(".TH {name} 1")), "{name}: {text}");
            assert!(
                text.contains(".SH \"EXIT STATUS\"\n.TP\n0\neverything"),
                "{name}"
            );
            for option in options {
                assert!(
                    text.contains(&format!("--{option}")),
                    "{name} lacks --{option}"
                );
            }
            assert!(
                path.len() != 1 || text.contains("raidlab "),
                "{name} has no example"
            );
        }
    }

    #[test]
    fn a_command_that_is_none_has_no_page() {
        let mut root = Cli::command();
        root.build();
        assert!(page(&root, &["nonsense".to_owned()]).is_err());
    }
}
