//! Messages of a node: binary frames of four bytes that name the task, most significant first, then
//! text. A frame without text ends the task.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

/// The length of a frame's head, in bytes.
const HEAD: usize = 4;

/// One binary frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFrame {
    /// The task. Negative ids can be sent, and never mean anything.
    pub id: i32,
    /// A piece of UTF-8 text, cut anywhere; empty: the task is finished.
    pub text: Bytes,
}

/// A frame too short to name a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a result of {0} bytes names no task")]
pub struct TooShort(pub usize);

impl ResultFrame {
    /// Reads a binary frame.
    ///
    /// # Errors
    /// [`TooShort`] when it has under four bytes.
    pub fn decode(mut frame: Bytes) -> Result<Self, TooShort> {
        let head: [u8; HEAD] = match frame.first_chunk() {
            Some(head) => *head,
            None => return Err(TooShort(frame.len())),
        };
        let text = frame.split_off(HEAD);
        Ok(Self { id: i32::from_be_bytes(head), text })
    }

    /// Whether it ends the task.
    pub fn is_end(&self) -> bool {
        self.text.is_empty()
    }
}

/// A frame with more text of a task. Text that is empty would end the task: send none then.
pub fn text_frame(id: i32, text: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + text.len());
    frame.put_i32(id);
    frame.put_slice(text.as_bytes());
    frame.freeze()
}

/// The frame that ends a task.
pub fn end_frame(id: i32) -> Bytes {
    text_frame(id, "")
}

/// A task's text that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is not UTF-8")]
pub struct NotText;

/// Joins the text of one task whose characters may be split over frames.
#[derive(Debug, Clone, Default)]
pub struct ResultReader {
    /// The beginning of a character, three bytes at most.
    begun: Vec<u8>,
}

impl ResultReader {
    /// The text of the next piece, up to its last complete character.
    ///
    /// # Errors
    /// [`NotText`] when no further piece can turn it into text.
    pub fn feed<'a>(&mut self, piece: &'a [u8]) -> Result<Cow<'a, str>, NotText> {
        if self.begun.is_empty() {
            let (text, begun) = complete(piece)?;
            self.begun.extend_from_slice(begun);
            return Ok(Cow::Borrowed(text));
        }
        let mut joined = std::mem::take(&mut self.begun);
        joined.extend_from_slice(piece);
        let (text, begun) = complete(&joined)?;
        self.begun.extend_from_slice(begun);
        Ok(Cow::Owned(text.to_owned()))
    }

    /// Ends the text: no more pieces come.
    ///
    /// # Errors
    /// [`NotText`] when a character was begun and not finished.
    pub fn end(self) -> Result<(), NotText> {
        if self.begun.is_empty() { Ok(()) } else { Err(NotText) }
    }
}

/// Splits bytes into whole characters and the beginning of the next one.
fn complete(bytes: &[u8]) -> Result<(&str, &[u8]), NotText> {
    let end = match str::from_utf8(bytes) {
        Ok(text) => return Ok((text, &[])),
        Err(error) if error.error_len().is_some() => return Err(NotText),
        Err(error) => error.valid_up_to(),
    };
    let text = str::from_utf8(&bytes[..end]).map_err(|_| NotText)?;
    Ok((text, &bytes[end..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_written_most_significant_byte_first() {
        assert_eq!(&text_frame(0x0102_0304, "é")[..], b"\x01\x02\x03\x04\xc3\xa9");
        assert_eq!(&end_frame(123)[..], [0, 0, 0, 123]);
    }

    #[test]
    fn a_frame_with_nothing_but_its_id_ends_the_task() {
        let frame = ResultFrame::decode(Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff])).unwrap();
        assert_eq!((frame.id, frame.is_end()), (i32::MAX, true));
        let frame = ResultFrame::decode(Bytes::from_static(b"\xff\xff\xff\xffx")).unwrap();
        assert_eq!((frame.id, frame.is_end()), (-1, false));
    }

    #[test]
    fn a_frame_under_four_bytes_names_no_task() {
        for len in 0..HEAD {
            let frame = Bytes::from(vec![1; len]);
            assert_eq!(ResultFrame::decode(frame), Err(TooShort(len)));
        }
    }

    #[test]
    fn a_split_character_waits_for_its_rest() {
        let mut reader = ResultReader::default();
        assert_eq!(reader.feed(b"a\xf0\x9f").unwrap(), "a");
        assert_eq!(reader.feed(b"\x92").unwrap(), "");
        assert_eq!(reader.feed(b"\xa1b").unwrap(), "💡b");
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn invalid_utf8_is_an_error_at_once_or_at_the_end() {
        assert_eq!(ResultReader::default().feed(b"a\xffb"), Err(NotText));
        let mut reader = ResultReader::default();
        assert_eq!(reader.feed(b"\xe2\x82").unwrap(), "");
        assert_eq!(reader.clone().end(), Err(NotText));
        assert_eq!(reader.feed(b"x"), Err(NotText));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_text(text: String, size in 1..6usize) {
            let mut reader = ResultReader::default();
            let pieces = text.as_bytes().chunks(size);
            let joined: String = pieces.map(|piece| reader.feed(piece).unwrap().into_owned()).collect();
            prop_assert_eq!(joined, text);
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn invalid_utf8_never_passes(bytes: Vec<u8>, size in 1..6usize) {
            let mut reader = ResultReader::default();
            let fed: Result<String, _> =
                bytes.chunks(size).map(|piece| reader.feed(piece).map(Cow::into_owned)).collect();
            let read = fed.and_then(|text| reader.end().map(|()| text)).ok();
            prop_assert_eq!(read, String::from_utf8(bytes).ok());
        }

        #[test]
        fn frames_are_read_as_written(id: i32, text: String) {
            let frame = ResultFrame::decode(text_frame(id, &text)).unwrap();
            prop_assert_eq!((frame.id, &frame.text[..]), (id, text.as_bytes()));
        }
    }
}
