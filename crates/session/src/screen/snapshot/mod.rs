//! The text that repaints a reset terminal.
//!
//! In order: what does not move the cursor, the primary page, the alternate one if it is shown,
//! modes and margins, the cursor, and what is half read. The order matters: what is painted later
//! must not disturb what was set before.
//!
//! - [`of`]: all of it
//! - `paint`: the cells of a page; `pen`: how characters look
//! - `place`: cursors, those saved too; `modes`: everything that is a switch

mod modes;
mod paint;
mod pen;
mod place;

use std::fmt;

use alacritty_terminal::term::TermMode;

use super::Screen;
use super::emulator::Emulator;
use pen::Pen;

/// Writes the text, and knows where that leaves the terminal that will read it.
struct Painter {
    out: String,
    pen: Pen,
    /// Row and column of the cursor, where that is known.
    at: Option<(usize, usize)>,
}

/// The text that repaints `screen`.
pub(super) fn of(screen: &mut Screen) -> String {
    let mut painter =
        Painter { out: String::with_capacity(4096), pen: Pen::default(), at: Some((0, 0)) };
    let emulator = &screen.emulator;
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
    }
    painter.save(emulator.grid());
    painter.paint(emulator.grid());
    modes::keys(painter, &emulator.keys);
}

/// Puts the cursor in its place, and ends with the character just printed, so that it can still be
/// repeated. Returns that character, or none if it cannot be: then neither terminal repeats it.
fn last(
    painter: &mut Painter,
    emulator: &Emulator,
    top: usize,
    printed: Option<char>,
) -> Option<char> {
    let grid = emulator.grid();
    let inserts = emulator.has(TermMode::INSERT);
    let cell = printed.filter(|_| !inserts).and_then(|c| place::printed(grid, emulator, c));
    match cell {
        Some(column) => painter.stand_at(grid, column, top),
        None => painter.place(grid, top),
    }
    painter.designate(&grid.cursor);
    modes::charset(painter, emulator.charset);
    let printed = printed.filter(|_| cell.is_some());
    painter.out.extend(printed);
    printed
}

impl Painter {
    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(&mut self.out, text);
    }
}
