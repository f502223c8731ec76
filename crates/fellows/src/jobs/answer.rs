//! An answer on its stream: parts, each with its kind and its length. What is ready goes in one message.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use scheduler::{Head, Usage};
use serde::{Deserialize, Serialize};

/// The bytes before each part: its kind and its length.
pub(super) const BEFORE: usize = 1 + 4;

/// The longest part that is not a chunk, in bytes.
const MAX_PART: usize = 128 * 1024;

/// The longest words of a failure, in bytes.
const MAX_WORDS: usize = 2_048;

const HEAD: u8 = 1;
const CHUNK: u8 = 2;
const END: u8 = 3;
const FAILED: u8 = 4;

/// A part of an answer.
#[derive(Debug)]
pub(super) enum Part {
    Head(Head),
    /// Bytes of the answer, as one read of the network brought them, or a part of these.
    Chunk(Bytes),
    /// The answer is complete, with what the worker reports of its use.
    End(Usage),
    /// The answer does not come, or not its rest.
    Failed(Fault, String),
}

/// Why an answer does not come, as the serving server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fault {
    /// The worker has failed.
    Worker,
    /// The worker or the slot is not there any more: nobody is to blame.
    Declined,
    /// The worker does not serve the endpoint.
    Unserved,
}

/// Bytes that are no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer makes no sense")]
pub(super) struct BadAnswer;

#[derive(Serialize, Deserialize)]
struct WireHead<'a> {
    status: u16,
    #[serde(borrow)]
    headers: Vec<(&'a str, &'a [u8])>,
}

/// Parts that go in one message.
#[derive(Default)]
pub(super) struct Parts(BytesMut);

impl Parts {
    pub(super) fn head(&mut self, head: &Head) {
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        self.put(HEAD, &WireHead { status: head.status.as_u16(), headers: headers.collect() });
    }

    pub(super) fn chunk(&mut self, bytes: &[u8]) {
        self.begin(CHUNK, bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn end(&mut self, usage: Usage) {
        self.put(END, &usage);
    }

    pub(super) fn failed(&mut self, fault: Fault, words: &str) {
        self.put(FAILED, &(fault, &words[..words.floor_char_boundary(MAX_WORDS)]));
    }

    /// How many bytes they are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.freeze()
    }

    fn put(&mut self, kind: u8, part: &impl Serialize) {
        // Only a type without a length would not be encoded.
        let encoded = postcard::to_stdvec(part).unwrap_or_default();
        self.begin(kind, encoded.len());
        self.0.extend_from_slice(&encoded);
    }

    fn begin(&mut self, kind: u8, len: usize) {
        self.0.reserve(BEFORE + len);
        self.0.put_u8(kind);
        self.0.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    }
}

/// Reads the parts out of a stream's pieces. A chunk is handed on as far as it has come.
#[derive(Default)]
pub(super) struct PartReader {
    /// The bytes that were not read yet.
    held: Bytes,
    /// The rest of a chunk, in bytes.
    of_chunk: usize,
}

impl PartReader {
    /// The next piece of the stream.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.held.is_empty() {
            self.held = piece;
        } else {
            self.held = [&self.held[..], &piece].concat().into();
        }
    }

    /// The next part, if it has come, with how many bytes it took beside those of a chunk.
    pub(super) fn next(&mut self) -> Result<Option<(Part, usize)>, BadAnswer> {
        if self.of_chunk > 0 {
            return Ok(self.rest_of_chunk().map(|chunk| (Part::Chunk(chunk), 0)));
        }
        let Some((before, after)) = self.held.split_at_checked(BEFORE) else { return Ok(None) };
        let (kind, len) =
            (before[0], u32::from_be_bytes([before[1], before[2], before[3], before[4]]));
        let len = len as usize;
        if kind == CHUNK {
            self.held.advance(BEFORE);
            self.of_chunk = len;
            // An empty one says nothing.
            let chunk = self.rest_of_chunk().unwrap_or_default();
            return Ok(Some((Part::Chunk(chunk), BEFORE)));
        }
        if len > MAX_PART {
            return Err(BadAnswer);
        }
        let Some(body) = after.get(..len) else { return Ok(None) };
        let part = decode(kind, body)?;
        self.held.advance(BEFORE + len);
        Ok(Some((part, BEFORE + len)))
    }

    fn rest_of_chunk(&mut self) -> Option<Bytes> {
        let chunk = self.held.split_to(self.of_chunk.min(self.held.len()));
        self.of_chunk -= chunk.len();
        (!chunk.is_empty()).then_some(chunk)
    }
}

