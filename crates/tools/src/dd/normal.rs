//! A text of a terminal as dd's lines are sought in it.

/// Points for decimal commas, spaces for no-break spaces, signs of the usual width for wide
/// ones, and of a line that overwrites itself the last state.
pub(super) fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        let line = line.rsplit('\r').next().unwrap_or(line);
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
        normal.push('\n');
    }
    normal
}
