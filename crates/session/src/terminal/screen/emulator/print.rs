//! Prints a character: finds its cells, and mends the cells around them.
//!
//! The engine only writes the character's own cells. If half of a wide character is printed over, it keeps
//! the look of the other half. In insert mode it damages a neighbouring cell, and does not insert a
//! character that wraps. This module mends that. It writes runs of ASCII, which are most of all output,
//! itself.

use alacritty_terminal::grid::Cursor;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::Handler as _;

use super::super::width::SOFT_HYPHEN;
use super::{Emulator, cells};

impl Emulator {
    /// Prints a run of printable ASCII characters.
    pub(in super::super) fn print_run(&mut self, mut run: &[u8]) {
        while let Some(&first) = run.first() {
            let mut printed = self.print_cells(run);
            if printed == 0 {
                self.print(first.into(), 1);
                printed = 1;
            }
            run = &run[printed..];
        }
    }

    /// Prints the beginning of a run that changes only its own cells of the cursor's row. Returns the number of
    /// characters printed. The engine would do the same character by character, at several times the
    /// cost: it looks up the row, the cell and the character's width each time.
    fn print_cells(&mut self, run: &[u8]) -> usize {
        if self.grid().cursor.input_needs_wrap || self.has(TermMode::INSERT) {
            return 0;
        }
        let Cursor { point, template: pen, .. } = self.grid().cursor.clone();
        let charset = self.charset();
        let (column, cols) = (point.column.0, self.cols());
        let end = cols.min(column + run.len());
        let part = &mut self.term.grid_mut()[point.line][Column(column)..Column(end)];
        // Half of a wide character ends the part: overwriting it changes its other half as well.
        let len = part.iter().position(cells::is_wide).unwrap_or(part.len());
        for (cell, &byte) in part[..len].iter_mut().zip(run) {
            *cell = Cell { c: charset.map(byte.into()), ..pen.clone() };
        }
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.point.column = Column((column + len).min(cols - 1));
        cursor.input_needs_wrap = column + len == cols;
        len
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
        self.put(self.charset().map(character));
    }

    /// Prints a character into its own cells. The engine takes a soft hyphen for a combining mark, so a
    /// hyphen is printed and then replaced.
    fn put(&mut self, character: char) {
        if character != SOFT_HYPHEN {
            return self.term.input(character);
        }
        let point = self.grid().cursor.point;
        self.term.input('-');
        self.term.grid_mut()[point].c = SOFT_HYPHEN;
    }

    /// Parts the wide characters of the cursor's row that begin before one of these columns and end in
    /// it: both cells become `blank`.
    pub(super) fn part(&mut self, columns: &[usize], blank: &Cell) {
        let line = self.grid().cursor.point.line;
        for &column in columns {
            cells::part(&mut self.term.grid_mut()[line], column, blank);
        }
    }

    /// Wraps if the character does not fit into the rest of the row. Returns whether the character then
    /// fits: where lines are not wrapped, a wide character does not fit into the last column.
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
