//! Modes, colours, titles, tab stops, margins, and how keys are reported.

use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::color::COUNT;
use alacritty_terminal::vte::ansi::{CursorShape, NamedColor, Rgb};

use protocol::workspace::modes;

use super::super::emulator::{ENGINE, Emulator, Guard, Keys, Titles, default_tabs};
use super::{At, Painter};

/// The keypad's mode. It is set by an older sequence, which every terminal knows.
const KEYPAD: TermMode = TermMode::APP_KEYPAD;

pub(super) fn colours(painter: &mut Painter, emulator: &Emulator) {
    if !emulator.has_palette {
        return;
    }
    for index in 0..COUNT {
        if let Some(Rgb { r, g, b }) = emulator.term().colors()[index] {
            let selector = selector_of(index);
            painter.put(format_args!("\x1b]{selector};rgb:{r:02x}/{g:02x}/{b:02x}\x1b\\"));
        }
    }
}

fn selector_of(index: usize) -> String {
    match index.checked_sub(NamedColor::Foreground as usize) {
        None => format!("4;{index}"),
        Some(named) => format!("{}", 10 + named),
    }
}

pub(super) fn titles(painter: &mut Painter, titles: &Titles) {
    let mut set: Option<&str> = None;
    for title in titles.saved() {
        change_title(painter, &mut set, title.as_deref());
        painter.out.push_str("\x1b[22;2t");
    }
    change_title(painter, &mut set, titles.current());
}

fn change_title<'a>(painter: &mut Painter, set: &mut Option<&'a str>, title: Option<&'a str>) {
    if *set != title {
        painter.put(format_args!("\x1b]2;{}\x1b\\", title.unwrap_or_default()));
        *set = title;
    }
}

pub(super) fn tabs(painter: &mut Painter, tabs: &[bool]) {
    if tabs.iter().copied().eq(default_tabs(tabs.len())) {
        return;
    }
    painter.out.push_str("\x1b[3g");
    for (column, _) in tabs.iter().enumerate().filter(|(_, is)| **is) {
        painter.put(format_args!("\x1b[{}G\x1bH", column + 1));
    }
    painter.at = At::Unknown;
}

pub(super) fn keys(painter: &mut Painter, keys: &Keys) {
    for flags in keys.all() {
        painter.put(format_args!("\x1b[>{flags}u"));
    }
}

/// Sets the modes, except origin mode, which is set with the margins.
pub(super) fn switches(painter: &mut Painter, emulator: &Emulator) {
    for (number, mode) in ENGINE.into_iter().filter(|(_, mode)| *mode != TermMode::ORIGIN) {
        let is_on = emulator.has(mode);
        match is_on == modes::of(number).is_some_and(|mode| mode.is_on) {
            _ if mode.is_empty() => {}
            true => {}
            false if mode == KEYPAD => painter.out.push_str("\x1b="),
            false => painter.put(format_args!("\x1b[?{number}{}", if is_on { 'h' } else { 'l' })),
        }
    }
    for (mode, sequence) in
        [(TermMode::LINE_FEED_NEW_LINE, "\x1b[20h"), (TermMode::INSERT, "\x1b[4h")]
    {
        if emulator.has(mode) {
            painter.out.push_str(sequence);
        }
    }
    for mode in &emulator.passed_modes {
        painter.put(format_args!("\x1b[?{mode}h"));
    }
    if emulator.modify_other_keys > 0 {
        painter.put(format_args!("\x1b[>4;{}m", emulator.modify_other_keys));
    }
    cursor_style(painter, emulator);
}

fn cursor_style(painter: &mut Painter, emulator: &Emulator) {
    if let Some(blinks) = emulator.blinking {
        painter.out.push_str(if blinks { "\x1b[?12h" } else { "\x1b[?12l" });
    }
    if !emulator.has_cursor_style {
        return;
    }
    painter.put(format_args!("\x1b[{} q", style_number(emulator)));
}

pub(super) fn style_number(emulator: &Emulator) -> u8 {
    let style = emulator.term().cursor_style();
    let steady = match style.shape {
        CursorShape::Underline => 4,
        CursorShape::Beam => 6,
        CursorShape::Block | CursorShape::HollowBlock | CursorShape::Hidden => 2,
    };
    steady - u8::from(style.blinking)
}

/// Sets the margins and origin mode. Returns the row from which the terminal then counts rows.
pub(super) fn margins(painter: &mut Painter, emulator: &Emulator) -> usize {
    let (top, bottom) = (emulator.margins.start, emulator.margins.end);
    if !emulator.has_full_margins() {
        painter.put(format_args!("\x1b[{};{bottom}r", top + 1));
    }
    if !emulator.has(TermMode::ORIGIN) {
        return 0;
    }
    painter.out.push_str("\x1b[?6h");
    top
}

/// Puts a character set in use; the first one is in use after a reset.
pub(super) fn charset(painter: &mut Painter, in_use: usize) {
    painter.out.push_str(["", "\x0e", "\x1bn", "\x1bo"][in_use]);
}

/// Makes all erasures spare protected cells, if they do so on this screen. This protects no cell.
pub(super) fn guard(painter: &mut Painter, guard: Guard) {
    if guard == Guard::All {
        painter.out.push_str("\x1bV\x1bW");
    }
}
