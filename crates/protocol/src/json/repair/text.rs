//! Strings of a text that is repaired: their escapes, and their length.

const REPLACEMENT: &str = "\u{fffd}";

/// An unfinished string.
#[derive(Debug)]
pub(super) struct Text {
    /// The most bytes that may be written of it; `None` if it is left out.
    room: Option<usize>,
    stage: Stage,
    /// The first half of a surrogate pair, while the second one may follow.
    high: Option<u16>,
    is_cut: bool,
    has_bad_escapes: bool,
}

/// The end of a string.
pub(super) struct TextEnd {
    /// Whether it is written.
    pub(super) is_kept: bool,
    pub(super) is_cut: bool,
    /// Whether an escape had no meaning.
    pub(super) has_bad_escapes: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Plain,
    /// After a backslash.
    Escape,
    /// After `\u` and some digits.
    Unicode {
        unit: u16,
        digits: u8,
    },
}

impl Text {
    /// A string of which at most `room` bytes are written; `None`: nothing.
    pub(super) fn begun(room: Option<usize>) -> Self {
        Self { room, stage: Stage::Plain, high: None, is_cut: false, has_bad_escapes: false }
    }

    /// Takes a part of the string. Returns the rest of the bytes, and whether the string has ended.
    pub(super) fn take<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> (&'a [u8], bool) {
        match (self.stage, bytes) {
            (Stage::Plain, [b'"', rest @ ..]) => (rest, true),
            (Stage::Plain, _) => (self.plain(bytes, out), false),
            (Stage::Escape, _) => (self.escape(bytes, out), false),
            (Stage::Unicode { .. }, _) => (self.digit(bytes, out), false),
        }
    }

    /// Whether it is written.
    pub(super) fn is_kept(&self) -> bool {
        self.room.is_some()
    }

    /// Begins it with the first half of a surrogate pair.
    pub(super) fn begin_pair(&mut self, first: u16) {
        self.high = Some(first);
    }

    /// Takes the first half of a surrogate pair that waits for its second one.
    pub(super) fn begun_pair(&mut self) -> Option<u16> {
        self.high.take()
    }

    /// Ends the string.
    pub(super) fn ends(mut self, out: &mut Vec<u8>) -> TextEnd {
        self.half(out);
        let Self { is_cut, has_bad_escapes, .. } = self;
        TextEnd { is_kept: self.room.is_some(), is_cut, has_bad_escapes }
    }

    /// Takes bytes up to the next quote or escape.
    fn plain<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\') || *byte < 0x20;
        let end = bytes.iter().position(is_special).unwrap_or(bytes.len());
        let (run, rest) = bytes.split_at(end);
        if !run.is_empty() {
            self.half(out);
            self.write_some(run, out);
        }
        match rest.split_first() {
            Some((b'\\', rest)) => {
                self.stage = Stage::Escape;
                rest
            }
            Some((&byte, rest)) if byte < 0x20 => {
                self.half(out);
                self.write(&format!("\\u{byte:04x}"), out);
                rest
            }
            _ => rest,
        }
    }

    /// Takes the byte after a backslash.
    fn escape<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        self.stage = Stage::Plain;
        match bytes[0] {
            b'u' => {
                self.stage = Stage::Unicode { unit: 0, digits: 0 };
                &bytes[1..]
            }
            byte @ (b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.half(out);
                self.write(&format!("\\{}", char::from(byte)), out);
                &bytes[1..]
            }
            // Not a known escape: the character stands for itself.
            _ => {
                self.has_bad_escapes = true;
                bytes
            }
        }
    }

    /// Takes a digit after `\u`.
    fn digit<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let Stage::Unicode { unit, digits } = self.stage else { return bytes };
        let Some(digit) = char::from(bytes[0]).to_digit(16) else {
            (self.stage, self.has_bad_escapes) = (Stage::Plain, true);
            self.half(out);
            self.write(REPLACEMENT, out);
            return bytes;
        };
        // A digit is below 16.
        let unit = unit << 4 | digit as u16;
        match digits {
            3 => {
                self.stage = Stage::Plain;
                self.unit(unit, out);
            }
            _ => self.stage = Stage::Unicode { unit, digits: digits + 1 },
        }
        &bytes[1..]
    }

    /// Takes a code unit of UTF-16.
    fn unit(&mut self, unit: u16, out: &mut Vec<u8>) {
        if let Some(high) = self.high
            && let Some(Ok(whole)) = char::decode_utf16([high, unit]).next()
        {
            self.high = None;
            return self.character(whole, out);
        }
        self.half(out);
        match char::from_u32(unit.into()) {
            Some(character) => self.character(character, out),
            None if unit < 0xdc00 => self.high = Some(unit),
            None => self.write(REPLACEMENT, out),
        }
    }

    fn character(&mut self, character: char, out: &mut Vec<u8>) {
        match character {
            '"' | '\\' | '\0'..' ' => self.write(&format!("\\u{:04x}", u32::from(character)), out),
            _ => self.write(character.encode_utf8(&mut [0; 4]), out),
        }
    }

    /// Replaces the first half of a pair whose second half has not followed.
    fn half(&mut self, out: &mut Vec<u8>) {
        if self.high.take().is_some() {
            self.write(REPLACEMENT, out);
        }
    }

    /// Writes a character, if there is room.
    fn write(&mut self, text: &str, out: &mut Vec<u8>) {
        let fits = self.room.is_some_and(|room| room >= text.len());
        match &mut self.room {
            Some(room) if fits && !self.is_cut => {
                *room -= text.len();
                out.extend(text.as_bytes());
            }
            _ => self.is_cut = true,
        }
    }

    /// Writes as much as there is room for. The cut is never within a character, even one that began in the last
    /// piece.
    fn write_some(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(room) = self.room.as_mut().filter(|_| !self.is_cut) else { return };
        let (kept, lost) = bytes.split_at(bytes.len().min(*room));
        *room -= kept.len();
        out.extend(kept);
        self.is_cut = !lost.is_empty();
        if lost.first().copied().is_some_and(continues) {
            drop_begun_character(out);
        }
    }
}

/// Whether a byte of UTF-8 continues a character.
fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Drops an incomplete character from the end, going back no further than the string's opening
/// quote.
fn drop_begun_character(out: &mut Vec<u8>) {
    while out.pop_if(|byte| continues(*byte)).is_some() {}
    out.pop_if(|byte| *byte >= 0xc0);
}
