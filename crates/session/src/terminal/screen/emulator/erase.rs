//! Erasing, inserting and deleting cells of a row, and columns of several rows. None of these leaves half of a
//! wide character.

use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{ClearMode, Handler as _, LineClearMode};

use super::{Emulator, Guard, cells};

impl Emulator {
    pub(super) fn insert_blanks(&mut self, cols: usize) {
        let cols = cols.min(self.cols() - self.column());
        self.part_erasing(&[self.column(), self.cols() - cols]);
        self.term.insert_blank(cols);
        self.end_wrap();
    }

    pub(super) fn delete_cells(&mut self, cols: usize) {
        let cols = cols.min(self.cols() - self.column());
        self.part_erasing(&[self.column(), self.column() + cols]);
        let line = self.grid().cursor.point.line;
        cells::unwrap(self.term.grid_mut(), line);
        self.term.delete_chars(cols);
        self.end_wrap();
    }

    pub(super) fn erase_cells(&mut self, cols: usize) {
        if self.guard == Guard::All {
            let (line, column) = (self.grid().cursor.point.line, self.column());
            self.erase_selected(line, column..self.cols().min(column.saturating_add(cols)));
            return self.end_wrap();
        }
        self.part_erasing(&[self.column(), self.column() + cols]);
        self.term.erase_chars(cols);
        self.end_wrap();
    }

    pub(super) fn erase_in_row(&mut self, mode: LineClearMode) {
        if self.guard == Guard::All {
            return self.erase_selected_in_row(&mode);
        }
        match mode {
            // A cursor behind the last column has nothing to erase to its right.
            LineClearMode::Right if self.grid().cursor.input_needs_wrap => return,
            LineClearMode::Right => self.part_erasing(&[self.column()]),
            LineClearMode::Left => self.part_erasing(&[self.column() + 1]),
            LineClearMode::All => {}
        }
        self.term.clear_line(mode);
    }

    pub(super) fn erase_in_page(&mut self, mode: &ClearMode) {
        if self.guard == Guard::All {
            return self.erase_selected_in_page(mode);
        }
        match mode {
            ClearMode::All => self.term.grid_mut().reset_region(..),
            ClearMode::Saved => {}
            ClearMode::Above => {
                self.erase_rows_above();
                self.erase_in_row(LineClearMode::Left);
            }
            ClearMode::Below => {
                self.erase_in_row(LineClearMode::Right);
                self.erase_rows_below();
            }
        }
    }

    /// Parts wide characters of the cursor's row at these columns, the edges of the cells that are erased
    /// or moved next.
    fn part_erasing(&mut self, columns: &[usize]) {
        let blank = Cell::from(self.grid().cursor.template.bg);
        self.part(columns, &blank);
    }

    fn erase_rows_above(&mut self) {
        let line = self.grid().cursor.point.line;
        self.term.grid_mut().reset_region(..line);
    }

    fn erase_rows_below(&mut self) {
        let next = cells::line_of(&self.grid().cursor) + 1;
        if next < self.rows() {
            self.term.grid_mut().reset_region(cells::at(next)..);
        }
    }

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
