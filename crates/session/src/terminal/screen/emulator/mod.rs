//! The engine, and the state beside it that the engine hides or does not have.
//!
//! - [`Emulator`]: the two pages, margins, tab stops and the rest
//! - `handler`: each control sequence, noted and passed on
//! - `print`: printing characters; `erase`: erasing and moving cells of a row
//! - `moves`: relative moves of the cursor; `modes`: modes that the engine does not know
//! - `keys`: the flags for reporting keys; `titles`: the present title and the saved ones

mod erase;
mod handler;
mod keys;
mod modes;
mod moves;
mod print;
mod titles;

use std::mem;
use std::ops::Range;
use std::time::Duration;

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::{Config, TermMode};
use alacritty_terminal::vte::ansi::{
    CharsetIndex, Handler as _, NamedPrivateMode, PrivateMode, Timeout,
};

use super::{Size, cells};

pub(super) use keys::Keys;
pub(super) use titles::Titles;

const TAB: usize = 8;

/// The state of a terminal.
pub(super) struct Emulator {
    /// The engine. Its grid is always the page that is shown. The engine's own second page is not used,
    /// since it is not accessible from outside.
    term: Term<VoidListener>,
    /// The primary page, while the alternate one is shown.
    hidden: Option<Box<Hidden>>,
    /// For each column, whether it has a tab stop.
    pub(super) tabs: Vec<bool>,
    /// The rows between the margins, counted from 0.
    pub(super) margins: Range<usize>,
    /// The character set in use.
    pub(super) charset: CharsetIndex,
    pub(super) keys: Keys,
    pub(super) modify_other_keys: u8,
    pub(super) titles: Titles,
    /// The modes that have no effect here, but one in a viewer's terminal: a snapshot sets them.
    pub(super) passed_modes: Vec<u16>,
    /// Whether a program chose the cursor's look: its shape, and whether it blinks.
    pub(super) styled_cursor: bool,
    /// Whether the cursor blinks, if a program set this apart from the shape. Many programs do so when
    /// they show the cursor again; the cursor must then keep the shape that the user has chosen.
    pub(super) blinking: Option<bool>,
    /// Whether a program changed the palette.
    pub(super) painted: bool,
}

/// The page that is not shown.
pub(super) struct Hidden {
    pub(super) grid: Grid<Cell>,
    pub(super) keys: Keys,
}

/// The time-out of synchronised updates, which is never pending: updates are applied at once, since the
/// screen must be in the present state whenever a snapshot is made.
#[derive(Debug, Default)]
pub(super) struct Immediate;

impl Timeout for Immediate {
    fn set_timeout(&mut self, _: Duration) {}
    fn clear_timeout(&mut self) {}
    fn pending_timeout(&self) -> bool {
        false
    }
}

impl Emulator {
    pub(super) fn new(size: Size) -> Self {
        let config = Config { scrolling_history: 0, kitty_keyboard: false, ..Config::default() };
        let mut emulator = Self {
            term: Term::new(config, &size, VoidListener),
            hidden: None,
            tabs: default_tabs(size.cols.into()).collect(),
            margins: 0..size.rows.into(),
            charset: CharsetIndex::G0,
            keys: Keys::default(),
            modify_other_keys: 0,
            titles: Titles::default(),
            passed_modes: Vec::new(),
            styled_cursor: false,
            blinking: None,
            painted: false,
        };
        emulator.choose_defaults();
        emulator
    }

    pub(super) fn size(&self) -> Size {
        let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        Size { cols: count(self.term.columns()), rows: count(self.term.screen_lines()) }
    }

    pub(super) fn grid(&self) -> &Grid<Cell> {
        self.term.grid()
    }

    /// The primary page, while the alternate one is shown.
    pub(super) fn hidden(&self) -> Option<&Hidden> {
        self.hidden.as_deref()
    }

    pub(super) fn term(&self) -> &Term<VoidListener> {
        &self.term
    }

    pub(super) fn has(&self, mode: TermMode) -> bool {
        self.term.mode().contains(mode)
    }

    pub(super) fn rows(&self) -> usize {
        self.term.screen_lines()
    }

    pub(super) fn cols(&self) -> usize {
        self.term.columns()
    }

    /// Whether the margins are at the edges.
    pub(super) fn has_full_margins(&self) -> bool {
        self.margins == (0..self.rows())
    }

    /// The number of line feeds that push out everything on the screen and everything written between
    /// them; `None` if line feeds do not scroll the whole screen.
    pub(super) fn rows_to_flush(&self) -> Option<usize> {
        let below = (2 * self.rows()).saturating_sub(1 + cells::line_of(&self.grid().cursor));
        self.has_full_margins().then_some(below)
    }

