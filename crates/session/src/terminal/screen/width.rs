//! How many cells a character takes.

use unicode_width::UnicodeWidthChar as _;

/// A character that most terminals show in one cell, although Unicode calls it invisible.
pub(super) const SOFT_HYPHEN: char = '\u{ad}';

/// The cells that a character takes: 0 for a combining mark, `None` for a control character.
#[inline]
pub(super) fn of(character: char) -> Option<usize> {
    if character == SOFT_HYPHEN { Some(1) } else { character.width() }
}
