//! The text that repaints a reset terminal.
//!
//! The order is: everything that does not move the cursor, the primary page, the alternate page if
//! it is shown, modes and margins, the cursor, and an unfinished control sequence. The order
//! matters: a later part must not disturb an earlier one.
//!
//! - [`of`]: the whole text
//! - `paint`: the cells of a page; `pen`: the looks of characters
//! - `cursor`: the cursors, including saved ones; `modes`: modes, colours, titles and tab stops

mod cursor;
mod modes;
mod paint;
mod pen;

use std::fmt;

use alacritty_terminal::term::TermMode;

use super::Screen;
use super::emulator::{Emulator, Guard};
use pen::Pen;

/// Writes the text, and keeps track of the state of the terminal that will read it.
struct Painter {
    out: String,
    pen: Pen,
    at: At,
    cols: usize,
    /// How cells are protected: two terminals' ways, of which one is in force.
    guard: Guard,
}

/// The position of the cursor, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Unknown,
    /// Somewhere in a row: terminals disagree on the width of the text that was printed there.
    Row(usize),
    /// In a row and a column.
    Cell(usize, usize),
}

/// The text that repaints `screen`.
pub(super) fn of(screen: &mut Screen) -> String {
    let emulator = &screen.emulator;
    let mut painter = Painter {
        out: String::with_capacity(4096),
        pen: Pen::default(),
        at: At::Cell(0, 0),
        cols: emulator.cols(),
        guard: emulator.guard,
    };
    modes::colours(&mut painter, emulator);
    modes::titles(&mut painter, &emulator.titles);
    modes::tabs(&mut painter, &emulator.tabs);
    modes::guard(&mut painter, emulator.guard);
    pages(&mut painter, emulator);
    modes::switches(&mut painter, emulator);
    let top = modes::margins(&mut painter, emulator);
    screen.printed = last(&mut painter, emulator, top, screen.printed);
    painter.out.push_str(&screen.scanner.tail());
    painter.out
}

fn pages(painter: &mut Painter, emulator: &Emulator) {
    if let Some((cursor, charsets)) = emulator.alternate_cursor.as_deref() {
        painter.save_alternate(cursor, *charsets);
    }
    if let Some(hidden) = emulator.hidden() {
        painter.paint(&hidden.grid);
        painter.place_cursor(&hidden.grid, 0);
        modes::keys(painter, &hidden.keys);
        painter.show_alternate(&hidden.grid.cursor, hidden.saved_charsets);
        // Some terminals have a set of tab stops for each page, others one for both.
        modes::tabs(painter, &emulator.tabs);
    }
    painter.save(&emulator.grid().saved_cursor, emulator.saved_charsets);
    painter.paint(emulator.grid());
    modes::keys(painter, &emulator.keys);
}

/// Puts the cursor in its place, and ends with the character just printed, so that the terminal can
/// still repeat it or add marks to it. Returns that character, or `None` if it cannot be printed
/// again: then neither terminal repeats it.
fn last(
    painter: &mut Painter,
    emulator: &Emulator,
    top: usize,
    printed: Option<char>,
) -> Option<char> {
    let grid = emulator.grid();
    let cell = printed.and_then(|character| cursor::printed(grid, emulator, character));
    match cell {
        Some((column, _)) => painter.place_cursor_at(grid, column, top),
        None => painter.place_cursor(grid, top),
    }
    painter.designate(emulator.charsets);
    modes::charset(painter, emulator.charset_in_use);
    let (character, (_, cell)) = printed.zip(cell)?;
    if emulator.has(TermMode::INSERT) {
        // In insert mode, printing moves the rest of the row right to where it is now, so the cells
        // are deleted first.
        painter.make_room(cell);
    }
    painter.out.push(character);
    painter.out.extend(cell.zerowidth().unwrap_or_default());
    Some(character)
}

/// The numbers that give a plain pen the look of the present one, each after a semicolon.
pub(super) fn pen_numbers(emulator: &Emulator) -> String {
    let numbers = Pen::of(&emulator.grid().cursor.template).numbers();
    numbers.replacen("\x1b[", ";", 1)
}

/// The number of the cursor's look; 0 if no program chose it.
pub(super) fn cursor_number(emulator: &Emulator) -> u8 {
    if emulator.has_cursor_style { modes::style_number(emulator) } else { 0 }
}

impl Painter {
    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(&mut self.out, text);
    }
}
