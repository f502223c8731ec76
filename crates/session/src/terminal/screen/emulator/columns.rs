//! Inserting and deleting columns, and moving all columns to the left or to the right.

use alacritty_terminal::term::cell::Cell;

use super::{Emulator, cells};

impl Emulator {
    /// Inserts blank columns at a column, between the margins.
    pub(super) fn insert_columns(&mut self, column: usize, count: u16) {
        let count = usize::from(count).min(self.cols() - column);
        let edges = [column, self.cols() - count];
        self.change_rows(edges, |cells, blank| {
            cells[column..].rotate_right(count);
            cells[column..column + count].fill(blank);
        });
    }

    /// Deletes columns from a column on, between the margins.
    pub(super) fn delete_columns(&mut self, column: usize, count: u16) {
        let count = usize::from(count).min(self.cols() - column);
        let edges = [column, column + count];
        let end = self.cols() - count;
        self.change_rows(edges, |cells, blank| {
            cells[column..].rotate_left(count);
            cells[end..].fill(blank);
        });
    }

    /// Changes each row between the margins, if the cursor is between them. Wide characters are parted
    /// at these edges first.
    fn change_rows(&mut self, edges: [usize; 2], change: impl Fn(&mut [Cell], Cell)) {
        if !self.margins.contains(&cells::line_of(&self.grid().cursor)) {
            return;
        }
        let blank = Cell::from(self.grid().cursor.template.bg);
        for line in self.margins.clone() {
            let line = cells::at(line);
            let grid = self.term.grid_mut();
            cells::unwrap(grid, line);
            edges.iter().for_each(|edge| cells::part(&mut grid[line], *edge, &blank));
            change(&mut grid[line][..], blank.clone());
        }
        self.end_wrap();
    }
}
