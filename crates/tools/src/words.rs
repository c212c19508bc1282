//! The words that a file may give a tool.
//!
//! Tools run as root, and a file may only shape their load. Every option that does is in its tool's
//! list; one that names a place takes the job's own (`{target}`, `{file}`, and below them), and an
//! option in no list is refused by name: one that writes reports and locks elsewhere, unmounts, or
//! starts other programs, and any unknown one.

/// The kind of word that follows an option on a tool's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No word: the option is a switch.
    Nothing,
    /// A number, a size, a word: no path.
    Value,
    /// The number of repetitions of the whole run.
    Repetitions,
    /// A folder or file of the job.
    Place,
    /// Several such places, up to the next option.
    Places,
}

/// The error of a word, in words that follow it, and what would be right.
pub type Wrong = (String, &'static str);

const PLACE: &str = "write {target}, {file} or a name below {target}";
pub(crate) const UNKNOWN: &str = "leave it out: a file gives options that shape the load";

/// Checks words one by one, each independent of the others.
///
/// # Errors
/// The index of the first that is wrong.
pub(crate) fn each(
    words: &[String],
    check: impl Fn(&str) -> Result<(), Wrong>,
) -> Result<(), (usize, Wrong)> {
    let mut all = words.iter().enumerate();
    all.try_for_each(|(index, word)| check(word).map_err(|wrong| (index, wrong)))
}

/// An option as `getopt` finds it.
struct Given<'words> {
    option: &'words str,
    takes: Takes,
    /// The option's values, each with the index of its word.
    values: Vec<(usize, &'words str)>,
}

/// Checks words of options.
///
/// # Errors
/// The index of the first that is wrong.
pub(crate) fn options(
    words: &[String],
    takes: fn(&str) -> Option<Takes>,
) -> Result<(), (usize, Wrong)> {
    for given in given(words, takes)? {
        for (index, value) in given.values {
            check_value(given.takes, value).map_err(|wrong| (index, wrong))?;
        }
    }
    Ok(())
}

/// The values of all options of this name; `None` where there is none.
pub(crate) fn values<'words>(
    words: &'words [String],
    takes: fn(&str) -> Option<Takes>,
    option: &str,
) -> Option<Vec<&'words str>> {
    let all = given(words, takes).ok()?;
    let own: Vec<_> = all.iter().filter(|one| one.option == option).collect();
    let values = own.iter().flat_map(|one| &one.values);
    let values = values.map(|&(_, value)| value).collect();
    (!own.is_empty()).then_some(values)
}

/// Splits words as `getopt` does: letters may be joined, and so may the value of the last; iozone's
/// `-+x` is one option.
fn given(
    words: &[String],
    takes: fn(&str) -> Option<Takes>,
) -> Result<Vec<Given<'_>>, (usize, Wrong)> {
    let mut all = Vec::new();
    let mut index = 0;
    while index < words.len() {
        let word = words[index].as_str();
        let Some(mut letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return Err((index, (format!("`{word}` is no option"), UNKNOWN)));
        };
        index += 1;
        while let Some(letter) = letters.chars().next() {
            let length = if letter == '+' {
                1 + letters[1..].chars().next().map_or(0, char::len_utf8)
            } else {
                letter.len_utf8()
            };
            let (option, joined) = letters.split_at(length);
            let Some(takes) = takes(option) else {
                let what = format!("`-{option}` may do more than shape the load");
                return Err((index - 1, (what, UNKNOWN)));
            };
            letters = if takes == Takes::Nothing { joined } else { "" };
            let mut values = Vec::new();
            if takes != Takes::Nothing {
                if !joined.is_empty() {
                    values.push((index - 1, joined));
                }
                while let Some(value) = words.get(index) {
                    let is_more = takes == Takes::Places && !value.starts_with('-');
                    if !(values.is_empty() || is_more) {
                        break;
                    }
                    values.push((index, value));
                    index += 1;
                }
                if values.is_empty() {
                    let what = format!("`-{option}` lacks its value");
                    return Err((index - 1, (what, "write it as the next word")));
                }
            }
            all.push(Given {
                option,
                takes,
                values,
            });
        }
    }
    Ok(all)
}

pub(crate) fn check_value(takes: Takes, value: &str) -> Result<(), Wrong> {
    match takes {
        Takes::Place | Takes::Places if is_own(value) => Ok(()),
        Takes::Place | Takes::Places => {
            Err((format!("`{value}` is not the job's own place"), PLACE))
        }
        Takes::Value | Takes::Nothing if !is_plain(value) => Err((
            format!("`{value}` is no number, size or word"),
            "write one, without blanks and slashes",
        )),
        Takes::Repetitions if !value.parse().is_ok_and(|times: u64| times <= 1000) => Err((
            format!("`{value}` is no number of repetitions that anybody waits for"),
            "write 1000 or less",
        )),
        _ if has_huge_number(value) => Err((
            format!("`{value}` has a number of more than 64 bits"),
            "write a smaller one",
        )),
        _ => Ok(()),
    }
}

/// Whether a place is the job's target or file, or below the target.
fn is_own(place: &str) -> bool {
    let below = place.strip_prefix("{target}");
    place == "{file}" || below.is_some_and(is_below)
}

