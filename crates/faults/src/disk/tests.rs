use super::{Disk, Landing, Overlay, PendingWrite, Tear, TearRates};
use crate::medium::Medium;
use crate::pages::{PAGE_SECTORS, SECTOR};
use raidlab_array::MemberError;
use raidlab_random::Stream;
use std::sync::Arc;

fn bytes(fill: u8, sectors: usize) -> Arc<[u8]> {
    vec![fill; SECTOR * sectors].into()
}

fn first_bytes(disk: &Disk, sectors: u64) -> Vec<u8> {
    (0..sectors)
        .map(|at| disk.pristine().sector(at)[0])
        .collect()
}

#[test]
fn a_flush_saves_what_had_completed_when_it_was_sent() {
    let mut disk = Disk::new(16, false);
    disk.write(0, bytes(1, 1), false);
    let mark = disk.flush_mark();
    disk.write(1, bytes(2, 1), false);
    disk.flush(mark);
    disk.power_cut(Vec::new(), |_, _| Landing::Nothing);
    assert_eq!(first_bytes(&disk, 2), [1, 0]);
}

#[test]
fn an_older_cached_write_never_lands_over_a_durable_one() {
    let mut disk = Disk::new(16, false);
    disk.write(0, bytes(1, 2), false);
    disk.write(0, bytes(2, 1), true);
    disk.power_cut(Vec::new(), |_, _| Landing::All);
    assert_eq!(first_bytes(&disk, 2), [2, 1]);
}

#[test]
fn writes_land_in_order_and_torn() {
    let mut disk = Disk::new(16, false);
    disk.write(0, bytes(1, 4), false);
    let in_flight = PendingWrite {
        stamp: 0,
        start: 1,
        bytes: bytes(2, 3),
        durable: false,
    };
    disk.power_cut(vec![in_flight], |place, _| match place {
        0 => Landing::All,
        _ => Landing::Prefix(2),
    });
    assert_eq!(first_bytes(&disk, 4), [1, 2, 2, 1]);
}

#[test]
fn faults_lie_over_the_pristine_bytes_until_rewritten() {
    let mut disk = Disk::new(16, false);
    disk.write(0, bytes(1, 4), true);
    disk.afflict(1, Overlay::Unreadable);
    disk.afflict(2, Overlay::Wrong(Box::new([9; SECTOR])));
    let mut read = vec![0; SECTOR];
    assert_eq!(disk.read(1, &mut read), Err(MemberError::Medium));
    assert_eq!((disk.read(2, &mut read), read[0]), (Ok(()), 9));
    disk.write(1, bytes(3, 1), false);
    assert_eq!((disk.read(1, &mut read), read[0]), (Ok(()), 3));
    disk.heal();
    assert_eq!((disk.read(2, &mut read), read[0]), (Ok(()), 1));
}

/// Two writes of three pages each, programs of two pages: the second program has the end of
/// the first write and the beginning of the second.
#[test]
fn pages_of_a_program_of_flash_share_their_fate() {
    let rates = TearRates {
        prefix: 100,
        subset: 0,
        whole: 50,
    };
    let medium = Medium::Flash { program_pages: 2 };
    let mut met = [false; 2];
    for seed in 0..32 {
        let mut tear = Tear::new(medium, rates, Stream::new(seed));
        let mut disk = Disk::new(64, false);
        disk.write(1, bytes(1, 23), false);
        disk.write(32, bytes(2, 24), false);
        disk.power_cut(Vec::new(), |_, write| {
            tear.draw(write.start, write.sectors())
        });
        let found = first_bytes(&disk, 64);
        let page = |first: usize| {
            let sectors = &found[first.max(1)..first + PAGE_SECTORS as usize];
            assert!(sectors.iter().all(|byte| *byte == sectors[0]), "{found:?}");
            sectors[0] != 0
        };
        assert_eq!(page(0), page(8));
        assert_eq!(page(16), page(32));
        assert_eq!(page(40), page(48));
        met[usize::from(page(0) != page(16))] = true;
    }
    assert_eq!(met, [true; 2]);
}
