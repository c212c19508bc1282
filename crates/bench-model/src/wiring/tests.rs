use super::*;
use crate::presets;

fn numbers(count: usize) -> Vec<DiskParameters> {
    let preset = presets::load("wd4000fyyz").expect("built in");
    let strict = preset.parameters("strict").expect("its set");
    vec![strict.clone(); count]
}

fn region(drive: &str, channel: &str, start: u64, size: u64) -> Region {
    Region {
        drive: drive.to_owned(),
        channel: channel.to_owned(),
        start: Bytes(start << 30),
        size: (size > 0).then_some(Bytes(size << 30)),
        bus: None,
        first_sector: 0,
        state: String::new(),
    }
}

fn is_port(wired: &Wired) -> bool {
    wired.disk.is_shared()
}

#[test]
fn who_says_nothing_gets_a_whole_disk() {
    let wired = wire(&[], &numbers(3), &Stream::new(1)).expect("whole disks");
    assert_eq!(wired.len(), 3);
    for one in &wired {
        assert!(!is_port(one) && !one.disk.one_at_a_time() && !one.fixed_size);
        assert_eq!(one.size, Sectors(7_814_037_168));
    }
}

#[test]
fn parts_and_cables_are_ports_in_the_order_of_members() {
    let regions = [
        region("a", "ide0", 140, 10),
        region("", "", 0, 0),
        region("b", "ide0", 0, 10),
        region("c", "", 20, 10),
        region("c", "", 30, 20),
    ];
    let wired = wire(&regions, &numbers(5), &Stream::new(1)).expect("they fit");
    let ports: Vec<bool> = wired.iter().map(is_port).collect();
    assert_eq!(ports, [true, false, true, true, true]);
    let cables: Vec<bool> = wired.iter().map(|one| one.disk.one_at_a_time()).collect();
    assert_eq!(cables, [true, false, true, false, false]);
    let sizes: Vec<u64> = wired.iter().map(|one| one.size.0 >> 21).collect();
    assert_eq!(sizes, [10, 3726, 10, 10, 20]);
}

#[test]
fn a_part_that_its_drive_has_not_is_an_error() {
    let error = wire(&[region("a", "", 3720, 10)], &numbers(1), &Stream::new(1))
        .expect_err("4 TB are 3726 GiB");
    assert_eq!((error.member, error.end), (0, Bytes(3730 << 30)));
    let error = sizes(&[region("a", "", 4000, 0)], &numbers(1)).expect_err("behind the end");
    assert_eq!(error.member, 0);
}
