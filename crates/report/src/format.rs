//! Formatting of numbers for people: gaps in a number and before its percent sign
//! are no-break spaces.

use minijinja::{HtmlEscape, Value};
use raidlab_store::Latency;

/// A number with three to four significant digits: `9.87`, `87.2`, `310`, `173 735`.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    let decimals = if size < 9.995 {
        2
    } else if size < 999.95 {
        1
    } else {
        return thousands(value);
    };
    format!("{value:.decimals$}")
}

/// A whole number with a narrow gap between thousands.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = by_thousands(&digits);
    if value < 0.0 && digits != "0" {
        text.insert(0, '-');
    }
    text
}

/// Digits with a narrow gap between thousands.
pub(crate) fn by_thousands(digits: &str) -> String {
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

/// A signed percentage, `-5 %`, `0 %`, `+12 %`; only a value of zero is `-100 %`.
pub(crate) fn signed_percent(percent: f64) -> String {
    if percent <= -99.5 && percent > -100.0 {
        return format!("{:.1}\u{a0}%", percent.max(-99.9));
    }
    let rounded = percent.round();
    if rounded.abs() < 0.5 {
        return "0\u{a0}%".to_owned();
    }
    format!("{rounded:+.0}\u{a0}%")
}

/// A signed percentage with a tenth, `-5.1 %`, `0.0 %`, `+12.3 %`, for errors.
pub(crate) fn signed_percent_fine(percent: f64) -> String {
    if percent.abs() < 0.05 {
        return "0.0\u{a0}%".to_owned();
    }
    format!("{percent:+.1}\u{a0}%")
}

/// The median, 90th, 99th and 99.9th percentile, milliseconds.
pub(crate) fn percentiles_ms(latency: &Latency) -> [f64; 4] {
    [
        latency.p50_ns,
        latency.p90_ns,
        latency.p99_ns,
        latency.p999_ns,
    ]
    .map(|ns| ns as f64 / 1e6)
}

/// A note on how many subjects a table leaves out, as none of its jobs ran on them; `None` where
/// every subject has a row.
pub(crate) fn absent_words(subjects: usize) -> Option<String> {
    match subjects {
        0 => None,
        1 => Some("On one more subject none of these jobs ran.".to_owned()),
        many => Some(format!("On {many} more subjects none of these jobs ran.")),
    }
}

/// A list in words as by [`list`]; of many words the first ones, and the number of the rest.
pub(crate) fn list_of_many(words: &[String]) -> String {
    const MOST: usize = 12;
    match words.split_at_checked(MOST) {
        Some((first, rest)) if rest.len() > 1 => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => list(words),
    }
}

/// A list in words: `a`, `a and b`, `a, b and c`.
pub(crate) fn list<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Text for the page: what stands between two backquotes is set as code.
pub(crate) fn with_code(text: &str) -> Value {
    let parts: Vec<&str> = text.split('`').collect();
    let mut page = String::new();
    for (place, part) in parts.iter().enumerate() {
        let part = HtmlEscape(part);
        let is_last = place + 1 == parts.len();
        page += &match place % 2 {
            0 => part.to_string(),
            // A backquote without a second one is only a letter.
            _ if is_last => format!("`{part}"),
            _ => format!("<code>{part}</code>"),
        };
    }
    Value::from_safe_string(page)
}

#[cfg(test)]
mod tests {
    use super::{figure, list, signed_percent, signed_percent_fine, with_code};

    #[test]
    fn figures_keep_what_matters() {
        let cases = [
            (0.0, "0.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (310.66, "310.7"),
            (999.96, "1\u{a0}000"),
            (173_735.4, "173\u{a0}735"),
            (1_234_567.0, "1\u{a0}234\u{a0}567"),
            (-1500.0, "-1\u{a0}500"),
        ];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn percents_have_a_sign_unless_they_are_nothing() {
        assert_eq!(signed_percent(-0.4), "0\u{a0}%");
        assert_eq!(signed_percent(-5.4), "-5\u{a0}%");
        assert_eq!(signed_percent(-99.504), "-99.5\u{a0}%");
        assert_eq!(signed_percent(-99.999), "-99.9\u{a0}%");
        assert_eq!(signed_percent(-100.0), "-100\u{a0}%");
        assert_eq!(signed_percent_fine(12.34), "+12.3\u{a0}%");
        assert_eq!(signed_percent_fine(-0.04), "0.0\u{a0}%");
    }

    #[test]
    fn words_are_joined_as_in_english() {
        assert_eq!(list(&["md", "gflash", "gmirror"]), "md, gflash and gmirror");
        assert_eq!(list::<&str>(&[]), "");
    }

    #[test]
    fn what_stands_between_backquotes_is_set_as_code() {
        let page = |text: &str| with_code(text).to_string();
        assert_eq!(
            page("set `direct=1` & <read>, or `sync"),
            "set <code>direct=1</code> &amp; &lt;read&gt;, or `sync"
        );
        assert_eq!(page("`<b>`"), "<code>&lt;b&gt;</code>");
    }
}
