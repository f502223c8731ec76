//! Each control sequence: its effect is noted here and passed on to the engine.
//!
//! Every method of the engine's trait is here: the trait's default methods do nothing, so a missing
//! method would silently drop its sequence. Sequences that would answer the program, ring the bell or
//! access a clipboard do nothing. Where the engine differs from the terminals that people attach with,
//! this module follows the terminals:
//!
//! - a tab leaves no mark in the cells, and does nothing at the end of a row;
//! - a line feed ends the state in which the next character wraps;
//! - inserting, deleting and erasing characters end that state, too;
//! - moves up and down stop at the margins, and in origin mode all moves do;
//! - erasing below keeps the character before a cursor that is behind the last column;
//! - only one way to report the mouse is on at a time, and only one form of these reports;
//! - the cursor's blinking is independent of its shape;
//! - in line feed/new line mode, a line feed also goes to the first column;
//! - leaving the alternate page while it is not shown restores the cursor;
//! - inserting and deleting lines move the cursor to the first column;
//! - the sequence that switches between 80 and 132 columns has no effect;
//! - erasing above the second row erases the first row, and deleting many characters deletes none
//!   before the cursor;
//! - no half of a wide character stays: it becomes a blank, with the look of the pen where printing
//!   replaced or pushed out the other half, and otherwise with the look of erased cells;
//! - in insert mode, a wide character that wraps is inserted, too;
//! - a wide character that does not fit, where lines are not wrapped, leaves the cursor in the last
//!   column.

use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::cursor_icon::CursorIcon;
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, Hyperlink, KeyboardModes,
    KeyboardModesApplyBehavior, LineClearMode, Mode, ModifyOtherKeys, NamedPrivateMode,
    PrivateMode, Rgb, ScpCharPath, ScpUpdateMode, StandardCharset, TabulationClearMode,
};

use super::super::width;
use super::modes::{ALTERNATE, ALTERNATE_CLEARED, KEYPAD, SAVED_CURSOR};
use super::{Charsets, Emulator, Guard, Keys, Titles, cells, default_tabs};

/// The most combining marks on one character. A program could otherwise put any number on one cell.
const MOST_MARKS: usize = 32;
/// The longest address and the longest name of a link, in bytes. Programs keep to 2083 bytes, since
/// the first terminals with links did; the scanner's bound is above both.
const LONGEST_ADDRESS: usize = 2083;
const LONGEST_NAME: usize = 250;

impl Emulator {
    /// Whether the character before the cursor already has the most marks allowed.
    fn has_all_marks(&self) -> bool {
        let grid = self.term.grid();
        let row = &grid[grid.cursor.point.line];
        let back = usize::from(!grid.cursor.input_needs_wrap);
        let mut column = grid.cursor.point.column.saturating_sub(back);
        if cells::is_spacer(&row[Column(column)]) {
            column = column.saturating_sub(1);
        }
        row[Column(column)].zerowidth().is_some_and(|marks| marks.len() >= MOST_MARKS)
    }

    /// Mends the marks of wrapped lines after rows were moved.
    fn mend_rows(&mut self) {
        cells::unwrap_bottom(self.term.grid_mut());
        cells::settle(self.term.grid_mut());
    }

    /// Goes to the first column after lines were inserted or deleted. Outside of the margins this had no
    /// effect, so there the cursor stays.
    fn begin_line(&mut self) {
        let line = cells::line_of(&self.term.grid().cursor);
        let column = if self.margins.contains(&line) { 0 } else { self.column() };
        self.go_to_column(column);
        self.mend_rows();
    }

    pub(super) fn end_wrap(&mut self) {
        self.term.grid_mut().cursor.input_needs_wrap = false;
    }

    pub(super) fn column(&self) -> usize {
        self.term.grid().cursor.point.column.0
    }
}

impl Handler for Emulator {
    #[inline]
    fn input(&mut self, c: char) {
        match width::of(c) {
            None => {}
            Some(0) if self.has_all_marks() => {}
            Some(0) => self.term.input(c),
            Some(width) => self.print(c, width),
        }
    }

    fn goto(&mut self, line: i32, col: usize) {
        self.term.goto(line, col);
    }

    fn goto_line(&mut self, line: i32) {
        self.term.goto_line(line);
    }

    fn goto_col(&mut self, col: usize) {
        self.go_to_column(col);
    }

    fn move_up(&mut self, rows: usize) {
        self.go_up(rows);
    }

    fn move_down(&mut self, rows: usize) {
        self.go_down(rows);
    }

    fn move_down_and_cr(&mut self, rows: usize) {
        self.go_down(rows);
        self.go_to_column(0);
    }

    fn move_up_and_cr(&mut self, rows: usize) {
        self.go_up(rows);
        self.go_to_column(0);
    }

    fn move_forward(&mut self, cols: usize) {
        self.term.move_forward(cols);
    }

    fn move_backward(&mut self, cols: usize) {
        self.term.move_backward(cols);
    }

