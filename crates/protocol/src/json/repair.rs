//! Mends JSON that is nearly valid. Other programs write things that strict readers refuse:
//!
//! - half a surrogate pair, or invalid UTF-8: U+FFFD takes its place
//! - a control character in a string, or an unknown escape: it becomes the character itself
//! - `NaN`, `Infinity` and numbers that are too large: `null`
//! - values that are nested too deep: `null`
//! - texts that are too long: strings are cut, then members are left out, the deepest ones first
//!
//! Everything else stays as it was. Text that is still not JSON after this is not read.
//!
//! - `text`: strings
//! - `seam`: characters that begin in one text and end in the next

mod seam;
mod text;

use std::ops::Range;

use serde_json::{Number, Value};

pub use self::seam::{MAX_SEAMS, Seam};
use self::text::Text;

/// How much of a text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The deepest nesting. `serde_json` reads 127 levels.
    pub depth: usize,
    /// The most bytes of the result. Each value counts 32 bytes more, since it takes memory when it is
    /// read. Half of the bytes are for nested members. A few short strings near the top, such as
    /// kinds and ids, fit beyond this bound. The U+FFFD of invalid UTF-8 are not counted.
    pub total: usize,
}

impl Bounds {
    /// Only what a strict reader refuses is changed.
    pub const WHOLE: Self = Self { depth: 127, total: usize::MAX };
}

/// A text that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The text, which is JSON.
    pub text: String,
    /// Whether something was cut or left out because of the bounds.
    pub is_cut: bool,
    /// Whether an escape had no meaning, so that the text may not be what its writer meant.
    pub has_bad_escapes: bool,
    /// The characters that may go on in the next text; none unless the repair was [joining](Repair::joining).
    pub seams: Vec<Seam>,
}

/// Mends a text. `None` if it is not JSON at all.
pub fn repaired(text: &[u8], bounds: Bounds) -> Option<Repaired> {
    let mut repair = Repair::new(bounds);
    repair.push(text);
    repair.finish()
}

/// The value of a text: read as it is if it is valid, else mended. `None` if it is not JSON.
pub fn value(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| {
        let repaired = repaired(text.as_bytes(), Bounds::WHOLE)?;
        serde_json::from_str(&repaired.text).ok()
    })
}

/// Mends a text that comes in pieces. It takes no more memory than the result.
#[derive(Debug)]
pub struct Repair {
    bounds: Bounds,
    out: Vec<u8>,
    /// The number of values so far.
    values: usize,
    /// The containers around the present place, the outermost first.
    frames: Vec<Frame>,
    /// How deep the present place lies in a container that is left out; 0 outside of one.
    skipped: usize,
    place: Place,
    token: Token,
    /// Where the present string begins in `out`, or the last one.
    text_start: usize,
    is_cut: bool,
    has_bad_escapes: bool,
    /// The seams of the text before, and those of this one; `None` if characters are not joined.
    seams: Option<(Vec<Seam>, Vec<Seam>)>,
}

/// A container.
#[derive(Debug)]
struct Frame {
    is_object: bool,
    has_members: bool,
    /// Whether the present member is left out.
    leaves_out: bool,
    /// Where the key of the present member is in the result.
    key: Range<usize>,
}

/// The token that may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Value,
    Key,
    Colon,
    /// A comma, or the end of the container.
    Next,
    /// Nothing: the text is complete.
    End,
    /// The text is not JSON.
    Broken,
}

/// The unfinished token.
#[derive(Debug)]
enum Token {
    None,
    Literal(Vec<u8>),
    Text(Text),
}

/// The bytes that each value counts towards the bound, besides its text.
const VALUE: usize = 32;
/// How far one level near the top may exceed the bound, in bytes. Each level further up may exceed it by as much
/// again.
const RESERVE: usize = 16 * 1024;
/// How many levels, counted from the top, may exceed the bound.
const RESERVED: usize = 5;
/// The most bytes of a string beyond the bound.
const SHORT: usize = 1024;
/// The longest literal, in bytes.
const LITERAL: usize = 1024;

