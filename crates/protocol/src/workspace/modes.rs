//! The private modes of a terminal that Warren knows, each set by `CSI ? number h` and cleared by `CSI ?
//! number l`.
//!
//! This one table has several users: a screen keeps these modes, a snapshot sets them, questions
//! about a mode are answered from it, and a client that leaves a session resets the modes that the
//! session's program has set.

/// A private mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalMode {
    /// Its number.
    pub number: u16,
    /// Whether it is on in a reset terminal.
    pub is_on: bool,
    /// Whether a client that leaves may reset it even if no program has set it. That is so for modes
    /// that people do not choose in their terminal's settings.
    pub is_free: bool,
    /// Whether a screen keeps it only to pass it on, because it does not change the cells.
    pub is_passed: bool,
}

const fn mode(number: u16) -> TerminalMode {
    TerminalMode { number, is_on: false, is_free: true, is_passed: false }
}

/// A mode that a screen only passes on.
const fn passed(number: u16) -> TerminalMode {
    TerminalMode { is_passed: true, ..mode(number) }
}

/// A mode that people choose in their terminal's settings.
const fn chosen(number: u16) -> TerminalMode {
    TerminalMode { is_free: false, ..passed(number) }
}

/// A mode that is on in a reset terminal.
const fn on(number: u16) -> TerminalMode {
    TerminalMode { is_on: true, ..mode(number) }
}

/// The modes, in the order of their numbers. The pages (47, 1047, 1049) and the saved cursor (1048) are
/// left out, because they are more than a switch.
pub const MODES: [TerminalMode; 32] = [
    // The arrow keys send application sequences.
    mode(1),
    // Reverse video.
    passed(5),
    // Rows are counted from the top margin.
    mode(6),
    // Lines are wrapped.
    on(7),
    // Reports of the mouse, in the form of X10.
    passed(9),
    // The cursor blinks.
    TerminalMode { is_passed: false, ..chosen(12) },
    // The cursor is shown.
    on(25),
    // A backspace goes back over a wrapped line.
    passed(45),
    // The keypad sends application sequences.
    mode(66),
    // There are margins at the left and the right. Screens here have none.
    mode(69),
    // Reports of the mouse: presses, with highlights, drags, all moves.
    mode(1000),
    passed(1001),
    mode(1002),
    mode(1003),
    // Reports of the focus.
    mode(1004),
    // The forms of reports of the mouse.
    mode(1005),
    mode(1006),
    // The wheel sends arrow keys on the alternate page.
    TerminalMode { is_passed: false, ..chosen(1007) },
    passed(1015),
    passed(1016),
    // How Meta, Num Lock and Alt change what keys send.
    chosen(1034),
    chosen(1035),
    chosen(1036),
    chosen(1039),
    // A bell marks the window as urgent.
    TerminalMode { is_passed: false, ..chosen(1042) },
    chosen(1043),
    // Pastes are marked.
    mode(2004),
    // Updates are only shown when they are complete.
    mode(2026),
    // Characters are as wide as their clusters.
    chosen(2027),
    // Reports of changes of the colour scheme.
    passed(2031),
    // Reports of the size as input.
    passed(2048),
    // Keys are sent as records of Windows.
    chosen(9001),
];

/// The mode with this number.
#[must_use]
pub fn of(number: u16) -> Option<TerminalMode> {
    MODES.into_iter().find(|mode| mode.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_is_there_once_in_order() {
        let numbers = MODES.map(|mode| mode.number);
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        assert_eq!(of(25).map(|mode| mode.is_on), Some(true));
        assert_eq!(of(4), None);
    }
}
