//! Errors of a command line that cannot be read, in the form of every other error: what is wrong,
//! and what to type instead.
//!
//! clap says what it met; the remedy is looked for where people's mistakes come from: a letter left
//! out, an option of another command, an option of fio's, which belongs in a job, and a suite's
//! name without a command before it.

use crate::cli::Cli;
use crate::failure::{Failure, Kind};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use raidlab_lab::catalogue::{self, nearby};
use raidlab_store::text::visible_path;
use std::ffi::OsString;
use std::path::Path;

/// Turns an `error`, met in reading `words` (the program's name first), into a failure. `None` for
/// help and versions, which were asked for.
pub fn failure(error: &clap::Error, words: &[OsString]) -> Option<Failure> {
    let mut root = Cli::command();
    root.build();
    let at = Place::of(&root, words);
    let of = |kind| texts(error, kind);
    let invalid = of(ContextKind::InvalidArg);
    let value = of(ContextKind::InvalidValue).pop().unwrap_or_default();
    let (wrong, help) = match error.kind() {
        ErrorKind::UnknownArgument => at.unknown(invalid.first()?),
        ErrorKind::InvalidSubcommand => at.no_command(of(ContextKind::InvalidSubcommand).first()?),
        ErrorKind::MissingRequiredArgument => at.missing(&invalid.join(" and "), words),
        ErrorKind::InvalidUtf8 => no_utf_8(words),
        ErrorKind::InvalidValue if value.is_empty() => {
            (format!("`{}` needs a value", invalid.first()?), at.help())
        }
        ErrorKind::InvalidValue => {
            let known = of(ContextKind::ValidValue);
            let wrong = format!(
                "`{}` takes no `{value}`{}",
                invalid.first()?,
                nearby(&value, &known)
            );
            (wrong, format!("it takes one of: {}", known.join(", ")))
        }
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error)?.to_string();
            // The standard library's words for text that is no number.
            let bounds = bounds(&why);
            let why = match bounds.as_deref().unwrap_or(&why) {
                "invalid digit found in string" | "cannot parse integer from empty string" => {
                    "it takes a whole number"
                }
                "number would be zero for non-zero type" => "it takes a number from 1",
                "number too large to fit in target type" => "the number is too large",
                why => why,
            };
            let argument = invalid.first()?;
            let option = argument.split(' ').next().filter(|it| it.starts_with("--"));
            let typed = option.map_or_else(|| value.clone(), |it| format!("{it} {value}"));
            (format!("`{typed}`: {why}"), at.help())
        }
        ErrorKind::ArgumentConflict => {
            let others = of(ContextKind::PriorArg).join("`, `");
            let first = invalid.first()?;
            let wrong = if others == *first {
                format!("`{first}` is given more than once")
            } else if others.is_empty() {
                format!("`{first}` cannot be used with anything else")
            } else {
                format!("`{first}` cannot be used with `{others}`")
            };
            (wrong, at.help())
        }
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        _ => {
            let said = error.render().to_string();
            let first = said.lines().next().unwrap_or_default();
            let wrong = first.strip_prefix("error: ").unwrap_or(first);
            (wrong.to_owned(), at.help())
        }
    };
    Some(Failure::words(Kind::Usage, wrong).help(help))
}

/// clap's words for a number out of bounds, `0 is not in 1..=4096`, in ours. The largest number of a
/// type is no bound that anybody set.
fn bounds(why: &str) -> Option<String> {
    let (least, end) = why.split_once(" is not in ")?.1.split_once("..")?;
    let words = format!("it takes a number from {least}");
    let most = match end.strip_prefix('=') {
        Some(most) => most.parse().ok()?,
        None => end.parse::<u64>().ok()?,
    };
    let of_a_type = [u64::from(u16::MAX), u64::from(u32::MAX), u64::MAX];
    Some(if end.starts_with('=') {
        format!("{words} to {most}")
    } else if of_a_type.contains(&most) {
        words
    } else {
        format!("{words} to {}", most.saturating_sub(1))
    })
}

/// The failure for words that are no UTF-8 where text is wanted; clap does not tell which
/// word it was.
fn no_utf_8(words: &[OsString]) -> (String, String) {
    let bytes = words.iter().filter(|word| word.to_str().is_none());
    let shown = bytes.map(|word| visible_path(Path::new(word)));
    let shown = shown.collect::<Vec<_>>().join("` or `");
    let help = "give the file a name of letters: a link to it, by `ln -s`";
    (
        format!("`{shown}` is no UTF-8, and has to be"),
        help.to_owned(),
    )
}

/// The texts of this kind in the context of clap's error.
fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// The words that people take for options that choose a bench.
const BENCHES: [&str; 6] = ["backend", "bench", "host", "kernel", "model", "real"];

/// The command that the words before the mistake lead to.
struct Place<'a> {
    root: &'a Command,
    command: &'a Command,
    /// The command as it is typed: `raidlab kernel build`.
    typed: String,
}