impl Repair {
    /// At the beginning of a text.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            out: Vec::new(),
            values: 0,
            frames: Vec::new(),
            skipped: 0,
            place: Place::Value,
            token: Token::None,
            text_start: 0,
            is_cut: false,
            has_bad_escapes: false,
            seams: None,
        }
    }

    /// At the beginning of a text that follows one with these seams. Its own seams are kept for the
    /// next text.
    pub fn joining(seams: Vec<Seam>) -> Self {
        Self { seams: Some((seams, Vec::new())), ..Self::new(Bounds::WHOLE) }
    }

    /// Takes a piece of the text.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first()
            && self.place != Place::Broken
        {
            bytes = match &mut self.token {
                Token::Text(_) => self.in_text(bytes),
                Token::Literal(_) => self.in_literal(bytes),
                Token::None => {
                    self.between(byte);
                    rest
                }
            };
        }
    }

    /// The result; `None` if the text is incomplete or not JSON.
    pub fn finish(mut self) -> Option<Repaired> {
        self.literal_ends();
        let (before, mut seams) = self.seams.take().unwrap_or_default();
        seams.extend(before);
        seams.truncate(MAX_SEAMS);
        let (is_cut, has_bad_escapes) = (self.is_cut, self.has_bad_escapes);
        let text = || match String::from_utf8(self.out) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        (self.place == Place::End).then(|| Repaired {
            text: text(),
            is_cut,
            has_bad_escapes,
            seams,
        })
    }

    /// Takes a byte between tokens.
    fn between(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'"' => self.text_begins(),
            b'{' | b'[' => self.opens(byte),
            b'}' | b']' => self.closes(byte),
            b',' | b':' if self.skipped > 0 => {}
            b',' => self.comma(),
            b':' => self.colon(),
            _ => self.token = Token::Literal(vec![byte]),
        }
    }

    fn opens(&mut self, byte: u8) {
        if self.skipped > 0 {
            self.skipped += 1;
        } else if self.place != Place::Value {
            self.place = Place::Broken;
        } else if !self.keeps_value() {
            self.skipped = 1;
        } else if self.frames.len() >= self.bounds.depth {
            self.out.extend(b"null");
            (self.skipped, self.is_cut) = (1, true);
        } else {
            let is_object = byte == b'{';
            self.out.push(byte);
            self.frames.push(Frame { is_object, has_members: false, leaves_out: false, key: 0..0 });
            self.place = if is_object { Place::Key } else { Place::Value };
        }
    }

    fn closes(&mut self, byte: u8) {
        if self.skipped > 0 {
            self.skipped -= 1;
            if self.skipped == 0 {
                self.value_ends();
            }
            return;
        }
        let is_object = byte == b'}';
        let may = [Place::Next, if is_object { Place::Key } else { Place::Value }];
        let fits = self.frames.last().is_some_and(|frame| frame.is_object == is_object);
        if !fits || !may.contains(&self.place) {
            self.place = Place::Broken;
            return;
        }
        self.frames.pop();
        self.out.push(byte);
        self.value_ends();
    }

    fn comma(&mut self) {
        self.place = match (self.place, self.frames.last()) {
            (Place::Next, Some(frame)) if frame.is_object => Place::Key,
            (Place::Next, Some(_)) => Place::Value,
            _ => Place::Broken,
        };
    }

    fn colon(&mut self) {
        if self.place != Place::Colon {
            self.place = Place::Broken;
            return;
        }
        if self.frames.last().is_some_and(|frame| !frame.leaves_out) {
            self.out.push(b':');
        }
        self.place = Place::Value;
    }

    fn value_ends(&mut self) {
        self.place = if self.frames.is_empty() { Place::End } else { Place::Next };
    }

    /// Whether the value that begins here is kept. In a list, the comma before it is written.
    fn keeps_value(&mut self) -> bool {
        let keeps = match self.frames.last() {
            Some(frame) if frame.is_object => !frame.leaves_out,
            _ => self.keeps_member(),
        };
        self.values += usize::from(keeps);
        keeps
    }

    /// Whether the member that begins here is kept. The comma before it is written.
    fn keeps_member(&mut self) -> bool {
        let has_room = self.room() > 0;
        let Some(frame) = self.frames.last_mut() else { return true };
        frame.leaves_out = !has_room;
        self.is_cut |= !has_room;
        if has_room && std::mem::replace(&mut frame.has_members, true) {
            self.out.push(b',');
        }
        has_room
    }

    /// How many more bytes fit at the present depth, beside the reserve, and with it.
    fn rooms(&self) -> (usize, usize) {
        let (depth, total) = (self.frames.len(), self.bounds.total);
        let bound = if depth > 1 { total / 2 } else { total };
        let reserve = RESERVE * (RESERVED + 1).saturating_sub(depth.max(1));
        let taken = self.out.len() + VALUE * self.values;
        let room = |bound: usize| bound.saturating_sub(taken);
        (room(bound), room(bound.saturating_add(reserve)))
    }

    fn room(&self) -> usize {
        self.rooms().1
    }
}

