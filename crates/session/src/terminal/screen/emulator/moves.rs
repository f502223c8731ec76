//! Relative moves of the cursor, and moves within its row.

use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::Handler as _;

use super::modes::REVERSE_WRAP;
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

    /// Obeys a backspace. If it may go back over wrapped lines, it does so from the first column, and it
    /// moves a cursor behind the last column into the last column.
    pub(super) fn step_back(&mut self) {
        let reverses = self.has(TermMode::LINE_WRAP) && self.passed_modes.contains(&REVERSE_WRAP);
        if !reverses {
            self.term.backspace();
        } else if self.grid().cursor.input_needs_wrap {
            self.end_wrap();
        } else if self.column() > 0 {
            self.term.backspace();
        } else {
            self.go_back_over_wrap();
        }
    }

    fn go_back_over_wrap(&mut self) {
        let line = cells::line_of(&self.grid().cursor);
        let is_inside = self.margins.contains(&line) && line > self.margins.start;
        let Some(above) = line.checked_sub(1).filter(|_| is_inside) else { return };
        if cells::row(self.grid(), above).last().is_some_and(cells::is_wrapped) {
            cells::unwrap(self.term.grid_mut(), cells::at(above));
            self.go_to_line(above);
            self.go_to_column(self.cols());
        }
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
