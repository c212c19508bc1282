//! The jobs of the 2015 mirror suite, and what the article printed.

use raidlab_store::Operation;

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

const R: Operation = Operation::Read;
const W: Operation = Operation::Write;

macro_rules! jobs {
    ($(($name:literal, $title:literal, $class:literal, $op:ident, $kib:literal, $depth:literal,
        $streams:literal, $iops:expr)),* $(,)?) => {
        [$(Job {
            name: $name, title: $title, class: $class, op: $op, block_kib: $kib,
            queue_depth: $depth, streams: $streams, iops: $iops,
        }),*]
    };
}

pub fn jobs() -> [Job; 30] {
    jobs![
        (
            "1",
            "random write 4 KiB, before filling",
            "random-write",
            W,
            4,
            1,
            1,
            [180.0, 179.0, 179.0, 9608.0]
        ),
        (
            "2",
            "sequential write 128 KiB, first third",
            "sequential-write",
            W,
            128,
            1,
            1,
            [1297.0, 1297.0, 1297.0, 990.0]
        ),
        (
            "3",
            "sequential write 128 KiB, second third",
            "sequential-write",
            W,
            128,
            1,
            1,
            [1190.0, 1190.0, 1190.0, 878.0]
        ),
        (
            "4",
            "sequential write 128 KiB, last third",
            "sequential-write",
            W,
            128,
            1,
            1,
            [1019.0, 1019.0, 1019.0, 753.0]
        ),
        (
            "5",
            "random write 4 KiB, after filling",
            "random-write",
            W,
            4,
            1,
            1,
            [180.0, 177.0, 181.0, 38.0]
        ),
        (
            "6",
            "random read 4 KiB, queue depth 1",
            "random-read",
            R,
            4,
            1,
            1,
            [87.0, 103.0, 88.0, 54.0]
        ),
        (
            "7",
            "random read 4 KiB, queue depth 2",
            "random-read",
            R,
            4,
            2,
            1,
            [175.0, 175.0, 145.0, 116.0]
        ),
        (
            "8",
            "random read 4 KiB, queue depth 3",
            "random-read",
            R,
            4,
            3,
            1,
            [181.0, 190.0, 169.0, 121.0]
        ),
        (
            "9",
            "random read 4 KiB, queue depth 4",
            "random-read",
            R,
            4,
            4,
            1,
            [199.0, 212.0, 192.0, 144.0]
        ),
        (
            "10",
            "random read 4 KiB, queue depth 6",
            "random-read",
            R,
            4,
            6,
            1,
            [219.0, 240.0, 217.0, 153.0]
        ),
        (
            "11",
            "random read 4 KiB, queue depth 8",
            "random-read",
            R,
            4,
            8,
            1,
            [235.0, 258.0, 231.0, 167.0]
        ),
        (
            "12",
            "random read 4 KiB, queue depth 12",
            "random-read",
            R,
            4,
            12,
            1,
            [254.0, 282.0, 252.0, 172.0]
        ),
        (
            "13",
            "random read 4 KiB, queue depth 16",
            "random-read",
            R,
            4,
            16,
            1,
            [273.0, 303.0, 267.0, 186.0]
        ),
        (
            "14",
            "random read 4 KiB, queue depth 24",
            "random-read",
            R,
            4,
            24,
            1,
            [292.0, 327.0, 289.0, 168.0]
        ),
        (
            "15",
            "random read 4 KiB, queue depth 32",
            "random-read",
            R,
            4,
            32,
            1,
            [310.0, 343.0, 309.0, 168.0]
        ),
        (
            "16",
            "random mixed 8 KiB, 67 % reads, queue depth 32",
            "mixed",
            R,
            8,
            32,
            1,
            [158.0, 182.0, 175.0, 144.0]
        ),
        (
            "16",
            "random mixed 8 KiB, 67 % reads, queue depth 32",
            "mixed",
            W,
            8,
            32,
            1,
            [77.0, 83.0, 79.0, 62.0]
        ),
        (
            "17",
            "sequential read 128 KiB, 1 stream",
            "streams",
            R,
            128,
            1,
            1,
            [1357.0, 1329.0, 1333.0, 1014.0]
        ),
        (
            "18",
            "sequential read 128 KiB, 2 streams",
            "streams",
            R,
            128,
            2,
            2,
            [73.0, 1843.0, 1866.0, 1006.0]
        ),
        (
            "19",
            "sequential read 128 KiB, 3 streams",
            "streams",
            R,
            128,
            3,
            3,
            [99.0, 1952.0, 931.0, 622.0]
        ),
        (
            "20",
            "sequential read 128 KiB, 4 streams",
            "streams",
            R,
            128,
            4,
            4,
            [677.0, 1714.0, 1007.0, 595.0]
        ),
        (
            "21",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [172.0, 172.0, 165.0, 58.0]
        ),
        (
            "22",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [221.0, 217.0, 166.0, 51.0]
        ),
        (
            "23",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [282.0, 291.0, 166.0, 45.0]
        ),
        (
            "24",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [322.0, 339.0, 165.0, 45.0]
        ),
        (
            "25",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [324.0, 337.0, 167.0, 47.0]
        ),
        (
            "26",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [321.0, 343.0, 167.0, 48.0]
        ),
        (
            "27",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [308.0, 345.0, 167.0, 49.0]
        ),
        (
            "28",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [309.0, 339.0, 165.0, 48.0]
        ),
        (
            "29",
            "random read 4 KiB, queue depth 32, resync",
            "resync",
            R,
            4,
            32,
            1,
            [310.0, 342.0, 166.0, 50.0]
        ),
    ]
}
