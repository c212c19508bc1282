//! What a disk does with each kind of request, and what it refuses.

use crate::peer::Guest;
use crate::ring::{DISCARD, FLUSH, GET_ID, OUT, Ring, Transfer, WRITE_ZEROES};
use crate::stage::{PROTOCOLS, options, run, simple};
use raidlab_uml_calendar::{CalendarError, DiskOperation, Protocol};
use raidlab_units::{Bytes, Sectors};

fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    // No word of 8 bytes comes twice, so that no two pages are equal.
    let word = |index: u64| (u64::from(seed) << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = (0..bytes.div_ceil(8) as u64).map(word);
    let mut all: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    all.truncate(bytes);
    all
}

/// Performs a request on disk 0 that is to succeed.
fn good(guest: &mut Guest, transfer: &Transfer) -> Vec<u8> {
    let (status, bytes) = guest.perform(0, transfer).unwrap();
    assert_eq!(status, 0, "{transfer:?}");
    bytes
}

fn status(guest: &mut Guest, transfer: &Transfer) -> u8 {
    guest.perform(0, transfer).unwrap().0
}

#[test]
fn what_is_written_is_read_back_and_the_rest_is_zero() {
    for protocol in PROTOCOLS {
        let run = run(vec![simple()], options(protocol), |guest| {
            let bytes = pattern(128 * 1024, 7);
            good(guest, &Transfer::write(1001, bytes.clone()));
            good(guest, &Transfer::write(1008, pattern(4096, 9)));
            let mut indirect = Transfer::read(1000, 4096);
            indirect.indirect = true;
            let first = good(guest, &indirect);
            assert_eq!(first[..512], [0; 512]);
            assert_eq!(first[512..], bytes[..3584]);
            let second = good(guest, &Transfer::read(1008, 4608));
            assert_eq!(second[..4096], pattern(4096, 9));
            assert_eq!(second[4096..], bytes[3584 + 4096..][..512]);
            let last = good(guest, &Transfer::read((1 << 21) - 1, 512));
            assert_eq!(last, [0; 512]);
        });
        run.assert_guest_ended();
        assert_eq!(run.trace.len(), 5);
        assert_eq!(run.trace[0].operation, DiskOperation::Write);
        assert_eq!(run.trace[0].start, Sectors(1001));
        assert_eq!(run.trace[0].count, Sectors(256));
        // 257 sectors from 1001 on touch 33 pages.
        assert_eq!(run.calendar.stored(), Bytes(33 * 4096));
    }
}

#[test]
fn the_configuration_says_what_the_disk_is() {
    let mut disk = simple();
    disk.physical_block = Bytes(4096);
    disk.size = Some(Sectors(1 << 20));
    let run = run(vec![disk], options(Protocol::Messages), |guest| {
        let bytes = guest.drivers[0].configuration.clone();
        assert_eq!(bytes[..8], (1_u64 << 20).to_le_bytes());
        assert_eq!(bytes[8..12], 4096_u32.to_le_bytes(), "a segment is a page");
        assert_ne!(guest.drivers[0].ring.offered & 2, 0, "and that is said");
        assert_eq!(bytes[12..16], 254_u32.to_le_bytes());
        assert_eq!(bytes[20..24], 512_u32.to_le_bytes());
        assert_eq!(bytes[24], 3, "eight logical blocks a physical one");
        assert_eq!(bytes[32], 1, "write-back");
        let long = guest.drivers[0].get_config(200);
        assert_eq!(long[..60], bytes[..]);
        assert_eq!(long[60..], [0; 140]);
        assert_eq!(status(guest, &Transfer::read((1 << 20) - 1, 1024)), 1);
        // The guest switches the write cache off.
        let mut payload = 32_u32.to_le_bytes().to_vec();
        payload.extend([1, 0, 0, 0, 0, 0, 0, 0, 0]);
        guest.drivers[0].tell(25, &payload, None);
        assert_eq!(guest.drivers[0].get_config(60)[32], 0);
    });
    run.assert_guest_ended();
}

#[test]
fn a_disk_tells_its_serial_number() {
    let mut disk = simple();
    disk.serial = "WD-0123".to_owned();
    let run = run(vec![disk], options(Protocol::Messages), |guest| {
        let mut transfer = Transfer::of_kind(GET_ID);
        transfer.room = 20;
        let mut expected = b"WD-0123".to_vec();
        expected.resize(20, 0);
        assert_eq!(good(guest, &transfer), expected);
        transfer.room = 12;
        assert_eq!(status(guest, &transfer), 2);
    });
    assert_eq!(run.trace.len(), 2);
    assert_eq!(run.calendar.counters()[0].in_flight, 0);
}

