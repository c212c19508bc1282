use super::{OperationId, Oracle};
use crate::value::Value;

const OLD: Value = Value(1);
const NEW: Value = Value(2);
const NEWER: Value = Value(3);

struct Bench {
    oracle: Oracle,
    next: u64,
}

impl Bench {
    fn new() -> Self {
        Self {
            oracle: Oracle::new([OLD]),
            next: 1,
        }
    }

    fn id(&mut self) -> OperationId {
        self.next += 1;
        OperationId(self.next)
    }

    fn begin(&mut self, value: Value) -> OperationId {
        let write = self.id();
        self.oracle.write_submitted(write, 0, [value]);
        write
    }

    fn write(&mut self, value: Value, force_unit_access: bool) {
        let write = self.begin(value);
        self.oracle
            .write_done(write, (0, 1), true, force_unit_access);
    }

    fn flush(&mut self) {
        let flush = self.id();
        self.oracle.submitted(flush);
        self.oracle.flushed(flush);
    }

    fn reads(&mut self, value: Value) -> bool {
        let read = self.id();
        self.oracle.submitted(read);
        self.oracle.read_done(read, 0, [value]).is_ok()
    }
}

#[test]
fn an_acknowledged_write_is_read_at_once() {
    let mut bench = Bench::new();
    bench.write(NEW, false);
    assert!(!bench.reads(OLD));
    assert!(bench.reads(NEW));
}

#[test]
fn a_write_in_flight_leaves_both() {
    let mut bench = Bench::new();
    let write = bench.begin(NEW);
    assert!(bench.reads(NEW));
    assert!(bench.reads(OLD));
    assert!(!bench.reads(NEWER));
    bench.oracle.write_done(write, (0, 1), false, false);
    assert!(bench.reads(NEW), "a failed write may have landed");
}

#[test]
fn an_unflushed_write_may_be_lost_and_a_flushed_one_not() {
    let mut bench = Bench::new();
    bench.write(NEW, false);
    let mut lost = Bench {
        oracle: bench.oracle.clone(),
        next: 10,
    };
    lost.oracle.power_cut();
    assert!(lost.reads(OLD));
    bench.flush();
    bench.oracle.power_cut();
    assert!(!bench.reads(OLD));
    assert!(bench.reads(NEW));
}

#[test]
fn a_flush_covers_only_what_was_acknowledged_before_it() {
    let mut bench = Bench::new();
    let write = bench.begin(NEW);
    let flush = bench.id();
    bench.oracle.submitted(flush);
    bench.oracle.write_done(write, (0, 1), true, false);
    bench.oracle.flushed(flush);
    bench.oracle.power_cut();
    assert!(bench.reads(OLD));
}

#[test]
fn force_unit_access_is_durable_by_itself() {
    let mut bench = Bench::new();
    bench.write(NEW, true);
    bench.write(NEWER, false);
    bench.oracle.power_cut();
    assert!(!bench.reads(OLD));
    assert!(bench.reads(NEW));
}

#[test]
fn what_a_read_found_is_fixed_until_the_members_change() {
    let mut bench = Bench::new();
    bench.write(NEW, false);
    bench.oracle.power_cut();
    assert!(bench.reads(OLD));
    assert!(!bench.reads(NEW), "fixed");
    bench.oracle.members_changed();
    assert!(bench.reads(NEW));
}

#[test]
fn a_read_from_before_an_acknowledgement_may_see_the_old_value() {
    let mut bench = Bench::new();
    let read = bench.id();
    bench.oracle.submitted(read);
    bench.write(NEW, true);
    bench.flush();
    bench.write(NEWER, false);
    assert!(bench.oracle.read_done(read, 0, [OLD]).is_ok());
}

#[test]
fn settled_sectors_hold_one_value() {
    let mut bench = Bench::new();
    bench.write(NEW, false);
    bench.oracle.power_cut();
    assert!(bench.oracle.settle(0, NEWER).is_err());
    assert!(bench.oracle.settle(0, OLD).is_ok());
    bench.oracle.power_cut();
    assert!(!bench.reads(NEW));
}

#[test]
fn a_discarded_sector_may_hold_anything_until_rewritten() {
    let mut bench = Bench::new();
    let discard = bench.id();
    bench.oracle.discard_submitted(discard, 0, 1);
    bench.oracle.write_done(discard, (0, 1), true, false);
    assert!(bench.reads(NEWER));
    bench.write(NEW, false);
    assert!(!bench.reads(NEWER));
}
