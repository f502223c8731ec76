//! Modes that the engine does not know, and modes that exclude each other.

use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Handler as _, NamedPrivateMode, PrivateMode};

use protocol::workspace::modes;

use super::Emulator;

/// Modes with an effect here that the engine does not know: the keypad, the alternate page in its older
/// forms, and the saved cursor.
pub(super) const KEYPAD: u16 = 66;
pub(super) const ALTERNATE: u16 = 47;
pub(super) const ALTERNATE_CLEARED: u16 = 1047;
pub(super) const SAVED_CURSOR: u16 = 1048;
/// A backspace in the first column goes back over a wrapped line.
pub(super) const REVERSE_WRAP: u16 = 45;

/// The modes that the engine knows, by their numbers.
pub(in super::super) const ENGINE: [(u16, TermMode); 15] = [
    (1, TermMode::APP_CURSOR),
    (6, TermMode::ORIGIN),
    (7, TermMode::LINE_WRAP),
    (25, TermMode::SHOW_CURSOR),
    (KEYPAD, TermMode::APP_KEYPAD),
    (1000, TermMode::MOUSE_REPORT_CLICK),
    (1002, TermMode::MOUSE_DRAG),
    (1003, TermMode::MOUSE_MOTION),
    (1004, TermMode::FOCUS_IN_OUT),
    (1005, TermMode::UTF8_MOUSE),
    (1006, TermMode::SGR_MOUSE),
    (1007, TermMode::ALTERNATE_SCROLL),
    (1042, TermMode::URGENCY_HINTS),
    (2004, TermMode::BRACKETED_PASTE),
    // Synchronised updates are applied at once, so this mode is never on.
    (2026, TermMode::empty()),
];

/// Groups of modes of which at most one is on: the mouse events that are reported, and the form of
/// these reports. Setting or clearing one mode ends the others of its group.
const RIVALS: [&[PrivateMode]; 2] = [
    &[
        PrivateMode::Unknown(9),
        PrivateMode::Named(NamedPrivateMode::ReportMouseClicks),
        PrivateMode::Unknown(1001),
        PrivateMode::Named(NamedPrivateMode::ReportCellMouseMotion),
        PrivateMode::Named(NamedPrivateMode::ReportAllMouseMotion),
    ],
    &[
        PrivateMode::Named(NamedPrivateMode::Utf8Mouse),
        PrivateMode::Named(NamedPrivateMode::SgrMouse),
        PrivateMode::Unknown(1015),
        PrivateMode::Unknown(1016),
    ],
];

impl Emulator {
    /// Ends all modes of this mode's group.
    pub(super) fn end_rivals(&mut self, mode: PrivateMode) {
        let groups = RIVALS.iter().filter(|group| group.contains(&mode));
        for &rival in groups.copied().flatten() {
            match rival {
                PrivateMode::Unknown(passed) => self.pass_mode(passed, false),
                PrivateMode::Named(_) => self.term.unset_private_mode(rival),
            }
        }
    }

    /// Whether a private mode is on; `None` if the mode is not known.
    pub(in super::super) fn private_mode(&self, number: u16) -> Option<bool> {
        let is_engines = ENGINE.iter().find(|(known, _)| *known == number);
        match (number, is_engines) {
            (_, Some((_, mode))) => Some(!mode.is_empty() && self.has(*mode)),
            (ALTERNATE | ALTERNATE_CLEARED | 1049, _) => Some(self.hidden.is_some()),
            (SAVED_CURSOR, _) => Some(false),
            (12, _) => Some(self.blinking.unwrap_or(false)),
            _ => modes::of(number)
                .filter(|mode| mode.is_passed)
                .map(|_| self.passed_modes.contains(&number)),
        }
    }

    /// Notes a mode that the engine does not know.
    pub(super) fn pass_mode(&mut self, mode: u16, set: bool) {
        self.passed_modes.retain(|other| *other != mode);
        if set && modes::of(mode).is_some_and(|mode| mode.is_passed) {
            self.passed_modes.push(mode);
            self.passed_modes.sort_unstable();
        }
    }
}
