//! Why something cannot be imported.

use raidlab_tools::ParseError;

/// Why something cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// No known program wrote it.
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
        /// Where it is broken.
        #[source]
        source: ParseError,
    },
    /// A tool's output in which nothing was measured.
    #[error("`{name}` has no result in it")]
    Empty {
        /// The file that was to be imported, as it was named.
        name: String,
    },
    /// A file of figures is broken.
    #[error("figures `{name}` cannot be read")]
    Figures {
        /// The file that was to be imported, as it was named.
        name: String,
        /// Line and field.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A file of figures contradicts itself.
    #[error("figures `{name}`: {place}: {problem}")]
    Figure {
        /// The file that was to be imported, as it was named.
        name: String,
        /// The field: `subject md, job 1, write`.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There are no built-in figures of that name.
    #[error("there are no figures `{name}`; there are: {}", known.join(", "))]
    NoFigures {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
}
