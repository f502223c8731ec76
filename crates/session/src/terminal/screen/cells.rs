//! Keeps the cells in order, so that a snapshot can always repaint the screen.
//!
//! The engine cuts a wide character in half where a program writes, erases or moves one of its two
//! cells, and it moves the mark of a wrapped line away from the line's end. So this module parts the
//! character first: both its cells become blanks, as in other terminals. After a change of the size,
//! which the engine does in one step, it mends all rows.

use alacritty_terminal::grid::{Cursor, Dimensions as _, Grid, Row};
use alacritty_terminal::index::{Column, Line};
pub(super) use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::vte::ansi::{Color, NamedColor};

/// The flags for the relation of a cell to its neighbours. All other flags are about its look.
const STRUCTURE: Flags = Flags::WRAPLINE
    .union(Flags::WIDE_CHAR)
    .union(Flags::WIDE_CHAR_SPACER)
    .union(Flags::LEADING_WIDE_CHAR_SPACER);

/// Looks that the engine has no flags for. The engine has a flag for each of the five kinds of underlines, and
/// never sets two of them. Here combinations of three of these flags stand for the five kinds, and the other two
/// flags mean something else.
pub(super) const BLINKING: Flags = Flags::from_bits_retain(0x8000);
pub(super) const OVERLINE: Flags = Flags::DASHED_UNDERLINE;
/// Not a look: the cell is kept when only unprotected cells are erased.
pub(super) const PROTECTED: Flags = Flags::DOTTED_UNDERLINE;
/// The flags whose combinations stand for the kinds of underlines.
pub(super) const UNDERLINES: Flags =
    Flags::UNDERLINE.union(Flags::DOUBLE_UNDERLINE).union(Flags::UNDERCURL);

/// The flags of a kind of underline: 0 means no underline, then single, double, curly, dotted and dashed. An
/// unknown kind is a single one.
pub(super) const fn underline(kind: u16) -> Flags {
    match kind {
        0 => Flags::empty(),
        2 => Flags::DOUBLE_UNDERLINE,
        3 => Flags::UNDERCURL,
        4 => Flags::UNDERLINE.union(Flags::DOUBLE_UNDERLINE),
        5 => Flags::UNDERLINE.union(Flags::UNDERCURL),
        _ => Flags::UNDERLINE,
    }
}

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

/// The engine's number of a row.
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

/// The number of cells that this cell's character takes.
pub(super) fn width(cell: &Cell) -> usize {
    match cell.flags {
        flags if flags.contains(Flags::WIDE_CHAR) => 2,
        _ => 1,
    }
}

/// Whether a cell is half of a wide character.
pub(super) fn is_wide(cell: &Cell) -> bool {
    cell.flags.intersects(Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER)
}

/// Whether a cell carries the mark that its row goes on in the next one.
pub(super) fn is_wrapped(cell: &Cell) -> bool {
    cell.flags.contains(Flags::WRAPLINE)
}

/// Whether a cell is blank. Its background may have a colour.
pub(super) fn is_erased(cell: &Cell) -> bool {
    cell.c == ' '
        && cell.flags.is_empty()
        && cell.fg == Color::Named(NamedColor::Foreground)
        && has_no_extras(cell)
}

/// Whether a cell is blank and has no colour, as after a reset.
pub(super) fn is_plain(cell: &Cell) -> bool {
    is_erased(cell) && cell.bg == Color::Named(NamedColor::Background)
}

fn has_no_extras(cell: &Cell) -> bool {
    cell.extra.is_none()
        || (cell.zerowidth().unwrap_or_default().is_empty()
            && cell.underline_color().is_none()
            && cell.hyperlink().is_none())
}

/// Replaces both cells of a wide character with `blank`, if the character begins before `column` and ends
/// in it.
pub(super) fn part(row: &mut Row<Cell>, column: usize, blank: &Cell) {
    let Some(first) = column.checked_sub(1) else { return };
    if row[..].get(column).is_some_and(is_spacer) {
        row[Column(first)] = blank.clone();
        row[Column(column)] = blank.clone();
    }
}

/// Mends all rows and both cursors, after the grid was resized.
pub(super) fn mend(grid: &mut Grid<Cell>) {
    for line in 0..grid.screen_lines() {
        // Access to the whole row marks all its cells as used. The engine clears a row only as far as
        // it is used, unless the row's last cell is not blank; after a resize that cell may be new.
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

/// Marks that the cursor's row goes on in the next one. The cursor must be at the row's end.
pub(super) fn mark_wrapped(grid: &mut Grid<Cell>) {
    grid.cursor_cell().flags.insert(Flags::WRAPLINE);
}

/// Removes the mark from the bottom row: there is no row below it to go on in.
pub(super) fn unwrap_bottom(grid: &mut Grid<Cell>) {
    unwrap(grid, grid.bottommost_line());
}

/// Removes the mark from a row if the cursor is behind its end: the next character decides whether the
/// row goes on.
pub(super) fn settle(grid: &mut Grid<Cell>) {
    if grid.cursor.input_needs_wrap {
        unwrap(grid, grid.cursor.point.line);
    }
}

/// Removes the mark that a row goes on in the next one.
pub(super) fn unwrap(grid: &mut Grid<Cell>, line: Line) {
    let last = grid.last_column();
    if is_wrapped(&grid[line][last]) {
        grid[line][last].flags.remove(Flags::WRAPLINE);
    }
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

/// Whether a whole wide character begins at `column`, with both cells of one look.
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
