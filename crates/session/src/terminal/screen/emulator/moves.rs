//! Where the cursor goes when it is not told a place, but a way.

use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::Column;
use alacritty_terminal::vte::ansi::Handler as _;

use super::{Emulator, cells};

impl Emulator {
    /// Goes up, at most to the top margin if it is not above that.
    pub(super) fn go_up(&mut self, rows: usize) {
        let line = cells::line_of(&self.term.grid().cursor);
        let top = if line < self.margins.start { 0 } else { self.margins.start };
        self.go_to_line(line.saturating_sub(rows).max(top));
    }

    /// Goes down, at most to the bottom margin if it is not below that.
    pub(super) fn go_down(&mut self, rows: usize) {
        let line = cells::line_of(&self.term.grid().cursor);
        let end = if line < self.margins.end { self.margins.end } else { self.rows() };
        self.go_to_line(line.saturating_add(rows).min(end - 1));
    }

    /// Goes down one row, and moves the others up where it cannot.
    #[inline]
    pub(in super::super) fn index(&mut self) {
        self.term.linefeed();
        self.term.grid_mut().cursor.input_needs_wrap = false;
    }

    /// Goes to a column of its row.
    pub(super) fn go_to_column(&mut self, column: usize) {
        let grid = self.term.grid_mut();
        let last = grid.last_column();
        grid.cursor.point.column = Column(column).min(last);
        grid.cursor.input_needs_wrap = false;
    }

    fn go_to_line(&mut self, line: usize) {
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.point.line = cells::at(line);
        cursor.input_needs_wrap = false;
    }
}
