//! Finds the queries in a terminal's output, wherever the output is cut.

use memchr::memchr3;

use super::{Kind, Query};
use crate::terminal::{control::Control, run};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// The longest query, in bytes. A longer sequence is not taken for a query.
const LONGEST: usize = 256;
/// The last characters of the control sequences that ask something.
const ENDS: &[u8] = b"cnpqtumSy";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Rest,
    Escape,
    Between,
    Control,
    /// In a text for the terminal itself.
    Text,
    TextEscape,
}

/// Reads output.
#[derive(Debug, Default)]
pub(super) struct Finder {
    state: State,
    /// The sequence so far, up to a bound.
    begun: Vec<u8>,
    is_too_long: bool,
}

impl Finder {
    /// Reads on. Returns the first query that ends in `text`, and the number of bytes up to the query's end;
    /// the next call must begin there. `None`: all of `text` was read.
    pub(super) fn next(&mut self, text: &[u8]) -> Option<(usize, Query)> {
        let mut at = 0;
        while at < text.len() {
            at += self.skip(&text[at..]);
            let byte = *text.get(at)?;
            at += 1;
            if let Some(query) = self.step(byte) {
                return Some((at, query));
            }
        }
        None
    }

    /// The number of bytes at the beginning that cannot be part of a query.
    fn skip(&self, text: &[u8]) -> usize {
        match self.state {
            State::Rest => skip_at_rest(text),
            State::Text if self.is_too_long => memchr3(ESC, BEL, 0x18, text).unwrap_or(text.len()),
            _ => 0,
        }
    }

    fn step(&mut self, byte: u8) -> Option<Query> {
        use State::{Between, Control, Escape, Rest, Text, TextEscape};
        let is_command = self.begun.get(1) == Some(&b']');
        let next = match (self.state, byte) {
            // CAN and SUB cancel every sequence.
            (_, 0x18 | 0x1a) => Rest,
            (Text, ESC) => TextEscape,
            (TextEscape, b'\\') => return self.end(false),
            // A bell ends a command; in other texts it is text.
            (Text, BEL) if is_command => return self.end(true),
            (Text, _) => Text,
            (_, ESC) => {
                self.begin();
                return None;
            }
            // The escape did not end the text. It began another sequence.
            (TextEscape, _) => {
                self.begin();
                return self.step(byte);
            }
            (Escape, b'[') => Control,
            (Escape, b']' | b'P' | b'_' | b'X' | b'^') => Text,
            (Escape | Between, 0x20..=0x2f) => Between,
            (Escape, b'Z') | (Control, 0x40..=0x7e) => {
                self.push(byte);
                return self.end(false);
            }
            (Escape | Between, 0x30..=0x7e) | (Rest, _) => Rest,
            (state, _) => state,
        };
        self.state = next;
        if next == Rest {
            self.begun.clear();
        } else if next != TextEscape {
            self.push(byte);
        }
        None
    }

    fn begin(&mut self) {
        *self = Self { state: State::Escape, begun: vec![ESC], is_too_long: false };
    }

    fn push(&mut self, byte: u8) {
        self.is_too_long |= self.begun.len() >= LONGEST;
        if !self.is_too_long && !byte.is_ascii_control() {
            self.begun.push(byte);
        }
    }

    fn end(&mut self, by_bell: bool) -> Option<Query> {
        let Self { begun, is_too_long, .. } = std::mem::take(self);
        let sequence = String::from_utf8(begun).ok().filter(|_| !is_too_long)?;
        let kind = kind(&sequence)?;
        Some(Query { kind, sequence, by_bell })
    }
}

/// The bytes before the next sequence that may ask something. Most sequences are read here in one step.
fn skip_at_rest(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = run::escape(&text[at..]) {
        at += found;
        let Some(body) = text[at..].strip_prefix(b"\x1b[") else { return at };
        let len = run::parameters(body);
        match body.get(len) {
            Some(b'm') if !body.starts_with(b"?") => {}
            Some(b'm') | None => return at,
            Some(last @ b'@'..=b'~') if !ENDS.contains(last) => {}
            Some(_) => return at,
        }
        at += 2 + len + 1;
    }
    text.len()
}

fn kind(sequence: &str) -> Option<Kind> {
    match Control::read(sequence) {
        Some(control) => control_kind(&control),
        None if sequence == "\x1bZ" => Some(Kind::Attributes(' ')),
        None => text_kind(sequence.get(1..)?),
    }
}

fn control_kind(control: &Control<'_>) -> Option<Kind> {
    let kind = match (control.marker, control.between, control.last, control.number()) {
        (None, "", 'c', 0) => Kind::Attributes(' '),
        (Some(marker @ ('>' | '=')), "", 'c', 0) => Kind::Attributes(marker),
        (None, "", 'n', 5) => Kind::Status,
        (None, "", 'n', 6) => Kind::Position,
        (Some('?'), "", 'n', 6) => Kind::ExtendedPosition,
        (Some('?'), "", 'n', 996) => Kind::ColourScheme,
        (None, "$", 'p', _) => Kind::Mode,
        (Some('?'), "$", 'p', _) => Kind::PrivateMode,
        (Some('>'), "", 'q', 0) => Kind::Version,
        (Some('?'), "", 'u', _) => Kind::Keyboard,
        (Some('?'), "", 'm', 4) => Kind::OtherKeys,
        (None, "", 't', number @ (14 | 15 | 16 | 18 | 19)) => Kind::Size(number - 10),
        (None, "", 't', 20) => Kind::Title('L'),
        (None, "", 't', 21) => Kind::Title('l'),
        (Some('?'), "", 'S', _) => Kind::Graphics,
        (None, "*", 'y', _) => Kind::Checksum,
        _ => return None,
    };
    Some(kind)
}

fn text_kind(text: &str) -> Option<Kind> {
    if let Some(command) = text.strip_prefix(']') {
        let mut parts = command.split(';');
        let number = parts.next()?.parse().ok()?;
        let asks = command.ends_with(";?");
        return match number {
            4 | 10..=19 if asks => Some(Kind::Colour(number)),
            52 if asks => Some(Kind::Clipboard),
            _ => None,
        };
    }
    match text {
        setting if setting.starts_with("P$q") => Some(Kind::Setting),
        names if names.starts_with("P+q") => Some(Kind::Capability),
        picture if picture.starts_with("_G") && picture.contains("a=q") => Some(Kind::Picture),
        _ => None,
    }
}
