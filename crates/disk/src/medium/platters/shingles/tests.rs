use super::*;
use proptest::prelude::*;

/// Bands of 1 MiB; a run of 2 MiB goes to its place.
fn shingles(cache: u64, extents: usize) -> Shingles {
    Shingles::new(ShingleParameters {
        cache: Bytes(cache),
        extents,
        band: Bytes(1 << 20),
        stream: Bytes(2 << 20),
        idle: Nanos::from_secs(1),
    })
}

const BAND: u64 = 2048;

#[test]
fn a_long_run_goes_to_its_place_and_the_rest_to_the_cache() {
    let mut shingles = shingles(1 << 30, 1000);
    // From the middle of a band: 2 MiB are over in the middle of the third one after.
    let mut placed = Vec::new();
    for write in 0..40 {
        let start = 1024 + write * 256;
        placed.push(shingles.place(start, start + 256).is_some());
    }
    let cached = placed.iter().filter(|cached| **cached).count();
    // (3 x 2048 - 1024) / 256.
    assert_eq!(cached, 20, "{placed:?}");
    assert!(placed[..20].iter().all(|cached| *cached));
    assert_eq!(shingles.map.len(), 3, "an entry a band");
    assert_eq!(shingles.place(900_000, 900_008), Some(20 * 256 * 512));
    assert_eq!(
        shingles.place(1024 + 40 * 256, 1024 + 41 * 256),
        None,
        "still the run"
    );
}

#[test]
fn what_a_run_replaces_needs_no_cleaning() {
    let mut shingles = shingles(1 << 30, 1000);
    shingles.place(6 * BAND + 8, 6 * BAND + 16);
    shingles.place(6 * BAND + 800, 6 * BAND + 816);
    for write in 0..(8 * BAND / 256) {
        shingles.place(write * 256, (write + 1) * 256);
    }
    let mut left = Vec::new();
    while let Some(band) = shingles.clean() {
        left.push((band.first_sector / BAND, band.is_whole()));
    }
    // The run's own first two bands; the sixth was written whole.
    assert_eq!(left, [(0, true), (1, true)]);
    assert_eq!((shingles.used, shingles.map.len()), (0, 0));
}

#[test]
fn a_run_given_up_within_a_band_leaves_it_to_be_cleaned() {
    let mut shingles = shingles(1 << 30, 1000);
    for write in 0..(4 * BAND / 256 + 1) {
        shingles.place(write * 256, (write + 1) * 256);
    }
    while shingles.clean().is_some() {}
    // So many others that the run is forgotten.
    for other in 0..RUNS as u64 {
        let start = 1_000_000 + other * 10_000;
        shingles.place(start, start + 8);
    }
    let bands: Vec<u64> = std::iter::from_fn(|| shingles.clean())
        .map(|band| band.first_sector / BAND)
        .collect();
    assert!(bands.contains(&4), "{bands:?}");
}

#[test]
fn the_map_is_full_long_before_the_cache() {
    let mut shingles = shingles(1 << 30, 100);
    for write in 0..100 {
        assert!(!shingles.is_full(), "{write}");
        shingles.place(write * 5000 + 8, write * 5000 + 16);
    }
    assert!(shingles.is_full() && shingles.used < 1 << 20);
    // The same sectors again take no entry more, but room.
    let used = shingles.used;
    shingles.place(8, 16);
    assert_eq!(shingles.map.len(), 100);
    assert_eq!(shingles.used, used + 4096);
    shingles.clean();
    assert!(!shingles.is_full());
}

#[test]
fn reads_are_told_where_their_sectors_are() {
    let mut shingles = shingles(1 << 30, 1000);
    shingles.place(1000, 1008);
    shingles.place(5000, 5016);
    assert_eq!(shingles.kept(0, 8), Kept::Home);
    assert_eq!(shingles.kept(1000, 1008), Kept::Cache(0));
    assert_eq!(shingles.kept(5008, 5016), Kept::Cache(4096 + 4096));
    let both = Kept::Both {
        pieces: 1,
        bytes: 2048,
    };
    assert_eq!(shingles.kept(1004, 1012), both);
    // The newest counts.
    shingles.place(5004, 5008);
    let three = Kept::Both {
        pieces: 3,
        bytes: 8192,
    };
    assert_eq!(shingles.kept(5000, 5016), three);
    assert_eq!(shingles.kept(5004, 5008), Kept::Cache(4096 + 8192));
}

#[test]
fn a_leap_goes_on_with_the_run_and_keeps_the_cache() {
    let mut shingles = shingles(1 << 30, 1000);
    shingles.place(900 * BAND + 8, 900 * BAND + 16);
    shingles.place(2 * BAND + 8, 2 * BAND + 16);
    for write in 0..(5 * BAND / 256) {
        shingles.place(write * 256, (write + 1) * 256);
    }
    shingles.leap(100 * BAND + 512);
    assert_eq!(shingles.place(100 * BAND + 512, 100 * BAND + 520), None);
    let left: Vec<u64> = std::iter::from_fn(|| shingles.clean())
        .map(|band| band.first_sector / BAND)
        .collect();
    assert_eq!(left, [900, 0, 1]);
}

proptest! {
    /// Whatever is written, cleaning ends with an empty cache, and until then the map says
    /// of each sector where it was written last.
    #[test]
    fn the_map_is_right_and_cleaning_ends(
        writes in prop::collection::vec((0_u64..12_000, 1_u64..900), 1..120),
    ) {
        let mut shingles = shingles(1 << 40, usize::MAX);
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for (start, count) in writes {
            match shingles.place(start, start + count) {
                Some(offset) => for sector in 0..count {
                    last.insert(start + sector, offset + sector * 512);
                },
                None => for sector in start..start + count {
                    last.remove(&sector);
                },
            }
        }
        for sector in 0..13_000 {
            let kept = last.get(&sector).map_or(Kept::Home, |at| Kept::Cache(*at));
            prop_assert_eq!(shingles.kept(sector, sector + 1), kept, "sector {}", sector);
        }
        let mut cleaned = 0;
        while let Some(band) = shingles.clean() {
            prop_assert!(band.first_sector.is_multiple_of(BAND));
            cleaned += band.cached_bytes / 512;
        }
        prop_assert_eq!(cleaned, last.len() as u64);
        prop_assert_eq!((shingles.used, shingles.map.len(), shingles.turns.len()), (0, 0, 0));
    }
}

/// Two bands' entries that lie one behind the other in the cache are read in one piece.
#[test]
fn a_read_across_two_bands_that_were_written_one_after_the_other_is_one_piece() {
    let mut shingles = shingles(1 << 30, 1000);
    shingles.place(BAND - 256, BAND);
    shingles.place(BAND, BAND + 256);
    shingles.place(5 * BAND, 5 * BAND + 8);
    shingles.place(BAND + 256, BAND + 512);
    assert_eq!(shingles.kept(BAND - 128, BAND + 128), Kept::Cache(128 * 512));
    let (pieces, bytes) = (2, 384 * 512);
    assert_eq!(shingles.kept(BAND - 128, BAND + 384 - 128), Kept::Cache(128 * 512));
    assert_eq!(shingles.kept(BAND, BAND + 384), Kept::Both { pieces, bytes });
}