#[test]
fn requests_that_no_disk_can_do_are_refused() {
    let run = run(vec![simple()], options(Protocol::SharedMemory), |guest| {
        let end = 1 << 21;
        let refused = [
            (Transfer::read(end, 512), 1),
            (Transfer::read(end - 7, 4096), 1),
            (Transfer::read(u64::MAX - 3, 4096), 1),
            (Transfer::read(0, 511), 1),
            (Transfer::read(0, 0), 1),
            (Transfer::write(end - 1, vec![1; 1024]), 1),
            (Transfer::of_kind(OUT), 1),
            (Transfer::range(DISCARD, 0, 8), 2),
            (Transfer::range(WRITE_ZEROES, 0, 8), 2),
            (Transfer::of_kind(99), 2),
        ];
        for (transfer, expected) in refused {
            assert_eq!(status(guest, &transfer), expected, "{transfer:?}");
        }
        // Buffers where no memory is.
        for address in [0, u64::MAX - 100, 0x7fff_ffff_f000] {
            let mut read = Transfer::read(0, 4096);
            read.address = Some(address);
            assert_eq!(status(guest, &read), 1);
            let mut write = Transfer::write(0, vec![0; 4096]);
            write.address = Some(address);
            assert_eq!(status(guest, &write), 1);
        }
        // And the disk still works.
        good(guest, &Transfer::of_kind(FLUSH));
    });
    run.assert_guest_ended();
}

#[test]
fn discards_and_zeroed_ranges_give_pages_back() {
    let mut disk = simple();
    disk.discard = true;
    disk.write_zeroes = true;
    let run = run(vec![disk], options(Protocol::Messages), |guest| {
        good(guest, &Transfer::write(0, pattern(16384, 1)));
        good(guest, &Transfer::range(DISCARD, 8, 8));
        good(guest, &Transfer::range(WRITE_ZEROES, 20, 12));
        let bytes = good(guest, &Transfer::read(0, 16384));
        let mut expected = pattern(16384, 1);
        expected[4096..8192].fill(0);
        expected[20 * 512..].fill(0);
        assert!(bytes == expected);
        assert_eq!(status(guest, &Transfer::range(DISCARD, 0, 65_537)), 1);
        assert_eq!(
            status(guest, &Transfer::range(WRITE_ZEROES, (1 << 21) - 1, 2)),
            1
        );
    });
    assert_eq!(run.calendar.stored(), Bytes(2 * 4096));
    let counters = run.calendar.counters()[0];
    assert_eq!(
        (counters.discards, counters.writes, counters.reads),
        (1, 2, 1)
    );
}

#[test]
fn blocks_of_4096_bytes_are_not_cut() {
    let mut disk = simple();
    disk.logical_block = Bytes(4096);
    disk.physical_block = Bytes(4096);
    let run = run(vec![disk], options(Protocol::Messages), |guest| {
        good(guest, &Transfer::write(8, pattern(4096, 3)));
        assert_eq!(status(guest, &Transfer::read(4, 4096)), 1);
        assert_eq!(status(guest, &Transfer::read(8, 512)), 1);
        assert_eq!(good(guest, &Transfer::read(8, 4096)), pattern(4096, 3));
    });
    run.assert_guest_ended();
}

#[test]
fn a_buffer_in_the_kernels_image_is_read_from_the_process() {
    // This process is the guest: its "kernel image" is any memory of its own.
    let image = pattern(4096, 5);
    let address = 0x8000;
    let mut options = options(Protocol::Messages);
    options.physical_memory_at = image.as_ptr().addr() as u64 - address;
    let run = run(vec![simple()], options, |guest| {
        let mut write = Transfer::write(64, image.clone());
        write.address = Some(address);
        good(guest, &write);
        assert_eq!(good(guest, &Transfer::read(64, 4096)), image);
    });
    run.assert_guest_ended();
}

#[test]
fn a_full_store_ends_the_run_with_the_limit_in_its_error() {
    let mut options = options(Protocol::SharedMemory);
    options.storage_limit = Bytes(64 * 1024);
    let run = run(vec![simple(), simple()], options, |guest| {
        good(guest, &Transfer::write(0, pattern(60 * 1024, 1)));
        guest.perform(1, &Transfer::write(0, pattern(8192, 2)))
    });
    assert_eq!(run.guest, Err(crate::peer::Gone));
    let full = matches!(
        run.ending,
        Err(CalendarError::StorageFull {
            limit_bytes: 65_536
        })
    );
    assert!(full, "{:?}", run.ending);
}

#[test]
fn twelve_disks_of_four_terabytes_cost_what_is_written() {
    let mut disk = simple();
    disk.model.capacity = Sectors(7_814_037_168);
    let run = run(vec![disk; 12], options(Protocol::SharedMemory), |guest| {
        for disk in 0..12 {
            let end = Transfer::write(7_814_037_160, pattern(4096, disk as u8));
            assert_eq!(guest.perform(disk, &end).unwrap().0, 0);
        }
        for disk in 0..12 {
            let end = Transfer::read(7_814_037_160, 4096);
            let (status, bytes) = guest.perform(disk, &end).unwrap();
            assert_eq!((status, bytes), (0, pattern(4096, disk as u8)));
        }
    });
    run.assert_guest_ended();
    assert_eq!(run.calendar.stored(), Bytes(12 * 4096));
}

#[test]
fn slots_do_not_overlap() {
    // The oracle's own memory: a mistake there would be blamed on the device.
    assert!(Ring::slot_at(1) - Ring::slot_at(0) >= 4096 + 128 * 1024);
}
