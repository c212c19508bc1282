//! The report that dd prints at its end, of any system and in some languages.
//!
//! Two lines count records, `A+B records in` and `A+B records out`: A whole, B partial. The rest is
//! in words that change with system and language; the numbers do not. So a line with bytes and time
//! is taken by its shape:
//!
//! * GNU, uutils, busybox: the first number is the bytes (in Ukrainian, and in Russian up to
//!   coreutils 8.24, a word stands before it), parentheses hold roundings, then
//!   a number with a unit of seconds, then the rate. In Chinese words stand before the
//!   records too, and commas are wide;
//! * FreeBSD, macOS, NetBSD: `N bytes transferred in S secs (R bytes/sec)`.
//!
//! Decimal commas and no-break spaces are understood. The rate printed is never taken: it is
//! rounded, its unit may be a power of 1000 or of 1024, and it may be `Infinity`. It is kept as a
//! fact when it differs from bytes over time.
//!
//! Debian's build of busybox prints records only, and so does `status=noxfer`: then bytes and time
//! are unknown. Of `2>&1 | tail -1` only the line of bytes and time is left: then records are
//! unknown, and so is the block. Where the text is of a terminal and the command stands above its
//! output (`# dd if=/dev/zero of=f bs=1M`), its operands are the options of that run, and say
//! whether it read or wrote. Of several commands in a line each has an output of its own, and those
//! of a loop (`do`) have them again and again. A dd that is asked by a signal, or reads on past
//! errors (`conv=noerror`), says all this while it runs, too: its last report counts.
//! `/usr/bin/time -h` of FreeBSD, GNU's and POSIX's formats of time around a dd are kept as facts.

use super::commands::{Commands, NOT_BEGUN, Operands, direction};
use super::counted_blocks;
use super::normal::normal;
use crate::error::ParseError;
use crate::number::{differ, finite, nanoseconds, whole};
use crate::result::{Part, Reported, ReportedOption, ToolResult};

/// Whether a text has lines of dd in it.
pub(crate) fn is_in(text: &str) -> bool {
    let is_whole = |line| transfer(line).is_some_and(|transfer| transfer.is_whole());
    let text = normal(text);
    text.lines()
        .any(|line| records(line).is_some() || is_whole(line))
}

/// Reads the reports of one or more runs of dd. The text does not tell reads from writes: the parts
/// are writes, which a caller that knows better changes.
///
/// # Errors
/// Where there are no records at all, or input without output.
pub fn parse(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(crate::dd::TEXT);
    let text = normal(text);
    let has_records = text.lines().any(|line| records(line).is_some());
    let mut run: Option<Run> = None;
    let mut commands = Commands::default();
    let mut failed: Option<&str> = None;
    let mut is_asked = false;
    let mut lines = text.lines().map(str::trim).enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(counts) = records(line) {
            match &mut run {
                Some(open) if open.output.is_none() => open.output = Some(counts),
                _ => {
                    let error = failed.take();
                    let same = |open: &mut Run| open.goes_on(counts, &commands, error.is_some());
                    let mut begun = if let Some(interim) = run.take_if(same) {
                        commands.further = commands.further.saturating_sub(1);
                        let facts = interim.facts;
                        let last = Run::new(index, Some(counts), interim.operands);
                        Run { facts, ..last }
                    } else {
                        finish(run.take(), &mut result)?;
                        Run::new(index, Some(counts), commands.take())
                    };
                    begun.is_asked = std::mem::take(&mut is_asked);
                    let error = error.map(|error| Reported::new(None, "error", error, ""));
                    begun.facts.extend(error);
                    run = Some(begun);
                }
            }
        } else if is_asking(line) {
            is_asked = true;
        } else if let Some(told) = Commands::of(line) {
            finish(run.take(), &mut result)?;
            commands = told;
            let below = lines.clone().map(|(_, line)| line);
            commands.count_further(below, |line| records(line).is_some());
            failed = None;
            is_asked = false;
        } else if commands.has_failed(line) {
            finish(run.take(), &mut result)?;
            other_line(line, None, &mut result);
        } else if let Some(error) = error(line) {
            failed = Some(error);
            result.messages.push(line.to_owned());
        } else if let Some(open) = &mut run {
            open.further_line(line, &mut result);
        } else if let Some(transfer) = transfer(line) {
            // Before any records, the line is progress of a run that is still going.
            if !has_records && transfer.is_whole() {
                let mut alone = Run::new(index, None, commands.take());
                alone.transfer = Some(transfer);
                finish(Some(alone), &mut result)?;
            }
        } else {
            other_line(line, None, &mut result);
        }
    }
    finish(run, &mut result)?;
    let found = !result.parts.is_empty();
    result.if_found(found, "lines such as `16+0 records in`")
}

