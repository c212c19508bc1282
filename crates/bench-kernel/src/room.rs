//! The share of this machine's memory that a run takes.
//!
//! A quarter of what is available as the run begins stays free: for the page cache, which holds
//! the newest of the disks' contents in a file, and for other work of the machine. Of the rest
//! each guest that runs at the same time has its own memory and [`BESIDE`]; the disks' contents
//! have the remainder. Where that is too little for all guests that there are processors for,
//! fewer run at a time.

use raidlab_units::Bytes;

/// The memory that a guest takes beside its own: its kernel, its processes' page tables, and the
/// copy of its first file system. Chosen, not measured, and rather large.
pub const BESIDE: Bytes = Bytes(256 << 20);

/// The number of guests that run at a time, and the memory that they and their disks get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The number of guests at the same time, at least one.
    pub guests: usize,
    /// The memory for the contents of the disks of all guests.
    pub storage: Bytes,
}

impl Room {
    /// The room on this machine, for guests of this memory, `wanted` of them at a time.
    ///
    /// # Errors
    /// When the system does not say how much memory is available.
    pub fn of_this_machine(memory: Bytes, wanted: usize) -> std::io::Result<Self> {
        let text = std::fs::read_to_string("/proc/meminfo")?;
        let available = available(&text).ok_or_else(|| {
            std::io::Error::other("`MemAvailable` is not in /proc/meminfo (proc(5))")
        })?;
        Ok(Self::of(available, memory, wanted))
    }

    /// The number of guests of this memory that have room in a folder of shared memory with so much
    /// left: there each has its memory, as a file, and its first file system. A guest that finds
    /// none there panics in the middle of its work.
    #[must_use]
    pub fn in_shared_memory(left: Bytes, memory: Bytes) -> usize {
        let guest = memory.0.saturating_add(BESIDE.0);
        usize::try_from(left.0 / guest).unwrap_or(usize::MAX)
    }

    fn of(available: Bytes, memory: Bytes, wanted: usize) -> Self {
        let shared = available.0 - available.0 / 4;
        let guest = memory.0.saturating_add(BESIDE.0);
        let fitting = usize::try_from(shared / guest).unwrap_or(usize::MAX);
        let guests = fitting.min(wanted).max(1);
        let taken = guest.saturating_mul(guests as u64);
        Self {
            guests,
            storage: Bytes(shared.saturating_sub(taken)),
        }
    }
}

/// Parses the line `MemAvailable` of `/proc/meminfo`, which counts in KiB.
fn available(text: &str) -> Option<Bytes> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_line_is_found() {
        let text = "MemTotal:       24683520 kB\nMemAvailable:   22000000 kB\n";
        assert_eq!(available(text), Some(Bytes(22_000_000 * 1024)));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(available("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn a_quarter_stays_free_and_the_guests_come_first() {
        let room = Room::of(Bytes(24 * GIB), Bytes(2 * GIB), 2);
        let storage = 18 * GIB - 2 * (2 * GIB + 256 * (1 << 20));
        assert_eq!((room.guests, room.storage), (2, Bytes(storage)));
    }

    #[test]
    fn fewer_guests_run_where_not_all_of_them_fit_but_one_always_does() {
        let room = Room::of(Bytes(8 * GIB), Bytes(2 * GIB), 16);
        assert_eq!(room.guests, 2);
        let room = Room::of(Bytes(GIB), Bytes(4 * GIB), 2);
        assert_eq!((room.guests, room.storage), (1, Bytes(0)));
    }

    #[test]
    fn shared_memory_has_room_for_whole_guests() {
        let guests = |left: u64| Room::in_shared_memory(Bytes(left), Bytes(GIB / 2));
        let guest = GIB / 2 + (256 << 20);
        let shares = [64 << 20, guest - 1, guest, 3 * guest, u64::MAX];
        let expected = [
            0,
            0,
            1,
            3,
            usize::try_from(u64::MAX / guest).expect("64 bits"),
        ];
        assert_eq!(shares.map(guests), expected);
    }

    #[test]
    fn this_machine_says_how_much_it_has() {
        let room = Room::of_this_machine(Bytes(1 << 20), 1).expect("Linux says so");
        assert_eq!(room.guests, 1);
    }
}
