//! The pen: the look of the characters that are printed next.

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

use super::super::cells;
use super::Emulator;

/// The most numbers of one sequence; the rest is ignored.
const MOST: usize = 32;

/// The colours with names, in the order of their numbers.
const NAMED: [NamedColor; 16] = [
    NamedColor::Black,
    NamedColor::Red,
    NamedColor::Green,
    NamedColor::Yellow,
    NamedColor::Blue,
    NamedColor::Magenta,
    NamedColor::Cyan,
    NamedColor::White,
    NamedColor::BrightBlack,
    NamedColor::BrightRed,
    NamedColor::BrightGreen,
    NamedColor::BrightYellow,
    NamedColor::BrightBlue,
    NamedColor::BrightMagenta,
    NamedColor::BrightCyan,
    NamedColor::BrightWhite,
];

impl Emulator {
    /// Changes the pen. `numbers` are those of the sequence `CSI numbers m`.
    pub(in super::super) fn set_pen(&mut self, numbers: &[u8]) {
        let pen = &mut self.term.grid_mut().cursor.template;
        let mut groups = numbers.split(|byte| *byte == b';').take(MOST);
        while let Some(group) = groups.next() {
            if group.contains(&b':') {
                change_by_group(pen, group);
                continue;
            }
            match number(group) {
                // The numbers of a colour follow.
                target @ (38 | 48 | 58) => {
                    let colour = colour(&mut groups.by_ref().map(number));
                    if let Some(colour) = colour {
                        set_colour(pen, target, colour);
                    }
                }
                number => change(pen, number),
            }
        }
    }
}

/// Reads a number; 0 if there are no digits.
fn number(digits: &[u8]) -> u16 {
    digits.iter().fold(0u16, |n, digit| {
        n.saturating_mul(10).saturating_add(u16::from(digit.wrapping_sub(b'0')))
    })
}

/// Obeys numbers that are joined by colons: a kind of underline, or a colour.
fn change_by_group(pen: &mut Cell, group: &[u8]) {
    let mut parts = group.split(|byte| *byte == b':').map(number);
    let first = parts.next().unwrap_or_default();
    match first {
        4 => underline(pen, cells::underline(parts.next().unwrap_or_default())),
        38 | 48 | 58 => {
            // A colour space may stand before red, green and blue.
            let kind = parts.next().unwrap_or_default();
            let named = group.iter().filter(|byte| **byte == b':').count() > 4;
            let rest = parts.skip(usize::from(kind == 2 && named));
            if let Some(colour) = colour(&mut std::iter::once(kind).chain(rest)) {
                set_colour(pen, first, colour);
            }
        }
        _ => {}
    }
}

/// Reads a colour: `2` and its red, green and blue, or `5` and its number.
fn colour(numbers: &mut dyn Iterator<Item = u16>) -> Option<Color> {
    match numbers.next()? {
        2 => {
            let (r, g, b) = (byte(numbers)?, byte(numbers)?, byte(numbers)?);
            Some(Color::Spec(Rgb { r, g, b }))
        }
        5 => byte(numbers).map(Color::Indexed),
        _ => None,
    }
}

fn byte(numbers: &mut dyn Iterator<Item = u16>) -> Option<u8> {
    u8::try_from(numbers.next()?).ok()
}

fn set_colour(pen: &mut Cell, target: u16, colour: Color) {
    match target {
        38 => pen.fg = colour,
        48 => pen.bg = colour,
        _ => pen.set_underline_color(Some(colour)),
    }
}

fn underline(pen: &mut Cell, kind: Flags) {
    pen.flags.remove(cells::UNDERLINES);
    pen.flags.insert(kind);
}

fn change(pen: &mut Cell, number: u16) {
    match number {
        0 => reset(pen),
        1 => pen.flags.insert(Flags::BOLD),
        2 => pen.flags.insert(Flags::DIM),
        3 => pen.flags.insert(Flags::ITALIC),
        4 => underline(pen, cells::underline(1)),
        5 | 6 => pen.flags.insert(cells::BLINKING),
        7 => pen.flags.insert(Flags::INVERSE),
        8 => pen.flags.insert(Flags::HIDDEN),
        9 => pen.flags.insert(Flags::STRIKEOUT),
        21 => underline(pen, cells::underline(2)),
        22 => pen.flags.remove(Flags::BOLD | Flags::DIM),
        23 => pen.flags.remove(Flags::ITALIC),
        24 => pen.flags.remove(cells::UNDERLINES),
        25 => pen.flags.remove(cells::BLINKING),
        27 => pen.flags.remove(Flags::INVERSE),
        28 => pen.flags.remove(Flags::HIDDEN),
        29 => pen.flags.remove(Flags::STRIKEOUT),
        53 => pen.flags.insert(cells::OVERLINE),
        55 => pen.flags.remove(cells::OVERLINE),
        59 => pen.set_underline_color(None),
        _ => change_colour(pen, number),
    }
}

fn change_colour(pen: &mut Cell, number: u16) {
    let named = |index: u16| Color::Named(NAMED[usize::from(index)]);
    match number {
        30..=37 => pen.fg = named(number - 30),
        39 => pen.fg = Color::Named(NamedColor::Foreground),
        40..=47 => pen.bg = named(number - 40),
        49 => pen.bg = Color::Named(NamedColor::Background),
        90..=97 => pen.fg = named(number - 82),
        100..=107 => pen.bg = named(number - 92),
        _ => {}
    }
}

/// Resets the look. A link and protection stay.
fn reset(pen: &mut Cell) {
    pen.fg = Color::Named(NamedColor::Foreground);
    pen.bg = Color::Named(NamedColor::Background);
    pen.flags &= cells::PROTECTED;
    pen.set_underline_color(None);
}
