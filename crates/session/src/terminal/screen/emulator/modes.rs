//! Modes that the engine does not know, and modes that exclude each other.

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

    /// Notes a mode that the engine does not know.
    pub(super) fn pass_mode(&mut self, mode: u16, set: bool) {
        self.passed_modes.retain(|other| *other != mode);
        if set && modes::of(mode).is_some_and(|mode| mode.is_passed) {
            self.passed_modes.push(mode);
            self.passed_modes.sort_unstable();
        }
    }
}
