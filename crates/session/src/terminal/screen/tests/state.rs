//! The complete state of a screen, for comparisons.

use alacritty_terminal::grid::{Cursor, Dimensions as _, Grid};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::color::COUNT;
use alacritty_terminal::vte::ansi::{Color, CursorStyle, Rgb};

use super::super::emulator::{Charsets, Guard, Keys, Titles};
use super::super::{Screen, Size, cells};

#[derive(Debug, PartialEq)]
pub(super) struct ScreenState {
    size: Size,
    shown: Page,
    hidden: Option<(Page, Keys, Charsets)>,
    alternate_cursor: (CursorState, Charsets),
    mode: TermMode,
    tabs: Vec<bool>,
    margins: std::ops::Range<usize>,
    charsets: (Charsets, Charsets),
    charset_in_use: usize,
    guards_all: bool,
    keys: Keys,
    modify_other_keys: u8,
    titles: Titles,
    passed_modes: Vec<u16>,
    cursor_style: Option<CursorStyle>,
    blinking: Option<bool>,
    colours: Vec<(usize, Rgb)>,
    half_read: String,
    carry: Vec<u8>,
    printed: Option<char>,
}

impl ScreenState {
    pub(super) fn of(screen: &Screen) -> Self {
        let emulator = &screen.emulator;
        let colours = emulator.term().colors();
        let saved = emulator.alternate_cursor.as_deref().cloned().unwrap_or_default();
        Self {
            size: screen.size(),
            shown: Page::of(emulator.grid()),
            hidden: emulator
                .hidden()
                .map(|hidden| (Page::of(&hidden.grid), hidden.keys.clone(), hidden.saved_charsets)),
            alternate_cursor: (CursorState::of(&saved.0), saved.1),
            mode: *emulator.term().mode(),
            tabs: emulator.tabs.clone(),
            margins: emulator.margins.clone(),
            charsets: (emulator.charsets, emulator.saved_charsets),
            charset_in_use: emulator.charset_in_use,
            guards_all: emulator.guard == Guard::All,
            keys: emulator.keys.clone(),
            modify_other_keys: emulator.modify_other_keys,
            titles: emulator.titles.clone(),
            passed_modes: emulator.passed_modes.clone(),
            cursor_style: emulator.has_cursor_style.then(|| emulator.term().cursor_style()),
            blinking: emulator.blinking,
            colours: (0..COUNT).filter_map(|n| colours[n].map(|colour| (n, colour))).collect(),
            half_read: screen.scanner.tail().into_owned(),
            carry: screen.carry.clone(),
            printed: screen.printed,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Page {
    rows: Vec<Vec<Look>>,
    pub(super) cursor: CursorState,
    saved: CursorState,
}

impl Page {
    pub(super) fn of(grid: &Grid<Cell>) -> Self {
        let row = |line| cells::row(grid, line).iter().map(Look::of).collect();
        Self {
            rows: (0..grid.screen_lines()).map(row).collect(),
            cursor: CursorState::of(&grid.cursor),
            saved: CursorState::of(&grid.saved_cursor),
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct CursorState {
    line: i32,
    column: usize,
    pub(super) wraps: bool,
    pen: Look,
}

impl CursorState {
    fn of(cursor: &Cursor<Cell>) -> Self {
        Self {
            line: cursor.point.line.0,
            column: cursor.point.column.0,
            wraps: cursor.input_needs_wrap,
            pen: Look::of(&cursor.template),
        }
    }
}

#[derive(PartialEq)]
struct Look {
    c: char,
    marks: Vec<char>,
    fg: Color,
    bg: Color,
    underline: Option<Color>,
    flags: Flags,
    link: Option<(String, String)>,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        Self {
            c: cell.c,
            marks: cell.zerowidth().unwrap_or_default().to_vec(),
            fg: cell.fg,
            bg: cell.bg,
            underline: cell.underline_color(),
            flags: cell.flags,
            link: cell.hyperlink().map(|link| (link.id().to_owned(), link.uri().to_owned())),
        }
    }
}

impl std::fmt::Debug for Look {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.c)?;
        if *self != Self::of(&Cell { c: self.c, ..Cell::default() }) {
            write!(f, "{:?}/{:?}/{:?}/{:?}", self.fg, self.bg, self.flags, self.marks)?;
            write!(f, "/{:?}/{:?}", self.underline, self.link)?;
        }
        Ok(())
    }
}
