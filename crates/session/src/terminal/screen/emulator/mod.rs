//! The engine, and the state beside it that the engine hides or does not have.
//!
//! - [`Emulator`]: the two pages, margins, tab stops and the rest
//! - `handler`: each control sequence, noted and passed on
//! - `controls`: sequences that the engine's parser does not know; `pen`: the look of what is printed
//! - `print`: printing characters; `erase`: erasing and moving cells and columns; `guard`: cells that are not
//!   erased
//! - `pages`: the two pages, and the saved cursors; `charsets`: the character sets
//! - `moves`: relative moves of the cursor; `modes`: modes that the engine does not know
//! - `keys`: the flags for reporting keys; `titles`: the present title and the saved ones

mod charsets;
mod controls;
mod erase;
mod guard;
mod handler;
mod keys;
mod modes;
mod moves;
mod pages;
mod pen;
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
use alacritty_terminal::vte::ansi::{Handler as _, NamedPrivateMode, PrivateMode, Timeout};

use super::{Size, cells};

pub(super) use charsets::{Charset, Charsets};
pub(super) use guard::Guard;
pub(super) use keys::Keys;
pub(super) use modes::ENGINE;
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
    pub(super) charsets: Charsets,
    /// Which of the four character sets is in use.
    pub(super) charset_in_use: usize,
    /// The character sets that were saved with the cursor of the page that is shown.
    pub(super) saved_charsets: Charsets,
    /// Which erasures spare protected cells.
    pub(super) guard: Guard,
    /// The cursor that was saved on the alternate page, and its character sets, while that page is not
    /// shown.
    pub(super) alternate_cursor: Option<Box<(Cursor<Cell>, Charsets)>>,
    pub(super) keys: Keys,
    pub(super) modify_other_keys: u8,
    pub(super) titles: Titles,
    /// Modes that have no effect here but have one in a viewer's terminal. A snapshot sets them.
    pub(super) passed_modes: Vec<u16>,
    /// Whether a program chose the cursor's look: its shape, and whether it blinks.
    pub(super) has_cursor_style: bool,
    /// Whether the cursor blinks, if a program set this apart from the shape. Many programs do so when
    /// they show the cursor again; the cursor must then keep the shape that the user has chosen.
    pub(super) blinking: Option<bool>,
    /// Whether a program changed the palette.
    pub(super) has_palette: bool,
}

/// The page that is not shown.
pub(super) struct Hidden {
    /// Its `cursor` is the cursor that was saved on this page. The terminal's own cursor is on the page that
    /// is shown.
    pub(super) grid: Grid<Cell>,
    pub(super) saved_charsets: Charsets,
    pub(super) keys: Keys,
}

/// The time-out of synchronised updates, which is never pending. Updates are applied at once, so that the
/// screen is up to date whenever a snapshot is made.
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
        // The log has the history. `Keys` has the keyboard's flags, since the engine gives no access to its own.
        let config = Config { scrolling_history: 0, kitty_keyboard: false, ..Config::default() };
        let mut emulator = Self {
            term: Term::new(config, &size, VoidListener),
            hidden: None,
            tabs: default_tabs(size.cols.into()).collect(),
            margins: 0..size.rows.into(),
            charsets: Charsets::default(),
            charset_in_use: 0,
            saved_charsets: Charsets::default(),
            guard: Guard::Off,
            alternate_cursor: None,
            keys: Keys::default(),
            modify_other_keys: 0,
            titles: Titles::default(),
            passed_modes: Vec::new(),
            has_cursor_style: false,
            blinking: None,
            has_palette: false,
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

    /// The number of line feeds after which the screen shows nothing of its present text, nor of text that is
    /// written between them. `None` if line feeds do not scroll the whole screen.
    pub(super) fn rows_to_flush(&self) -> Option<usize> {
        let below = (2 * self.rows()).saturating_sub(1 + cells::line_of(&self.grid().cursor));
        self.has_full_margins().then_some(below)
    }

    pub(super) fn resize(&mut self, size: Size) {
        if size == self.size() {
            return;
        }
        let old = self.cols();
        // The engine wraps the lines of its own grid again. So during the call the primary page is that grid. The
        // alternate page is never wrapped again.
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
        self.clamp_alternate_cursor();
        self.resize_tabs(old);
        self.margins = 0..self.rows();
    }

    /// A soft reset (DECSTR): the modes that it covers become as after a reset, and the text stays.
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
        self.charsets = Charsets::default();
        self.saved_charsets = Charsets::default();
        self.charset_in_use = 0;
        self.guard = Guard::Off;
        self.pass_mode(modes::REVERSE_WRAP, false);
        let grid = self.term.grid_mut();
        let point = grid.cursor.point;
        grid.cursor = Cursor { point, ..Cursor::default() };
        grid.saved_cursor = Cursor::default();
        self.margins = 0..self.rows();
        self.set_engine_margins(point.line, point.column);
    }

    /// Sets the engine's margins to ours, then puts the cursor at this position: setting margins moves the
    /// cursor.
    fn set_engine_margins(&mut self, line: Line, column: Column) {
        let Range { start, end } = self.margins.clone();
        self.term.set_scrolling_region(start + 1, Some(end));
        self.term.grid_mut().cursor.point.line = line;
        self.term.grid_mut().cursor.point.column = column;
    }

    /// Switches off two modes that are on in a new engine and off in a reset terminal. So if one of them is
    /// on, a program set it.
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