impl<'a> Place<'a> {
    fn of(root: &'a Command, words: &[OsString]) -> Self {
        let mut at = Self {
            root,
            command: root,
            typed: root.get_name().to_owned(),
        };
        let words = words.iter().skip(1).filter_map(|word| word.to_str());
        // `raidlab help kernel` is about `raidlab kernel`.
        let asks_help = |(place, word): &(usize, &str)| *place == 0 && *word == "help";
        let words = words.enumerate().filter(|word| !asks_help(word));
        for (_, word) in words {
            let Some(command) = at.command.find_subcommand(word) else {
                break;
            };
            at.command = command;
            at.typed = format!("{} {word}", at.typed);
        }
        at
    }

    fn quoted(&self) -> String {
        format!("`{}`", self.typed)
    }

    /// The failure that an argument is missing, and the option that needs it, if there is one.
    fn missing(&self, missing: &str, words: &[OsString]) -> (String, String) {
        match self.option_that_needs(words) {
            Some(option) => (format!("`{option}` needs {missing}"), self.help()),
            None => (format!("{} needs {missing}", self.quoted()), self.example()),
        }
    }

    /// The option without which no argument would be missing among the typed words.
    fn option_that_needs(&self, words: &[OsString]) -> Option<String> {
        let name = |word: &OsString| {
            let word = word.to_str().filter(|word| word.starts_with("--"))?;
            Some(word.split('=').next().unwrap_or(word).to_owned())
        };
        let is_enough_without = |place: usize, name: &str| {
            let mut options = self.command.get_arguments();
            let option = options.find(|option| option.get_long() == name.get(2..));
            let takes_value = option.is_some_and(|option| option.get_action().takes_values());
            let apart = takes_value && words[place] == *name;
            let mut fewer = words.to_vec();
            fewer.drain(place..(place + 1 + usize::from(apart)).min(words.len()));
            let met = self.root.clone().try_get_matches_from(fewer);
            met.map_or_else(
                |error| error.kind() != ErrorKind::MissingRequiredArgument,
                |_| true,
            )
        };
        let mut options = words
            .iter()
            .enumerate()
            .filter_map(|(place, word)| Some((place, name(word)?)));
        options
            .find(|(place, name)| is_enough_without(*place, name))
            .map(|(_, name)| name)
    }

    fn help(&self) -> String {
        format!("`{} --help` shows what it takes, with examples", self.typed)
    }

    /// The first example of the command's help.
    fn example(&self) -> String {
        let after = self.command.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        let mut lines = after.lines().map(str::trim);
        let Some(line) = lines.find(|line| line.starts_with(&self.typed)) else {
            return self.help();
        };
        let example = line.split("   ").next().unwrap_or(line);
        format!("for example: `{example}`; `{} --help` has more", self.typed)
    }

    /// The failure for a word that the command has no place for.
    fn unknown(&self, word: &str) -> (String, String) {
        let Some(option) = word.strip_prefix("--").filter(|name| !name.is_empty()) else {
            let usage = self.command.clone().render_usage().to_string();
            let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
            let lacks = if word.starts_with('-') {
                "option"
            } else {
                "place for"
            };
            let wrong = format!("{} has no {lacks} `{word}`", self.quoted());
            return (wrong, format!("it is typed as `{usage}`"));
        };
        let known: Vec<String> = longs(self.command).collect();
        let wrong = format!("{} has no option `--{option}`", self.quoted());
        let chooses_bench = known.iter().any(|name| name == "--on");
        if chooses_bench && BENCHES.contains(&option) {
            let help = "`--on model`, `--on kernel` or `--on host` says where it runs";
            return (wrong, help.to_owned());
        }
        if let Some(whole) = known.iter().find(|name| name.starts_with(word)) {
            return (format!("{wrong}; did you mean `{whole}`?"), self.help());
        }
        let elsewhere: Vec<String> = self
            .root
            .get_subcommands()
            .filter(|command| longs(command).any(|name| name == word))
            .map(|command| format!("`raidlab {}`", command.get_name()))
            .collect();
        if !elsewhere.is_empty() {
            let help = format!("`--{option}` is an option of {}", elsewhere.join(", "));
            return (wrong, help);
        }
        let fio = option.replace('-', "_");
        let runs_jobs = self.command.get_name() == "run";
        if runs_jobs
            && raidlab_lab::fio_options()
                .iter()
                .any(|known| known.names.contains(&fio.as_str()))
        {
            let help = format!(
                "`{fio}` is an option of fio's, which a job has: write it in a job file, or \
                 in a suite (`raidlab suites quick --toml` prints one)"
            );
            return (wrong, help);
        }
        (format!("{wrong}{}", nearby(word, &known)), self.help())
    }

    /// The failure for a word that stands in the place of a command's name.
    fn no_command(&self, word: &str) -> (String, String) {
        let known: Vec<String> = self
            .command
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        let wrong = format!("{} has no command `{word}`", self.quoted());
        let is_suite = catalogue::Kind::Suite
            .entries()
            .any(|suite| suite.name == word);
        if is_suite {
            return (wrong, format!("it is a suite: `raidlab run {word}`"));
        }
        let help = format!("`{} --help` lists the commands", self.typed);
        (format!("{wrong}{}", nearby(word, &known)), help)
    }
}

/// The options of a command as they are typed: `--seed`.
fn longs(command: &Command) -> impl Iterator<Item = String> {
    let names = command.get_arguments().filter_map(clap::Arg::get_long);
    names.map(|name| format!("--{name}"))
}
