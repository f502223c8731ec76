//! How many cells a character takes, here and in other terminals.
//!
//! Terminals follow different versions of Unicode. By default xterm.js shows an emoji in one cell;
//! others show a character with an emoji variation selector in two cells. Programs have to live
//! with that. But a snapshot paints whole pages, in which one shifted cell would shift all cells
//! after it. So after such a character the snapshot puts the cursor in its place again.

use alacritty_terminal::term::cell::{Cell, Flags};
use unicode_width::UnicodeWidthChar as _;

/// A character that most terminals show in one cell, although Unicode calls it invisible.
pub(super) const SOFT_HYPHEN: char = '\u{ad}';

/// The cells that a character takes: 0 for a combining mark, `None` for a control character.
#[inline]
pub(super) fn of(character: char) -> Option<usize> {
    if character == SOFT_HYPHEN { Some(1) } else { character.width() }
}

/// Whether all terminals give a cell the width that it has here.
pub(super) fn is_agreed(cell: &Cell) -> bool {
    if cell.c.is_ascii() && cell.extra.is_none() {
        return true;
    }
    let wide = cell.flags.contains(Flags::WIDE_CHAR);
    let basic = u32::from(cell.c) < 0x1_0000;
    // A soft hyphen is narrow in some terminals, invisible in others.
    let agreed = if wide { is_ideographic(cell.c) } else { basic && cell.c != SOFT_HYPHEN };
    agreed && !cell.zerowidth().unwrap_or_default().iter().any(|mark| joins(*mark))
}

/// Whether a mark joins the characters around it, or makes the one before it wider.
fn joins(mark: char) -> bool {
    matches!(mark, '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f000}'..)
}

/// Whether a character belongs to the scripts of East Asia. All terminals show these in two cells.
fn is_ideographic(character: char) -> bool {
    matches!(
        character,
        '\u{1100}'..='\u{115f}'
            | '\u{2e80}'..='\u{303e}'
            | '\u{3041}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{fe30}'..='\u{fe6f}'
            | '\u{ff00}'..='\u{ff60}'
            | '\u{ffe0}'..='\u{ffe6}'
            | '\u{20000}'..='\u{3fffd}'
    )
}