    pub(super) fn resize(&mut self, size: Size) {
        if size == self.size() {
            return;
        }
        let old = self.cols();
        let shown =
            self.hidden.as_mut().map(|hidden| mem::replace(self.term.grid_mut(), take(hidden)));
        self.term.resize(size);
        cells::mend(self.term.grid_mut());
        if let (Some(mut alternate), Some(hidden)) = (shown, self.hidden.as_mut()) {
            alternate.resize(false, size.rows.into(), size.cols.into());
            cells::mend(&mut alternate);
            hidden.grid = mem::replace(self.term.grid_mut(), alternate);
            hidden.grid.saved_cursor = hidden.grid.cursor.clone();
        }
        self.resize_tabs(old);
        self.margins = 0..self.rows();
    }

    /// A soft reset (DECSTR): the modes become as after a reset, the text stays.
    pub(super) fn soft_reset(&mut self) {
        for mode in [NamedPrivateMode::ShowCursor, NamedPrivateMode::LineWrap] {
            self.term.set_private_mode(PrivateMode::Named(mode));
        }
        let mode = PrivateMode::Named(NamedPrivateMode::CursorKeys);
        self.term.unset_private_mode(mode);
        self.term.unset_private_mode(PrivateMode::Named(NamedPrivateMode::Origin));
        self.term.unset_mode(alacritty_terminal::vte::ansi::Mode::Named(
            alacritty_terminal::vte::ansi::NamedMode::Insert,
        ));
        self.term.unset_keypad_application_mode();
        self.set_active_charset(CharsetIndex::G0);
        let grid = self.term.grid_mut();
        let point = grid.cursor.point;
        grid.cursor = Cursor { point, ..Cursor::default() };
        grid.saved_cursor = Cursor::default();
        self.margins = 0..self.rows();
        self.keep_margins(point.line, point.column);
    }

    /// Sets the engine's margins to ours, then puts the cursor at this position: setting margins moves the
    /// cursor.
    fn keep_margins(&mut self, line: Line, column: Column) {
        let Range { start, end } = self.margins.clone();
        self.term.set_scrolling_region(start + 1, Some(end));
        self.term.grid_mut().cursor.point.line = line;
        self.term.grid_mut().cursor.point.column = column;
    }

    fn show_alternate(&mut self) {
        if self.hidden.is_some() {
            self.term.save_cursor_position();
            return;
        }
        let mut alternate = Grid::new(self.rows(), self.cols(), 0);
        let primary = self.term.grid_mut();
        primary.saved_cursor = primary.cursor.clone();
        alternate.cursor = primary.cursor.clone();
        alternate.reset_region(..);
        let grid = mem::replace(primary, alternate);
        self.hidden = Some(Box::new(Hidden { grid, keys: mem::take(&mut self.keys) }));
    }

    fn show_primary(&mut self) {
        if let Some(hidden) = self.hidden.take() {
            *self.term.grid_mut() = hidden.grid;
            self.keys = hidden.keys;
            self.stay_inside();
        }
    }

    /// Moves the cursor between the margins if origin mode is on.
    fn stay_inside(&mut self) {
        if self.has(TermMode::ORIGIN) {
            let (top, bottom) = (cells::at(self.margins.start), cells::at(self.margins.end - 1));
            let line = &mut self.term.grid_mut().cursor.point.line;
            *line = (*line).clamp(top, bottom);
        }
    }

    /// Switches off two modes that the engine begins with, but a reset terminal does not: so a mode that is
    /// on was set by a program.
    fn choose_defaults(&mut self) {
        for mode in [NamedPrivateMode::AlternateScroll, NamedPrivateMode::UrgencyHints] {
            self.term.unset_private_mode(PrivateMode::Named(mode));
        }
    }

    fn resize_tabs(&mut self, old: usize) {
        let cols = self.cols();
        self.tabs.truncate(cols);
        self.tabs.extend(default_tabs(cols).skip(old));
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        self.rows.into()
    }

    fn columns(&self) -> usize {
        self.cols.into()
    }
}

/// For each column of a reset terminal, whether it has a tab stop.
pub(super) fn default_tabs(cols: usize) -> impl Iterator<Item = bool> {
    (0..cols).map(|column| column.is_multiple_of(TAB))
}

fn take(hidden: &mut Hidden) -> Grid<Cell> {
    mem::replace(&mut hidden.grid, Grid::new(1, 2, 0))
}
