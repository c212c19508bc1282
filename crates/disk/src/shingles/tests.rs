use super::*;
use proptest::prelude::*;

fn shingles(cache: u64, band: u64) -> Shingles {
    Shingles::new(ShingleParameters {
        cache: Bytes(cache),
        band: Bytes(band),
        idle: Nanos::from_secs(1),
    })
}

#[test]
fn streams_go_to_their_place_and_the_rest_to_the_cache() {
    let mut shingles = shingles(8192, 1 << 20);
    assert_eq!(shingles.place(0, 64), None, "a disk's first sector");
    assert_eq!(shingles.place(64, 128), None, "where that ended");
    assert_eq!(shingles.place(4096, 4104), None, "a band's start");
    assert_eq!(shingles.place(2056, 2064), Some(0));
    assert_eq!(shingles.place(8, 16), Some(4096));
    assert!(shingles.is_full() && shingles.is_dirty());
    let oldest = Dirty {
        first_sector: 2048,
        end_sector: 4096,
        cached_bytes: 4096,
    };
    assert_eq!(shingles.clean(), Some(oldest));
    assert!(!shingles.is_full());
    assert_eq!(shingles.place(5000, 5008), Some(0), "round and round");
    shingles.rest();
    assert!(!shingles.is_dirty() && shingles.clean().is_none());
}

proptest! {
    /// What goes into the cache comes out of it, each byte once, in bands.
    #[test]
    fn cleaning_ends(writes in prop::collection::vec((0_u64..100_000, 1_u64..300), 1..80)) {
        let mut shingles = shingles(1 << 40, 1 << 20);
        let mut cached = 0;
        for (start, count) in writes {
            if shingles.place(start, start + count).is_some() {
                cached += count * 512;
            }
        }
        let mut cleaned = 0;
        while let Some(band) = shingles.clean() {
            prop_assert!(band.first_sector.is_multiple_of(2048) && band.cached_bytes > 0);
            cleaned += band.cached_bytes;
        }
        prop_assert_eq!(cleaned, cached);
        prop_assert!(!shingles.is_dirty());
    }
}
