//! gmirror `load`, its default (FreeBSD 10.4 sys/geom/mirror/g_mirror.c,
//! `g_mirror_request_load`; the same in 13 and 14).
//!
//! Per disk: an integer `load`, and `last`, the end of the last read that this
//! algorithm sent (writes do not move it).
//! 1. For each disk in list order: its load, less 512 if the read starts
//!    exactly at `last`, else less 256 if it starts within 1 MiB of it.
//! 2. The smallest wins, ties to the last in the list (to slot 0 of a mirror
//!    as labelled).
//! 3. The read is sent and `last` set to its end.
//! 4. For every disk of the mirror: load = (outstanding * 256 + load * 7) / 8,
//!    truncated, the new read counted. The load changes nowhere else: neither
//!    with time nor on completion.

use crate::gmirror_list::List;
use raidlab_array::{Choice, Io, IoKind, MemberView, Parameter, Read, ReadPolicy, Rule, Slot};
use raidlab_units::{Nanos, Sectors};

/// gmirror's balance algorithm `load`, its default.
pub(crate) const RULE: Rule = Rule {
    name: "gmirror-load",
    parameter: Parameter::None,
    build: |members, _| Box::new(GmirrorLoad::new(members)),
};

/// The load of one outstanding request (`LOAD_SCALE` of g_mirror.c).
const LOAD_SCALE: i64 = 256;
/// `TRACK_SIZE` of g_mirror.c in sectors: 1 MiB.
const TRACK: u64 = 2048;

#[derive(Debug, Clone, Copy, Default)]
struct Disk {
    load: i64,
    last: Sectors,
}

/// The policy described at the top of the file, with the load of each disk.
#[derive(Debug)]
pub(crate) struct GmirrorLoad {
    list: List,
    disks: Vec<Disk>,
}

impl GmirrorLoad {
    pub(crate) fn new(members: usize) -> Self {
        Self {
            list: List::new(members),
            disks: vec![Disk::default(); members],
        }
    }
}

impl ReadPolicy for GmirrorLoad {
    fn choose(&mut self, _now: Nanos, read: &Read, _members: &[MemberView]) -> Option<Choice> {
        let mut best = (i64::MAX, None);
        for slot in self.list.iter() {
            if !read.candidates.contains(slot) {
                continue;
            }
            let disk = &self.disks[slot.index()];
            let bonus = match disk.last.0.abs_diff(read.start.0) {
                0 => 2 * LOAD_SCALE,
                1..TRACK => LOAD_SCALE,
                _ => 0,
            };
            if disk.load - bonus <= best.0 {
                best = (disk.load - bonus, Some(slot));
            }
        }
        best.1.map(|slot| read.all_from(slot))
    }

    fn issued(&mut self, io: &Io, members: &[MemberView]) {
        if io.kind != IoKind::Read {
            return;
        }
        self.disks[io.slot.index()].last = io.end();
        for (disk, member) in self.disks.iter_mut().zip(members) {
            disk.load = (i64::from(member.pending) * LOAD_SCALE + disk.load * 7) / 8;
        }
    }

    fn member_added(&mut self, slot: Slot) {
        self.list.member_added(slot);
        self.disks[slot.index()] = Disk::default();
    }
}

#[cfg(test)]
mod tests {
    use super::GmirrorLoad;
    use crate::testing::Bench;

    fn bench(members: usize) -> Bench {
        Bench::new(members, Box::new(GmirrorLoad::new(members)))
    }

    #[test]
    fn one_random_read_at_a_time_alternates() {
        let mut bench = bench(2);
        // Loads (slot 0, slot 1) after each read: (32,0), (28,32), (56,28),
        // (49,56): the smaller one is always the other slot.
        for (start, slot) in [(100_000, 0), (900_000, 1), (300_000, 0), (700_000, 1)] {
            assert_eq!(bench.read(start, 8), slot);
            bench.complete_read(slot, start, 8);
        }
    }

    #[test]
    fn ties_go_to_the_last_in_the_list() {
        let mut bench = bench(3);
        assert_eq!(bench.read(100_000, 8), 0, "list 2, 1, 0, all loads 0");
    }

    #[test]
    fn an_exact_hit_is_worth_two_requests_and_nearness_one() {
        let mut bench = bench(2);
        assert_eq!(bench.read(100_000, 8), 0);
        // Loads (32, 0).
        assert_eq!(bench.read(100_008, 8), 0, "32 - 512 < 0");
        // Loads ((2*256 + 32*7)/8, 0) = (92, 0); last(0) = 100016.
        assert_eq!(bench.read(102_063, 8), 0, "2047 sectors off: 92 - 256 < 0");
        // Loads ((3*256 + 92*7)/8, 0) = (176, 0); last(0) = 102071.
        assert_eq!(bench.read(104_119, 8), 1, "2048 sectors off: 176 > 0");
        // Loads ((3*256 + 176*7)/8, 32) = (250, 32).
        assert_eq!(bench.read(102_072, 8), 0, "250 - 256 < 32");
        // Loads ((4*256 + 250*7)/8, (256 + 32*7)/8) = (346, 60).
        assert_eq!(bench.read(102_079, 8), 1, "346 - 256 > 60");
    }

    #[test]
    fn writes_move_no_position_but_count_as_outstanding() {
        let mut bench = bench(2);
        bench.write(0, 500_000, 8);
        bench.write(1, 500_000, 8);
        bench.write(1, 600_000, 8);
        assert_eq!(bench.read(100_000, 8), 0, "loads are still 0: tie");
        // Loads (2*256/8, 2*256/8) = (64, 64).
        bench.complete_write(0, 500_000, 8);
        assert_eq!(bench.read(500_008, 8), 0, "tie: the write's end is no hit");
    }

    #[test]
    fn a_third_stream_displaces_another() {
        let mut bench = bench(2);
        let streams = [1_000_000, 2_000_000, 3_000_000];
        assert_eq!(bench.read(streams[0], 256), 0, "loads become (32, 0)");
        assert_eq!(bench.read(streams[1], 256), 1, "loads become (60, 32)");
        assert_eq!(bench.read(streams[2], 256), 1, "stream 1 has lost its disk");
        // Loads ((256 + 60*7)/8, (2*256 + 32*7)/8) = (84, 92).
        assert_eq!(bench.read(streams[1] + 256, 256), 0, "and takes stream 0's");
    }
}
