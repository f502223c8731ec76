//! Sequences that the engine's parser does not know, or that this crate obeys otherwise.

use alacritty_terminal::vte::ansi::{ClearMode, LineClearMode};

use super::{Emulator, Guard};
use crate::terminal::control::Control;

impl Emulator {
    /// Obeys a whole sequence, if it is one that the engine's parser does not have to read. Returns
    /// whether it is.
    pub(in super::super) fn obey(&mut self, sequence: &str) -> bool {
        match Control::read(sequence) {
            Some(control) => self.obey_control(&control, sequence),
            None => self.obey_escape(sequence),
        }
    }

    fn obey_control(&mut self, control: &Control<'_>, sequence: &str) -> bool {
        let (column, number) = (self.column(), control.number());
        let times = number.max(1);
        match (control.marker, control.between, control.last) {
            // A pen sequence that is too long to be part of a stretch (see `skim`).
            (None, "", 'm') => self.set_pen(&sequence.as_bytes()[2..sequence.len() - 1]),
            (None, "!", 'p') => self.soft_reset(),
            (None, "\"", 'q') if number == 1 => self.protect(Guard::Selective),
            (None, "\"", 'q') => self.unprotect(),
            (None, "'", '}') => self.insert_columns(column, times),
            (None, "'", '~') => self.delete_columns(column, times),
            (None, " ", '@') => self.delete_columns(0, times),
            (None, " ", 'A') => self.insert_columns(0, times),
            (Some('?'), "", 'J') => match number {
                0 => self.erase_selected_in_page(&ClearMode::Below),
                1 => self.erase_selected_in_page(&ClearMode::Above),
                2 => self.erase_selected_in_page(&ClearMode::All),
                _ => {}
            },
            (Some('?'), "", 'K') => match number {
                0 => self.erase_selected_in_row(&LineClearMode::Right),
                1 => self.erase_selected_in_row(&LineClearMode::Left),
                2 => self.erase_selected_in_row(&LineClearMode::All),
                _ => {}
            },
            _ => return false,
        }
        true
    }

    fn obey_escape(&mut self, sequence: &str) -> bool {
        match &sequence[1..] {
            // The engine would treat this as a line feed, which may also move to the first column.
            "D" => self.index(),
            "V" => self.protect(Guard::All),
            "W" => self.unprotect(),
            // `~`, `}` and `|` choose the set for characters of eight bits. Text in UTF-8 has none of these, so the
            // set is used for all characters.
            "~" => self.charset_in_use = 1,
            "n" | "}" => self.charset_in_use = 2,
            "o" | "|" => self.charset_in_use = 3,
            // UTF-8 is switched on or off: the first set becomes ASCII, and is in use. The others stay.
            "%G" | "%@" => {
                self.charsets.designate('(', 'B');
                self.charset_in_use = 0;
            }
            other => {
                let mut characters = other.chars();
                let (first, second) = (characters.next(), characters.next());
                let named = first.zip(second).filter(|_| characters.next().is_none());
                return named.is_some_and(|(place, name)| self.charsets.designate(place, name));
            }
        }
        true
    }
}