    fn put_tab(&mut self, count: u16) {
        self.move_forward_tabs(count);
    }

    fn move_forward_tabs(&mut self, count: u16) {
        self.term.move_forward_tabs(count.min(self.size().cols));
    }

    fn move_backward_tabs(&mut self, count: u16) {
        self.term.move_backward_tabs(count.min(self.size().cols));
        self.end_wrap();
    }

    fn backspace(&mut self) {
        self.step_back();
    }

    #[inline]
    fn carriage_return(&mut self) {
        self.term.carriage_return();
    }

    #[inline]
    fn linefeed(&mut self) {
        self.index();
        if self.has(TermMode::LINE_FEED_NEW_LINE) {
            self.carriage_return();
        }
    }

    fn newline(&mut self) {
        self.linefeed();
    }

    fn reverse_index(&mut self) {
        self.term.reverse_index();
        self.end_wrap();
        self.mend_rows();
    }

    fn scroll_up(&mut self, rows: usize) {
        self.term.scroll_up(rows);
        self.mend_rows();
    }

    fn scroll_down(&mut self, rows: usize) {
        self.term.scroll_down(rows);
        self.mend_rows();
    }

    fn insert_blank_lines(&mut self, rows: usize) {
        self.term.insert_blank_lines(rows);
        self.begin_line();
    }

    fn delete_lines(&mut self, rows: usize) {
        self.term.delete_lines(rows);
        self.begin_line();
    }

    fn insert_blank(&mut self, cols: usize) {
        self.insert_blanks(cols);
    }

    fn erase_chars(&mut self, cols: usize) {
        self.erase_cells(cols);
    }

    fn delete_chars(&mut self, cols: usize) {
        self.delete_cells(cols);
    }

    fn clear_line(&mut self, mode: LineClearMode) {
        self.erase_in_row(mode);
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        self.erase_in_page(&mode);
    }

    /// Fills the page with the letter E, for adjusting the picture. The margins go to the edges, and the cursor
    /// into the top left corner.
    fn decaln(&mut self) {
        self.term.decaln();
        self.margins = 0..self.rows();
        self.set_engine_margins(Line(0), Column(0));
        self.end_wrap();
    }

    fn save_cursor_position(&mut self) {
        self.save_cursor();
    }

    fn restore_cursor_position(&mut self) {
        self.restore_cursor();
    }

    fn set_horizontal_tabstop(&mut self) {
        let column = self.column();
        self.tabs[column] = true;
        self.term.set_horizontal_tabstop();
    }

    fn clear_tabs(&mut self, mode: TabulationClearMode) {
        match mode {
            TabulationClearMode::Current => {
                let column = self.column();
                self.tabs[column] = false;
            }
            TabulationClearMode::All => self.tabs.fill(false),
        }
        self.term.clear_tabs(mode);
    }

    fn set_tabs(&mut self, _: u16) {
        // The engine sets a stop only where its cursor is.
        let column = self.term.grid().cursor.point.column;
        self.clear_tabs(TabulationClearMode::All);
        for (stop, _) in default_tabs(self.cols()).enumerate().filter(|(_, is)| *is) {
            self.term.grid_mut().cursor.point.column = Column(stop);
            self.set_horizontal_tabstop();
        }
        self.term.grid_mut().cursor.point.column = column;
    }

    fn reset_state(&mut self) {
        self.show_primary();
        self.term.reset_state();
        self.choose_defaults();
        self.tabs = default_tabs(self.cols()).collect();
        self.margins = 0..self.rows();
        self.charsets = Charsets::default();
        self.saved_charsets = Charsets::default();
        self.charset_in_use = 0;
        self.guard = Guard::Off;
        self.alternate_cursor = None;
        self.keys = Keys::default();
        self.modify_other_keys = 0;
        self.titles = Titles::default();
        self.passed_modes.clear();
        self.has_cursor_style = false;
        self.blinking = None;
    }

    // Pens never reach the engine's parser: `pen` reads them.
    fn terminal_attribute(&mut self, _: Attr) {}

    fn set_hyperlink(&mut self, link: Option<Hyperlink>) {
        let link = link.filter(|link| fits_snapshot(&link.uri, LONGEST_ADDRESS)).map(|link| {
            let name =
                link.id.filter(|id| fits_snapshot(id, LONGEST_NAME) && !id.contains([':', ';']));
            Hyperlink { id: Some(name.unwrap_or_default()), uri: link.uri }
        });
        self.term.set_hyperlink(link);
    }

    fn set_mode(&mut self, mode: Mode) {
        self.term.set_mode(mode);
    }