/// One run of dd while its lines are read.
#[derive(Debug)]
struct Run {
    /// The index of the line with its input records, from 0.
    line: usize,
    /// The run's input records; `None` for a line of bytes and time alone.
    input: Option<(u64, u64)>,
    output: Option<(u64, u64)>,
    truncated: Option<u64>,
    transfer: Option<Transfer>,
    facts: Vec<Reported>,
    /// The operands of the run's command, where that is known.
    operands: Operands,
    /// Whether a key of the terminal requested this report.
    is_asked: bool,
    /// Whether other text follows the report.
    is_over: bool,
}

/// The line of bytes and time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transfer {
    pub(super) bytes: u64,
    pub(super) seconds: Option<f64>,
    /// The rate as printed, its number and its unit.
    pub(super) rate: Option<(f64, String)>,
}

impl Transfer {
    /// Whether the line has both a time and a rate: no other line does.
    fn is_whole(&self) -> bool {
        let in_bytes = |(_, unit): &(f64, String)| unit.ends_with("B/s") || unit == "bytes/sec";
        self.seconds.is_some() && self.rate.as_ref().is_some_and(in_bytes)
    }
}

impl Run {
    const fn new(line: usize, input: Option<(u64, u64)>, operands: Operands) -> Self {
        Self {
            line,
            input,
            output: None,
            truncated: None,
            transfer: None,
            facts: Vec::new(),
            operands,
            is_asked: false,
            is_over: false,
        }
    }

    /// Whether the next report, with these input records, is of the same dd, so that this one was
    /// made while it ran. Unless a key requested it, there must be more reports than commands, and
    /// records must grow, but not beyond `count`. Where an operand changes (`if=$file`), a loop may
    /// have made the next report.
    fn goes_on(&self, next: (u64, u64), commands: &Commands, after_error: bool) -> bool {
        let total = |(whole, partial): (u64, u64)| whole.saturating_add(partial);
        let (Some(now), next) = (self.input.map(total), total(next)) else {
            return false;
        };
        if self.is_asked {
            return next >= now;
        }
        let operand = |name: &str| {
            let mut named = self.operands.iter().filter(|(own, _)| own == name);
            named.next_back().map(|(_, value)| value.as_str())
        };
        let is_within = |count| now < count && next <= count;
        let changes = self.operands.iter().any(|(_, value)| value.contains('$'));
        let grows = next > now || (after_error && next == now);
        commands.further > 0
            && !(self.is_over || changes)
            && grows
            && counted_blocks(operand).is_none_or(is_within)
    }

    fn further_line(&mut self, line: &str, result: &mut ToolResult) {
        if let Some(transfer) = transfer(line) {
            // A second such line is the progress of the next run.
            self.transfer.get_or_insert(transfer);
        } else if let Some(count) = truncated(line) {
            self.truncated = Some(count);
        } else {
            // Between two reports of one dd there may only be what requested the next one.
            self.is_over |= !(line.is_empty() || line.contains("kill "));
            other_line(line, Some(&mut self.facts), result);
        }
    }
}

/// Whether a line is printed above dd's report by a terminal on which Ctrl-T
/// requested it (`SIGINFO`).
fn is_asking(line: &str) -> bool {
    line.contains("load: ") && line.contains(" cmd: dd ")
}

fn finish(run: Option<Run>, result: &mut ToolResult) -> Result<(), ParseError> {
    let Some(run) = run else {
        return Ok(());
    };
    if let (Some((whole, partial)), None) = (run.input, run.output) {
        return Err(ParseError::line(
            run.line,
            "records in, then a line of records out",
            &format!("{whole}+{partial}"),
        ));
    }
    let job = u32::try_from(result.parts.len()).unwrap_or(u32::MAX);
    let mut part = Part::new(job, "", direction(&run.operands));
    for (name, value) in run.operands {
        result
            .options
            .push(ReportedOption::new(Some(job), &name, &value));
    }
    let records = [
        ("records-in-whole", "records-in-partial", run.input),
        ("records-out-whole", "records-out-partial", run.output),
    ];
    for (whole_name, partial_name, counts) in records {
        if let Some((whole, partial)) = counts {
            part.note(whole_name, whole, "");
            part.note(partial_name, partial, "");
        }
    }
    if let Some(count) = run.truncated {
        part.note("records-truncated", count, "");
    }
    part.total_ios = run
        .output
        .and_then(|(whole, partial)| whole.checked_add(partial));
    match run.transfer {
        Some(transfer) => take_transfer(&transfer, run.output, &mut part),
        None => part.note("no-rate", "dd printed neither bytes nor time", ""),
    }
    for mut fact in run.facts {
        fact.job = Some(job);
        part.facts.push(fact);
    }
    result.parts.push(part);
    Ok(())
}

