//! Streams and long messages, cut into fragments and put together again. Other fragments of the link
//! may go in between, so that none of them delays the rest.

use bytes::{Bytes, BytesMut};

use super::frame::Fragment;
use crate::workspace::limits::FRAGMENT_MAX;

/// The fragments of a whole, in order. Empty content has one.
pub fn fragments(channel: u32, is_text: bool, whole: Bytes) -> impl Iterator<Item = Fragment> {
    let mut rest = Some(whole);
    std::iter::from_fn(move || {
        let mut bytes = rest.take()?;
        if bytes.len() > FRAGMENT_MAX {
            rest = Some(bytes.split_off(FRAGMENT_MAX));
        }
        Some(Fragment { channel, is_text, more: rest.is_some(), bytes })
    })
}

/// Puts the fragments of one channel together.
#[derive(Debug)]
pub struct Whole {
    max: usize,
    partial: BytesMut,
    /// Whether the present whole is text; none between two.
    is_text: Option<bool>,
}

/// Why fragments make no whole. Nothing more of their channel can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadLong {
    /// It is longer than it may be, in bytes.
    #[error("a message or frame of more than {0} bytes")]
    TooLong(usize),
    /// It began as text and went on as bytes, or the other way.
    #[error("parts that do not belong together")]
    Mixed,
    /// Text that is not UTF-8.
    #[error("text that is not UTF-8")]
    NotUtf8,
}

impl Whole {
    /// Of wholes that are at most this long, in bytes.
    pub fn new(max: usize) -> Self {
        Self { max, partial: BytesMut::new(), is_text: None }
    }

    /// Takes the next fragment. Gives the whole once it is complete, and whether it is text, which
    /// then is UTF-8. One that came in one fragment is not copied.
    ///
    /// # Errors
    /// [`BadLong`].
    pub fn push(&mut self, fragment: Fragment) -> Result<Option<(bool, Bytes)>, BadLong> {
        let Fragment { is_text, more, bytes, .. } = fragment;
        if self.is_text.is_some_and(|before| before != is_text) {
            return Err(BadLong::Mixed);
        }
        if self.partial.len() + bytes.len() > self.max {
            return Err(BadLong::TooLong(self.max));
        }
        if more {
            self.is_text = Some(is_text);
            self.partial.extend_from_slice(&bytes);
            return Ok(None);
        }
        let whole = self.complete(bytes);
        match is_text && std::str::from_utf8(&whole).is_err() {
            true => Err(BadLong::NotUtf8),
            false => Ok(Some((is_text, whole))),
        }
    }

    /// How many bytes of an incomplete whole it holds.
    pub fn held(&self) -> usize {
        self.partial.len()
    }

    fn complete(&mut self, last: Bytes) -> Bytes {
        self.is_text = None;
        if self.partial.is_empty() {
            return last;
        }
        self.partial.extend_from_slice(&last);
        std::mem::take(&mut self.partial).freeze()
    }
}
