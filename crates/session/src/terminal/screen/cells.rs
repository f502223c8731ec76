//! Cells kept in order, so that what is on the screen can always be painted again.
//!
//! The engine lets a program cut a wide character in half, or move the mark of a wrapped line away
//! from the line's end. Here such rests are mended at once: half a wide character becomes a blank,
//! as it does in other terminals.

use alacritty_terminal::grid::{Cursor, Dimensions as _, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};

/// Flags that say how cells hang together, and not how they look.
const STRUCTURE: Flags = Flags::WRAPLINE
    .union(Flags::WIDE_CHAR)
    .union(Flags::WIDE_CHAR_SPACER)
    .union(Flags::LEADING_WIDE_CHAR_SPACER);

/// The visible rows as plain text.
pub(super) fn text(grid: &Grid<Cell>) -> String {
    let mut text = String::new();
    for line in 0..grid.screen_lines() {
        for cell in row(grid, line).iter().filter(|cell| !is_spacer(cell)) {
            text.push(cell.c);
            text.extend(cell.zerowidth().unwrap_or_default());
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

pub(super) fn row(grid: &Grid<Cell>, line: usize) -> &[Cell] {
    &grid[at(line)][..]
}

/// A row's number as the engine has it.
pub(super) fn at(line: usize) -> Line {
    Line(i32::try_from(line).unwrap_or(i32::MAX))
}

/// The row that a cursor is in.
pub(super) fn line_of(cursor: &Cursor<Cell>) -> usize {
    usize::try_from(cursor.point.line.0).unwrap_or_default()
}

pub(super) fn looks(cell: &Cell) -> Flags {
    cell.flags.difference(STRUCTURE)
}

/// Whether a cell is the second half of a wide character.
pub(super) fn is_spacer(cell: &Cell) -> bool {
    cell.flags.contains(Flags::WIDE_CHAR_SPACER)
}

/// Whether a cell's row goes on in the next one.
pub(super) fn is_wrapped(cell: &Cell) -> bool {
    cell.flags.contains(Flags::WRAPLINE)
}

/// Whether a cell is blank but perhaps for its background.
pub(super) fn is_erased(cell: &Cell) -> bool {
    cell.c == ' '
        && cell.flags.is_empty()
        && cell.fg == Color::Named(NamedColor::Foreground)
        && has_no_extras(cell)
}

/// Whether a cell is as after a reset.
pub(super) fn is_plain(cell: &Cell) -> bool {
    is_erased(cell) && cell.bg == Color::Named(NamedColor::Background)
}

fn has_no_extras(cell: &Cell) -> bool {
    cell.extra.is_none()
        || (cell.zerowidth().unwrap_or_default().is_empty()
            && cell.underline_color().is_none()
            && cell.hyperlink().is_none())
}

/// Mends all rows and both cursors, after the grid was resized.
pub(super) fn mend(grid: &mut Grid<Cell>) {
    for line in 0..grid.screen_lines() {
        // Whether a row needs clearing is told by its last cell, which may be a new one: a row that
        // was reached into is always cleared.
        mend_cells(&mut grid[at(line)][..]);
    }
    unwrap_bottom(grid);
    let last = grid.last_column();
    let Grid { cursor, saved_cursor, .. } = grid;
    for cursor in [cursor, saved_cursor] {
        cursor.input_needs_wrap &= cursor.point.column == last;
    }
    settle(grid);
}

pub(super) fn mend_row(grid: &mut Grid<Cell>, line: usize) {
    if !is_sound(row(grid, line)) {
        mend_cells(&mut grid[at(line)][..]);
    }
}

/// The bottom row has none that it could go on in.
pub(super) fn unwrap_bottom(grid: &mut Grid<Cell>) {
    unwrap(grid, grid.bottommost_line());
}

/// A row with the cursor behind its end does not go on in the next one.
pub(super) fn settle(grid: &mut Grid<Cell>) {
    if grid.cursor.input_needs_wrap {
        unwrap(grid, grid.cursor.point.line);
    }
}

fn unwrap(grid: &mut Grid<Cell>, line: Line) {
    let last = grid.last_column();
    if is_wrapped(&grid[line][last]) {
        grid[line][last].flags.remove(Flags::WRAPLINE);
    }
}

/// The engine marks a blank before a wide character that did not fit: here it is just a blank.
pub(super) fn forget_leading_spacers(grid: &mut Grid<Cell>) {
    let last = grid.last_column();
    let line = grid.cursor.point.line;
    for line in [line - 1usize, line] {
        forget_leading_spacer(grid, line, last);
    }
}

fn forget_leading_spacer(grid: &mut Grid<Cell>, line: Line, last: Column) {
    if line >= Line(0) && grid[line][last].flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
        grid[line][last].flags.remove(Flags::LEADING_WIDE_CHAR_SPACER);
    }
}

fn is_sound(cells: &[Cell]) -> bool {
    let last = cells.len() - 1;
    cells.iter().enumerate().all(|(column, cell)| {
        let flags = cell.flags.intersection(STRUCTURE);
        flags.is_empty()
            || (!flags.contains(Flags::LEADING_WIDE_CHAR_SPACER)
                && (!flags.contains(Flags::WRAPLINE) || column == last)
                && (!flags.contains(Flags::WIDE_CHAR) || is_pair(cells, column))
                && (!is_spacer(cell) || (column > 0 && is_pair(cells, column - 1))))
    })
}

fn mend_cells(cells: &mut [Cell]) {
    let last = cells.len() - 1;
    let mut second = false;
    for column in 0..cells.len() {
        let first = is_pair(cells, column);
        let cell = &mut cells[column];
        cell.flags.remove(Flags::LEADING_WIDE_CHAR_SPACER);
        if column != last {
            cell.flags.remove(Flags::WRAPLINE);
        }
        if cell.flags.contains(Flags::WIDE_CHAR) && !first {
            cell.clear_wide();
        }
        if !second {
            cell.flags.remove(Flags::WIDE_CHAR_SPACER);
        }
        second = first;
    }
}

/// Whether a wide character is whole, and of one look.
fn is_pair(cells: &[Cell], column: usize) -> bool {
    let (Some(first), Some(second)) = (cells.get(column), cells.get(column + 1)) else {
        return false;
    };
    first.flags.contains(Flags::WIDE_CHAR)
        && is_spacer(second)
        && looks(first) == looks(second)
        && (first.fg, first.bg) == (second.fg, second.bg)
        && first.underline_color() == second.underline_color()
        && first.hyperlink() == second.hyperlink()
}
