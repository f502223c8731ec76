//! A backend's answer as chunks of the mesh protocol. Pure.

use protocol::{
    json::clip,
    mesh::cluster::ErrorCode,
    openai::chunk,
    sse::{EventReader, EventTooLong, begins_like_sse},
};
use serde_json::value::RawValue;

use crate::share::Refusal;

/// The longest chunk that is sent, in bytes. In base64 it still fits into a frame of a stock mesh
/// relay.
const MAX_CHUNK: usize = 10 * 1024 * 1024;

/// Makes chunks of the bytes of an answer.
pub(super) struct Chunks {
    /// The model's name in the request, in JSON.
    requested_model: String,
    /// Whether the peer wants a chunk that has only the usage.
    asked_usage: bool,
    kind: Kind,
    /// Whether there was a chunk with choices.
    begun: bool,
    /// Whether the model has finished.
    finished: bool,
}

enum Kind {
    /// Not known yet, since a read may bring a single byte.
    Unknown(Vec<u8>),
    Events(EventReader),
    /// One JSON value, as far as it has come, because the backend does not stream.
    Whole(Vec<u8>),
}

impl Chunks {
    pub(super) fn new(requested_model: String, asked_usage: bool) -> Self {
        let kind = Kind::Unknown(Vec::new());
        Self { requested_model, asked_usage, kind, begun: false, finished: false }
    }

    /// Takes the next bytes, and adds the chunks that they complete to `out`.
    ///
    /// # Errors
    /// Why the answer failed. The chunks before the failure are in `out`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<Box<RawValue>>,
    ) -> Result<(), Refusal> {
        match &mut self.kind {
            Kind::Unknown(buffer) => {
                append(buffer, bytes)?;
                let begun = std::mem::take(buffer);
                self.begin(begun, out)
            }
            Kind::Whole(buffer) => append(buffer, bytes),
            Kind::Events(_) => self.events(|reader, event| reader.feed(bytes, event), out),
        }
    }

    /// Finds out the kind of the answer, if the bytes so far show it.
    fn begin(&mut self, begun: Vec<u8>, out: &mut Vec<Box<RawValue>>) -> Result<(), Refusal> {
        match begins_like_sse(&begun) {
            None => self.kind = Kind::Unknown(begun),
            Some(false) => self.kind = Kind::Whole(begun),
            Some(true) => {
                self.kind = Kind::Events(EventReader::default());
                self.events(|reader, event| reader.feed(&begun, event), out)?;
            }
        }
        Ok(())
    }

    /// Ends the answer. Adds the remaining chunks to `out`.
    ///
    /// # Errors
    /// As [`Chunks::feed`]; also when the answer was cut off or empty.
    pub(super) fn end(&mut self, out: &mut Vec<Box<RawValue>>) -> Result<(), Refusal> {
        match &mut self.kind {
            Kind::Unknown(buffer) if buffer.trim_ascii().is_empty() => {}
            Kind::Unknown(buffer) | Kind::Whole(buffer) => {
                let buffer = std::mem::take(buffer);
                self.whole(&buffer, out)?;
            }
            Kind::Events(_) => self.events(|reader, event| reader.end(event), out)?,
        }
        match (self.begun, self.finished) {
            (false, _) => Err(failed("the backend's answer was empty")),
            (true, false) => Err(failed("the backend's answer was cut off")),
            (true, true) => Ok(()),
        }
    }

    /// Reads events, and adds their chunks to `out`. The reader is taken out of `self` meanwhile,
    /// since each event changes `self`.
    fn events(
        &mut self,
        read: impl FnOnce(
            &mut EventReader,
            &mut dyn FnMut(&[u8]) -> Result<(), Refusal>,
        ) -> Result<(), Refusal>,
        out: &mut Vec<Box<RawValue>>,
    ) -> Result<(), Refusal> {
        let kind = std::mem::replace(&mut self.kind, Kind::Unknown(Vec::new()));
        let Kind::Events(mut reader) = kind else { return Ok(()) };
        let result = read(&mut reader, &mut |event| self.event(event, out));
        self.kind = Kind::Events(reader);
        result
    }

    fn event(&mut self, event: &[u8], out: &mut Vec<Box<RawValue>>) -> Result<(), Refusal> {
        let event = event.trim_ascii();
        if event == b"[DONE]" {
            self.finished = true;
            return Ok(());
        }
        if event.is_empty() {
            return Ok(());
        }
        let text = str::from_utf8(event).map_err(|_| failed("the backend's answer is no text"))?;
        self.chunk(text, out)
    }

    fn whole(&mut self, buffer: &[u8], out: &mut Vec<Box<RawValue>>) -> Result<(), Refusal> {
        let text = str::from_utf8(buffer).map_err(|_| failed("the backend's answer is no text"))?;
        let chunk = chunk::of_whole(text).map_err(|bad| failed(&bad.to_string()))?;
        self.finished = true;
        self.chunk(&chunk, out)
    }

    fn chunk(&mut self, text: &str, out: &mut Vec<Box<RawValue>>) -> Result<(), Refusal> {
        let look = chunk::look(text).map_err(|bad| failed(&bad.to_string()))?;
        if text.len() > MAX_CHUNK {
            return Err(failed("a chunk of the backend's answer is too long"));
        }
        self.finished |= look.finishes;
        if !look.has_choices && look.tells_usage && !self.asked_usage {
            return Ok(());
        }
        // The backend's name for its model may be a path on this machine, so the requested name
        // replaces it.
        let named = look.model_span.filter(|span| text[span.clone()] != self.requested_model);
        let text = match named {
            Some(span) => [&text[..span.start], &self.requested_model, &text[span.end..]].concat(),
            None => text.to_owned(),
        };
        self.begun |= look.has_choices;
        out.push(RawValue::from_string(text).map_err(|error| failed(&error.to_string()))?);
        Ok(())
    }
}

fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Refusal> {
    if buffer.len() + bytes.len() > MAX_CHUNK {
        return Err(failed("the backend's answer is too long"));
    }
    buffer.extend_from_slice(bytes);
    Ok(())
}

impl From<EventTooLong> for Refusal {
    fn from(too_long: EventTooLong) -> Self {
        failed(&too_long.to_string())
    }
}

fn failed(why: &str) -> Refusal {
    Refusal::new(ErrorCode::InternalError, clip(why, 4_096))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]], asked_usage: bool) -> (Vec<String>, Result<(), String>) {
        let mut chunks = Chunks::new("\"asked\"".to_owned(), asked_usage);
        let mut out = Vec::new();
        let fed = pieces.iter().try_for_each(|piece| chunks.feed(piece, &mut out));
        let result = fed.and_then(|()| chunks.end(&mut out)).map_err(|refusal| refusal.words);
        (out.iter().map(|chunk| chunk.get().to_owned()).collect(), result)
    }

    const DELTA: &str = r#"{"model":"asked","choices":[{"delta":{"content":"é"}}]}"#;
    const LAST: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    const USAGE: &str = r#"{"choices":[],"usage":{"total_tokens":1}}"#;

    #[test]
    fn events_are_chunks_however_they_are_split() {
        let stream = format!(
            ": hi\r\n\r\ndata:{DELTA}\n\ndata: {LAST}\n\ndata: {USAGE}\n\ndata: [DONE]\n\n"
        );
        for cut in 1..stream.len() {
            let (head, tail) = stream.as_bytes().split_at(cut);
            let (chunks, end) = all(&[head, tail], true);
            assert_eq!(
                (chunks, end),
                ([DELTA, LAST, USAGE].map(str::to_owned).to_vec(), Ok(())),
                "{cut}"
            );
        }
        assert_eq!(all(&[stream.as_bytes()], false).0.len(), 2, "usage that nobody asked for");
        let bytes: Vec<_> = stream.as_bytes()[": hi\r\n\r\n".len()..].chunks(1).collect();
        assert_eq!(all(&bytes, false).0.len(), 2, "a byte at a time, from the first on");
    }

    #[test]
    fn chunks_call_the_model_as_the_peer_does() {
        let stream =
            r#"data: {"a":1.50, "model" : "secret\/path", "choices":[{"finish_reason":"stop"}]}"#;
        let expected = r#"{"a":1.50, "model" : "asked", "choices":[{"finish_reason":"stop"}]}"#;
        assert_eq!(all(&[stream.as_bytes()], true), (vec![expected.to_owned()], Ok(())));
    }

    #[test]
    fn an_answer_that_is_no_stream_is_one_chunk() {
        let whole = br#"{"object":"chat.completion","choices":[{"message":{"content":"x"}}]}"#;
        let (chunks, end) = all(&[&whole[..9], &whole[9..]], true);
        let expected =
            r#"{"choices":[{"delta":{"content":"x"}}],"object":"chat.completion.chunk"}"#;
        assert_eq!((chunks, end), (vec![expected.to_owned()], Ok(())));
    }

    #[test]
    fn an_answer_that_breaks_off_or_contains_an_error_has_failed() {
        let begun = format!("data: {DELTA}\n\n");
        let with = |rest: &str| all(&[begun.as_bytes(), rest.as_bytes()], true);
        let cut_off = Err("the backend's answer was cut off".to_owned());
        assert_eq!(with("").1, cut_off);
        assert_eq!(with("data: {\"choices\":[]").0.len(), 1);
        let (chunks, end) = with("data: {\"error\":{\"message\":\"boom\"}}\n\ndata: [DONE]\n\n");
        assert_eq!((chunks.len(), end), (1, Err("boom".to_owned())));
        for empty in [&b""[..], b"data: [DONE]\n\n", b": only\n\n"] {
            let (chunks, end) = all(&[empty], true);
            assert!(chunks.is_empty() && end.is_err(), "{}", String::from_utf8_lossy(empty));
        }
        assert!(with("data: \u{fffd}no json\n\n").1.is_err());
        assert!(all(&[b"data: \xff\n\n"], true).1.is_err());
        assert!(all(&[b"<html>"], true).1.is_err());
    }

    #[test]
    fn the_buffered_part_of_an_answer_is_bounded() {
        let mut chunks = Chunks::new(String::new(), true);
        let mebibyte = vec![b'{'; 1024 * 1024];
        let fed = (0..11).take_while(|_| chunks.feed(&mebibyte, &mut Vec::new()).is_ok()).count();
        assert_eq!(fed, MAX_CHUNK / mebibyte.len());
    }
}
