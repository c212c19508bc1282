//! md's RAID 10 of Linux 3.13 to 5.3: the current rule, but without its test
//! for non-rotational members.

use raidlab_array::parts::MdRaid10;
use raidlab_array::{Parameter, Rule};

/// The rule of md's RAID 10 of Linux 3.13 to 5.3.
pub(crate) const RULE: Rule = Rule {
    name: "md-raid10-3.13",
    parameter: Parameter::None,
    build: |members, _| Box::new(MdRaid10::new(members, false)),
};
