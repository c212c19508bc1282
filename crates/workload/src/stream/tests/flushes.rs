//! Flushes between the requests of a job.

use super::{stream, units};
use crate::{Direction, JobSpec, Pattern};
use raidlab_units::Bytes;

/// The numbers of reads, writes and flushes are those of fio 3.33 with `--size=64m --bs=16k
/// --fsync=32 --ioengine=psync` on a file: after each read it asks again for the flush.
#[test]
fn a_mixed_job_flushes_again_after_each_read_until_it_writes() {
    for (pattern, share, seed, counts) in [
        (Pattern::ReadWrite, 80, 77, [3324, 772, 116]),
        (Pattern::RandRw, 50, 77, [2062, 2034, 123]),
        (Pattern::ReadWrite, 80, 5, [3263, 833, 102]),
        (Pattern::RandRw, 50, 5, [2019, 2077, 136]),
    ] {
        let job = JobSpec {
            pattern,
            read_mix_percent: share,
            block_size: Bytes(16 << 10),
            random_seed: Some(seed),
            fsync_every: 32,
            size: Some(Bytes(64 << 20)),
            ..JobSpec::default()
        };
        let units = units(&mut stream(&job, 64 << 20), usize::MAX);
        let count = |direction| units.iter().filter(|it| it.direction == direction).count();
        let done = [Direction::Read, Direction::Write, Direction::Flush].map(count);
        assert_eq!(done, counts, "{pattern:?} {seed}");
    }
}
