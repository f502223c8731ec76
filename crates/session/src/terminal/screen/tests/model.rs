//! A plain model of a screen, to compare the emulator with. It states the rule for wide characters in
//! the simplest way: whenever a cell is overwritten, the other cell of its character becomes blank.

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};

use super::super::{Screen, cells};

/// The content of a cell. A blank is a narrow character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Narrow(char),
    Wide(char),
    SecondHalf,
}

impl Text {
    pub(super) fn drawn(self) -> char {
        match self {
            Self::Narrow(character) | Self::Wide(character) => character,
            Self::SecondHalf => '·',
        }
    }
}

/// The colours of a cell or a pen, and whether they are swapped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    fg: Option<usize>,
    bg: Option<usize>,
    inverse: bool,
}

impl Look {
    pub(super) fn of(cell: &Cell) -> Self {
        let (fg, bg) = (colour(cell.fg), colour(cell.bg));
        Self { fg, bg, inverse: cell.flags.contains(Flags::INVERSE) }
    }

    /// The look of a cell that a pen with this look erases.
    pub(super) fn erasing(self) -> Self {
        Self { bg: self.bg, ..Self::default() }
    }
}

fn colour(colour: Color) -> Option<usize> {
    match colour {
        Color::Named(name) if name < NamedColor::Foreground => Some(name as usize),
        _ => None,
    }
}

pub(super) type ModelCell = (Text, Look);

/// The cells of a screen, and the row and column of its cursor. If the next character wraps, the column
/// is the number of columns.
pub(super) fn shown(screen: &Screen) -> (Vec<Vec<ModelCell>>, [usize; 2]) {
    let grid = screen.emulator.grid();
    let row = |line| cells::row(grid, line).iter().map(cell).collect();
    let behind = usize::from(grid.cursor.input_needs_wrap);
    let cursor = [cells::line_of(&grid.cursor), grid.cursor.point.column.0 + behind];
    ((0..screen.size().rows.into()).map(row).collect(), cursor)
}

fn cell(cell: &Cell) -> ModelCell {
    let text = match cell.flags {
        flags if flags.contains(Flags::WIDE_CHAR) => Text::Wide(cell.c),
        flags if flags.contains(Flags::WIDE_CHAR_SPACER) => Text::SecondHalf,
        _ => Text::Narrow(cell.c),
    };
    (text, Look::of(cell))
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Print(Text),
    /// The row and column, from 0.
    Go(usize, usize),
    NextLine,
    /// The colours' numbers, and whether they are swapped.
    Pen(usize, usize, bool),
    Insert(usize),
    Delete(usize),
    Erase(usize),
    /// 0: from the cursor to the end of the row, 1: from its beginning to the cursor, 2: the whole row.
    EraseRow(usize),
    /// The same for the screen.
    ErasePage(usize),
    InsertMode(bool),
    Wrapping(bool),
}

impl Step {
    pub(super) fn sequence(self) -> String {
        match self {
            Self::Print(text) => text.drawn().to_string(),
            Self::Go(row, column) => format!("\x1b[{};{}H", row + 1, column + 1),
            Self::NextLine => "\r\n".to_owned(),
            Self::Pen(fg, bg, true) => format!("\x1b[0;7;{};{}m", 30 + fg, 40 + bg),
            Self::Pen(fg, bg, false) => format!("\x1b[0;{};{}m", 30 + fg, 40 + bg),
            Self::Insert(count) => format!("\x1b[{count}@"),
            Self::Delete(count) => format!("\x1b[{count}P"),
            Self::Erase(count) => format!("\x1b[{count}X"),
            Self::EraseRow(part) => format!("\x1b[{part}K"),
            Self::ErasePage(part) => format!("\x1b[{part}J"),
            Self::InsertMode(on) => format!("\x1b[4{}", if on { 'h' } else { 'l' }),
            Self::Wrapping(on) => format!("\x1b[?7{}", if on { 'h' } else { 'l' }),
        }
    }
}

pub(super) struct Model {
    pub(super) rows: Vec<Vec<ModelCell>>,
    row: usize,
    /// The cursor's column. It is the number of columns if the next character wraps.
    column: usize,
    pen: Look,
    inserts: bool,
    wraps: bool,
}

impl Model {
    pub(super) fn new(cols: usize, rows: usize) -> Self {
        let rows = vec![vec![(Text::Narrow(' '), Look::default()); cols]; rows];
        Self { rows, row: 0, column: 0, pen: Look::default(), inserts: false, wraps: true }
    }

    pub(super) fn cursor(&self) -> [usize; 2] {
        [self.row, self.column]
    }

