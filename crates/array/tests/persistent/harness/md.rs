//! Arrays that predict what md does.

use raidlab_array::{HostRequests, MdRules, MdThreads};
use raidlab_units::Nanos;

/// What makes an engine imitate md, as a Linux with these rules has it.
pub const fn as_md(rules: MdRules) -> Option<MdThreads> {
    Some(MdThreads {
        turnaround: Nanos::ZERO,
        requests: HostRequests::SATA,
        plugs: false,
        rules,
        one_processor: false,
    })
}
