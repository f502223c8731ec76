//! Paints the cells of a page onto a blank page, in few bytes.

use alacritty_terminal::grid::{Dimensions as _, Grid};
use alacritty_terminal::term::cell::Cell;

use super::super::cells;
use super::pen::Pen;
use super::{super::width, At, Painter};

/// The fewest blanks that are skipped and not printed: the sequence that skips them takes bytes, too.
const SHORTEST_SKIP: usize = 5;
/// The fewest blanks on a coloured background that are erased and not printed.
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

    /// Paints the first `end` cells of a row. If the row continues the one above (`continued`), the
    /// cursor is behind the end of the row above. The first cell must then be printed there, which marks
    /// the row above as one that goes on.
    fn paint_row(&mut self, row: &[Cell], line: usize, end: usize, continued: bool) {
        let mut column = 0;
        if continued {
            column = self.print_wrapped(&row[0], line);
        }
        while column < end {
            let cell = &row[column];
            column = match run(&row[..end], column) {
                Run::Plain(len) if self.skips(cell, len, row.get(column + len)) => column + len,
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

    /// Whether to skip `len` blanks like `cell` and not print them. Skipping is shorter for many blanks,
    /// and where the pen would have to change for them. If the cell `behind` them needs a plain pen
    /// anyway, that change costs nothing.
    fn skips(&self, cell: &Cell, len: usize, behind: Option<&Cell>) -> bool {
        let pen_stays =
            self.pen.suits(cell) || behind.is_some_and(|next| Pen::default().suits(next));
        len >= SHORTEST_SKIP || !pen_stays
    }

    /// Prints a cell. Returns the column of the next cell.
    fn print(&mut self, cell: &Cell, line: usize, column: usize) -> usize {
        self.reach(line, column);
        self.print_here(cell, line, column)
    }

    /// Prints the first cell of a row while the cursor is behind the end of the row above. So the terminal
    /// wraps, and marks the row above as one that goes on.
    fn print_wrapped(&mut self, cell: &Cell, line: usize) -> usize {
        let known = self.at != At::Unknown;
        let next = self.print_here(cell, line, 0);
        if !known {
            self.at = At::Unknown;
        }
        next
    }

    fn print_here(&mut self, cell: &Cell, line: usize, column: usize) -> usize {
        self.match_pen(cell);
        self.out.push(cell.c);
        self.out.extend(cell.zerowidth().unwrap_or_default());
        let next = column + cells::width(cell);
        self.at = match width::is_agreed(cell) {
            true => At::Cell(line, next),
            false if next < self.cols => At::Row(line),
            // Where the terminal thinks the character is wider, the cursor may be in the next row.
            false => At::Unknown,
        };
        next
    }

    fn erase(&mut self, cell: &Cell, line: usize, column: usize, len: usize) {
        self.reach(line, column);
        self.set_pen(Pen::erasing(cell.bg));
        self.put(format_args!("\x1b[{len}X"));
    }

    fn erase_rest(&mut self, cell: &Cell, line: usize, column: usize) {
        self.reach(line, column);
        self.set_pen(Pen::erasing(cell.bg));
        self.out.push_str("\x1b[K");
    }

    /// Moves the cursor to a cell, in a terminal whose margins are at the edges.
    pub(super) fn reach(&mut self, line: usize, column: usize) {
        match self.at {
            at if at == At::Cell(line, column) => {}
            At::Cell(same, from) if same == line && from + 1 == column => {
                self.out.push_str("\x1b[C");
            }
            At::Cell(same, from) if same == line && from < column => {
                self.put(format_args!("\x1b[{}C", column - from));
            }
            At::Row(same) if same == line => self.put(format_args!("\x1b[{}G", column + 1)),
            At::Cell(above, _) | At::Row(above) if above + 1 == line && column == 0 => {
                self.out.push_str("\r\n");
            }
            _ => self.go(line, column),
        }
        self.at = At::Cell(line, column);
    }

    /// Moves the cursor to a row and column, counted from the row from which the terminal counts.
    pub(super) fn go(&mut self, line: usize, column: usize) {
        match (line + 1, column + 1) {
            (1, 1) => self.out.push_str("\x1b[H"),
            (line, 1) => self.put(format_args!("\x1b[{line}H")),
            (line, column) => self.put(format_args!("\x1b[{line};{column}H")),
        }
    }
}

/// The kind of a run of equal cells in a row.
enum Run {
    /// Blanks as after a reset: their number.
    Plain(usize),
    /// Blanks on one coloured background: their number.
    Erased(usize),
    /// One cell with a character.
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
