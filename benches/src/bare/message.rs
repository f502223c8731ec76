//! Where a request or an answer ends.

use anyhow::{Context, Result, bail, ensure};
use httparse::{EMPTY_HEADER, Header, Request, Response, Status};

use super::MAX_HEAD;

const HEADERS: usize = 64;

/// The rest of a message whose head was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It has this many bytes left.
    Length(u64),
    /// Chunks: how much of the present one is left, and what is read of a line between two.
    Chunks(Chunks),
}

/// A body in chunks, as far as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In the line with a chunk's size, which is this so far; whether its digits are over.
    Size(u64, bool),
    /// In a chunk: this many bytes are left of it and its line break.
    Data(u64),
    /// After the last chunk, in a line that has this many bytes so far.
    Trailer(usize),
}

impl Rest {
    /// Reads a request's head: its length and what follows it. `None`: the head is not whole yet.
    pub(super) fn of_request(bytes: &[u8]) -> Result<Option<(usize, Self)>> {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut request = Request::new(&mut headers);
        let Some(head) = whole(request.parse(bytes)?, bytes)? else { return Ok(None) };
        Ok(Some((head, Self::of(request.headers, Some(0))?)))
    }

    /// The same of an answer.
    pub(super) fn of_answer(bytes: &[u8]) -> Result<Option<(usize, Self)>> {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut answer = Response::new(&mut headers);
        let Some(head) = whole(answer.parse(bytes)?, bytes)? else { return Ok(None) };
        Ok(Some((head, Self::of(answer.headers, None)?)))
    }

    fn of(headers: &[Header<'_>], without: Option<u64>) -> Result<Self> {
        let value = |name: &str| {
            headers.iter().find(|at| at.name.eq_ignore_ascii_case(name)).map(|at| at.value)
        };
        if let Some(coding) = value("transfer-encoding") {
            ensure!(coding.eq_ignore_ascii_case(b"chunked"), "a transfer coding that is not known");
            return Ok(Self::Chunks(Chunks::Size(0, false)));
        }
        let length = value("content-length").map(number).transpose()?.or(without);
        Ok(Self::Length(length.context("a message without an end")?))
    }

    /// How many of these bytes belong to the message.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                Ok(taken)
            }
            Self::Chunks(chunks) => chunks.take(bytes),
        }
    }

    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunks(Chunks::Trailer(OVER)))
    }
}

/// Stands for the line after the last one.
const OVER: usize = usize::MAX;

impl Chunks {
    fn take(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut at = 0;
        while at < bytes.len() && *self != Self::Trailer(OVER) {
            if let Self::Data(left) = *self {
                let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                at += skipped;
                *self = match left - skipped as u64 {
                    0 => Self::Size(0, false),
                    left => Self::Data(left),
                };
            } else {
                self.step(bytes[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// Takes one byte of a line.
    fn step(&mut self, byte: u8) -> Result<()> {
        *self = match (*self, byte) {
            (Self::Size(0, _), b'\n') => Self::Trailer(0),
            (Self::Size(size, _), b'\n') => Self::Data(size + 2),
            (Self::Size(size, true), _) => Self::Size(size, true),
            (Self::Size(size, false), b'\r' | b';') => Self::Size(size, true),
            (Self::Size(size, false), digit) => {
                let digit = char::from(digit).to_digit(16).context("an odd size of a chunk")?;
                ensure!(size < 1 << 40, "a chunk that is too long");
                Self::Size(size * 16 + u64::from(digit), false)
            }
            (Self::Trailer(0), b'\n') => Self::Trailer(OVER),
            (Self::Trailer(_), b'\n') => Self::Trailer(0),
            (Self::Trailer(length), b'\r') => Self::Trailer(length),
            (Self::Trailer(length), _) if length < MAX_HEAD => Self::Trailer(length + 1),
            _ => bail!("a trailer that is too long"),
        };
        Ok(())
    }
}

fn number(value: &[u8]) -> Result<u64> {
    Ok(str::from_utf8(value)?.parse()?)
}

fn whole(status: Status<usize>, bytes: &[u8]) -> Result<Option<usize>> {
    match status {
        Status::Complete(head) => Ok(Some(head)),
        Status::Partial => {
            ensure!(bytes.len() <= MAX_HEAD, "a head that is too long");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_chunks_ends_where_it_ends_however_it_is_cut() {
        let body = b"5;x=1\r\nhello\r\nA\r\n0123456789\r\n0\r\nname: value\r\n\r\n";
        let next = b"HTTP/1.1 200";
        let all = [&body[..], next].concat();
        for piece in 1..all.len() {
            let mut rest = Rest::Chunks(Chunks::Size(0, false));
            let mut taken = 0;
            for bytes in all.chunks(piece) {
                taken += rest.take(bytes).unwrap();
                if rest.is_over() {
                    break;
                }
            }
            assert!(rest.is_over());
            assert_eq!(taken, body.len(), "in pieces of {piece}");
        }
    }

    #[test]
    fn heads_say_what_follows() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 7\r\n\r\nbody";
        assert_eq!(Rest::of_request(request).unwrap(), Some((request.len() - 4, Rest::Length(7))));
        assert_eq!(Rest::of_request(b"GET / HTTP/1.1\r\n").unwrap(), None);
        let bare = b"GET / HTTP/1.1\r\n\r\n";
        assert_eq!(Rest::of_request(bare).unwrap(), Some((bare.len(), Rest::Length(0))));
        let streamed = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunks = Rest::Chunks(Chunks::Size(0, false));
        assert_eq!(Rest::of_answer(streamed).unwrap(), Some((streamed.len(), chunks)));
        assert!(Rest::of_answer(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "an answer has an end");
    }

    #[test]
    fn odd_sizes_and_long_heads_are_errors() {
        assert!(Rest::Chunks(Chunks::Size(0, false)).take(b"xyz\r\n").is_err());
        assert!(Rest::Chunks(Chunks::Size(0, false)).take(b"FFFFFFFFFFFFFFFFF\r\n").is_err());
        let long = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &[b'x'; MAX_HEAD]].concat();
        assert!(Rest::of_request(&long).is_err());
    }
}
