//! Normalization of a terminal's text, in which dd's lines are then searched.

/// Normalizes a text: points for decimal commas, spaces for no-break spaces, signs of the
/// usual width for wide ones, and for a line that overwrites itself its last state. A command
/// that the shell continues after a `\` is joined into its first line, with empty lines in
/// place of the others.
pub(super) fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut ends = String::new();
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        let mut line = line.rsplit('\r').next().unwrap_or(line);
        if normal.ends_with('\\') {
            normal.pop();
            let own = line.trim_start();
            line = own.strip_prefix("> ").unwrap_or(own);
        }
        let letters: Vec<char> = line.chars().collect();
        for (index, &letter) in letters.iter().enumerate() {
            let is_digit = |at: Option<usize>| {
                at.and_then(|at| letters.get(at))
                    .is_some_and(char::is_ascii_digit)
            };
            normal.push(match letter {
                '\u{a0}' | '\u{202f}' => ' ',
                '，' => ',',
                '（' => '(',
                '）' => ')',
                ',' if is_digit(index.checked_sub(1)) && is_digit(Some(index + 1)) => '.',
                letter => letter,
            });
        }
        ends.push('\n');
        if !normal.ends_with('\\') {
            normal.push_str(&std::mem::take(&mut ends));
        }
    }
    normal + &ends
}

#[cfg(test)]
mod tests {
    use super::normal;
    use crate::dd::parse;

    #[test]
    fn a_command_goes_on_behind_a_backslash() {
        let text = "$ dd if=/dev/zero of=x \\\r\n>    bs=1M count=8000 \\\r\n  conv=fdatasync\r\n\
            8000+0 records in\n8000+0 records out\n8388608000 bytes copied, 42.1 s, 199 MB/s\n";
        let result = parse(text).expect("dd's own output");
        let options = result.options.iter();
        let options: Vec<String> = options
            .map(|option| format!("{}={}", option.name, option.value))
            .collect();
        let told = [
            "if=/dev/zero",
            "of=x",
            "bs=1M",
            "count=8000",
            "conv=fdatasync",
        ];
        assert_eq!(options, told);
        assert_eq!(result.messages, [""; 0]);
        // Lines keep their numbers.
        assert_eq!(normal("a \\\n> b \\\n c\nd\n"), "a b c\n\n\nd\n");
        assert_eq!(normal("a \\\n"), "a \\\n");
        assert_eq!(normal("a\n"), "a\n");
    }
}
