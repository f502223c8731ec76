//! Prints a character: finds its cells, and mends the cells around them.
//!
//! The engine only writes the character's cells. Alone it would keep the look of the other half of a
//! wide character that is printed over, damage a neighbouring cell in insert mode, and not insert a
//! character that wraps.

use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::Handler as _;

use super::{Emulator, cells};

impl Emulator {
    /// Whether printing a character of one cell changes only the cursor's cell.
    #[inline]
    pub(super) fn is_place_free(&self) -> bool {
        let cursor = &self.grid().cursor;
        !cursor.input_needs_wrap
            && !self.has(TermMode::INSERT)
            && !cells::is_wide(&self.grid()[cursor.point])
    }

    /// Prints a character of `width` cells: 1 or 2.
    pub(super) fn print(&mut self, character: char, width: usize) {
        if !self.reach_place(width) {
            return;
        }
        let pen = self.grid().cursor.template.clone();
        let column = self.column();
        if self.has(TermMode::INSERT) {
            self.part(&[column, self.cols() - width], &pen);
            self.push_out(width, &pen);
        } else {
            self.part(&[column, column + width], &pen);
        }
        self.term.input(character);
    }

    /// Parts the wide characters of the cursor's row that begin before one of these columns and end in
    /// it: both cells become `blank`.
    pub(super) fn part(&mut self, columns: &[usize], blank: &Cell) {
        let line = self.grid().cursor.point.line;
        for &column in columns {
            cells::part(&mut self.term.grid_mut()[line], column, blank);
        }
    }

    /// Wraps if the character does not fit into the rest of the row. Returns whether it fits then: where
    /// lines are not wrapped, a wide character does not fit into the last column.
    fn reach_place(&mut self, width: usize) -> bool {
        let wraps = self.has(TermMode::LINE_WRAP);
        if wraps && self.grid().cursor.input_needs_wrap {
            self.wrap();
        }
        if self.column() + width <= self.cols() {
            return true;
        }
        if wraps {
            self.print(' ', 1);
            self.wrap();
        }
        self.end_wrap();
        wraps
    }

    fn wrap(&mut self) {
        cells::mark_wrapped(self.term.grid_mut());
        self.term.linefeed();
        self.go_to_column(0);
        cells::unwrap_bottom(self.term.grid_mut());
    }

    /// Blanks the cells that the next character pushes out of the row: the engine moves them to the cursor,
    /// where half of a wide character would damage the cell beside it.
    fn push_out(&mut self, width: usize, pen: &Cell) {
        let start = self.cols() - width;
        let line = self.grid().cursor.point.line;
        for cell in &mut self.term.grid_mut()[line][Column(start)..] {
            *cell = pen.clone();
        }
    }
}
