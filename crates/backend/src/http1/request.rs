//! A request as bytes.

use std::io::{IoSlice, Write};

use bytes::Bytes;
use http::{HeaderMap, Method, header, uri::PathAndQuery};

/// The most pieces of one write.
const AT_ONCE: usize = 16;

/// A request as it goes out, and how much of it is written.
#[derive(Debug)]
pub(crate) struct Request {
    head: Vec<u8>,
    body: Vec<Bytes>,
    /// Whether its method is `HEAD`.
    to_head: bool,
    /// How many pieces are written, counting the head as one, and how many bytes of the next piece.
    written: (usize, usize),
}

impl Request {
    /// A request to `host`, which its `Host` header names. The head states the length, and how the connection is used.
    pub(crate) fn new(
        host: &str,
        method: &Method,
        path: &PathAndQuery,
        headers: &HeaderMap,
        body: Vec<Bytes>,
    ) -> Self {
        let path = path.as_str();
        let fields: usize =
            headers.iter().map(|(name, value)| line(name.as_str(), value.len())).sum();
        let mut head =
            Vec::with_capacity(method.as_str().len() + path.len() + host.len() + fields + 64);
        for part in [method.as_str(), " ", path, " HTTP/1.1\r\nhost: ", host, "\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let own =
            [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION];
        for (name, value) in headers.iter().filter(|(name, _)| !own.contains(name)) {
            field(&mut head, name.as_str(), value.as_bytes());
        }
        let length: usize = body.iter().map(Bytes::len).sum();
        // Some servers require it for methods that usually have a body, even if the body is empty.
        if length > 0 || [Method::POST, Method::PUT, Method::PATCH].contains(method) {
            // Writing to memory does not fail.
            let _ = write!(head, "{}: {length}\r\n", header::CONTENT_LENGTH);
        }
        head.extend_from_slice(b"\r\n");
        Self { head, body, to_head: method == Method::HEAD, written: (0, 0) }
    }

    pub(super) fn to_head(&self) -> bool {
        self.to_head
    }

    /// The same request, to be written again from its beginning.
    pub(super) fn again(self) -> Self {
        Self { written: (0, 0), ..self }
    }

    pub(super) fn is_written(&self) -> bool {
        self.written.0 > self.body.len()
    }

    /// The next bytes; returns how many slices are filled.
    pub(super) fn next<'a>(&'a self, slices: &mut [IoSlice<'a>; AT_ONCE]) -> usize {
        let (first, offset) = self.written;
        let pieces =
            std::iter::once(&self.head[..]).chain(self.body.iter().map(|piece| &piece[..]));
        let mut filled = 0;
        for (slice, piece) in slices.iter_mut().zip(pieces.skip(first)) {
            let from = if filled == 0 { offset } else { 0 };
            *slice = IoSlice::new(&piece[from..]);
            filled += 1;
        }
        filled
    }

    /// Notes that `bytes` more are written.
    pub(super) fn advance(&mut self, mut bytes: usize) {
        let (piece, offset) = &mut self.written;
        while *piece <= self.body.len() {
            let length = if *piece == 0 { self.head.len() } else { self.body[*piece - 1].len() };
            let left = length - *offset;
            if bytes < left {
                *offset += bytes;
                return;
            }
            bytes -= left;
            (*piece, *offset) = (*piece + 1, 0);
        }
    }

    pub(super) fn no_slices<'a>() -> [IoSlice<'a>; AT_ONCE] {
        [IoSlice::new(&[]); AT_ONCE]
    }
}

/// The length of a header's line.
fn line(name: &str, value: usize) -> usize {
    name.len() + value + ": \r\n".len()
}

fn field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(method: &Method, body: Vec<Bytes>) -> String {
        let path = PathAndQuery::from_static("/v1/x");
        let request = Request::new("h:1", method, &path, &HeaderMap::new(), body);
        String::from_utf8(request.head).unwrap()
    }

    #[test]
    fn a_post_tells_its_length_although_it_is_nothing_and_a_get_tells_none() {
        let told = |method, body| head_of(method, body).contains("content-length: ");
        assert!(told(&Method::POST, Vec::new()) && !told(&Method::GET, Vec::new()));
        let three =
            head_of(&Method::POST, vec![Bytes::from_static(b"ab"), Bytes::from_static(b"c")]);
        assert!(three.ends_with("host: h:1\r\ncontent-length: 3\r\n\r\n"), "{three}");
    }
}
