//! raidlab's own arrays, which are made, looked at and served in user space, in mdadm's words and
//! on mdadm's format.

pub mod assemble;
pub mod control;
pub mod create;
pub mod devices;
pub mod examine;
pub mod serve;
pub mod watch;
pub mod zero_superblock;

use crate::failure::{Failure, Kind};
use raidlab_metadata::{ReadAt, Uuid};
use raidlab_serve::member::{Access, Member, MemberFile, OpenError, OpenOptions};
use raidlab_store::output::{OutputError, check_distinct};
use raidlab_store::text::visible_path;
use raidlab_units::{Bytes, SECTOR_BYTES, Sectors, parse_bytes};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A member as the reader of metadata takes it.
pub struct Bare<'a>(pub &'a Member);

impl ReadAt for Bare<'_> {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        // An array takes whole sectors only.
        let start = offset.0 / SECTOR_BYTES * SECTOR_BYTES;
        let skip = (offset.0 - start) as usize;
        let whole = (skip + bytes.len()).next_multiple_of(SECTOR_BYTES as usize);
        let mut buffer = vec![0; whole];
        self.0.read_exact_at(&mut buffer, start)?;
        bytes.copy_from_slice(&buffer[skip..skip + bytes.len()]);
        Ok(())
    }
}

/// Checks that no two of these paths lead to the same device.
///
/// # Errors
/// When one is named twice, by whatever words.
pub fn named_once<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<(), Failure> {
    let named: Vec<_> = paths.map(|path| ("DEVICE", path)).collect();
    check_distinct(&named).map_err(|error| match error {
        OutputError::Twice { path, .. } => {
            let words = format!("{} is named twice", visible_path(&path));
            Failure::words(Kind::Usage, words)
        }
        other => other.into(),
    })
}

/// Claims a member, for writing its metadata alone.
///
/// # Errors
/// When it does not exist, is not a file or block device, or is in use.
pub fn claim(path: &Path) -> Result<Member, Failure> {
    let options = OpenOptions {
        buffered: true,
        access: Access::Write,
    };
    // `--readonly` is an option of those who serve.
    let refused = |error: OpenError| {
        let is_read_only =
            matches!(&error, OpenError::Open { source, .. } if may_be_read_only(source));
        match is_read_only {
            true => Failure::new(Kind::Input, error).help("it has to be writable"),
            false => claim_refused(error),
        }
    };
    let file = MemberFile::open(path, options).map_err(refused)?;
    Ok(file.into())
}

/// Opens a member for looking at it.
///
/// # Errors
/// When it does not exist or is not a file or block device.
pub fn look_at(path: &Path) -> Result<Member, Failure> {
    open(path, LOOKING)
}

fn open(path: &Path, options: OpenOptions) -> Result<Member, Failure> {
    let file = MemberFile::open(path, options).map_err(claim_refused)?;
    Ok(file.into())
}

/// The options with which a member is opened that is only looked at.
pub const LOOKING: OpenOptions = OpenOptions {
    buffered: true,
    access: Access::Look,
};

/// The failure of opening a member, with the remedy that its cause has.
pub fn claim_refused(error: OpenError) -> Failure {
    let help = match &error {
        OpenError::InUse { .. } => "stop what uses it first",
        OpenError::Mounted { .. } => "unmount it first",
        OpenError::Kind { .. } => "members are files and block devices",
        OpenError::Open { source, .. } if may_be_read_only(source) => {
            "what may be read and not written is served with `--readonly`"
        }
        OpenError::Open { .. } => {
            "members are block devices, such as /dev/sdb, and files, such as those of \
             `truncate -s 1G FILE`"
        }
    };
    Failure::new(Kind::Input, error).help(help)
}

/// Whether an opening may have failed because a thing that may only be read was opened for writing.
fn may_be_read_only(error: &io::Error) -> bool {
    // Block devices that are read-only refuse writers so.
    let kinds = [
        io::ErrorKind::ReadOnlyFilesystem,
        io::ErrorKind::PermissionDenied,
    ];
    kinds.contains(&error.kind())
}

