//! The error of an operation on a file or folder.

use crate::visible_path;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An operation on a file or folder that failed: `cannot read x`.
#[derive(Debug)]
pub struct PathError {
    /// The operation that failed, as a verb: `read`, `write`.
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The error that the operating system returned.
    pub source: io::Error,
}

impl fmt::Display for PathError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "cannot {} {}",
            self.action,
            visible_path(&self.path)
        )
    }
}

impl Error for PathError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Returns a closure for `map_err` that makes the error of an operation on a file or folder.
pub fn cannot(
    action: &'static str,
    path: &(impl AsRef<Path> + ?Sized),
) -> impl Fn(io::Error) -> PathError + Copy {
    let path = path.as_ref();
    move |source| PathError {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::cannot;
    use crate::in_one_line;
    use std::io::ErrorKind;

    #[test]
    fn the_path_is_named_and_shown_as_it_is() {
        let error = cannot("read", "a\u{1b}b")(ErrorKind::NotFound.into());
        assert_eq!(
            in_one_line(&error),
            "cannot read a\\u{1b}b: entity not found"
        );
    }
}
