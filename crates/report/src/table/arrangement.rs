//! The arrangement of a table: subjects as columns or, where they are many, as rows; and how many
//! columns fit beside each other.

use std::ops::Range;

/// The number of characters from which a table without a width is turned.
const LONG_LINE: usize = 160;

/// The size of a table in one of the two arrangements, in characters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// The width of the columns at the left together.
    pub leading: usize,
    /// The width of each column of figures, as its widest figure needs.
    pub cell: usize,
    /// The number of columns of figures.
    pub cells: usize,
}

impl Extent {
    fn whole(self) -> usize {
        self.leading + self.cells * self.cell
    }

    /// The number of columns of each table that fits; at least one.
    fn fits(self, width: Option<usize>) -> usize {
        let most = self.cells.max(1);
        width.map_or(most, |width| {
            (width.saturating_sub(self.leading) / self.cell.max(1)).clamp(1, most)
        })
    }

    fn tables(self, width: Option<usize>) -> usize {
        self.cells.div_ceil(self.fits(width))
    }

    /// The ranges of columns of figures that fit beside each other.
    pub(crate) fn groups(self, width: Option<usize>) -> Vec<Range<usize>> {
        let size = self.fits(width);
        let starts = (0..self.cells).step_by(size);
        starts
            .map(|start| start..(start + size).min(self.cells))
            .collect()
    }
}

/// The arrangement of a table, with the columns of each part.
#[derive(Debug, PartialEq)]
pub(crate) enum Arrangement {
    /// Jobs are rows; these subjects are the columns.
    Upright(Vec<Range<usize>>),
    /// Subjects are rows; these jobs are the columns.
    Turned(Vec<Range<usize>>),
}

/// Chooses jobs as rows, unless that takes twice as many tables within the width; without a width,
/// unless it makes long lines and the other arrangement shorter ones, which are then divided where
/// they are still long.
pub(crate) fn arrange(width: Option<usize>, upright: Extent, turned: Extent) -> Arrangement {
    let turn = match width {
        Some(_) => 2 * turned.tables(width) <= upright.tables(width),
        None => upright.whole() > LONG_LINE && turned.whole() < upright.whole(),
    };
    if turn {
        Arrangement::Turned(turned.groups(width.or(Some(LONG_LINE))))
    } else {
        Arrangement::Upright(upright.groups(width))
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrangement, Extent, arrange};
    use std::ops::Range;

    /// The ranges of an arrangement with a single table.
    fn one(columns: usize) -> Vec<Range<usize>> {
        std::iter::once(0..columns).collect()
    }

    const fn extent(leading: usize, cell: usize, cells: usize) -> Extent {
        Extent {
            leading,
            cell,
            cells,
        }
    }

    #[test]
    fn many_subjects_and_few_jobs_are_turned() {
        let (upright, turned) = (extent(40, 19, 17), extent(22, 19, 5));
        assert_eq!(
            arrange(Some(160), upright, turned),
            Arrangement::Turned(one(5))
        );
        assert_eq!(arrange(None, upright, turned), Arrangement::Turned(one(5)));
        let many = extent(22, 33, 7);
        assert_eq!(
            arrange(None, upright, many),
            Arrangement::Turned(vec![0..4, 4..7])
        );
        assert_eq!(
            arrange(Some(80), upright, turned),
            Arrangement::Turned(vec![0..3, 3..5])
        );
    }

    #[test]
    fn few_subjects_stay_columns() {
        let (upright, turned) = (extent(40, 19, 4), extent(12, 19, 30));
        assert_eq!(
            arrange(Some(160), upright, turned),
            Arrangement::Upright(one(4))
        );
        assert_eq!(arrange(None, upright, turned), Arrangement::Upright(one(4)));
        // Nothing fits, and nothing is lost.
        assert_eq!(
            arrange(Some(10), upright, extent(12, 19, 4)),
            Arrangement::Upright(vec![0..1, 1..2, 2..3, 3..4])
        );
    }
}
