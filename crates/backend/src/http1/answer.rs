//! An answer, from the bytes of its connection. No I/O.

use std::{mem, ops::Range};

use super::{
    Malformed,
    body::BodyReader,
    head::{self, Begin, Head},
};

/// The most interim heads (status 1xx) before an answer.
pub(super) const MAX_INTERIM: usize = 16;

/// Reads one answer.
#[derive(Debug)]
pub struct AnswerReader {
    /// Whether the answer may have a body.
    has_body: bool,
    stage: Stage,
    keeps: bool,
}

#[derive(Debug)]
enum Stage {
    /// `held`: the bytes of an incomplete head. `interim`: how many interim heads came before it.
    Head {
        held: Vec<u8>,
        interim: usize,
    },
    Body(BodyReader),
}

/// The parts of an answer that were read from some bytes.
#[derive(Debug)]
pub struct Fed {
    /// The head, once.
    pub head: Option<Head>,
    /// Where the content of the body stands in the bytes.
    pub content: Range<usize>,
}

impl AnswerReader {
    /// A reader of the answer to one request. `to_head`: whether its method is `HEAD`.
    pub fn new(to_head: bool) -> Self {
        let stage = Stage::Head { held: Vec::new(), interim: 0 };
        Self { has_body: !to_head, stage, keeps: false }
    }

    /// Whether the answer is complete.
    pub fn is_over(&self) -> bool {
        matches!(&self.stage, Stage::Body(body) if body.is_over())
    }

    /// Whether another request may be sent on the connection: the answer is complete, no bytes came
    /// after it, and the backend keeps the connection.
    pub fn may_go_on(&self) -> bool {
        self.is_over() && self.keeps
    }

    /// Reads the next bytes. Moves the body's content in them together, so that it is one range.
    ///
    /// # Errors
    /// [`Malformed`]; nothing may be read after it.
    pub fn feed(&mut self, bytes: &mut [u8]) -> Result<Fed, Malformed> {
        let (head, from) = match &mut self.stage {
            Stage::Body(_) => (None, 0),
            Stage::Head { held, interim } => {
                let Some((length, head, body)) = read_head(held, interim, bytes, self.has_body)?
                else {
                    return Ok(Fed { head: None, content: 0..0 });
                };
                self.keeps = head.keeps;
                self.stage = Stage::Body(body);
                (Some(head), length)
            }
        };
        let content = self.feed_body(&mut bytes[from..])?;
        Ok(Fed { head, content: from + content.start..from + content.end })
    }

    fn feed_body(&mut self, bytes: &mut [u8]) -> Result<Range<usize>, Malformed> {
        let Stage::Body(body) = &mut self.stage else { return Ok(0..0) };
        let (content, length) = body.feed(bytes)?;
        // Bytes after the end belong to no request, so the connection cannot be used again.
        self.keeps &= length == bytes.len();
        Ok(content)
    }

    /// Called when the connection has ended.
    ///
    /// # Errors
    /// [`Malformed`] when the answer is not complete.
    pub fn close(&mut self) -> Result<(), Malformed> {
        self.keeps = false;
        match &mut self.stage {
            Stage::Head { .. } => Err(Malformed::NoHead),
            Stage::Body(body) => body.close(),
        }
    }
}

/// The head of the answer, and how many of `bytes` belong to it; `None` while it is incomplete.
fn read_head(
    held: &mut Vec<u8>,
    interim: &mut usize,
    bytes: &[u8],
    has_body: bool,
) -> Result<Option<(usize, Head, BodyReader)>, Malformed> {
    let before = held.len();
    if before > 0 {
        held.extend_from_slice(bytes);
        if held.len() < head::MAX_HEAD && !ends_a_head(held, before) {
            return Ok(None);
        }
    }
    let gathered = mem::take(held);
    let all = if before > 0 { &gathered[..] } else { bytes };
    let mut at = 0;
    while at < all.len() {
        match head::read(&all[at..], has_body)? {
            Begin::Final(length, head, body) => {
                return Ok(Some((at + length - before, head, body)));
            }
            Begin::Interim(length) if *interim < MAX_INTERIM => {
                at += length;
                *interim += 1;
            }
            Begin::Interim(_) => return Err(Malformed::ManyInterim),
            Begin::Partial => break,
        }
    }
    *held = all[at..].to_vec();
    Ok(None)
}

/// Whether an empty line may end after the first `before` bytes. So a head that comes byte by byte is
/// not parsed at each byte.
fn ends_a_head(bytes: &[u8], before: usize) -> bool {
    let new = &bytes[before.saturating_sub(3)..];
    let mut lines = memchr::memchr_iter(b'\n', new);
    lines.any(|at| matches!(&new[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}
