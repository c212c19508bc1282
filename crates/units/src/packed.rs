//! Recognition of compressed files by their first bytes.

use std::io::{self, ErrorKind};

/// The first bytes of a compressed file, the program that made it, and the one that unpacks it.
const PACKERS: [(&[u8], &str, &str); 5] = [
    (&[0x1f, 0x8b], "gzip", "gunzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"PK\x03\x04", "zip", "unzip"),
];

/// Refuses the bytes of a file that was compressed by gzip, zstd, xz, bzip2 or zip.
///
/// # Errors
/// An error that names the program that compressed it, and the command that unpacks it.
pub fn check_unpacked(bytes: &[u8]) -> io::Result<()> {
    let is = |(begin, ..): &&(&[u8], &str, &str)| bytes.starts_with(begin);
    match PACKERS.iter().find(is) {
        // Some plain text begins with the same bytes as bzip2's files.
        Some((_, packer, again)) if str::from_utf8(bytes).is_err() => Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("it is compressed by {packer}: `{again}` makes the file that can be read"),
        )),
        _ => Ok(()),
    }
}

/// Returns the text of a file with these bytes.
///
/// # Errors
/// When they are not UTF-8, or are compressed (see [`check_unpacked`]).
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    check_unpacked(&bytes)?;
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(bytes).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use super::{check_unpacked, text_of};

    /// What the programs make of `echo x`.
    #[test]
    fn what_is_compressed_is_told_with_its_remedy() {
        let packed: [(&[u8], &str, &str); 5] = [
            (b"\x1f\x8b\x08\0\xed\xc0\x27\x6a", "gzip", "`gunzip`"),
            (b"\x28\xb5\x2f\xfd\x04\x58\x11\0", "zstd", "`unzstd`"),
            (b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46", "xz", "`unxz`"),
            (b"BZh91AY&SY\x94\x3a\xa9\x65", "bzip2", "`bunzip2`"),
            (b"PK\x03\x04\x0a\0\0\0\0\0\x8f\xbc", "zip", "`unzip`"),
        ];
        for (bytes, packer, again) in packed {
            let error = text_of(bytes.to_vec()).expect_err(packer).to_string();
            let words = format!("it is compressed by {packer}: {again} ");
            assert!(error.starts_with(&words), "{error}");
        }
    }

    #[test]
    fn other_bytes_are_text_or_none() {
        for text in ["", "BZh is no suite", "PK"] {
            assert_eq!(text_of(text.into()).expect(text), text);
        }
        let error = text_of(vec![0xff, b'x']).expect_err("no text");
        assert_eq!(error.to_string(), "it is no text in UTF-8");
        assert!(check_unpacked(&[0xff, 0xfe, b'x', 0]).is_ok());
    }
}
