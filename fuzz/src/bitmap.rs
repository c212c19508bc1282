//! Any bytes are read as a bitmap or as a bad-block log, or refused; and what is
//! read comes back as it was.

use raidlab_metadata::{BadBlockLog, Bitmap};
use raidlab_units::Sectors;

/// Reads these bytes.
pub fn run(bytes: &[u8]) {
    bitmap(bytes);
    bad_blocks(bytes);
}

fn bitmap(bytes: &[u8]) {
    let Ok(mut bitmap) = Bitmap::decode(bytes) else {
        return;
    };
    let encoded = bitmap.encode();
    let length = bytes.len().min(encoded.len());
    assert!(encoded[256..length] == bytes[256..length]);
    assert_eq!(Bitmap::decode(&encoded).as_ref(), Ok(&bitmap));
    let set = bitmap.count_set();
    let end = bitmap.superblock.sync_size;
    assert!(
        bitmap
            .set_spans()
            .all(|span| span.start < span.end && span.end <= end)
    );
    let needed = bitmap.needed_spans(Sectors(end.0 / 2));
    assert!(needed.count() as u64 <= set);
    let chunk = end.0 / 3 / bitmap.chunk_sectors();
    let clear = bitmap.set(chunk);
    assert_eq!(bitmap.count_set(), set + u64::from(clear));
    bitmap.assign(chunk..chunk + 1, |_| false);
    assert!(!bitmap.test(chunk));
}

fn bad_blocks(bytes: &[u8]) {
    let Some(([size, shift], bytes)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let log = BadBlockLog {
        offset: 8,
        size: u16::from(*size),
        shift: *shift,
    };
    let Ok(entries) = log.decode(bytes) else {
        return;
    };
    let Ok(encoded) = log.encode(&entries) else {
        return;
    };
    let sorted = log.decode(&encoded).expect("it was encoded");
    assert_eq!(log.encode(&sorted).as_ref(), Ok(&encoded));
}
