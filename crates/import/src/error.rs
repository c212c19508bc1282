//! Errors of importing.

use raidlab_tools::ParseError;

/// The reason why a file or figures cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is of no known program.
    #[error(
        "`{name}` is neither output of {}, nor a log with it, nor a file of figures \
         (`kind = \"figures\"`)",
        raidlab_tools::Tool::list()
    )]
    Unknown {
        /// The file that was to be imported, as it was named.
        name: String,
    },
    /// A tool's output is broken.
    #[error("`{name}` cannot be read")]
    Output {
        /// The file that was to be imported, as it was named.
        name: String,
        /// The place and kind of the error.
        #[source]
        source: ParseError,
    },
    /// The tool's output holds no measurement.
    #[error("`{name}` has no result in it")]
    Empty {
        /// The file that was to be imported, as it was named.
        name: String,
    },
    /// A file of figures is broken.
    #[error("figures `{name}`, line {line}: {problem}")]
    Figures {
        /// The file that was to be imported, as it was named.
        name: String,
        /// The line of the error, from 1.
        line: usize,
        /// The error in words, with the field.
        problem: String,
    },
    /// A file of figures contradicts itself.
    #[error("figures `{name}`: {place}: {problem}")]
    Figure {
        /// The file that was to be imported, as it was named.
        name: String,
        /// The field in question: `subject md, job 1, write`.
        place: String,
        /// The error in words.
        problem: String,
    },
    /// There are no built-in figures of that name.
    #[error("there are no figures `{name}`; there are: {}", known.join(", "))]
    NoFigures {
        /// The name asked for.
        name: String,
        /// The names of the built-in figures.
        known: Vec<String>,
    },
}
