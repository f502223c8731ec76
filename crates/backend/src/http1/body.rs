//! The body of an answer: where it ends, and which bytes are content.

use std::ops::Range;

use super::{MAX_FIELDS, Malformed};

/// The most bytes of chunk extensions in one answer, together.
pub(super) const MAX_EXTENSIONS: usize = 16 * 1024;

/// The most bytes of trailers after a body.
pub(super) const MAX_TRAILERS: usize = 16 * 1024;

/// How a body ends, and how much of it was read.
#[derive(Debug)]
pub(super) enum BodyReader {
    /// The number of bytes that are missing.
    Length(u64),
    /// It ends with the connection.
    UntilClose {
        closed: bool,
    },
    Chunked(Chunked),
}

impl BodyReader {
    pub(super) fn none() -> Self {
        Self::Length(0)
    }

    pub(super) fn of_length(length: u64) -> Self {
        Self::Length(length)
    }

    pub(super) fn until_close() -> Self {
        Self::UntilClose { closed: false }
    }

    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunked::default())
    }

    /// Whether the body itself says where it ends, and not the end of the connection.
    pub(super) fn has_end(&self) -> bool {
        !matches!(self, Self::UntilClose { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Length(missing) => *missing == 0,
            Self::UntilClose { closed } => *closed,
            Self::Chunked(chunked) => chunked.state == State::Over,
        }
    }

    /// Reads bytes, and moves their content together. Returns where the content stands, and how
    /// many of the bytes belong to the body.
    pub(super) fn feed(&mut self, bytes: &mut [u8]) -> Result<(Range<usize>, usize), Malformed> {
        let all = bytes.len();
        match self {
            Self::Length(missing) => {
                let length = at_most(all, *missing);
                *missing -= length as u64;
                Ok((0..length, length))
            }
            Self::UntilClose { .. } => Ok((0..all, all)),
            Self::Chunked(chunked) => chunked.feed(bytes),
        }
    }

    /// Called when the connection has ended.
    pub(super) fn close(&mut self) -> Result<(), Malformed> {
        match self {
            Self::UntilClose { closed } => *closed = true,
            whole if whole.is_over() => {}
            _ => return Err(Malformed::CutOff),
        }
        Ok(())
    }
}

fn at_most(length: usize, limit: u64) -> usize {
    usize::try_from(limit).map_or(length, |limit| length.min(limit))
}

/// A body in chunks.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: State,
    /// The size of the current chunk; while its data is read, how much is missing.
    size: u64,
    extensions: usize,
    /// The trailers that have come after the last chunk.
    trailers: Vec<u8>,
    trailer_lines: usize,
}

/// The meaning of the next byte of a chunked body.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first digit of a size.
    #[default]
    Start,
    /// A further digit, or a byte after the size.
    Size,
    /// After the size and a space.
    Space,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// After the last chunk or a trailer: the first byte of a trailer, or of the end.
    End,
    Trailer,
    TrailerLf,
    EndLf,
    Over,
}

impl Chunked {
    fn feed(&mut self, bytes: &mut [u8]) -> Result<(Range<usize>, usize), Malformed> {
        let (mut at, mut content) = (0, 0..0);
        while at < bytes.len() && self.state != State::Over {
            if self.state != State::Data {
                self.step(bytes[at])?;
                at += 1;
                continue;
            }
            let length = at_most(bytes.len() - at, self.size);
            if content.is_empty() {
                content = at..at;
            } else {
                bytes.copy_within(at..at + length, content.end);
            }
            content.end += length;
            at += length;
            self.size -= length as u64;
            if self.size == 0 {
                self.state = State::DataCr;
            }
        }
        Ok((content, at))
    }

    /// Reads a byte that is not content.
    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        self.state = match (self.state, byte) {
            (State::Start, byte) => self.digit(byte)?,
            (State::Size | State::Space, b' ' | b'\t') => State::Space,
            (State::Size | State::Space, b';') => State::Extension,
            (State::Size | State::Space | State::Extension, b'\r') => State::SizeLf,
            (State::Size, byte) => self.digit(byte)?,
            (State::Extension, byte) if byte != b'\n' => self.extension()?,
            (State::SizeLf, b'\n') if self.size == 0 => State::End,
            (State::SizeLf, b'\n') => State::Data,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Start,
            (State::End | State::Trailer | State::TrailerLf | State::EndLf, byte) => {
                self.trailer(byte)?
            }
            _ => return Err(Malformed::Chunk),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<State, Malformed> {
        let digit = char::from(byte).to_digit(16).ok_or(Malformed::Chunk)?;
        let size = self.size.checked_mul(16).ok_or(Malformed::Chunk)?;
        self.size = size | u64::from(digit);
        Ok(State::Size)
    }

    fn extension(&mut self) -> Result<State, Malformed> {
        self.extensions += 1;
        match self.extensions < MAX_EXTENSIONS {
            true => Ok(State::Extension),
            false => Err(Malformed::Extensions),
        }
    }

    /// Reads a byte after the last chunk. Trailers are checked and dropped.
    fn trailer(&mut self, byte: u8) -> Result<State, Malformed> {
        let next = match (self.state, byte) {
            (State::End, b'\r') => State::EndLf,
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::End | State::Trailer, _) => State::Trailer,
            (State::TrailerLf, b'\n') => State::End,
            (State::EndLf, b'\n') => State::Over,
            _ => return Err(Malformed::Trailers),
        };
        if self.trailers.is_empty() && next != State::Trailer {
            return Ok(next);
        }
        self.trailers.push(byte);
        self.trailer_lines += usize::from(self.state == State::TrailerLf);
        if self.trailers.len() >= MAX_TRAILERS || self.trailer_lines > MAX_FIELDS {
            return Err(Malformed::ManyTrailers);
        }
        if next == State::Over {
            self.check_trailers()?;
        }
        Ok(next)
    }

    fn check_trailers(&mut self) -> Result<(), Malformed> {
        let mut fields = vec![httparse::EMPTY_HEADER; self.trailer_lines];
        match httparse::parse_headers(&self.trailers, &mut fields) {
            Ok(httparse::Status::Complete(_)) => {}
            _ => return Err(Malformed::Trailers),
        }
        self.trailers = Vec::new();
        Ok(())
    }
}
