use super::Parameters;
use crate::medium::MediumParameters;
use crate::{Command, CommandKind, Disk, DiskParameters};
use raidlab_random::Stream;
use raidlab_units::{BytesPerSecond, Nanos, Sectors};

/// Tag and time of each completion of commands that come at their times.
fn completions(commands: &[(u64, CommandKind, u64, u64)]) -> Vec<(u64, u64)> {
    let medium = MediumParameters::Constant(Parameters {
        access: Nanos(8_000_000),
    });
    let parameters =
        DiskParameters::uniform(Sectors(1 << 20), BytesPerSecond(170_000_000.0), medium);
    let mut disk = Disk::new(parameters, Nanos::ZERO, Stream::new(0));
    for (tag, &(at, kind, start, count)) in (0..).zip(commands) {
        let (start, count) = (Sectors(start), Sectors(count));
        let command = Command {
            tag,
            kind,
            start,
            count,
        };
        disk.submit(Nanos(at), command);
    }
    let mut all = Vec::new();
    while let Some(time) = disk.next_event() {
        let mut done = Vec::new();
        disk.advance(time, &mut done);
        all.extend(done.iter().map(|one| (one.tag, time.0)));
    }
    assert!(disk.is_quiet());
    all
}

#[test]
fn times_by_hand() {
    use CommandKind::{Flush, Read, Write};
    // 4096 bytes at 170 MB/s: 24094 ns. The first continues at sector 0.
    let commands = [
        (100, Read, 0, 8),
        (200, Write, 8, 8),
        (300, Flush, 0, 0),
        (400, Read, 0, 8),
        (20_000_000, Read, 8, 16),
    ];
    assert_eq!(
        completions(&commands),
        [
            (0, 24_194),
            (1, 48_288),
            (2, 48_288),
            (3, 8_072_382),
            (4, 20_048_188),
        ]
    );
}
