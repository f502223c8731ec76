//! The cursors of both pages and the saved cursors: their positions, pens and character sets.

use alacritty_terminal::grid::{Cursor, Grid};
use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};

use super::super::cells;
use super::super::emulator::{Charsets, Emulator};
use super::pen::Pen;
use super::{At, Painter};

/// The column and the cell of `character`, which was just printed. `None` if printing the character
/// there again, with its marks, would change the screen.
pub(super) fn printed<'a>(
    grid: &'a Grid<Cell>,
    emulator: &Emulator,
    character: char,
) -> Option<(usize, &'a Cell)> {
    let cursor = &grid.cursor;
    let row = cells::row(grid, cells::line_of(cursor));
    let next = cursor.point.column.0 + usize::from(cursor.input_needs_wrap);
    let mut column = next.checked_sub(1)?;
    if cells::is_spacer(&row[column]) {
        column = column.checked_sub(1)?;
    }
    let cell = &row[column];
    // If this cell does not end at the cursor, the character did not fit into the row and was not
    // printed.
    let ends_here = column + cells::width(cell) == next;
    let same = cell.c == emulator.charset().map(character)
        && Pen::of(cell) == Pen::of(&cursor.template)
        && !cells::is_wrapped(cell);
    // Inserting the character again would move the mark of a wrapped line away from the row's end.
    let moves_a_mark = emulator.has(TermMode::INSERT) && row.last().is_some_and(cells::is_wrapped);
    (ends_here && same && !moves_a_mark).then_some((column, cell))
}

impl Painter {
    /// Puts the cursor where that of `grid` is, in a terminal that counts rows from `top`.
    pub(super) fn place_cursor(&mut self, grid: &Grid<Cell>, top: usize) {
        let cursor = &grid.cursor;
        let line = cells::line_of(cursor);
        if cursor.input_needs_wrap {
            self.place_cursor_behind(grid, line, top);
        } else {
            self.go(line.saturating_sub(top), cursor.point.column.0);
        }
        self.set_pen(Pen::of(&cursor.template));
        self.at = At::Unknown;
    }

    /// Puts the cursor into `column` of its row, and sets its pen.
    pub(super) fn place_cursor_at(&mut self, grid: &Grid<Cell>, column: usize, top: usize) {
        self.go(cells::line_of(&grid.cursor).saturating_sub(top), column);
        self.set_pen(Pen::of(&grid.cursor.template));
        self.at = At::Unknown;
    }

    /// Deletes the cells of the character under the cursor, since the character is inserted again next.
    pub(super) fn make_room(&mut self, cell: &Cell) {
        let wide = cell.flags.contains(Flags::WIDE_CHAR);
        self.out.push_str(if wide { "\x1b[2P" } else { "\x1b[P" });
    }

    /// Puts the cursor behind the last column. Only printing gets it there, so the last character is
    /// printed again.
    fn place_cursor_behind(&mut self, grid: &Grid<Cell>, line: usize, top: usize) {
        let row = cells::row(grid, line);
        let last = row.len() - 1;
        let column = last - usize::from(cells::is_spacer(&row[last]));
        self.go(line.saturating_sub(top), column);
        self.match_pen(&row[column]);
        self.out.push(row[column].c);
        self.out.extend(row[column].zerowidth().unwrap_or_default());
        // This sequence has no effect. It separates the character from the output that follows, which
        // must not be able to repeat it.
        self.out.push_str("\x1b\\");
    }

    /// Saves a cursor and its character sets. The page must be blank, since a blank is printed to get the
    /// cursor behind the last column.
    pub(super) fn save(&mut self, saved: &Cursor<Cell>, charsets: Charsets) {
        if is_default(saved, charsets) {
            return;
        }
        let line = cells::line_of(saved);
        if saved.input_needs_wrap {
            self.set_pen(Pen::default());
            self.go(line, self.cols - 1);
            self.out.push(' ');
        } else {
            self.go(line, saved.point.column.0);
        }
        self.set_pen(Pen::of(&saved.template));
        self.designate(charsets);
        self.out.push_str("\x1b7");
        self.undesignate(charsets);
        self.set_pen(Pen::default());
        self.at = At::Unknown;
    }

    /// Saves the cursor of the alternate page, which is not shown.
    pub(super) fn save_alternate(&mut self, saved: &Cursor<Cell>, charsets: Charsets) {
        if !is_default(saved, charsets) {
            self.out.push_str("\x1b[?1049h");
            self.save(saved, charsets);
            self.out.push_str("\x1b[?1049l");
        }
    }

    /// Shows the alternate page, blank and with a plain pen. Its cursor begins where that of the primary
    /// page is.
    pub(super) fn show_alternate(&mut self, cursor: &Cursor<Cell>, charsets: Charsets) {
        self.designate(charsets);
        self.out.push_str("\x1b[?1049h");
        self.undesignate(charsets);
        let coloured = cursor.template.bg != Cell::default().bg;
        self.set_pen(Pen::default());
        if coloured {
            // The page was blanked in the pen's background.
            self.out.push_str("\x1b[2J");
        }
        self.at = At::Unknown;
    }

    /// Names the character sets, in a terminal that has the default sets.
    pub(super) fn designate(&mut self, charsets: Charsets) {
        for (place, set) in charsets.special() {
            self.out.extend(['\x1b', place, set.name()]);
        }
    }

    fn undesignate(&mut self, charsets: Charsets) {
        for (place, _) in charsets.special() {
            self.out.extend(['\x1b', place, 'B']);
        }
    }
}

fn is_default(cursor: &Cursor<Cell>, charsets: Charsets) -> bool {
    cursor.point.line == cells::at(0)
        && cursor.point.column == Column(0)
        && !cursor.input_needs_wrap
        && Pen::of(&cursor.template) == Pen::default()
        && charsets == Charsets::default()
}
