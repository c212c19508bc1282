//! dd's commands in the text of a terminal, and their assignment to outputs.

use crate::Operation;

/// The operands of a command, their names and values.
pub(super) type Operands = Vec<(String, String)>;

/// The commands of the last line that had any; their outputs follow in this order.
#[derive(Debug, Default)]
pub(super) struct Commands {
    told: Vec<Operands>,
    next: usize,
    /// Whether a shell loop repeats the commands.
    loops: bool,
    /// The number of reports beyond one per command: progress reports of a dd that
    /// is still running.
    pub(super) further: usize,
}

impl Commands {
    /// The commands of a line; `None` where it has none.
    pub(super) fn of(line: &str) -> Option<Self> {
        let told: Vec<Operands> = line.split(SEPARATORS).filter_map(operands).collect();
        // A loop after the command may only ask it for progress:
        // `dd ... & while kill -USR1 $!; do sleep 1; done`.
        let words = line.split_whitespace();
        let mut before = words.take_while(|word| !word.contains("f="));
        let loops = before.any(|word| word == "do");
        (!told.is_empty()).then_some(Self {
            told,
            next: 0,
            loops,
            further: 0,
        })
    }

    /// Counts the reports below, up to the next command. Each has two lines of records.
    pub(super) fn count_further<'text>(
        &mut self,
        below: impl Iterator<Item = &'text str>,
        is_record: impl Fn(&str) -> bool,
    ) {
        let own = below.take_while(|line| Self::of(line).is_none());
        let (mut records, mut failed) = (0, 0);
        for line in own {
            records += usize::from(is_record(line));
            failed += usize::from(has_not_begun(line));
        }
        if !self.loops {
            self.further = (records / 2 + failed).saturating_sub(self.told.len());
        }
    }

    /// Takes the operands of the next output; empty where its command is not known.
    pub(super) fn take(&mut self) -> Operands {
        let own = self.told.get(self.next).cloned().unwrap_or_default();
        self.next += 1;
        if self.loops && self.next >= self.told.len() {
            self.next = 0;
        }
        own
    }

    /// Skips a command that has not begun, as this line reports: it prints no records. Returns
    /// whether the line reports that.
    pub(super) fn has_failed(&mut self, line: &str) -> bool {
        let failed = has_not_begun(line);
        if failed {
            self.take();
        }
        failed
    }
}

fn has_not_begun(line: &str) -> bool {
    line.starts_with("dd: ") && NOT_BEGUN.iter().any(|end| line.ends_with(end))
}

/// The characters that separate commands of the shell.
const SEPARATORS: [char; 6] = [';', '|', '&', '(', ')', '`'];

/// The ends of the one line that a dd prints which cannot begin.
pub(super) const NOT_BEGUN: [&str; 4] = [
    "No such file or directory",
    "Permission denied",
    "Device or resource busy",
    "Device busy",
];

/// The operands of a command, if it is a dd.
fn operands(command: &str) -> Option<Operands> {
    let is_quote = |letter: char| matches!(letter, '"' | '\'');
    let words = command.split_whitespace();
    let mut words = words.map(|word| word.trim_start_matches(is_quote));
    words.find(|word| *word == "dd" || word.ends_with("/dd"))?;
    let operands: Operands = words
        .map_while(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.trim_matches(is_quote).to_owned()))
        .collect();
    let names_files = operands
        .iter()
        .any(|(name, _)| name == "if" || name == "of");
    names_files.then_some(operands)
}

/// The direction of a copy. To nowhere it is a read, and so it is where a place is copied to
/// standard output (`>/dev/null`, `| md5sum`). Any other is taken for a write.
pub(super) fn direction(operands: &[(String, String)]) -> Operation {
    // Of an operand that is given twice dd takes the last.
    let last = |name: &str| {
        let mut named = operands.iter().filter(|(own, _)| own == name);
        named.next_back().map(|(_, value)| value.as_str())
    };
    let reads = match (last("if"), last("of")) {
        (_, Some(output)) => ["/dev/null", "/dev/zero"].contains(&output),
        (Some(input), None) => !["/dev/zero", "/dev/urandom", "/dev/random"].contains(&input),
        (None, None) => false,
    };
    if reads {
        Operation::Read
    } else {
        Operation::Write
    }
}

#[cfg(test)]
mod tests {
    use crate::Operation::{self, Read, Write};
    use crate::dd::parse;

    fn of(command: &str) -> Operation {
        let text = format!("# {command}\n16+0 records in\n16+0 records out\n");
        parse(&text).expect("dd's own output").parts[0].operation
    }

    #[test]
    fn what_goes_nowhere_or_into_a_pipe_was_read() {
        for (command, operation) in [
            ("dd if=/dev/md0 of=/dev/null bs=1M", Read),
            ("dd if=/dev/md0 of=/dev/zero bs=1M", Read),
            ("dd if=/dev/md0 bs=1M count=16 >/dev/null", Read),
            ("dd if=/dev/md0 bs=1M count=16 | md5sum", Read),
            ("dd if=/dev/zero of=/dev/null of=/mnt/file bs=1M", Write),
            ("dd if=/dev/zero bs=1M count=16 > /mnt/file", Write),
            ("dd if=/mnt/a of=/mnt/b bs=1M", Write),
        ] {
            assert_eq!(of(command), operation, "{command}");
        }
    }

    /// A terminal shows the key that ended dd right before what dd then prints.
    #[test]
    fn a_copy_that_a_key_ended_is_read() {
        let text = "$ dd if=/dev/zero of=/mnt/file bs=1M\n^C5120+0 records in\n\
            5120+0 records out\n5368709120 bytes (5.4 GB, 5.0 GiB) copied, 50 s, 107 MB/s\n";
        let result = parse(text).expect("dd's own output");
        assert_eq!(result.parts.len(), 1);
        assert_eq!(result.parts[0].total_ios, Some(5120));
        assert_eq!(result.parts[0].total_bytes, Some(5_368_709_120));
    }
}
