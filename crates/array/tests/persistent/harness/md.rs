//! Arrays that predict what md does.

use raidlab_array::{MdRules, MdThreads};

/// What makes an engine imitate md, as a Linux with these rules has it.
pub const fn as_md(rules: MdRules) -> Option<MdThreads> {
    Some(MdThreads {
        rules,
        ..MdThreads::LINUX_6_12
    })
}
