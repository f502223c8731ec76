//! Relative moves of the cursor, and moves within its row.

use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::Column;
use alacritty_terminal::vte::ansi::Handler as _;

use super::{Emulator, cells};

impl Emulator {
    /// Moves the cursor up. It stops at the top margin, unless it is above that margin already.
    pub(super) fn go_up(&mut self, rows: usize) {
        let line = cells::line_of(&self.term.grid().cursor);
        let top = if line < self.margins.start { 0 } else { self.margins.start };
        self.go_to_line(line.saturating_sub(rows).max(top));
    }

    /// Moves the cursor down. It stops at the bottom margin, unless it is below that margin already.
    pub(super) fn go_down(&mut self, rows: usize) {
        let line = cells::line_of(&self.term.grid().cursor);
        let end = if line < self.margins.end { self.margins.end } else { self.rows() };
        self.go_to_line(line.saturating_add(rows).min(end - 1));
    }

    /// Moves the cursor down one row. At the bottom margin the rows scroll up instead.
    #[inline]
    pub(in super::super) fn index(&mut self) {
        self.term.linefeed();
        self.term.grid_mut().cursor.input_needs_wrap = false;
    }

    /// Moves the cursor to a column of its row.
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
