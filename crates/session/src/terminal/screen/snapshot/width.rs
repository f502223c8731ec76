//! How wide characters are in other terminals.
//!
//! Terminals go by different versions of Unicode: xterm.js, unless told otherwise, shows an emoji in
//! one cell, and others show in two what a variation selector makes an emoji. Programs have to live
//! with that. But a snapshot paints whole pages, and there what is shifted by a cell would shift all
//! that comes after it: so behind such a character the cursor is put in its place again.

use alacritty_terminal::term::cell::{Cell, Flags};

/// Whether a cell is as wide everywhere as it is here.
pub(super) fn is_agreed(cell: &Cell) -> bool {
    if cell.c.is_ascii() && cell.extra.is_none() {
        return true;
    }
    let wide = cell.flags.contains(Flags::WIDE_CHAR);
    let basic = u32::from(cell.c) < 0x1_0000;
    let agreed = if wide { is_ideographic(cell.c) } else { basic && cell.c != SOFT_HYPHEN };
    agreed && !cell.zerowidth().unwrap_or_default().iter().any(|mark| joins(*mark))
}

/// Whether a mark makes one thing of what is before it and behind it, or something wider.
fn joins(mark: char) -> bool {
    matches!(mark, '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f000}'..)
}

/// Wide in some terminals, narrow or nothing in others.
const SOFT_HYPHEN: char = '\u{ad}';

/// The scripts of East Asia, which have been wide since there were wide characters.
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
