//! The fields of a form, piece by piece.

use std::ops::Range;

use memchr::memmem::Finder;

use super::{BadForm, Boundary, Form, MAX_HEADERS, MAX_KEPT, MAX_PARTS, part::Part};
use crate::openai::{BadBody, MAX_MODEL_NAME};

/// Reads a form that comes in pieces, however it is cut.
#[derive(Debug)]
pub struct FormReader {
    /// A line end and the boundary. The line end's carriage return is the last byte before it.
    delimiter: Finder<'static>,
    place: Place,
    /// How many bytes were read.
    at: usize,
    parts: usize,
    model: Option<(Vec<u8>, Range<usize>)>,
    stream: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Place {
    /// Before the first boundary, of which this many bytes were found.
    Beginning(usize),
    /// After a boundary, and perhaps one byte more.
    AfterBoundary(Option<u8>),
    /// In the headers of a field: those so far.
    Headers(Vec<u8>),
    /// In the value of a field.
    Value(Value),
    /// After the last boundary.
    End,
}

/// A value so far.
#[derive(Debug)]
struct Value {
    part: Part,
    from: usize,
    /// Its first bytes, of a field that routing needs.
    bytes: Vec<u8>,
    /// Its length so far, without bytes that may begin the delimiter.
    len: usize,
    last: u8,
    /// How many bytes of the delimiter were found.
    matched: usize,
    /// Whether the line end among these belongs to the headers, and not to the value.
    is_at_start: bool,
}

impl FormReader {
    /// At the beginning of a form.
    pub fn new(boundary: &Boundary) -> Self {
        Self {
            delimiter: Finder::new(&boundary.delimiter()).into_owned(),
            // The first boundary has no line end in front.
            place: Place::Beginning(1),
            at: 0,
            parts: 0,
            model: None,
            stream: None,
        }
    }

    /// The next bytes of the form.
    ///
    /// # Errors
    /// [`BadForm`] when it cannot be routed; the rest need not be read.
    pub fn feed(&mut self, mut piece: &[u8]) -> Result<(), BadForm> {
        while !piece.is_empty() {
            let read = match &mut self.place {
                Place::Value(_) => self.value(piece)?,
                _ => self.step(piece[0]).map(|()| 1)?,
            };
            self.at += read;
            piece = &piece[read..];
        }
        Ok(())
    }

    /// The part that routing needs, once the last byte was read.
    ///
    /// # Errors
    /// [`BadForm`] when the form has no end, or no model.
    pub fn end(self) -> Result<Form, BadForm> {
        if !matches!(self.place, Place::End) {
            return Err(BadForm::NoEnd);
        }
        let (model, model_span) = self.model.ok_or(BadBody::ModelMissing)?;
        let model = model_name(model)?;
        let stream = self.stream.map_or(Ok(false), |value| stream_flag(&value))?;
        Ok(Form { model, model_span, stream })
    }

    /// Takes one byte outside of values.
    fn step(&mut self, byte: u8) -> Result<(), BadForm> {
        let delimiter = self.delimiter.needle();
        match &mut self.place {
            Place::Beginning(matched) if delimiter[*matched] == byte => {
                *matched += 1;
                if *matched == delimiter.len() {
                    self.place = Place::AfterBoundary(None);
                }
            }
            // Some forms begin with an empty line.
            Place::Beginning(matched) if *matched <= 1 && matches!(byte, b'\r' | b'\n') => {
                *matched = usize::from(byte == b'\n');
            }
            Place::Beginning(_) => return Err(BadForm::NoBeginning),
            Place::AfterBoundary(None) => self.place = Place::AfterBoundary(Some(byte)),
            Place::AfterBoundary(Some(first)) => {
                self.place = match (*first, byte) {
                    (b'-', b'-') => Place::End,
                    (b'\r', b'\n') => Place::Headers(Vec::new()),
                    _ => return Err(BadForm::Ambiguous("other bytes follow a boundary")),
                };
            }
            Place::Headers(headers) => {
                headers.push(byte);
                if headers.len() > MAX_HEADERS {
                    return Err(BadForm::HeadersTooLong);
                }
                if headers.ends_with(b"\r\n\r\n") || headers == b"\r\n" {
                    self.begin_value()?;
                }
            }
            Place::End if matches!(byte, b'\r' | b'\n') => {}
            Place::End => return Err(BadForm::AfterEnd),
            Place::Value(_) => {}
        }
        Ok(())
    }

