//! md's RAID 10 of Linux 3.13 to 5.3: the rule of today's without its look at members that
//! do not turn.

use raidlab_array::parts::MdRaid10;
use raidlab_array::{Parameter, Rule};

/// md's RAID 10 of Linux 3.13 to 5.3.
pub(crate) const RULE: Rule = Rule {
    name: "md-raid10-3.13",
    parameter: Parameter::None,
    build: |members, _| Box::new(MdRaid10::new(members, false)),
};
