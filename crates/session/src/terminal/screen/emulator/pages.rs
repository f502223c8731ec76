//! The two pages, and the cursor that is saved on each.

use std::mem;

use alacritty_terminal::grid::{Cursor, Dimensions as _, Grid};
use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;

use super::{Charset, Emulator, Hidden, cells};

impl Emulator {
    /// The character set in use.
    pub(in super::super) const fn charset(&self) -> Charset {
        self.charsets.get(self.charset_in_use)
    }

    pub(super) fn save_cursor(&mut self) {
        let grid = self.term.grid_mut();
        grid.saved_cursor = grid.cursor.clone();
        self.saved_charsets = self.charsets;
    }

    pub(super) fn restore_cursor(&mut self) {
        let grid = self.term.grid_mut();
        grid.cursor = grid.saved_cursor.clone();
        self.charsets = self.saved_charsets;
        self.stay_inside();
        cells::settle(self.term.grid_mut());
    }

    /// Shows the alternate page, which is blank each time. The cursor stays where it is; the cursor that
    /// was saved on that page is still there.
    pub(super) fn show_alternate(&mut self) {
        if self.hidden.is_some() {
            return;
        }
        let mut alternate = Grid::new(self.rows(), self.cols(), 0);
        let primary = self.term.grid_mut();
        alternate.cursor = mem::replace(&mut primary.cursor, primary.saved_cursor.clone());
        // Only after the cursor is there: a blank page has the background of its cursor's pen.
        alternate.reset_region(..);
        cells::settle(primary);
        let saved_charsets = self.saved_charsets;
        let (saved, charsets) =
            self.alternate_cursor.take().map(|cursor| *cursor).unwrap_or_default();
        (alternate.saved_cursor, self.saved_charsets) = (saved, charsets);
        let grid = mem::replace(self.term.grid_mut(), alternate);
        let keys = mem::take(&mut self.keys);
        self.hidden = Some(Box::new(Hidden { grid, saved_charsets, keys }));
    }

    /// Shows the primary page. The cursor stays where it is.
    pub(super) fn show_primary(&mut self) {
        let Some(hidden) = self.hidden.take() else { return };
        let Hidden { grid, saved_charsets, keys } = *hidden;
        let alternate = mem::replace(self.term.grid_mut(), grid);
        let charsets = mem::replace(&mut self.saved_charsets, saved_charsets);
        self.keep_alternate_cursor(alternate.saved_cursor, charsets);
        self.keys = keys;
        self.term.grid_mut().cursor = alternate.cursor;
        cells::settle(self.term.grid_mut());
    }

    /// Moves the cursor between the margins if origin mode is on.
    pub(super) fn stay_inside(&mut self) {
        if self.has(TermMode::ORIGIN) {
            let (top, bottom) = (cells::at(self.margins.start), cells::at(self.margins.end - 1));
            let line = &mut self.term.grid_mut().cursor.point.line;
            *line = (*line).clamp(top, bottom);
        }
    }

    /// Keeps the cursor of the alternate page within the screen after its size has changed.
    pub(super) fn clamp_alternate_cursor(&mut self) {
        let (bottom, last) = (self.rows() - 1, self.term.last_column());
        if let Some(saved) = &mut self.alternate_cursor {
            let cursor = &mut saved.0;
            cursor.point.line = cursor.point.line.min(cells::at(bottom));
            cursor.point.column = cursor.point.column.min(last);
            cursor.input_needs_wrap = false;
        }
    }

    fn keep_alternate_cursor(&mut self, cursor: Cursor<cells::Cell>, charsets: super::Charsets) {
        let is_home = cursor.point.line == cells::at(0) && cursor.point.column == Column(0);
        let is_default = is_home
            && !cursor.input_needs_wrap
            && cursor.template == cells::Cell::default()
            && charsets == super::Charsets::default();
        self.alternate_cursor = (!is_default).then(|| Box::new((cursor, charsets)));
    }
}
