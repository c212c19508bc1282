//! When the commands of a sync leave.

use crate::bench::Bench;
use raidlab_array::{Operation, Slot};
use raidlab_sim::DiskCommand;
use raidlab_units::{Nanos, Sectors};
use std::cell::RefCell;
use std::rc::Rc;

/// Linux 6.1 reads its clock for each bio of 64 KiB, and once for the request (block/blk-core.c,
/// `submit_bio_noacct_nocheck`; block/blk-mq.c, `blk_mq_rq_ctx_init`), which takes 2,048 ns each
/// time in the guest. So the reads of a recovery leave one after the other.
#[test]
fn a_sync_computes_for_each_command_where_the_scheduler_has_a_clock() {
    for clock in [None, Some(Nanos::from_millis(10))] {
        let mut machine = Bench {
            capacity: Some(Sectors(8 << 21)),
            scheduler_clock: clock,
            ..Bench::default()
        }
        .machine();
        let commands: Rc<RefCell<Vec<DiskCommand>>> = Rc::default();
        let log = commands.clone();
        machine.watch_commands(Box::new(move |command| log.borrow_mut().push(*command)));
        machine.fail(Slot(1)).expect("a mirror can spare it");
        machine.remove(Slot(1)).expect("it has failed");
        machine.insert(Slot(1)).expect("it fits");
        machine
            .wait(Nanos::from_millis(100), &mut |_| true)
            .expect("it goes on");
        let mut reads = commands.borrow().clone();
        reads.retain(|it| it.operation == Operation::Read);
        reads.sort_by_key(|it| it.start);
        let computes = |it: &DiskCommand| Nanos(2048 * (it.count.0.div_ceil(128) + 1));
        for pair in reads[..4].windows(2) {
            let apart = pair[1].arrived - pair[0].arrived;
            let expected = clock.map_or(Nanos::ZERO, |_| computes(&pair[1]));
            assert_eq!(apart, expected, "{pair:?}");
        }
    }
}
