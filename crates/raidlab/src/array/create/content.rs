//! The content of a new array's members that would be lost.

use raidlab_serve::member::Member;
use raidlab_store::text::visible_path;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The members and the bitmap's file that are not empty, in words; nothing if all are empty.
pub(super) fn what_is_lost(claimed: &[Option<Member>], bitmap: Option<&PathBuf>) -> Option<String> {
    let mut full: Vec<String> = claimed
        .iter()
        .flatten()
        .filter(|member| {
            let size = member.size().to_bytes().0;
            has_content(size, |bytes, offset| member.read_exact_at(bytes, offset))
        })
        .map(|member| format!("  {}", visible_path(member.path())))
        .collect();
    let old_bitmap = bitmap.filter(|path| {
        File::open(path).is_ok_and(|file| {
            let size = file.metadata().map_or(0, |metadata| metadata.len());
            has_content(size, |bytes, offset| file.read_exact_at(bytes, offset))
        })
    });
    full.extend(old_bitmap.map(|path| format!("  {}", visible_path(path))));
    let words = format!("these are not empty and will be lost:\n{}", full.join("\n"));
    (!full.is_empty()).then_some(words)
}

/// Whether anything but zeros stands at the beginning or at the end, where
/// partition tables, file systems and other members have their marks.
fn has_content(end: u64, read: impl Fn(&mut [u8], u64) -> io::Result<()>) -> bool {
    const LOOK: u64 = 1 << 20;
    let mut bytes = vec![0; usize::try_from(LOOK.min(end)).unwrap_or(0)];
    [0, end.saturating_sub(LOOK)]
        .iter()
        .any(|start| read(&mut bytes, *start).is_err() || bytes.iter().any(|byte| *byte != 0))
}
