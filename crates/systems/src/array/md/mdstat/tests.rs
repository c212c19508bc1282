use super::{MdstatBitmap, parse_mdstat};
use crate::array::SyncKind;
use proptest::prelude::*;

/// Several arrays in several states. The forms are those of the kernel's
/// `md_seq_show`; the figures are made up, but for `md127`, a mirror of two
/// disks of 4 TB.
const MANY: &str = "\
Personalities : [raid1] [raid6] [raid5] [raid4] [raid10] [linear]
md127 : active (auto-read-only) raid1 sdd1[2](F) sdc1[0](W)
      3907017472 blocks super 1.2 [2/1] [U_]
      [===>.................]  recovery = 15.5% (605751360/3907017472) finish=322.5min speed=170572K/sec
      bitmap: 3/30 pages [12KB], 65536KB chunk, file: /var/bits

md6 : active raid6 sdi[8](J) sdh[7] sdg[6](R) sdf[5](S) sda[0]
      5860270080 blocks super 1.2 level 6, 512k chunk, algorithm 2 [8/7] [UUUU_UUU]
        resync=DELAYED
      bitmap: 0/1 pages [0KB], 512B chunk

md10 : active (read-only) raid10 sdm[3] sdl[2] sdk[1] sdj[0]
      209584128 blocks 512K chunks 2 near-copies [4/4] [UUUU]
      \tresync=PENDING

md4 : active raid10 sdn[1] sdo[0]
      1024 blocks super 1.2 2 near-copies [2/2] [UU]
      [>....................]  check =  0.0% (0/0) finish=0.0min speed=0K/sec

md9 : inactive sdp[0](S)
      976631296 blocks super 1.2

unused devices: <none>
";

#[test]
fn every_state_is_understood() {
    let arrays = parse_mdstat(MANY).expect("mdstat");
    let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
    assert_eq!(names, ["md127", "md6", "md10", "md4", "md9"]);

    let mirror = &arrays[0];
    assert_eq!(mirror.read_only.as_deref(), Some("auto-read-only"));
    assert_eq!(mirror.level.as_deref(), Some("raid1"));
    assert!(mirror.devices[0].faulty && mirror.devices[1].write_mostly);
    assert_eq!(
        (mirror.slots, mirror.up.as_slice()),
        (Some((2, 1)), &[true, false][..])
    );
    assert_eq!(mirror.metadata.as_deref(), Some("1.2"));
    let sync = mirror.sync.expect("a recovery");
    assert_eq!(sync.kind, SyncKind::Recovery);
    assert_eq!(sync.done_kib, Some((605_751_360, 3_907_017_472)));
    let percent = sync.percent().expect("it runs");
    assert!((percent - 15.504_188).abs() < 1e-6, "{percent}");
    assert_eq!(sync.finish_minutes, Some(322.5));
    assert_eq!(sync.kib_per_second, Some(170_572));
    let bitmap = MdstatBitmap {
        pages: (3, 30),
        chunk_bytes: 64 << 20,
    };
    assert_eq!(mirror.bitmap, Some(bitmap));

    let raid6 = &arrays[1];
    assert_eq!(raid6.chunk_kib, Some(512));
    assert!(raid6.devices[0].journal && raid6.devices[2].replacement && raid6.devices[3].spare);
    let sync = raid6.sync.expect("a delayed resync");
    assert_eq!((sync.kind, sync.percent()), (SyncKind::Resync, None));
    assert_eq!(raid6.bitmap.map(|bitmap| bitmap.chunk_bytes), Some(512));

    assert_eq!(arrays[2].metadata, None);
    assert_eq!(arrays[2].chunk_kib, Some(512));
    assert_eq!(arrays[2].sync.map(|sync| sync.kind), Some(SyncKind::Resync));
    assert_eq!(arrays[3].sync.expect("a check").percent(), None);
    assert!(!arrays[4].active && arrays[4].level.is_none());
}

/// geomflash/geomflash on GitHub, commit 53edd63,
/// test_raid1/test_raid1_md.log: Linux 3.16.
#[test]
fn the_mirror_of_2015() {
    let text = include_str!("../data/mdstat-2015.txt");
    let arrays = parse_mdstat(text).expect("mdstat");
    insta::assert_snapshot!(format!("{arrays:#?}"));
}

/// Debian's Linux 6.1.192 in QEMU, a mirror and a raid5 of RAM disks.
#[test]
fn two_arrays_of_2026() {
    let text = include_str!("../data/mdstat-6.1.txt");
    let arrays = parse_mdstat(text).expect("mdstat");
    insta::assert_snapshot!(format!("{arrays:#?}"));
}

#[test]
fn a_wrong_line_is_named() {
    let cases = [
        ("md0 : here raid1\n", 1),
        ("md0 : active raid1 sda[x]\n", 1),
        ("md0 : active raid1 sda[0]\n      many blocks\n", 2),
        ("md0 : active raid1 sda[0]\n      resync = 3.0% (1/x)\n", 2),
        ("md0 : active raid1 sda[0]\n      bitmap: none\n", 2),
    ];
    for (text, line) in cases {
        let error = parse_mdstat(text).expect_err(text).to_string();
        let place = format!("cannot understand /proc/mdstat, line {line}: ");
        assert!(error.starts_with(&place), "{error}");
    }
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(
        text in "(md0 : active |raid1 |sda\\[0\\]|\\(F\\)|\n      |[0-9]{1,20} blocks |\\[[U_/2]{0,3}\\] |resync |= |bitmap: |[0-9]/[0-9] pages |KB, |chunk|[ -~]){0,30}"
    ) {
        let _ = parse_mdstat(&text);
    }
}