fn decode(kind: u8, body: &[u8]) -> Result<Part, BadAnswer> {
    match kind {
        HEAD => head(body),
        END => postcard::from_bytes(body).map(Part::End).map_err(|_| BadAnswer),
        FAILED => {
            let (fault, words): (Fault, &str) =
                postcard::from_bytes(body).map_err(|_| BadAnswer)?;
            Ok(Part::Failed(fault, words.to_owned()))
        }
        _ => Err(BadAnswer),
    }
}

fn head(body: &[u8]) -> Result<Part, BadAnswer> {
    let head: WireHead<'_> = postcard::from_bytes(body).map_err(|_| BadAnswer)?;
    let status = StatusCode::from_u16(head.status).map_err(|_| BadAnswer)?;
    let headers = headers_of(&head.headers).ok_or(BadAnswer)?;
    Ok(Part::Head(Head { status, headers }))
}

/// Headers as they were sent.
pub(super) fn headers_of(sent: &[(&str, &[u8])]) -> Option<HeaderMap> {
    // Room for those that the API adds.
    let mut headers = HeaderMap::with_capacity(sent.len() + 8);
    for (name, value) in sent {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.try_append(name, HeaderValue::from_bytes(value).ok()?).ok()?;
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer() -> (Bytes, String) {
        let mut parts = Parts::default();
        let headers = [(http::header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
        parts.head(&Head { status: StatusCode::OK, headers: headers.into_iter().collect() });
        parts.chunk(b"data: 1\n\n");
        parts.chunk(b"");
        parts.chunk(b"data: 2\n\n");
        parts.end(Usage { completion_tokens: Some(7), ..Usage::default() });
        parts.failed(Fault::Declined, "gone");
        (
            parts.into_bytes(),
            "200 text/event-stream|data: 1\n\ndata: 2\n\n|Some(7)|Declined gone|".into(),
        )
    }

    /// The result of reading pieces that end at these places.
    fn read(bytes: &Bytes, cuts: &[usize]) -> String {
        let (mut reader, mut read, mut at, mut took) = (PartReader::default(), String::new(), 0, 0);
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            reader.push(bytes.slice(at..cut));
            at = cut;
            while let Some((part, overhead)) = reader.next().unwrap() {
                took += overhead;
                match part {
                    Part::Head(head) => {
                        let kind = head.headers["content-type"].to_str().unwrap().to_owned();
                        read += &format!("{} {kind}|", head.status.as_u16());
                    }
                    Part::Chunk(chunk) => {
                        took += chunk.len();
                        read += str::from_utf8(&chunk).unwrap();
                    }
                    Part::End(usage) => read += &format!("|{:?}|", usage.completion_tokens),
                    Part::Failed(fault, words) => read += &format!("{fault:?} {words}|"),
                }
            }
        }
        assert_eq!(took, bytes.len(), "every byte is accounted for");
        read
    }

    #[test]
    fn parts_that_are_too_long_or_unknown_are_refused() {
        for bad in [[9, 0, 0, 0, 0], [HEAD, 1, 0, 0, 0], [END, 0, 0, 0, 0]] {
            let mut reader = PartReader::default();
            reader.push(Bytes::copy_from_slice(&bad));
            assert!(reader.next().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn words_of_a_failure_are_clipped() {
        let mut parts = Parts::default();
        parts.failed(Fault::Worker, &"é".repeat(MAX_WORDS));
        assert!(parts.len() < MAX_WORDS + 20);
    }

    proptest! {
        #[test]
        fn an_answer_is_read_the_same_however_it_is_cut(cuts in proptest::collection::vec(0_usize..100, 0..9)) {
            let (bytes, expected) = answer();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            prop_assert_eq!(read(&bytes, &cuts), expected);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = PartReader::default();
            reader.push(bytes.into());
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}
