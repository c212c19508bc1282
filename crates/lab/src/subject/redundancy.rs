//! The redundancy of a subject: how many members it can lose.

use super::{Subject, SubjectKind};
use raidlab_systems::ArraySpec;
use raidlab_systems::array::md::MdLevel;

impl Subject {
    /// Whether the subject can lose a member: a single disk and md's linear and RAID 0 cannot.
    #[must_use]
    pub(crate) fn can_lose_a_member(&self) -> bool {
        let bare = matches!(
            &self.build,
            Some(ArraySpec::Md(md)) if matches!(md.level, MdLevel::Linear | MdLevel::Raid0)
        );
        self.kind != SubjectKind::Disk && !bare
    }

    /// Whether the subject is an array of md with a bitmap.
    pub(crate) fn has_bitmap(&self) -> bool {
        matches!(&self.build, Some(ArraySpec::Md(md)) if md.has_bitmap())
    }

    /// The largest number of its `members` that may be missing at a time; which ones
    /// is another matter.
    pub(crate) fn may_miss(&self, members: usize) -> usize {
        let build = self.build.as_ref().filter(|_| self.can_lose_a_member());
        let most = build.and_then(|build| build.may_miss(members));
        let all_but_one = members.saturating_sub(1);
        most.map_or(all_but_one, |most| most.min(all_but_one))
    }

    /// The reason why it cannot work with any `gone` of its `members` removed; `None` if it may
    /// be able to.
    pub(crate) fn cannot_miss(&self, gone: usize, members: usize) -> Option<String> {
        let most = self.may_miss(members);
        let name = &self.name;
        match gone {
            _ if gone <= most => None,
            _ if gone >= members => Some("this leaves the array without a member".to_owned()),
            _ => Some(format!(
                "this leaves `{name}` without {gone} of {members} members, and it survives {most}"
            )),
        }
    }
}