/// The error in a line such as `dd: error writing 'x': No space left on device`: dd of every system
/// prints it before its records. A dd that could not begin has no records.
fn error(line: &str) -> Option<&str> {
    const HARMLESS: [&str; 5] = [
        "warning:",
        "failed to open",
        "opening ",
        "unrecognized",
        "invalid ",
    ];
    let said = line.strip_prefix("dd: ")?;
    let none = HARMLESS.iter().any(|begin| said.starts_with(begin))
        || NOT_BEGUN.iter().any(|end| said.ends_with(end));
    (!none).then_some(said)
}

fn take_transfer(transfer: &Transfer, output: Option<(u64, u64)>, part: &mut Part) {
    part.total_bytes = Some(transfer.bytes);
    part.runtime_ns = transfer
        .seconds
        .and_then(nanoseconds)
        .filter(|&time| time > 0);
    if let Some((blocks, 0)) = output
        && blocks > 0
        && transfer.bytes.is_multiple_of(blocks)
    {
        part.block_size_bytes = Some(transfer.bytes / blocks);
    }
    if transfer.bytes == 0 {
        part.note("no-rate", "nothing was copied", "");
        return;
    }
    part.compute_rates();
    if !part.has_rate() {
        part.note("no-rate", "dd's clock counted no time", "");
    }
    let Some((printed, unit)) = &transfer.rate else {
        return;
    };
    let printed_rate = rate_in_bytes(*printed, unit);
    // GNU prints whole numbers from 100 on, and one decimal below: `1.1 GB/s` may be 1.14.
    let rounding = if *printed < 100.0 { 0.05 } else { 0.5 };
    let tolerance = f64::max(0.02, rounding / printed);
    let is_off = match (part.bytes_per_second, printed_rate) {
        (Some(rate), Some(printed)) => differ(printed, rate, tolerance),
        _ => true,
    };
    if is_off {
        part.note("printed-rate", format!("{printed} {unit}"), "");
    }
}

/// Bytes per second of a printed rate, whose prefixes mean powers of 1000 in GNU's dd and of 1024
/// in busybox's; `None` where the unit is unknown.
fn rate_in_bytes(number: f64, unit: &str) -> Option<f64> {
    if matches!(unit, "bytes/sec" | "B/s") {
        return Some(number);
    }
    let prefix = unit.strip_suffix("B/s")?;
    raidlab_units::bytes_in(prefix, 1000.0).map(|factor| number * factor)
}

/// Reads `16+0` at the start of a line, with words after it; in Chinese there is also a
/// word before it.
fn records(line: &str) -> Option<(u64, u64)> {
    let is_word_of_others = |letter: char| letter.is_alphabetic() && !letter.is_ascii();
    // A terminal shows Ctrl-C where dd then prints its report.
    let line = line.trim().trim_start_matches("^C");
    let (whole, rest) = line.split_once('+')?;
    let whole = whole.trim_start_matches(is_word_of_others).trim_start();
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let (partial, words) = rest.split_at(end);
    let is_word = words.starts_with(char::is_whitespace)
        && words
            .trim_start()
            .starts_with(|letter: char| letter.is_alphabetic());
    if !is_word || whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((whole.parse().ok()?, partial.parse().ok()?))
}

/// Reads `1 truncated record`, `3 truncated blocks`.
fn truncated(line: &str) -> Option<u64> {
    let (count, words) = line.split_once(' ')?;
    let is_truncated = words.starts_with("truncated ") || words.starts_with("odd length swab ");
    is_truncated.then(|| count.parse().ok()).flatten()
}