    pub(super) fn take(&mut self, step: Step) {
        let cols = self.cols();
        let rest = cols - self.column.min(cols - 1);
        match step {
            Step::Print(text) => self.print(text),
            Step::Go(row, column) => {
                (self.row, self.column) = (row.min(self.rows.len() - 1), column.min(cols - 1));
            }
            Step::NextLine => self.next_line(),
            Step::Pen(fg, bg, inverse) => self.pen = Look { fg: Some(fg), bg: Some(bg), inverse },
            Step::Insert(count) => {
                self.come_back();
                self.insert(count.min(rest), self.pen.erasing());
            }
            Step::Delete(count) => {
                self.come_back();
                self.delete(count.min(rest));
            }
            Step::Erase(count) => {
                self.come_back();
                self.erase(self.row, self.column, self.column + count.min(rest));
            }
            Step::EraseRow(part) => self.erase_row(part),
            Step::ErasePage(part) => self.erase_page(part),
            Step::InsertMode(on) => self.inserts = on,
            Step::Wrapping(on) => self.wraps = on,
        }
    }

    fn cols(&self) -> usize {
        self.rows[0].len()
    }

    fn print(&mut self, text: Text) {
        let width = if matches!(text, Text::Wide(_)) { 2 } else { 1 };
        if self.column + width > self.cols() && !self.find_place(width) {
            return;
        }
        if self.inserts {
            self.insert(width, self.pen);
        }
        self.put(self.row, self.column, text, self.pen);
        if width == 2 {
            self.put(self.row, self.column + 1, Text::SecondHalf, self.pen);
        }
        self.column += width;
    }

    /// Finds a place for a character that does not fit into the rest of the row, which becomes blank.
    /// Returns false if there is no place for it.
    fn find_place(&mut self, width: usize) -> bool {
        if self.wraps {
            for column in self.column..self.cols() {
                self.put(self.row, column, Text::Narrow(' '), self.pen);
            }
            self.next_line();
        } else {
            self.come_back();
        }
        self.wraps || width == 1
    }

    fn next_line(&mut self) {
        self.column = 0;
        if self.row + 1 < self.rows.len() {
            self.row += 1;
            return;
        }
        let cols = self.cols();
        self.rows.remove(0);
        self.rows.push(vec![(Text::Narrow(' '), self.pen.erasing()); cols]);
    }

    fn come_back(&mut self) {
        self.column = self.column.min(self.cols() - 1);
    }

    /// Overwrites a cell. The other cell of a wide character that was there becomes a blank of the same
    /// look.
    fn put(&mut self, row: usize, column: usize, text: Text, look: Look) {
        let (old, _) = std::mem::replace(&mut self.rows[row][column], (text, look));
        match old {
            Text::Narrow(_) => {}
            Text::Wide(_) => self.rows[row][column + 1] = (Text::Narrow(' '), look),
            Text::SecondHalf => self.rows[row][column - 1] = (Text::Narrow(' '), look),
        }
    }

    fn erase(&mut self, row: usize, start: usize, end: usize) {
        for column in start..end {
            self.put(row, column, Text::Narrow(' '), self.pen.erasing());
        }
    }

    fn erase_row(&mut self, part: usize) {
        let cols = self.cols();
        let (start, end) = match part {
            0 => (self.column, cols),
            1 => (0, (self.column + 1).min(cols)),
            _ => (0, cols),
        };
        self.erase(self.row, start, end);
    }

    fn erase_page(&mut self, part: usize) {
        self.erase_row(part);
        let whole = match part {
            0 => self.row + 1..self.rows.len(),
            1 => 0..self.row,
            _ => 0..self.rows.len(),
        };
        whole.for_each(|row| self.erase(row, 0, self.cols()));
    }

    fn insert(&mut self, count: usize, look: Look) {
        let blank = (Text::Narrow(' '), look);
        if self.rows[self.row][self.column].0 == Text::SecondHalf {
            self.put(self.row, self.column, blank.0, look);
        }
        let (column, cols) = (self.column, self.cols());
        let row = &mut self.rows[self.row];
        row.splice(column..column, std::iter::repeat_n(blank, count));
        row.truncate(cols);
        if matches!(row[cols - 1].0, Text::Wide(_)) {
            row[cols - 1] = blank;
        }
    }

    fn delete(&mut self, count: usize) {
        let end = self.column + count;
        self.erase(self.row, self.column, end);
        let blank = (Text::Narrow(' '), self.pen.erasing());
        self.rows[self.row].drain(self.column..end);
        self.rows[self.row].extend(std::iter::repeat_n(blank, count));
    }
}
