//! What a subject goes on without.

use super::{Subject, SubjectKind};
use raidlab_systems::ArraySpec;
use raidlab_systems::array::md::MdLevel;

impl Subject {
    /// Whether it goes on without one of its members: not a single disk, not md's
    /// linear and RAID 0.
    #[must_use]
    pub(crate) fn can_lose_a_member(&self) -> bool {
        let bare = matches!(
            &self.build,
            Some(ArraySpec::Md(md)) if matches!(md.level, MdLevel::Linear | MdLevel::Raid0)
        );
        self.kind != SubjectKind::Disk && !bare
    }

    /// Whether it is md's with a bitmap.
    pub(crate) fn has_bitmap(&self) -> bool {
        matches!(&self.build, Some(ArraySpec::Md(md)) if md.has_bitmap())
    }

    /// How many of its `members` may be gone at a time, at most; with which of them it goes on
    /// is another matter.
    pub(crate) fn may_miss(&self, members: usize) -> usize {
        let build = self.build.as_ref().filter(|_| self.can_lose_a_member());
        let most = build.and_then(|build| build.may_miss(members));
        let all_but_one = members.saturating_sub(1);
        most.map_or(all_but_one, |most| most.min(all_but_one))
    }

    /// Why it cannot go on with `gone` of its `members` taken out, whichever they are; `None`:
    /// it may be able to.
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