/// Reads a line of bytes and time, in any language.
pub(super) fn transfer(line: &str) -> Option<Transfer> {
    let line = line.trim();
    if let Some((head, rest)) = line.split_once(" transferred in ") {
        let bytes = head
            .strip_suffix(" bytes")
            .or_else(|| head.strip_suffix(" byte"))?;
        let (seconds, rest) = rest.split_once(" sec")?;
        let rate = rest
            .split_once('(')
            .and_then(|(_, rate)| rate.split_once(' '))
            .and_then(|(rate, unit)| Some((finite(rate)?, unit.trim_end_matches(')').to_owned())));
        return Some(Transfer {
            bytes: bytes.parse().ok()?,
            seconds: finite(seconds),
            rate,
        });
    }
    let plain = without_parentheses(line);
    let tokens: Vec<&str> = plain
        .split([' ', ','])
        .filter(|token| !token.is_empty())
        .collect();
    // The bytes come first; some languages have one word before them.
    let mut firsts = tokens.iter().take(2).map(|token| leading_integer(token));
    let first = firsts.position(|number| number.is_some())?;
    let bytes = leading_integer(tokens[first])?;
    let unit = tokens.get(first + 1)?.to_lowercase();
    let mut rest = tokens.iter().skip(first + 1);
    let time = rest
        .position(|token| finite(token).is_some())
        .map(|place| first + 1 + place);
    let seconds = time
        .filter(|&place| tokens.get(place + 1).is_some_and(|unit| is_second(unit)))
        .and_then(|place| finite(tokens[place]));
    let rate = time.and_then(|place| {
        let number = tokens.get(place + 2)?;
        let joined = tokens.get(place + 3).copied().unwrap_or_default();
        let split = number
            .find(|letter: char| letter.is_alphabetic())
            .unwrap_or(number.len());
        let (number, unit) = number.split_at(split);
        let unit = if unit.is_empty() { joined } else { unit };
        Some((finite(number)?, latin_seconds(unit)))
    });
    let transfer = Transfer {
        bytes,
        seconds,
        rate,
    };
    // Without a time and a rate, the word for bytes shows that the line is such a line.
    let has_word = BYTE_WORDS.iter().any(|word| unit.starts_with(word));
    (transfer.is_whole() || has_word).then_some(transfer)
}

/// The word for bytes in English, German, French and Russian.
const BYTE_WORDS: [&str; 3] = ["byte", "octet", "байт"];

/// The number at the beginning of a token, also where a Chinese word follows without a blank.
fn leading_integer(token: &str) -> Option<u64> {
    let digits = token.trim_end_matches(|letter: char| !letter.is_ascii());
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| digits.parse().ok()).flatten()
}

/// Whether a unit is a second: `s`, `seconds`, the two letters that look like c (the Latin one that
/// old Russian translations print and the Cyrillic one), and the Chinese word.
fn is_second(unit: &str) -> bool {
    matches!(unit, "s" | "c" | "с" | "秒" | "seconds" | "secs" | "sec")
}

/// A rate's unit with the second as `s`: `MB/c` is `MB/s`.
fn latin_seconds(unit: &str) -> String {
    match unit.split_once('/') {
        Some((amount, time)) if is_second(time) => format!("{amount}/s"),
        _ => unit.to_owned(),
    }
}

fn without_parentheses(line: &str) -> String {
    let mut depth = 0_u32;
    line.chars()
        .filter(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect()
}

/// Reads the times printed by `time`, and keeps any other line as a message.
fn other_line(line: &str, facts: Option<&mut Vec<Reported>>, result: &mut ToolResult) {
    if line.is_empty() {
        return;
    }
    let times = times(line);
    if times.is_empty() {
        result.messages.push(line.to_owned());
        return;
    }
    let facts = facts.unwrap_or(&mut result.facts);
    for (name, seconds) in times {
        facts.push(Reported::new(None, name, seconds, "s"));
    }
}

/// Reads the names and seconds of times: `21.05s real 0.45s user 11.12s sys` (BSD `time -h`),
/// `0.1 real ...` (BSD), `real 0m1.5s` (shells).
pub(super) fn times(line: &str) -> Vec<(&'static str, f64)> {
    let tokens: Vec<&str> = line.split_whitespace().collect();
    let name = |token: &str| match token {
        "real" => Some("time-real"),
        "user" => Some("time-user"),
        "sys" => Some("time-sys"),
        _ => None,
    };
    let in_pairs = |name_first: bool| -> Option<Vec<(&'static str, f64)>> {
        tokens
            .chunks(2)
            .map(|pair| match (pair, name_first) {
                ([word, time], true) | ([time, word], false) => Some((name(word)?, seconds(time)?)),
                _ => None,
            })
            .collect()
    };
    in_pairs(false)
        .or_else(|| in_pairs(true))
        .unwrap_or_default()
}

/// Reads a time in seconds: `53m50.33s`, `1h2m3s`, `21.05s`, `0.45`.
fn seconds(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text;
    for (unit, factor) in [('d', 86400.0), ('h', 3600.0), ('m', 60.0)] {
        if let Some((number, after)) = rest.split_once(unit) {
            total += f64::from(u32::try_from(whole(finite(number)?)?).ok()?) * factor;
            rest = after;
        }
    }
    let rest = rest.strip_suffix('s').unwrap_or(rest);
    Some(
        total
            + if rest.is_empty() && total > 0.0 {
                0.0
            } else {
                finite(rest)?
            },
    )
}