/// The failure of opening a file with a bitmap, with the remedy that its cause has.
pub fn bitmap_refused(error: OpenError) -> Failure {
    if !matches!(error, OpenError::Open { .. } | OpenError::Kind { .. }) {
        return claim_refused(error);
    }
    Failure::new(Kind::Input, error).help(
        "--bitmap names the file of `raidlab create --bitmap ./FILE`; a bitmap on the members \
         is found without it",
    )
}

/// Parses a size as mdadm takes it: a bare number is KiB.
///
/// # Errors
/// When it is no size.
pub fn mdadm_size(text: &str) -> Result<Sectors, String> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if bare {
        format!("{text}k")
    } else {
        text.to_owned()
    };
    let bytes = parse_bytes(&text).map_err(|error| error.to_string())?;
    if !bytes.0.is_multiple_of(512) {
        return Err("not a whole number of sectors of 512 bytes".to_owned());
    }
    Ok(bytes.to_sectors())
}

/// Parses a size above 0, of an export or a memory, as [`mdadm_size`] does.
///
/// # Errors
/// When it is no size, or 0.
pub fn mdadm_size_above_zero(text: &str) -> Result<Sectors, String> {
    match mdadm_size(text)? {
        Sectors::ZERO => Err("it must be above 0".to_owned()),
        size => Ok(size),
    }
}

/// Returns random bytes that cannot be guessed.
///
/// # Errors
/// When the system has no source of them.
pub fn random_bytes<const COUNT: usize>() -> Result<[u8; COUNT], Failure> {
    let mut bytes = [0; COUNT];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Failure::new(Kind::Run, error).help("/dev/urandom is needed"))?;
    Ok(bytes)
}

/// The name that this machine gives itself.
#[must_use]
pub fn host_name() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// Makes a new UUID.
///
/// # Errors
/// When the system has no source of random bytes.
pub fn new_uuid() -> Result<Uuid, Failure> {
    random_bytes().map(Uuid)
}

/// Parses a UUID as mdadm writes it: four words of eight hexadecimal digits, parted by colons;
/// dashes and no parting are taken too.
///
/// # Errors
/// When it is none.
pub fn parse_uuid(text: &str) -> Result<Uuid, String> {
    let digits: String = text.chars().filter(|one| !":-".contains(*one)).collect();
    let number = u128::from_str_radix(&digits, 16);
    match number {
        Ok(number) if digits.len() == 32 => Ok(Uuid(number.to_be_bytes())),
        _ => Err("a UUID has 32 hexadecimal digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{claim_refused, mdadm_size, parse_uuid};
    use raidlab_serve::member::OpenError;
    use raidlab_units::Sectors;

    #[test]
    fn a_bare_number_is_kibibytes() {
        assert_eq!(mdadm_size("64"), Ok(Sectors(128)));
        assert_eq!(mdadm_size("64k"), Ok(Sectors(128)));
        assert_eq!(mdadm_size("1m"), Ok(Sectors(2048)));
        assert!(mdadm_size("100b").is_err() && mdadm_size("").is_err());
    }

    #[test]
    fn what_may_only_be_read_is_told_from_what_is_no_member() {
        let help = |kind: std::io::ErrorKind| {
            let error = OpenError::Open {
                path: "disk".into(),
                source: kind.into(),
            };
            claim_refused(error).to_string()
        };
        let read_only = help(std::io::ErrorKind::ReadOnlyFilesystem);
        assert!(read_only.contains("`--readonly`"), "{read_only}");
        assert!(help(std::io::ErrorKind::NotFound).contains("truncate"));
    }

    #[test]
    fn a_uuid_is_taken_with_colons_dashes_or_neither() {
        let words = "00112233:44556677:8899aabb:ccddeeff";
        let uuid = parse_uuid(words).expect("colons");
        assert_eq!(uuid.0[..3], [0x00, 0x11, 0x22]);
        assert_eq!(parse_uuid("00112233-4455-6677-8899-aabbccddeeff"), Ok(uuid));
        assert!(parse_uuid("0011").is_err() && parse_uuid(&words.replace('f', "g")).is_err());
    }
}
