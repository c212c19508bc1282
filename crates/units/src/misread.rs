//! The mistakes in a file that serde finds, in raidlab's own words.
//!
//! serde speaks of fields, variants and Rust's types: `unknown field`, `expected u32`. Whoever writes
//! a file is told in all files alike which name is near, and what to write.

/// Returns the known name that is nearest to a name, if one is near enough to be meant: most of a
/// short name's letters must be right, so `wait` is no `fail`. Capital letters make no difference: a
/// disk's name is typed as it stands on the disk.
pub fn nearest<'a, K: AsRef<str>>(name: &str, known: &'a [K]) -> Option<&'a str> {
    let all = known.iter().map(AsRef::as_ref);
    let name = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&name, &known.to_lowercase());
    let all = all.map(|known| (distance(known), known));
    all.min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .filter(|(distance, known)| distance * 2 < known.len().max(name.len()))
        .map(|(_, known)| known)
}

/// Returns the end of a sentence about a name that is not known: `did you mean ...?` where one is
/// near, else the whole list.
pub fn suggestion<K: AsRef<str>>(name: &str, known: &[K]) -> String {
    if let Some(near) = nearest(name, known) {
        return format!("did you mean `{near}`?");
    }
    let all: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    if all.is_empty() {
        "none is known here".to_owned()
    } else {
        format!("known here: {}", all.join(", "))
    }
}

/// Returns a message of serde's about a file in raidlab's own words; `place` is the text of the file
/// that the message is about.
#[must_use]
pub fn plain_words(message: &str, place: &str) -> String {
    let message = message.trim();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let mut name = || quoted.next().unwrap_or_default();
    if message.starts_with("missing field") {
        return format!("the field `{}` is missing", name());
    }
    if message.starts_with("unknown field") {
        let name = name();
        let known: Vec<&str> = quoted.collect();
        return format!("there is no field `{name}`; {}", suggestion(name, &known));
    }
    if message.starts_with("unknown variant") {
        let name = name();
        let known: Vec<&str> = quoted.collect();
        return format!(
            "the value `{name}` is not known; {}",
            suggestion(name, &known)
        );
    }
    if message == "duplicate key" {
        let name = place.trim_matches(['[', ']']).trim();
        return format!("`{name}` is here a second time; each table of a list begins `[[NAME]]`");
    }
    let wrong = ["invalid type: ", "invalid value: "];
    let wrong = wrong.iter().find_map(|begin| message.strip_prefix(begin));
    match wrong.and_then(|rest| rest.split_once(", expected ")) {
        Some((found, wanted)) => {
            let (found, wanted) = (in_words(found), in_words(wanted));
            format!("{found} cannot stand here; write {wanted}")
        }
        None => message.replace('\n', ", "),
    }
}

/// The name of a type, or of a type with its value, in words: `u32`, `integer 3`.
fn in_words(kind: &str) -> String {
    let words = match kind {
        "sequence" | "a sequence" => "a list",
        "map" | "a map" => "a table",
        "a string" => "text in quotation marks",
        "a boolean" => "true or false",
        "f32" | "f64" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "a nonzero u8" => "a whole number from 1 to 255",
        "a nonzero u16" => "a whole number from 1 to 65535",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "a nonzero u64" => "a whole number from 1 on",
        "i32" | "i64" => "a whole number",
        _ => "",
    };
    if !words.is_empty() {
        return words.to_owned();
    }
    let named = [
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("string ", "the text "),
        ("boolean ", "the value "),
        ("struct ", "a table of "),
    ];
    let known = named.iter().find_map(|(kind_word, word)| {
        let rest = kind.strip_prefix(kind_word)?;
        Some(format!("{word}{rest}"))
    });
    known.unwrap_or_else(|| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_is_told_in_our_words() {
        let cases = [
            ("missing field `title`", "the field `title` is missing"),
            (
                "unknown field `disk`, expected one of `disks`, `name`",
                "there is no field `disk`; did you mean `disks`?",
            ),
            (
                "unknown field `colour`, expected `name`",
                "there is no field `colour`; known here: name",
            ),
            (
                "unknown field `x`",
                "there is no field `x`; none is known here",
            ),
            (
                "unknown variant `wait`, expected `fail` or `check`",
                "the value `wait` is not known; known here: fail, check",
            ),
            (
                "unknown variant `trim`, expected `read` or `write`",
                "the value `trim` is not known; known here: read, write",
            ),
            (
                "invalid type: string \"4\", expected a nonzero u16",
                "the text \"4\" cannot stand here; write a whole number from 1 to 65535",
            ),
            (
                "invalid type: integer `60`, expected a number with its source",
                "the number `60` cannot stand here; write a number with its source",
            ),
            (
                "invalid type: map, expected a sequence",
                "a table cannot stand here; write a list",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "the number `-1` cannot stand here; write a whole number from 0 to 4294967295",
            ),
            ("a line\nand a reason\n", "a line, and a reason"),
        ];
        for (message, words) in cases {
            assert_eq!(plain_words(message, ""), words);
        }
        assert_eq!(
            plain_words("duplicate key", "[step]"),
            "`step` is here a second time; each table of a list begins `[[NAME]]`"
        );
    }
}
