//! Files with a mistake, for tests.

/// A file with one change: `from` is replaced by `to`, where `\n` is the end of a line and `NOTHING`
/// is nothing. In place of `from`, `END` adds `to` at the file's end, `STEP` as a step of a suite,
/// and `JOB` as a step with a job `x`.
///
/// # Panics
/// When `from` is not in the file.
pub(crate) fn edited(file: &str, from: &str, to: &str) -> String {
    let [from, to] = [from, to].map(|text| text.replace("\\n", "\n").replace("NOTHING", ""));
    let job = "job = \"x\"\ntitle = \"t\"\nclass = \"c\"\n";
    match from.as_str() {
        "END" => format!("{file}{to}"),
        "STEP" => format!("{file}\n[[step]]\n{to}\n"),
        "JOB" => format!("{file}\n[[step]]\n{job}{to}\n"),
        from => {
            assert!(file.contains(from), "`{from}` is not in the file");
            file.replacen(from, &to, 1)
        }
    }
}
