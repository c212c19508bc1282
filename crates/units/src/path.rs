//! Files and folders with which something cannot be done.

use crate::visible_path;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file or folder with which something cannot be done: `cannot read x`.
#[derive(Debug)]
pub struct PathError {
    /// What cannot be done with it: `read`, `write`.
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// What the operating system answered.
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

/// Makes the error of what cannot be done with a file or folder, for `map_err`.
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
