//! The help texts of the commands, out of `help.txt`, where they stand as people read them.

use clap::Command;

const TEXTS: &str = include_str!("help.txt");

/// Gives a command its texts: for the list of commands, at length, and as examples; a command that
/// the file does not have stays as it was, which a test rules out.
pub fn told(command: Command) -> Command {
    let part = |text: &'static str| text.strip_prefix(command.get_name())?.strip_prefix(": ");
    let Some(part) = TEXTS.split("\n== ").find_map(part) else {
        return command;
    };
    let (about, text) = part.split_once('\n').unwrap_or((part, ""));
    let (long, examples) = text.split_at(text.find("Examples:\n").unwrap_or(text.len()));
    // The terminal breaks paragraphs into lines.
    let paragraphs = long.trim_end().split("\n\n");
    let paragraphs = paragraphs.map(|paragraph| paragraph.replace('\n', " "));
    command
        .about(about)
        .long_about(paragraphs.collect::<Vec<_>>().join("\n\n"))
        .after_help(examples.trim_end())
}

#[cfg(test)]
mod tests {
    use super::TEXTS;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_file_has_every_command_and_no_other() {
        let root = Cli::command();
        let mut parts: Vec<&str> = TEXTS.split("\n== ").skip(1).collect();
        for command in root.get_subcommands() {
            let name = command.get_name();
            let at = parts
                .iter()
                .position(|part| part.starts_with(&format!("{name}: ")));
            parts.remove(at.unwrap_or_else(|| panic!("{name}")));
            let examples = command.get_after_help().map(ToString::to_string);
            assert!(
                examples.is_some_and(|said| said.contains("raidlab ")),
                "{name}"
            );
        }
        assert!(parts.is_empty(), "{parts:?}");
    }
}
