//! The division of the available width among the columns of a table.

use super::Style;
use comfy_table::{ColumnConstraint, Table, Width};
use std::fmt::Write;
use std::ops::Range;

/// The room of a long word, and the gap between two columns.
const WORD: usize = 12;
const BETWEEN: usize = 2;

impl Style {
    /// Prints a table in which these columns must not be broken. Columns of words after them get
    /// the room of a word: the widest of the columns before are broken for it, and where that is
    /// not enough the table is wider than the terminal.
    pub(crate) fn print(&self, text: &mut String, table: &mut Table, whole: Range<usize>) {
        let widths = table.column_max_content_widths();
        let widths: Vec<usize> = widths.into_iter().map(usize::from).collect();
        let words = (whole.start == 0)
            .then(|| widths.get(whole.end..))
            .flatten();
        let words = words.map_or(0, <[usize]>::len);
        let broken = match (self.width, words) {
            (Some(room), 1..) => without_room(&widths, whole.end, room.into()),
            _ => Vec::new(),
        };
        for (place, column) in table.column_iter_mut().enumerate() {
            if whole.contains(&place) && !broken.contains(&place) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            } else if words > 0 && self.width.is_some() {
                let least = widths[place].min(WORD);
                let least = Width::Fixed(u16::try_from(least + BETWEEN).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        let _ = writeln!(text, "{}", table.trim_fmt());
    }
}

/// The columns before `whole` that leave those after it less than a word's room.
fn without_room(widths: &[usize], whole: usize, room: usize) -> Vec<usize> {
    let mut needed = widths.to_vec();
    for width in &mut needed[whole..] {
        *width = WORD.min(*width);
    }
    let mut broken = Vec::new();
    while needed.iter().map(|width| width + BETWEEN).sum::<usize>() > room {
        let all = needed[..whole].iter().enumerate();
        match all.max_by_key(|&(_, width)| *width) {
            Some((place, &width)) if width > WORD => {
                broken.push(place);
                needed[place] = WORD;
            }
            _ => break,
        }
    }
    broken
}
