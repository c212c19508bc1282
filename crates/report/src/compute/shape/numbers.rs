//! Numbers within the titles of jobs.

/// A number in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    /// The value; for a size with a letter, as `64k`, the bytes.
    pub value: f64,
    /// The number as it is written.
    pub text: String,
}

/// A text with `#` for each of its numbers, and the numbers.
pub(super) fn numbers_of(text: &str) -> (String, Vec<Number>) {
    let (mut template, mut numbers) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        template.push_str(&rest[..start]);
        let from = &rest[start..];
        let end = from.find(|c: char| !c.is_ascii_digit() && c != '.');
        let mut digits = &from[..end.unwrap_or(from.len())];
        digits = digits.trim_end_matches('.');
        let after = &from[digits.len()..];
        let letter = after.chars().next().filter(char::is_ascii_alphabetic);
        let whole = |letter: char| !after[letter.len_utf8()..].starts_with(char::is_alphanumeric);
        let suffix = letter.filter(|letter| whole(*letter)).and_then(factor);
        let length = digits.len() + usize::from(suffix.is_some());
        template.push('#');
        if let Ok(value) = digits.parse::<f64>() {
            numbers.push(Number {
                value: value * suffix.unwrap_or(1.0),
                text: from[..length].to_owned(),
            });
        }
        rest = &from[length..];
    }
    template.push_str(rest);
    (template, numbers)
}

fn factor(letter: char) -> Option<f64> {
    match letter.to_ascii_lowercase() {
        'k' => Some(1024.0),
        'm' => Some(1_048_576.0),
        'g' => Some(1_073_741_824.0),
        't' => Some(1_099_511_627_776.0),
        _ => None,
    }
}

/// The text that these have in common, with `N` for the one number in which they differ, and that
/// number in each; `None` where they differ in more, or in nothing.
pub(super) fn one_varies(texts: &[String]) -> Option<(String, Vec<Number>)> {
    let parts: Vec<(String, Vec<Number>)> = texts.iter().map(|text| numbers_of(text)).collect();
    let (template, first) = parts.first()?;
    let same_form = |(other, numbers): &(String, Vec<Number>)| {
        other == template && numbers.len() == first.len()
    };
    if !parts.iter().all(same_form) || template.matches('#').count() != first.len() {
        return None;
    }
    let differs = |place: &usize| parts.iter().any(|(_, own)| own[*place] != first[*place]);
    let places: Vec<usize> = (0..first.len()).filter(differs).collect();
    let [place] = places.as_slice() else {
        return None;
    };
    let mut common = String::new();
    for (at, part) in template.split('#').enumerate() {
        if at > 0 {
            common.push_str(if at - 1 == *place {
                "N"
            } else {
                &first[at - 1].text
            });
        }
        common.push_str(part);
    }
    let numbers = parts.iter().map(|(_, own)| own[*place].clone());
    Some((common, numbers.collect()))
}

#[cfg(test)]
mod tests {
    use super::{numbers_of, one_varies};
    use proptest::prelude::*;

    #[test]
    fn sizes_and_plain_numbers_are_told_apart() {
        let (template, numbers) = numbers_of("write 64k, 2.5 s, 3rd of 10m.");
        assert_eq!(template, "write #, # s, #rd of #.");
        let values: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        assert_eq!(values, [65_536.0, 2.5, 3.0, 10_485_760.0]);
        assert_eq!(numbers[0].text, "64k");
    }

    #[test]
    fn one_number_makes_a_ladder_and_two_do_not() {
        let texts = ["pause 1 ms, 4 KiB", "pause 20 ms, 4 KiB"].map(str::to_owned);
        let (common, numbers) = one_varies(&texts).unwrap();
        assert_eq!(common, "pause N ms, 4 KiB");
        assert_eq!(numbers[1].value, 20.0);
        assert!(one_varies(&["a 1 2".to_owned(), "a 2 3".to_owned()]).is_none());
        assert!(one_varies(&["a 1".to_owned(), "b 2".to_owned()]).is_none());
        assert!(one_varies(&["a 1".to_owned(), "a 1".to_owned()]).is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in ".{0,40}") {
            let (template, numbers) = numbers_of(&text);
            prop_assert!(template.matches('#').count() >= numbers.len());
        }
    }
}
