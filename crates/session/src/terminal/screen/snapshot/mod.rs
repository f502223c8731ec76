//! The text that repaints a reset terminal.
//!
//! In order: what does not move the cursor, the primary page, the alternate one if it is shown,
//! modes and margins, the cursor, and what is half read. The order matters: what is painted later
//! must not disturb what was set before.
//!
//! - [`of`]: all of it
//! - `paint`: the cells of a page; `pen`: how characters look
//! - `width`: how wide characters are elsewhere
//! - `place`: cursors, those saved too; `modes`: everything that is a switch

mod modes;
mod paint;
mod pen;
mod place;
mod width;

use std::fmt;

use alacritty_terminal::term::TermMode;

use super::Screen;
use super::emulator::Emulator;
use pen::Pen;

/// Writes the text, and knows where that leaves the terminal that will read it.
struct Painter {
    out: String,
    pen: Pen,
    at: At,
    cols: usize,
}

/// Where the cursor is, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Nowhere,
    /// Somewhere in a row: terminals differ in how wide what was printed there is.
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
    };
    modes::colours(&mut painter, emulator);
    modes::titles(&mut painter, &emulator.titles);
    modes::tabs(&mut painter, &emulator.tabs);
    pages(&mut painter, emulator);
    modes::switches(&mut painter, emulator);
    let top = modes::margins(&mut painter, emulator);
    screen.printed = last(&mut painter, emulator, top, screen.printed);
    painter.out.push_str(&screen.scanner.tail());
    painter.out
}

fn pages(painter: &mut Painter, emulator: &Emulator) {
    if let Some(hidden) = emulator.hidden() {
        painter.paint(&hidden.grid);
        painter.place(&hidden.grid, 0);
        modes::keys(painter, &hidden.keys);
        painter.alternate(&hidden.grid.cursor);
        // Terminals have one set of tab stops, or one for each page.
        modes::tabs(painter, &emulator.tabs);
    }
    painter.save(emulator.grid());
    painter.paint(emulator.grid());
    modes::keys(painter, &emulator.keys);
}

/// Puts the cursor in its place, and ends with the character just printed, so that it can still be
/// repeated or marked. Returns that character, or none if it cannot be: then neither terminal
/// repeats it.
fn last(
    painter: &mut Painter,
    emulator: &Emulator,
    top: usize,
    printed: Option<char>,
) -> Option<char> {
    let grid = emulator.grid();
    let cell = printed.and_then(|character| place::printed(grid, emulator, character));
    match cell {
        Some((column, _)) => painter.stand_at(grid, column, top),
        None => painter.place(grid, top),
    }
    painter.designate(&grid.cursor);
    modes::charset(painter, emulator.charset);
    let (character, (_, cell)) = printed.zip(cell)?;
    if emulator.has(TermMode::INSERT) {
        // What is printed moves the rest of the row to where it is.
        painter.make_room(cell);
    }
    painter.out.push(character);
    painter.out.extend(cell.zerowidth().unwrap_or_default());
    Some(character)
}

impl Painter {
    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(&mut self.out, text);
    }
}
