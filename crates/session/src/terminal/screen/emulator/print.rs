//! Printing a character: where it lands, and what it takes the place of.
//!
//! The engine only writes the cells. It would leave half of a wide character as it looked before,
//! take a cell beside it for that half in insert mode, and not insert where it wraps.

use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::Handler as _;

use super::{Emulator, cells};

impl Emulator {
    /// Whether a character of one cell changes no other cell than that of the cursor.
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

    /// Parts the cursor's row in front of these columns: of a wide character that is on both sides
    /// two of these blanks are left.
    pub(super) fn part(&mut self, columns: &[usize], blank: &Cell) {
        let line = self.grid().cursor.point.line;
        for &column in columns {
            cells::part(&mut self.term.grid_mut()[line], column, blank);
        }
    }

    /// Wraps where the character has no place any more. Returns whether it has one then: a wide one
    /// has none in the last column, where lines are not wrapped.
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

    /// Makes the cells blank that the next character pushes out of the row.
    fn push_out(&mut self, width: usize, pen: &Cell) {
        let start = self.cols() - width;
        let line = self.grid().cursor.point.line;
        for cell in &mut self.term.grid_mut()[line][Column(start)..] {
            *cell = pen.clone();
        }
    }
}
