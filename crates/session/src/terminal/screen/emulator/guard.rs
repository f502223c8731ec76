//! Protected cells, and the erasures that spare them.

use std::ops::Range;

use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{ClearMode, LineClearMode};

use super::{Emulator, cells};

/// Which erasures spare protected cells. The way in which a program last protected cells decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Guard {
    /// Nothing was protected yet.
    Off,
    /// Selective erasures only, as with terminals of DEC.
    Selective,
    /// All erasures, as ISO 6429 has it.
    All,
}

impl Emulator {
    /// Protects the characters that are printed from now on, so that these erasures spare them.
    pub(super) fn protect(&mut self, guard: Guard) {
        self.guard = guard;
        self.term.grid_mut().cursor.template.flags.insert(cells::PROTECTED);
    }

    /// Protects no more characters.
    pub(super) fn unprotect(&mut self) {
        self.term.grid_mut().cursor.template.flags.remove(cells::PROTECTED);
    }

    /// Erases the unprotected cells of the cursor's row.
    pub(super) fn erase_selected_in_row(&mut self, mode: &LineClearMode) {
        let (column, line) = (self.column(), self.grid().cursor.point.line);
        let columns = match mode {
            LineClearMode::Right if self.grid().cursor.input_needs_wrap => return,
            LineClearMode::Right => column..self.cols(),
            LineClearMode::Left => 0..column + 1,
            LineClearMode::All => 0..self.cols(),
        };
        self.erase_selected(line, columns);
    }

    /// Erases the unprotected cells of the page.
    pub(super) fn erase_selected_in_page(&mut self, mode: &ClearMode) {
        let line = cells::line_of(&self.grid().cursor);
        let rows = match mode {
            ClearMode::Above => 0..line,
            ClearMode::Below => line + 1..self.rows(),
            ClearMode::All => 0..self.rows(),
            ClearMode::Saved => return,
        };
        match mode {
            ClearMode::Above => self.erase_selected_in_row(&LineClearMode::Left),
            ClearMode::Below => self.erase_selected_in_row(&LineClearMode::Right),
            ClearMode::All | ClearMode::Saved => {}
        }
        for line in rows {
            self.erase_selected(cells::at(line), 0..self.grid().columns());
        }
    }

    /// Erases the unprotected cells among these, and the halves of wide characters beside them.
    pub(super) fn erase_selected(&mut self, line: Line, columns: Range<usize>) {
        let blank = Cell::from(self.grid().cursor.template.bg);
        let row = &mut self.term.grid_mut()[line][..];
        for column in columns {
            let flags = row[column].flags;
            if flags.contains(cells::PROTECTED) {
                continue;
            }
            if flags.contains(Flags::WIDE_CHAR_SPACER) && column > 0 {
                row[column - 1] = blank.clone();
            }
            if flags.contains(Flags::WIDE_CHAR) && column + 1 < row.len() {
                row[column + 1] = blank.clone();
            }
            row[column] = blank.clone();
        }
    }
}