    fn unset_mode(&mut self, mode: Mode) {
        self.term.unset_mode(mode);
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        self.end_rivals(mode);
        match mode {
            PrivateMode::Named(NamedPrivateMode::ColumnMode) => {}
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor) => {
                self.save_cursor();
                self.show_alternate();
            }
            PrivateMode::Unknown(ALTERNATE | ALTERNATE_CLEARED) => self.show_alternate(),
            PrivateMode::Unknown(SAVED_CURSOR) => self.save_cursor(),
            PrivateMode::Unknown(KEYPAD) => self.term.set_keypad_application_mode(),
            PrivateMode::Unknown(mode) => self.pass_mode(mode, true),
            PrivateMode::Named(NamedPrivateMode::BlinkingCursor) => self.blinking = Some(true),
            PrivateMode::Named(_) => self.term.set_private_mode(mode),
        }
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        self.end_rivals(mode);
        match mode {
            PrivateMode::Named(NamedPrivateMode::ColumnMode) => {}
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor) => {
                self.show_primary();
                self.restore_cursor();
            }
            PrivateMode::Unknown(ALTERNATE | ALTERNATE_CLEARED) => self.show_primary(),
            PrivateMode::Unknown(SAVED_CURSOR) => self.restore_cursor(),
            PrivateMode::Unknown(KEYPAD) => self.term.unset_keypad_application_mode(),
            PrivateMode::Unknown(mode) => self.pass_mode(mode, false),
            PrivateMode::Named(NamedPrivateMode::BlinkingCursor) => self.blinking = Some(false),
            PrivateMode::Named(named) => {
                self.term.unset_private_mode(mode);
                if named == NamedPrivateMode::Origin {
                    self.term.goto(0, 0);
                }
            }
        }
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let bottom = bottom.unwrap_or(self.rows()).min(self.rows());
        // Margins around a single row are ignored, as in xterm, unless that row is the whole screen.
        if (1..bottom).contains(&top) || (top, bottom) == (1, self.rows()) {
            self.margins = top - 1..bottom;
            self.term.set_scrolling_region(top, Some(bottom));
            self.term.goto(0, 0);
        }
    }

    fn set_keypad_application_mode(&mut self) {
        self.term.set_keypad_application_mode();
    }

    fn unset_keypad_application_mode(&mut self) {
        self.term.unset_keypad_application_mode();
    }

    // The engine knows two character sets only, so its own are never changed.
    fn set_active_charset(&mut self, index: CharsetIndex) {
        self.charset_in_use = index as usize;
    }

    fn configure_charset(&mut self, _: CharsetIndex, _: StandardCharset) {}

    fn set_color(&mut self, index: usize, color: Rgb) {
        self.has_palette = true;
        self.term.set_color(index, color);
    }

    fn reset_color(&mut self, index: usize) {
        self.term.reset_color(index);
    }

    fn set_cursor_style(&mut self, style: Option<CursorStyle>) {
        self.has_cursor_style = style.is_some();
        self.term.set_cursor_style(style);
    }

    fn set_cursor_shape(&mut self, shape: CursorShape) {
        self.has_cursor_style = true;
        self.term.set_cursor_shape(shape);
    }

    fn set_title(&mut self, title: Option<String>) {
        self.titles.set(title.as_deref());
    }

    fn push_title(&mut self) {
        self.titles.push();
    }

    fn pop_title(&mut self) {
        self.titles.pop();
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        self.keys.push(mode);
    }

    fn pop_keyboard_modes(&mut self, count: u16) {
        self.keys.pop(count);
    }

    fn set_keyboard_mode(&mut self, mode: KeyboardModes, change: KeyboardModesApplyBehavior) {
        self.keys.set(mode, change);
    }

    fn set_modify_other_keys(&mut self, mode: ModifyOtherKeys) {
        self.modify_other_keys = match mode {
            ModifyOtherKeys::Reset => 0,
            ModifyOtherKeys::EnableExceptWellDefined => 1,
            ModifyOtherKeys::EnableAll => 2,
        };
    }

    // Queries are found and answered elsewhere: see `terminal::query`.
    fn identify_terminal(&mut self, _: Option<char>) {}
    fn device_status(&mut self, _: usize) {}
    fn report_mode(&mut self, _: Mode) {}
    fn report_private_mode(&mut self, _: PrivateMode) {}
    fn report_keyboard_mode(&mut self) {}
    fn report_modify_other_keys(&mut self) {}
    fn dynamic_color_sequence(&mut self, _: String, _: usize, _: &str) {}
    fn text_area_size_pixels(&mut self) {}
    fn text_area_size_chars(&mut self) {}

    // Sequences that leave nothing on the screen.
    fn bell(&mut self) {}
    fn substitute(&mut self) {}
    fn clipboard_store(&mut self, _: u8, _: &[u8]) {}
    fn clipboard_load(&mut self, _: u8, _: &str) {}
    fn set_mouse_cursor_icon(&mut self, _: CursorIcon) {}
    fn set_scp(&mut self, _: ScpCharPath, _: ScpUpdateMode) {}
}

/// Whether a part of a link is short enough and has no control characters, so that a snapshot can write
/// it.
fn fits_snapshot(text: &str, longest: usize) -> bool {
    text.len() <= longest && !text.chars().any(char::is_control)
}
