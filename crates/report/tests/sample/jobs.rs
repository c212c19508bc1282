//! The jobs of the 2015 mirror suite, and what the article printed.

use raidlab_store::Operation;
use raidlab_units::table;

/// A job with the article's figures.
pub struct Job {
    pub name: &'static str,
    pub title: &'static str,
    pub class: &'static str,
    pub op: Operation,
    pub block_kib: u64,
    pub queue_depth: u32,
    pub streams: u32,
    pub iops: [f64; 4],
}

/// Name, class, operation, KiB of a block, queue depth, streams; requests per second on md,
/// gflash, gmirror and ZFS; title.
const JOBS: &str = "\
1   random-write      write    4   1  1  180 179 179 9608     random write 4 KiB, before filling
2   sequential-write  write  128   1  1  1297 1297 1297 990   sequential write 128 KiB, first third
3   sequential-write  write  128   1  1  1190 1190 1190 878   sequential write 128 KiB, second third
4   sequential-write  write  128   1  1  1019 1019 1019 753   sequential write 128 KiB, last third
5   random-write      write    4   1  1  180 177 181 38       random write 4 KiB, after filling
6   random-read       read     4   1  1  87 103 88 54         random read 4 KiB, queue depth 1
7   random-read       read     4   2  1  175 175 145 116      random read 4 KiB, queue depth 2
8   random-read       read     4   3  1  181 190 169 121      random read 4 KiB, queue depth 3
9   random-read       read     4   4  1  199 212 192 144      random read 4 KiB, queue depth 4
10  random-read       read     4   6  1  219 240 217 153      random read 4 KiB, queue depth 6
11  random-read       read     4   8  1  235 258 231 167      random read 4 KiB, queue depth 8
12  random-read       read     4  12  1  254 282 252 172      random read 4 KiB, queue depth 12
13  random-read       read     4  16  1  273 303 267 186      random read 4 KiB, queue depth 16
14  random-read       read     4  24  1  292 327 289 168      random read 4 KiB, queue depth 24
15  random-read       read     4  32  1  310 343 309 168      random read 4 KiB, queue depth 32
16  mixed             read     8  32  1  158 182 175 144      random mixed 8 KiB, 67 % reads, queue depth 32
16  mixed             write    8  32  1  77 83 79 62          random mixed 8 KiB, 67 % reads, queue depth 32
17  streams           read   128   1  1  1357 1329 1333 1014  sequential read 128 KiB, 1 stream
18  streams           read   128   2  2  73 1843 1866 1006    sequential read 128 KiB, 2 streams
19  streams           read   128   3  3  99 1952 931 622      sequential read 128 KiB, 3 streams
20  streams           read   128   4  4  677 1714 1007 595    sequential read 128 KiB, 4 streams
21  resync            read     4  32  1  172 172 165 58       random read 4 KiB, queue depth 32, resync
22  resync            read     4  32  1  221 217 166 51       random read 4 KiB, queue depth 32, resync
23  resync            read     4  32  1  282 291 166 45       random read 4 KiB, queue depth 32, resync
24  resync            read     4  32  1  322 339 165 45       random read 4 KiB, queue depth 32, resync
25  resync            read     4  32  1  324 337 167 47       random read 4 KiB, queue depth 32, resync
26  resync            read     4  32  1  321 343 167 48       random read 4 KiB, queue depth 32, resync
27  resync            read     4  32  1  308 345 167 49       random read 4 KiB, queue depth 32, resync
28  resync            read     4  32  1  309 339 165 48       random read 4 KiB, queue depth 32, resync
29  resync            read     4  32  1  310 342 166 50       random read 4 KiB, queue depth 32, resync
";

pub fn jobs() -> Vec<Job> {
    table(
        JOBS,
        |[name, class, op, kib, depth, streams, iops, title]| {
            let iops: Option<Vec<f64>> = iops.split(' ').map(|each| each.parse().ok()).collect();
            Some(Job {
                name,
                title,
                class,
                op: op.parse().ok()?,
                block_kib: kib.parse().ok()?,
                queue_depth: depth.parse().ok()?,
                streams: streams.parse().ok()?,
                iops: iops?.try_into().ok()?,
            })
        },
    )
}
