//! Reading of a file that a user names: no more of it than a limit, and no pipe or device, which
//! might have to be waited for.

use crate::output::look;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Paths of this program's own input, which may be a pipe: a shell makes `/dev/fd/63` of
/// `<(command)`, for instance.
const OWN: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Reads all bytes of a file. A pipe or a device is read only where it is this program's own input:
/// any other would have to be waited for, or has no end.
///
/// # Errors
/// When it cannot be read, has more than `most` bytes, or is no file: the error says what it is.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() && !OWN.iter().any(|own| path.starts_with(own)) {
        let kind = match metadata.is_dir() {
            true => io::ErrorKind::IsADirectory,
            false => io::ErrorKind::InvalidInput,
        };
        let words = format!("it is {}, and not a file", look(path)?);
        return Err(io::Error::new(kind, words));
    }
    let mut bytes = Vec::new();
    let length = File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if length as u64 > most {
        let words = format!("it has more than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
    }
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use super::read_bytes;
    use std::fs;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    #[test]
    fn what_is_no_file_is_said_and_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        for (path, is) in [
            (folder.path(), "a folder"),
            (&socket, "a socket"),
            (Path::new("/dev/null"), "a character device"),
        ] {
            let error = read_bytes(path, 1 << 20).expect_err(is).to_string();
            assert_eq!(error, format!("it is {is}, and not a file"));
        }
    }

    #[test]
    fn no_more_is_read_than_the_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, vec![7; 1 << 20]).expect("written");
        assert_eq!(
            read_bytes(&file, 1 << 20).expect("as much"),
            vec![7; 1 << 20]
        );
        fs::write(&file, vec![7; (1 << 20) + 1]).expect("written");
        let error = read_bytes(&file, 1 << 20).expect_err("more").to_string();
        assert_eq!(error, "it has more than 1 MiB");
    }
}