/// Whether the rest of a path is empty, or names with slashes before them, none of which leads up.
fn is_below(rest: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let mut names = rest.split('/');
    names.next() == Some("")
        && names.all(|name| !name.starts_with(['.', '-']) && name.chars().all(plain))
}

/// Whether a value may be a number, a size, a word, or an expression in braces for one. The
/// arithmetic of `{memory*2/1024}` has a slash, a path has none in braces.
fn is_plain(value: &str) -> bool {
    let mut braces = false;
    !value.starts_with('-')
        && value.chars().all(|letter| {
            match letter {
                '{' => braces = true,
                '}' => braces = false,
                _ => {}
            }
            letter.is_ascii_alphanumeric()
                || ":.,_+-{}*".contains(letter)
                || letter == '/' && braces
        })
        && !["{target", "{file"]
            .iter()
            .any(|place| value.contains(place))
}

/// Whether a run of digits in a value is more than a tool can count.
fn has_huge_number(value: &str) -> bool {
    let numbers = value.split(|letter: char| !letter.is_ascii_digit());
    let mut numbers = numbers.filter(|digits| !digits.is_empty());
    numbers.any(|digits| digits.parse::<u64>().is_err())
}

#[cfg(test)]
mod tests {
    use crate::Tool;

    fn wrong(tool: &str, line: &str) -> Option<(usize, String)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let tool: Tool = tool.parse().expect("a tool");
        tool.check(&words)
            .err()
            .map(|(index, (what, _))| (index, what))
    }

    #[test]
    fn what_shapes_the_load_is_taken() {
        for (tool, line) in [
            (
                "bonnie++",
                "-d {target} -s {memory*4/1048576} -u root -f -n 0",
            ),
            (
                "bonnie++",
                "-d{target}/a/b -qfb -n 100:16384:0:20 -r {memory/1048576}",
            ),
            ("iozone", "-Raz -f {file} -g 1g -+n"),
            (
                "iozone",
                "-t 2 -F {target}/a {target}/b -s4m -r 4k -i0 -i 1",
            ),
            (
                "dd",
                "if=/dev/zero of={file} bs=1048576 count={memory/1048576} conv=fsync oflag=direct",
            ),
            ("dd", "if={target} of=/dev/null bs=1M skip=4"),
        ] {
            assert_eq!(wrong(tool, line), None, "{tool} {line}");
        }
    }

    #[test]
    fn what_reaches_further_is_refused_at_its_word() {
        for (tool, line, at, says) in [
            ("bonnie++", "-d /etc", 1, "`/etc` is not"),
            ("bonnie++", "-d/etc", 0, "`/etc` is not"),
            ("bonnie++", "-qd/etc", 0, "`/etc` is not"),
            (
                "bonnie++",
                "-d {target}/../etc",
                1,
                "`{target}/../etc` is not",
            ),
            ("bonnie++", "-d {target}.old", 1, "`{target}.old` is not"),
            ("bonnie++", "-Z /etc/shadow", 0, "`-Z` may do more"),
            ("bonnie++", "-p 2", 0, "`-p` may do more"),
            ("bonnie++", "-y s", 0, "`-y` may do more"),
            ("bonnie++", "-d", 0, "`-d` lacks its value"),
            ("bonnie++", "-m /etc", 1, "`/etc` is no number"),
            ("bonnie++", "-n {target}", 1, "`{target}` is no number"),
            ("bonnie++", "somewhere", 0, "`somewhere` is no option"),
            ("iozone", "-f /dev/sda", 1, "`/dev/sda` is not"),
            ("iozone", "-af/dev/sda", 0, "`/dev/sda` is not"),
            (
                "iozone",
                "-F {target}/a /dev/sda -i 0",
                2,
                "`/dev/sda` is not",
            ),
            ("iozone", "-b /etc/cron.d/x", 0, "`-b` may do more"),
            ("iozone", "-Rb x", 0, "`-b` may do more"),
            ("iozone", "-U /", 0, "`-U` may do more"),
            ("iozone", "-+m clients", 0, "`-+m` may do more"),
            ("iozone", "-+h host", 0, "`-+h` may do more"),
            ("iozone", "-Q", 0, "`-Q` may do more"),
            ("iozone", "-X x", 0, "`-X` may do more"),
            ("iozone", "--help", 0, "`--` may do more"),
            ("dd", "of=/dev/sda", 0, "`of=/dev/sda` would overwrite"),
            ("dd", "of={file}/x", 0, "`of={file}/x` would overwrite"),
            ("dd", "if=/dev/sda", 0, "`if=/dev/sda` would read"),
            ("dd", "bs=1 --help", 1, "`--help` may do more"),
            (
                "bonnie++",
                "-x 1000000000",
                1,
                "`1000000000` is no number of",
            ),
            (
                "iozone",
                "-s 99999999999999999999g",
                1,
                "`99999999999999999999g` has a number",
            ),
            (
                "dd",
                "of={file} count=18446744073709551616",
                1,
                "`18446744073709551616` has a number",
            ),
            ("dd", "iflag=/x", 0, "`/x` is no number"),
            ("dd", "", 0, "`` may do more"),
        ] {
            let (index, what) = wrong(tool, line).expect(line);
            assert!(
                index == at && what.starts_with(says),
                "{tool} {line}: {index} {what}"
            );
        }
    }
}