    /// Reads the headers of a field that are complete with the byte at `self.at`.
    fn begin_value(&mut self) -> Result<(), BadForm> {
        let Place::Headers(headers) = &self.place else { return Ok(()) };
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(BadForm::TooManyParts);
        }
        let part = Part::of(headers)?;
        let is_known = match part {
            Part::Model => self.model.is_some(),
            Part::Stream => self.stream.is_some(),
            Part::Other => false,
        };
        if let Some(name) = part.name().filter(|_| is_known) {
            return Err(BadBody::Twice(name).into());
        }
        self.place = Place::Value(Value::begin(part, self.at + 1));
        Ok(())
    }

    /// Reads on in a value. Returns how many bytes were read: up to the end of the delimiter, if that is here.
    fn value(&mut self, piece: &[u8]) -> Result<usize, BadForm> {
        let Place::Value(value) = &mut self.place else { return Ok(0) };
        match value.feed(piece, &self.delimiter)? {
            None => Ok(piece.len()),
            Some(read) => {
                let span = value.from..value.from + value.len;
                match value.part {
                    Part::Model => self.model = Some((std::mem::take(&mut value.bytes), span)),
                    Part::Stream => self.stream = Some(std::mem::take(&mut value.bytes)),
                    Part::Other => {}
                }
                self.place = Place::AfterBoundary(None);
                Ok(read)
            }
        }
    }
}

impl Value {
    fn begin(part: Part, from: usize) -> Self {
        let bytes = Vec::new();
        Self { part, from, bytes, len: 0, last: 0, matched: 1, is_at_start: true }
    }

    /// Reads up to the end of the delimiter, and returns where that is.
    fn feed(&mut self, piece: &[u8], delimiter: &Finder<'_>) -> Result<Option<usize>, BadForm> {
        let needle = delimiter.needle();
        let mut at = 0;
        while self.matched > 0 {
            match piece.get(at) {
                None => return Ok(None),
                Some(byte) if *byte == needle[self.matched] => {
                    (self.matched, at) = (self.matched + 1, at + 1);
                    if self.matched == needle.len() {
                        return self.close().map(|()| Some(at));
                    }
                }
                // The line end is only at the delimiter's beginning, so nothing of it can begin another one.
                Some(_) => self.unmatch(needle),
            }
        }
        let rest = &piece[at..];
        match delimiter.find(rest) {
            Some(found) => {
                self.take(&rest[..found]);
                self.close().map(|()| Some(at + found + needle.len()))
            }
            None => {
                let cut = beginning_at_end(rest, needle);
                self.take(&rest[..rest.len() - cut]);
                self.matched = cut;
                Ok(None)
            }
        }
    }

    /// Counts the bytes that looked like the delimiter's beginning as part of the value.
    fn unmatch(&mut self, needle: &[u8]) {
        let from = usize::from(std::mem::take(&mut self.is_at_start));
        let matched = std::mem::take(&mut self.matched);
        self.take(&needle[from..matched]);
    }

    fn take(&mut self, bytes: &[u8]) {
        self.is_at_start = false;
        let Some(last) = bytes.last() else { return };
        (self.last, self.len) = (*last, self.len + bytes.len());
        if self.part != Part::Other {
            let room = (MAX_KEPT + 1).saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// Ends it before the delimiter, whose carriage return was taken for its last byte.
    fn close(&mut self) -> Result<(), BadForm> {
        if self.is_at_start || self.len == 0 || self.last != b'\r' {
            return Err(BadForm::Ambiguous("a boundary has no line end of two bytes in front"));
        }
        self.len -= 1;
        self.bytes.truncate(self.len);
        Ok(())
    }
}

/// How many bytes at the end of a text are the beginning of the delimiter.
fn beginning_at_end(text: &[u8], needle: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(needle.len() - 1)..];
    let begins = memchr::memrchr(b'\n', tail).map_or(0, |at| tail.len() - at);
    if tail[tail.len() - begins..] == needle[..begins] { begins } else { 0 }
}

fn model_name(value: Vec<u8>) -> Result<String, BadForm> {
    if value.len() > MAX_MODEL_NAME {
        return Err(BadBody::ModelTooLong.into());
    }
    let name = String::from_utf8(value).map_err(|_| BadForm::ModelNotUtf8)?;
    if name.trim().is_empty() { Err(BadBody::ModelEmpty.into()) } else { Ok(name) }
}

/// Forms have no booleans: these are the words that the common readers take for one.
fn stream_flag(value: &[u8]) -> Result<bool, BadForm> {
    let is_any = |words: &[&str]| words.iter().any(|it| value.eq_ignore_ascii_case(it.as_bytes()));
    if is_any(&["true", "1", "yes", "on"]) {
        return Ok(true);
    }
    let is_no = is_any(&["false", "0", "no", "off", "none", "null", ""]);
    if is_no { Ok(false) } else { Err(BadBody::StreamNotBool.into()) }
}
