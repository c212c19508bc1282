//! Subjects that are alike but for the number of their members.

use super::super::view::View;
use super::LADDER_STEPS;

/// Subjects of one kind, by their number of members.
#[derive(Debug, PartialEq)]
pub(crate) struct MemberLine {
    /// The common name, with `N` for the number of members.
    pub name: String,
    /// The number of members and the column of each, in the order of members.
    pub columns: Vec<(usize, usize)>,
}

/// All kinds of subjects with several numbers of members; empty where no kind has three.
pub(crate) fn member_lines(view: &View<'_>) -> Vec<MemberLine> {
    let mut all: Vec<MemberLine> = Vec::new();
    for (column, name) in view.names.iter().enumerate() {
        let cells = view.rows.iter().filter_map(|row| row.cells[column]);
        let Some(members) = cells.map(|cell| cell.m.members.len()).max() else {
            continue;
        };
        let name = template(name, members);
        match all.iter_mut().find(|line| line.name == name) {
            Some(line) if line.columns.iter().any(|(own, _)| *own == members) => {}
            Some(line) => line.columns.push((members, column)),
            None => all.push(MemberLine {
                name,
                columns: vec![(members, column)],
            }),
        }
    }
    for line in &mut all {
        line.columns.sort_unstable();
    }
    if all.iter().all(|line| line.columns.len() < LADDER_STEPS) {
        return Vec::new();
    }
    all.retain(|line| line.columns.len() > 1);
    all
}

/// A subject's name with `N` in place of its number of members: it is replaced in `raid5-4`,
/// `raid5-4disks` and `raid5-04` of four members, but not in `raid10` of ten.
fn template(name: &str, members: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in name.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let digits = part.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = part.split_at(digits.unwrap_or(part.len()));
        let own = number
            .parse::<usize>()
            .is_ok_and(|number| number == members);
        parts.push(if own {
            format!("N{rest}")
        } else {
            part.to_owned()
        });
    }
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::{member_lines, template};
    use crate::compute::view::View;
    use crate::sample;
    use raidlab_store::MemberUse;

    #[test]
    fn the_number_of_members_is_taken_out_of_names() {
        assert_eq!(template("raid5-4", 4), "raid5-N");
        assert_eq!(template("raid10-10@host", 10), "raid10-N@host");
        assert_eq!(template("raid5-4disks", 4), "raid5-Ndisks");
        assert_eq!(template("raid10", 10), "raid10");
        assert_eq!(template("raid5-4", 5), "raid5-4");
    }

    #[test]
    fn subjects_of_one_kind_are_a_line() {
        let mut all = Vec::new();
        for members in [6, 2, 4] {
            let mut m = sample::cell(&format!("raid5-{members}"), 0);
            m.members = vec![MemberUse::default(); members];
            all.push(m);
        }
        all.push(sample::cell("zfs", 0));
        let lines = member_lines(&View::of_rows(&all));
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].name, "raid5-N");
        assert_eq!(lines[0].columns, [(2, 1), (4, 2), (6, 0)]);
        all.truncate(2);
        assert!(member_lines(&View::of_rows(&all)).is_empty());
    }
}
