//! The cells of a page, onto a blank one, in as few bytes as is easily done.

use alacritty_terminal::grid::{Dimensions as _, Grid};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::super::cells;
use super::Painter;
use super::pen::Pen;

/// Fewer blanks than this are printed, not skipped.
const SHORTEST_SKIP: usize = 5;
/// Fewer erased cells than this are printed, not erased.
const SHORTEST_ERASURE: usize = 10;

impl Painter {
    pub(super) fn paint(&mut self, grid: &Grid<Cell>) {
        let mut continued = false;
        for line in 0..grid.screen_lines() {
            let row = cells::row(grid, line);
            let continues = row.last().is_some_and(cells::is_wrapped);
            let used = row.iter().rposition(|cell| !cells::is_plain(cell)).map_or(0, |at| at + 1);
            self.paint_row(row, line, used.max(usize::from(continued)), continued);
            continued = continues;
        }
    }

    /// Paints the first `end` cells of a row. If it is continued, the cursor is behind the row
    /// above, and the first cell must be printed there: that marks that row as one that goes on.
    fn paint_row(&mut self, row: &[Cell], line: usize, end: usize, continued: bool) {
        let mut column = 0;
        if continued {
            column = self.print_here(&row[0], line, 0);
        }
        while column < end {
            let cell = &row[column];
            column = match run(&row[..end], column) {
                Run::Plain(len) if len >= SHORTEST_SKIP => column + len,
                Run::Erased(len) if column + len == row.len() && len > 2 => {
                    self.erase_rest(cell, line, column);
                    end
                }
                Run::Erased(len) if len >= SHORTEST_ERASURE => {
                    self.erase(cell, line, column, len);
                    column + len
                }
                _ => self.print(cell, line, column),
            };
        }
    }

    /// Prints a cell, and returns the column of the next.
    fn print(&mut self, cell: &Cell, line: usize, column: usize) -> usize {
        self.reach(line, column);
        self.print_here(cell, line, column)
    }

    fn print_here(&mut self, cell: &Cell, line: usize, column: usize) -> usize {
        self.dip(cell);
        self.out.push(cell.c);
        self.out.extend(cell.zerowidth().unwrap_or_default());
        let next = column + if is_wide(cell) { 2 } else { 1 };
        self.at = Some((line, next));
        next
    }

    fn erase(&mut self, cell: &Cell, line: usize, column: usize, len: usize) {
        self.reach(line, column);
        self.take(Pen::erasing(cell.bg));
        self.put(format_args!("\x1b[{len}X"));
    }

    fn erase_rest(&mut self, cell: &Cell, line: usize, column: usize) {
        self.reach(line, column);
        self.take(Pen::erasing(cell.bg));
        self.out.push_str("\x1b[K");
    }

    /// Moves the cursor to a cell, in a terminal whose margins are at the edges.
    pub(super) fn reach(&mut self, line: usize, column: usize) {
        match self.at {
            Some(at) if at == (line, column) => {}
            Some((same, from)) if same == line && from < column => {
                self.put(format_args!("\x1b[{}C", column - from));
            }
            Some((above, _)) if above + 1 == line && column == 0 => self.out.push_str("\r\n"),
            _ => self.go(line, column),
        }
        self.at = Some((line, column));
    }

    /// Moves the cursor to a row and column counted from where the terminal counts.
    pub(super) fn go(&mut self, line: usize, column: usize) {
        match (line + 1, column + 1) {
            (1, 1) => self.out.push_str("\x1b[H"),
            (line, 1) => self.put(format_args!("\x1b[{line}H")),
            (line, column) => self.put(format_args!("\x1b[{line};{column}H")),
        }
    }
}

/// What a stretch of a row is like.
enum Run {
    /// Blanks as after a reset.
    Plain(usize),
    /// Blanks on one background.
    Erased(usize),
    /// A character.
    Cell,
}

fn run(row: &[Cell], start: usize) -> Run {
    let first = &row[start];
    if !cells::is_erased(first) {
        return Run::Cell;
    }
    let alike = |cell: &&Cell| cells::is_erased(cell) && cell.bg == first.bg;
    let len = row[start..].iter().take_while(alike).count();
    if cells::is_plain(first) { Run::Plain(len) } else { Run::Erased(len) }
}

fn is_wide(cell: &Cell) -> bool {
    cell.flags.contains(Flags::WIDE_CHAR)
}
