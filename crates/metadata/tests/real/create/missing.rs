//! Arrays of which members are missing from the start.

use super::{members, spec};
use raidlab_geometry::{Layout, Level};
use raidlab_metadata::Version;
use raidlab_metadata::create::{CreateError, plan};

/// Of each layout, which members may be missing together: the others have a copy of all.
#[test]
fn an_array_of_which_some_data_has_no_copy_is_refused() {
    for (level, layout, sizes, without) in [
        (Level::Raid10, "n2", &[0, 0, 96, 96][..], Some(&[0, 1][..])),
        (Level::Raid10, "n2", &[96, 0, 0, 96], None),
        (Level::Raid10, "n2", &[96, 0, 0], Some(&[1, 2])),
        (Level::Raid10, "n3", &[0, 0, 96], None),
        (Level::Raid10, "f2", &[96, 0, 0, 96], Some(&[1, 2])),
        (Level::Raid10, "f2", &[0, 96, 0, 96], None),
        (Level::Raid10, "o2", &[0, 96, 96, 0], Some(&[0, 3])),
        (Level::Raid10, "o2", &[96, 0, 96, 0], None),
        (Level::Raid1, "", &[0, 0, 96], None),
    ] {
        let mut spec = spec(Version::V1_2, level, sizes.len());
        if level == Level::Raid10 {
            spec.layout = Some(Layout::parse(level, layout).expect("a layout"));
        }
        let planned = plan(&spec, &members(sizes)).map(drop);
        let refusal = without.map(|slots| CreateError::NoCopy(slots.to_vec()));
        assert_eq!(planned.err(), refusal, "{layout} {sizes:?}");
    }
    // A spare has no copy.
    let mirror = spec(Version::V1_2, Level::Raid1, 2);
    let planned = plan(&mirror, &members(&[0, 0, 96])).map(drop);
    assert_eq!(planned, Err(CreateError::NoCopy(vec![0, 1])));
}
