//! The wire between a solid-state disk and its host, and the controller behind it.
//!
//! - **PCI Express** carries data in packets, in both directions at a time. A lane's bits are 8 of
//!   10 up to generation 2, and 128 of 130 from generation 3 on, less a block in 371 that keeps the
//!   clocks together (a SKP ordered set every 370 to 375 blocks). A packet has 8 bytes of framing,
//!   sequence number and LCRC, and a header of 16 where it has an address of 64 bits, else of 12.
//!   It is acknowledged in the other direction, with 8 bytes. (PCI Express base specifications 1.0
//!   to 5.0; Intel's application notes 456 and 829 on the overhead and its direction.)
//! - **To the host** data go in writes to memory, whose receiver also gives credits back, with 8
//!   bytes more. **To the drive** they come as completions of the drive's reads, of which each asks
//!   for 512 bytes (the default of Linux, by `lspci`). That request is a packet too, without data.
//! - **A payload** is as large as both the drive and the host's port allow: usually 256 bytes up to
//!   generation 3, 512 from generation 4 on. With 256 bytes four lanes of generation 4 carry 7.2 GB/s,
//!   less than makers measure on the hosts that they rate such drives with.
//! - **SATA** carries data in one direction at a time: at 6 Gb/s 8 bits of 10, in frames of 8192
//!   bytes with 16 more (start, header, CRC, end; Serial ATA revision 3.0).

/// The bytes per second of a lane by generation, starting with an unused 0; the overhead of packets
/// is among them.
const LANE: [f64; 6] = [0.0, 250e6, 500e6, 982.0e6, 1963.9e6, 3927.8e6];

/// The largest payload of a packet by generation, in bytes.
const PAYLOAD: [f64; 6] = [1.0, 256.0, 256.0, 256.0, 512.0, 512.0];

/// The bytes of a packet beside its payload: for a completion, and for a packet with an address.
const COMPLETION: f64 = 20.0;
const ADDRESSED: f64 = 24.0;

/// The size of an acknowledgement or an update of credits, in bytes.
const ANSWER: f64 = 8.0;

/// The bytes that a drive requests at a time.
const REQUEST: f64 = 512.0;

/// The bytes of data per second on SATA at 6 Gb/s.
const SATA: f64 = 600e6 * 8192.0 / (8192.0 + 16.0);

/// The last generation of PCI Express that is known.
pub(super) const GENERATIONS: usize = LANE.len() - 1;

/// The controller and the link. Data pass the wire and the drive's own part, each with its rate;
/// answers take only the wire.
#[derive(Debug, Clone)]
pub(super) struct Link {
    /// The times at which wire and drive are free, in and out: on SATA these are one.
    free: [[u64; 2]; 2],
    pub(super) is_half_duplex: bool,
    /// The nanoseconds per byte on the wire in and out, and in the drive.
    wire: [f64; 2],
    drive: f64,
    /// The time of the wire in the other direction that a byte takes.
    other: [f64; 2],
    pub(super) controller_free: u64,
}

impl Link {
    /// Creates a link of a generation of PCI Express with so many lanes, or of SATA if that is 0,
    /// to a drive that is rated for so many bytes per second.
    pub(super) fn new(generation: usize, lanes: u32, rated: f64) -> Self {
        let raw = LANE[generation] * f64::from(lanes);
        let payload = PAYLOAD[generation];
        let (wire, other) = match generation {
            0 => ([1e9 / SATA; 2], [0.0; 2]),
            _ => (
                [
                    1.0 + COMPLETION / payload + 2.0 * ANSWER / REQUEST,
                    1.0 + ADDRESSED / payload,
                ]
                .map(|bytes| bytes * 1e9 / raw),
                [ANSWER / payload + ADDRESSED / REQUEST, 2.0 * ANSWER / payload]
                    .map(|bytes| bytes * 1e9 / raw),
            ),
        };
        Self {
            free: [[0; 2]; 2],
            is_half_duplex: generation == 0,
            wire,
            drive: 1e9 / rated,
            other,
            controller_free: 0,
        }
    }

    /// Transfers so many bytes, from `now` at the earliest; direction 0 is in, 1 is out.
    /// Returns the end.
    pub(super) fn transfer(&mut self, now: u64, direction: usize, bytes: u64) -> u64 {
        let bytes = bytes as f64;
        if !self.is_half_duplex {
            let wire = &mut self.free[1 - direction][0];
            *wire = (*wire).max(now) + (bytes * self.other[direction]) as u64;
        }
        let times = [self.wire[direction], self.drive].map(|time| (bytes * time) as u64);
        self.pass(now, direction, times)
    }

    /// Keeps a direction busy for so long. Returns the end.
    pub(super) fn occupy(&mut self, now: u64, direction: usize, time: u64) -> u64 {
        self.pass(now, direction, [time; 2])
    }

    fn pass(&mut self, now: u64, direction: usize, times: [u64; 2]) -> u64 {
        let direction = if self.is_half_duplex { 0 } else { direction };
        let free = &mut self.free[direction];
        for (free, time) in free.iter_mut().zip(times) {
            *free = (*free).max(now) + time;
        }
        free[0].max(free[1])
    }
}

#[cfg(test)]
mod tests {
    use super::Link;

    /// Gigabytes a second of both directions, where only one is used, and where both are.
    fn rates(generation: usize, lanes: u32, rated: f64) -> [f64; 3] {
        let one = |direction| {
            let mut link = Link::new(generation, lanes, rated);
            let ends = (0..1000).map(|_| link.transfer(0, direction, 1 << 20));
            1000.0 * (1_u64 << 20) as f64 / ends.last().unwrap_or(1) as f64
        };
        let mut link = Link::new(generation, lanes, rated);
        let mut end = 0;
        for turn in 0..2000 {
            end = end.max(link.transfer(0, turn % 2, 1 << 20));
        }
        [one(0), one(1), 1000.0 * (1_u64 << 20) as f64 / end as f64]
    }

    #[test]
    fn a_link_carries_what_packets_leave_of_its_bits() {
        let within = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.002;
        // By hand, for the last two: 128 of 130 bits, 370 blocks of 371; 512 bytes of 548, of 536,
        // and of 568 where the other direction is busy too.
        for (generation, lanes, wanted) in [
            (1, 4, [0.901, 0.914, 0.853]),
            (2, 4, [1.803, 1.829, 1.707]),
            (3, 4, [3.541, 3.591, 3.352]),
            (4, 4, [7.339, 7.504, 7.081]),
            (5, 4, [14.679, 15.008, 14.162]),
        ] {
            let found = rates(generation, lanes, 1e12);
            let right = found.iter().zip(wanted).all(|(&found, wanted)| within(found, wanted));
            assert!(right, "generation {generation}: {found:?}, by hand {wanted:?}");
        }
        // A rating of 7.5 GB/s is possible on four lanes of generation 4.
        assert!(within(rates(4, 4, 7.5e9)[1], 7.5));
        assert!(within(rates(4, 4, 2e9)[2], 2.0), "a rating below what the link carries");
        let sata = rates(0, 0, 1e12);
        assert!(within(sata[1], 0.5988) && within(sata[2], 0.5988 / 2.0), "{sata:?}");
    }
}
