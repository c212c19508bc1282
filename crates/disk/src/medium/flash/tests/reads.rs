//! Reads of one page of flash after the other, and of streams.

use super::*;

/// Four logical pages in a page of flash.
fn large_pages() -> Parameters {
    Parameters { page: Bytes(4 * 4096), ..flash() }
}

/// A page stays in its die's register, from which each of its parts is sent.
#[test]
fn parts_of_a_page_are_sensed_once() {
    let backwards = |at| [24, 16, 8, 0].map(|sector| (at, Read, sector, 8));
    assert_eq!(run(&mut disk(large_pages(), 64), &backwards(0)), [100; 4]);
    // The same die's next page takes its place.
    let other = [(0, Read, 0, 8), (200, Read, 128, 8), (400, Read, 8, 8), (600, Read, 0, 8)];
    assert_eq!(run(&mut disk(large_pages(), 64), &other), [100, 300, 500, 600]);
    // So does what the die programs, here four pages on four dies that a flush closes.
    let program = [(0, Read, 0, 8), (200, WriteThrough, 64, 128), (5000, Read, 8, 8)];
    assert_eq!(run(&mut disk(large_pages(), 64), &program), [100, 1201, 5100]);
}

/// Pages that were written one by one lie apart, and what is written anew is not in a register.
#[test]
fn a_register_holds_what_was_written_together() {
    let mut drive = disk(large_pages(), 64);
    let alone = [(0, WriteThrough, 8, 8), (5000, Read, 0, 8), (6000, Read, 24, 8), (7000, Read, 8, 8)];
    let ends = run(&mut drive, &alone);
    assert_eq!(ends[1..], [5100, 6000, 7100]);
}

/// Small writes one after the other fill a page of flash, unless a flush comes between them, and
/// small writes elsewhere do not.
#[test]
fn small_writes_in_order_share_a_page() {
    let one_die = Parameters {
        dies: 1,
        channels: 1,
        ..large_pages()
    };
    let ends = |writes: &[(u64, CommandKind, u64, u64)]| {
        let reads = [24, 16, 8].map(|sector| (50_000, Read, sector, 8));
        let ends = run(&mut disk(one_die, 64), &[writes, &reads].concat());
        ends[writes.len()..].to_vec()
    };
    let writes = |sectors: [u64; 5]| sectors.map(|sector| (0, Write, sector, 8));
    assert_eq!(ends(&writes([0, 8, 16, 24, 32])), [50_100; 3]);
    assert_eq!(ends(&writes([32, 24, 16, 8, 0])), [50_100, 50_200, 50_300]);
    let flush = |at: u64| [(at, Write, at / 3000 * 8, 8), (at + 1, Flush, 0, 0)];
    let flushed: Vec<_> = (0..5).flat_map(|turn| flush(turn * 3000)).collect();
    assert_eq!(ends(&flushed), [50_100, 50_200, 50_300]);
}

/// Of a large drive's pages a third is kept in the map, here that of sector 0 and not that of 8. A
/// page that is written anew in part is read for each write.
#[test]
fn what_is_written_anew_leaves_the_register() {
    let numbers = DiskParameters {
        write_window: 64,
        ..DiskParameters::uniform(
            Sectors(8 * 3_000_000),
            BytesPerSecond(4096e9),
            MediumParameters::Flash(flash()),
        )
    };
    for sector in [0, 8] {
        let mut drive = Disk::new(numbers.clone(), Nanos::ZERO, Stream::new(1));
        let parts = [0, 5000, 9000].map(|at| (at, Write, sector, 7));
        assert_eq!(run(&mut drive, &parts), [100, 5100, 9100], "sector {sector}");
    }
}

/// Of a stream what follows is fetched, as much as it has had since its first read.
#[test]
fn a_stream_is_read_ahead() {
    let one = |at, sector| (at, Read, sector, 8);
    let stream = [one(0, 0), one(1000, 8), one(2000, 16), one(3000, 24), one(4000, 32)];
    assert_eq!(run(&mut disk(flash(), 8), &stream), [100, 1100, 2000, 3000, 4000]);
    // Who comes while it is on its way waits for it, and not twice.
    let quick = [one(0, 0), one(0, 8), one(50, 16), one(60, 24)];
    assert_eq!(run(&mut disk(flash(), 8), &quick), [100, 100, 100, 150]);
    // Three reads apart are no stream, and one that is read backwards is none.
    let apart = [one(0, 0), one(1000, 16), one(2000, 32), one(3000, 24), one(4000, 8)];
    assert_eq!(run(&mut disk(flash(), 8), &apart), [100, 1100, 2100, 3100, 4100]);
}

/// Streams side by side are told apart.
#[test]
fn many_streams_are_read_ahead() {
    let reads: Vec<_> = (0..16 * 8)
        .map(|turn| (turn * 1000, Read, turn % 16 * 2048 + turn / 16 * 8, 8))
        .collect();
    let ends = run(&mut disk(flash(), 8), &reads);
    for (turn, (end, read)) in ends.iter().zip(&reads).enumerate() {
        assert_eq!(end - read.0, if turn < 32 { 100 } else { 0 }, "read {turn}");
    }
}

/// What is written or trimmed ahead of a stream is not answered from what was there before.
#[test]
fn what_is_written_ahead_of_a_stream_ends_it() {
    for (kind, wanted) in [(WriteThrough, 100), (Discard, 0)] {
        let commands = [(0, Read, 0, 8), (500, Read, 8, 8), (1000, kind, 16, 8), (5000, Read, 16, 8)];
        assert_eq!(run(&mut disk(flash(), 8), &commands)[3], 5000 + wanted, "{kind:?}");
    }
    // Elsewhere it does not.
    let commands = [(0, Read, 0, 8), (500, Read, 8, 8), (1000, WriteThrough, 24, 8), (5000, Read, 16, 8)];
    assert_eq!(run(&mut disk(flash(), 8), &commands)[3], 5000);
}

/// No die reads for a stream beyond the end of the drive, and the last read ends it.
#[test]
fn a_stream_ends_with_the_drive() {
    let mut drive = disk(flash(), 8);
    let last = 8 * 4096;
    let commands = [(0, Read, last - 24, 8), (500, Read, last - 16, 8), (1000, Read, last - 8, 8)];
    assert_eq!(run(&mut drive, &commands), [100, 600, 1000]);
    assert!(drive.is_quiet());
}

/// At any depth small reads in order are at least as quick as reads in random order.
#[test]
fn reads_in_order_are_no_slower_than_random_ones() {
    let rate = |depth: usize, page: fn(u64) -> u64| {
        let mut drive = disk(large_pages(), 64);
        let mut completions = Vec::new();
        let mut now = Nanos::ZERO;
        let mut sent = 0;
        let mut send = |drive: &mut Disk, now| {
            let (tag, start, count) = (sent, Sectors(page(sent) * 8), Sectors(8));
            sent += 1;
            drive.submit(now, Command { tag, kind: Read, start, count });
        };
        (0..depth).for_each(|_| send(&mut drive, now));
        let mut done = 0;
        while done < 2000 {
            now = drive.next_event().expect("reads are under way");
            drive.advance(now, &mut completions);
            for _ in completions.drain(..) {
                done += 1;
                send(&mut drive, now);
            }
        }
        2e9 / now.0 as f64
    };
    for depth in [1, 2, 4, 8, 16, 32] {
        let in_order = rate(depth, |turn| turn);
        let random = rate(depth, |turn| Stream::new(turn).below(4096));
        assert!(in_order > random, "depth {depth}: {in_order:.1} and {random:.1} reads a ms");
    }
}