/// Literals.
impl Repair {
    fn in_literal<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Token::Literal(literal) = &mut self.token else { return bytes };
        let is_end = |byte: &u8| b" \t\n\r,:[]{}\"".contains(byte);
        let end = bytes.iter().position(is_end).unwrap_or(bytes.len());
        let (part, rest) = bytes.split_at(end);
        literal.extend(&part[..part.len().min((LITERAL + 1).saturating_sub(literal.len()))]);
        if !rest.is_empty() {
            self.literal_ends();
        }
        rest
    }

    fn literal_ends(&mut self) {
        let Token::Literal(literal) = std::mem::replace(&mut self.token, Token::None) else {
            return;
        };
        if self.skipped > 0 {
            return;
        }
        match understood(&literal) {
            Some(word) if self.place == Place::Value => {
                if self.keeps_value() {
                    self.out.extend(word.as_bytes());
                }
                self.value_ends();
            }
            _ => self.place = Place::Broken,
        }
    }
}

/// A literal as JSON writes it; `None` if it means nothing.
fn understood(literal: &[u8]) -> Option<String> {
    let word = str::from_utf8(literal).ok().filter(|word| word.len() <= LITERAL)?;
    if serde_json::from_str::<Value>(word).is_ok() {
        return Some(word.to_owned());
    }
    let number: f64 = word.parse().ok()?;
    Some(Number::from_f64(number).map_or_else(|| "null".to_owned(), |number| number.to_string()))
}

/// Strings.
impl Repair {
    fn text_begins(&mut self) {
        let keeps = match self.place {
            _ if self.skipped > 0 => false,
            Place::Value => self.keeps_value(),
            Place::Key => self.keeps_member(),
            _ => {
                self.place = Place::Broken;
                return;
            }
        };
        let (room, with_reserve) = self.rooms();
        let room = keeps.then(|| room.max(SHORT.min(with_reserve)));
        let mut text = Text::begun(room);
        if keeps {
            self.out.push(b'"');
            self.text_start = self.out.len();
            self.join(&mut text);
        }
        self.token = Token::Text(text);
    }

    /// Takes a part of a string, and returns the rest of the bytes.
    fn in_text<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Token::Text(text) = &mut self.token else { return bytes };
        let (rest, is_end) = text.take(bytes, &mut self.out);
        if is_end {
            self.text_ends();
        }
        rest
    }

    fn text_ends(&mut self) {
        let Token::Text(mut text) = std::mem::replace(&mut self.token, Token::None) else {
            return;
        };
        if text.is_kept() && self.place == Place::Value {
            self.part(&mut text);
        }
        let end = text.ends(&mut self.out);
        self.is_cut |= end.is_cut;
        self.has_bad_escapes |= end.has_bad_escapes;
        if end.is_kept {
            self.out.extend(if end.is_cut { "…\"" } else { "\"" }.as_bytes());
        }
        match self.place {
            _ if self.skipped > 0 => {}
            Place::Key => self.key_ends(),
            _ => self.value_ends(),
        }
    }

    fn key_ends(&mut self) {
        self.place = Place::Colon;
        if let Some(frame) = self.frames.last_mut() {
            frame.key = self.text_start..self.out.len();
        }
    }
}

#[cfg(test)]
mod tests;
