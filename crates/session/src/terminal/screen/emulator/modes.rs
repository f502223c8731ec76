//! Modes that the engine does not know, and modes that exclude each other.

use alacritty_terminal::vte::ansi::{Handler as _, NamedPrivateMode, PrivateMode};

use super::Emulator;

/// Modes of other terminals that the engine does not know: reverse video, reverse wrapping, the keypad,
/// other kinds of mouse reports, the meta key, reports of the colour scheme.
const PASSED: [u16; 12] = [5, 9, 45, 66, 1001, 1015, 1016, 1034, 1035, 1036, 1039, 2031];

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
        if set && PASSED.contains(&mode) {
            self.passed_modes.push(mode);
            self.passed_modes.sort_unstable();
        }
    }
}
