//! Recognises a terminal's answers among what is typed.

use memchr::memchr2;

use super::Kind;
use crate::terminal::control::Control;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// The length at which an unfinished answer is no longer held but taken for keys, in bytes.
const LONGEST: usize = 4096;

/// The kind of typed bytes that begin with `ESC`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// An answer of this kind and length.
    Answer(Kind, usize),
    /// The beginning of a sequence that may become an answer.
    Begun,
    /// No answer.
    Other,
}

/// Reads typed bytes, which begin with `ESC`.
pub(super) fn read(typed: &[u8]) -> Reading {
    match typed.get(1) {
        Some(b'[') => read_control(typed),
        Some(b']' | b'P' | b'_') => read_text(typed),
        _ => Reading::Other,
    }
}

fn read_control(typed: &[u8]) -> Reading {
    let end = typed.iter().take(LONGEST).skip(2).position(|byte| !matches!(byte, b' '..=b'?'));
    let Some(length) = end.map(|end| end + 3) else { return begun(typed) };
    let sequence = std::str::from_utf8(&typed[..length]).ok();
    let kind = sequence.and_then(Control::read).and_then(|control| control_kind(&control));
    kind.map_or(Reading::Other, |kind| Reading::Answer(kind, length))
}

fn read_text(typed: &[u8]) -> Reading {
    let text = typed.get(2..typed.len().min(LONGEST)).unwrap_or_default();
    let Some(end) = memchr2(ESC, BEL, text).map(|end| end + 2) else { return begun(typed) };
    let length = match typed[end..] {
        [BEL, ..] => end + 1,
        [ESC, b'\\', ..] => end + 2,
        [ESC] => return begun(typed),
        // This escape did not end the text: it began another sequence. So nothing is read twice.
        _ => return Reading::Other,
    };
    let kind = std::str::from_utf8(&typed[1..end]).ok().and_then(text_kind);
    kind.map_or(Reading::Other, |kind| Reading::Answer(kind, length))
}

const fn begun(typed: &[u8]) -> Reading {
    if typed.len() < LONGEST { Reading::Begun } else { Reading::Other }
}

fn control_kind(control: &Control<'_>) -> Option<Kind> {
    let kind = match (control.marker, control.between, control.last, control.number()) {
        (Some('?'), "", 'c', _) => Kind::Attributes(' '),
        (Some('>'), "", 'c', _) => Kind::Attributes('>'),
        (None, "", 'n', 0 | 3) => Kind::Status,
        // With only one number, the sequence is a key.
        (None, "", 'R', _) if control.numbers.contains(';') => Kind::Position,
        (Some('?'), "", 'R', _) => Kind::ExtendedPosition,
        (Some('?'), "", 'n', 997) => Kind::ColourScheme,
        (None, "$", 'y', _) => Kind::Mode,
        (Some('?'), "$", 'y', _) => Kind::PrivateMode,
        (Some('?'), "", 'u', _) => Kind::Keyboard,
        (Some('>'), "", 'm', 4) => Kind::OtherKeys,
        (None, "", 't', size @ (4 | 5 | 6 | 8 | 9)) => Kind::Size(size),
        (Some('?'), "", 'S', _) => Kind::Graphics,
        _ => return None,
    };
    Some(kind)
}

fn text_kind(text: &str) -> Option<Kind> {
    let is_checksum = |text: &str| {
        let digits = text.trim_start_matches(|character: char| character.is_ascii_digit());
        digits.starts_with("!~")
    };
    match text {
        answer if answer.starts_with("P!|") => Some(Kind::Attributes('=')),
        answer if answer.starts_with("P>|") => Some(Kind::Version),
        answer if answer.starts_with("_G") => Some(Kind::Picture),
        answer if answer.starts_with("]L") => Some(Kind::Title('L')),
        answer if answer.starts_with("]l") => Some(Kind::Title('l')),
        answer if ["P1$r", "P0$r"].iter().any(|start| answer.starts_with(start)) => {
            Some(Kind::Setting)
        }
        answer if ["P1+r", "P0+r"].iter().any(|start| answer.starts_with(start)) => {
            Some(Kind::Capability)
        }
        answer if answer.strip_prefix('P').is_some_and(is_checksum) => Some(Kind::Checksum),
        answer => match answer.strip_prefix(']')?.split(';').next()?.parse().ok()? {
            number @ (4 | 10..=19) => Some(Kind::Colour(number)),
            52 => Some(Kind::Clipboard),
            _ => None,
        },
    }
}
