//! The answers of a screen to what a program asks its terminal.

use std::fmt::Write as _;

use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{NamedColor, Rgb};

use super::emulator::Emulator;
use super::{Screen, cells, snapshot};
use crate::terminal::control::Control;
use crate::terminal::query::{Kind, Query};

/// The width and height of a cell in pixels. The screen has no pixels, so these are usual values.
const CELL: (u16, u16) = (10, 20);

impl Screen {
    /// The answer to a question that the screen was fed last. `None`: the screen does not know the answer.
    #[must_use]
    pub fn answer(&self, query: &Query) -> Option<String> {
        let emulator = &self.emulator;
        let numbers = Control::read(&query.sequence);
        let number = numbers.map_or(0, |control| control.number());
        Some(match query.kind {
            // A VT220 with selective erasure and colours.
            Kind::Attributes(' ') => "\x1b[?62;6;22c".to_owned(),
            Kind::Attributes('>') => "\x1b[>1;10;0c".to_owned(),
            Kind::Attributes(_) => "\x1bP!|00000000\x1b\\".to_owned(),
            Kind::Status => "\x1b[0n".to_owned(),
            Kind::Position => position(emulator, ""),
            Kind::ExtendedPosition => position(emulator, "?"),
            Kind::Mode => format!("\x1b[{number};{}$y", state(mode(emulator, number))),
            Kind::PrivateMode => {
                format!("\x1b[?{number};{}$y", state(emulator.private_mode(number)))
            }
            Kind::Setting => setting(emulator, query),
            Kind::Capability => capabilities(query),
            Kind::Version => format!("\x1bP>|Warren {}\x1b\\", env!("CARGO_PKG_VERSION")),
            Kind::Colour(number) => return colours(emulator, query, number),
            Kind::Size(kind) => self.sizes(kind),
            Kind::Keyboard => {
                format!("\x1b[?{}u", emulator.keys.all().last().copied().unwrap_or_default())
            }
            Kind::OtherKeys => format!("\x1b[>4;{}m", emulator.modify_other_keys),
            // Dark, as most terminals are.
            Kind::ColourScheme => "\x1b[?997;1n".to_owned(),
            Kind::Title(_) | Kind::Graphics | Kind::Picture | Kind::Clipboard | Kind::Checksum => {
                return None;
            }
        })
    }

    fn sizes(&self, kind: u16) -> String {
        let (cols, rows) = (self.size().cols, self.size().rows);
        let (height, width) = match kind {
            4 | 5 => (u32::from(rows) * u32::from(CELL.1), u32::from(cols) * u32::from(CELL.0)),
            6 => (CELL.1.into(), CELL.0.into()),
            _ => (rows.into(), cols.into()),
        };
        format!("\x1b[{kind};{height};{width}t")
    }
}

/// The row and column of the cursor, counted as the program does.
fn position(emulator: &Emulator, marker: &str) -> String {
    let cursor = &emulator.grid().cursor;
    // In origin mode rows are counted from the upper margin.
    let top = if emulator.has(TermMode::ORIGIN) { emulator.margins.start } else { 0 };
    let line = cells::line_of(cursor).saturating_sub(top) + 1;
    format!("\x1b[{marker}{line};{}R", cursor.point.column.0 + 1)
}

fn mode(emulator: &Emulator, number: u16) -> Option<bool> {
    match number {
        4 => Some(emulator.has(TermMode::INSERT)),
        20 => Some(emulator.has(TermMode::LINE_FEED_NEW_LINE)),
        _ => None,
    }
}

/// The state of a mode: unknown, set, or reset.
fn state(mode: Option<bool>) -> u8 {
    match mode {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    }
}

fn setting(emulator: &Emulator, query: &Query) -> String {
    let margins = &emulator.margins;
    let value = match query.sequence.strip_prefix("\x1bP$q") {
        Some("m") => format!("0{}m", snapshot::pen_numbers(emulator)),
        Some("r") => format!("{};{}r", margins.start + 1, margins.end),
        Some(" q") => format!("{} q", snapshot::cursor_number(emulator)),
        Some("\"q") => {
            let pen = &emulator.grid().cursor.template;
            format!("{}\"q", u8::from(pen.flags.contains(cells::PROTECTED)))
        }
        Some("\"p") => "62;1\"p".to_owned(),
        _ => return "\x1bP0$r\x1b\\".to_owned(),
    };
    format!("\x1bP1$r{value}\x1b\\")
}

/// The capabilities that are the same in every terminal that people attach with.
fn capabilities(query: &Query) -> String {
    let names = query.sequence.strip_prefix("\x1bP+q").unwrap_or_default();
    let mut answers = String::new();
    for name in names.split(';') {
        // "TN", "Co", "colors" and "RGB".
        let value = match name.to_ascii_lowercase().as_str() {
            "544e" => "xterm-256color",
            "436f" | "636f6c6f7273" => "256",
            "524742" => "8/8/8",
            _ => {
                let _ = write!(answers, "\x1bP0+r{name}\x1b\\");
                continue;
            }
        };
        let _ = write!(answers, "\x1bP1+r{name}=");
        for byte in value.bytes() {
            let _ = write!(answers, "{byte:02x}");
        }
        answers.push_str("\x1b\\");
    }
    answers
}

/// The colours that a query asks for. `None`: they depend on what a person chose in the terminal, and no
/// program has set them; or the query names no colour.
fn colours(emulator: &Emulator, query: &Query, number: u16) -> Option<String> {
    let end = if query.by_bell { "\x07" } else { "\x1b\\" };
    let report = |selector: &str, Rgb { r, g, b }: Rgb| {
        format!("\x1b]{selector};rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}{end}")
    };
    let set = |index: usize| emulator.term().colors()[index];
    if number != 4 {
        let named = usize::from(number.checked_sub(10).filter(|named| *named < 3)?);
        let colour = set(NamedColor::Foreground as usize + named)?;
        return Some(report(&number.to_string(), colour));
    }
    // Bounds the length of the answer.
    let parts: Vec<&str> = query.sequence.split(';').skip(1).take(64).collect();
    let questions = parts.chunks_exact(2).filter(|pair| pair[1] == "?");
    let indexes = questions.filter_map(|pair| pair[0].parse::<u8>().ok());
    let all = indexes.map(|index| {
        let colour = set(index.into()).unwrap_or_else(|| usual(index));
        report(&format!("4;{index}"), colour)
    });
    Some(all.collect::<String>()).filter(|all| !all.is_empty())
}

/// The palette of xterm.
fn usual(index: u8) -> Rgb {
    const FIRST: [(u8, u8, u8); 16] = [
        (0, 0, 0),
        (205, 0, 0),
        (0, 205, 0),
        (205, 205, 0),
        (0, 0, 238),
        (205, 0, 205),
        (0, 205, 205),
        (229, 229, 229),
        (127, 127, 127),
        (255, 0, 0),
        (0, 255, 0),
        (255, 255, 0),
        (92, 92, 255),
        (255, 0, 255),
        (0, 255, 255),
        (255, 255, 255),
    ];
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let (r, g, b) = match index {
        0..=15 => FIRST[usize::from(index)],
        16..=231 => {
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        _ => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    };
    Rgb { r, g, b }
}
